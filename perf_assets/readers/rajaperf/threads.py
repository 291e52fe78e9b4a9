"""Number of threads of a RAJAPerf variant, which no report states."""

import re
from collections.abc import Iterable

from perf_assets.readers.files import SourceFile

_COMMAND = re.compile(rb"\bOMP_NUM_THREADS=(\d{1,6})\b[^\n]*")
_ACCELERATORS = ("CUDA", "HIP", "SYCL", "OpenMPTarget")


def threads_of(variant: str, omp_threads: int | None) -> int | None:
    """Threads of a rank: those of OpenMP for OpenMP variants, 1 for sequential ones, else unknown."""
    if any(name in variant for name in _ACCELERATORS):
        return None
    if "OpenMP" in variant:
        return omp_threads
    return 1 if "_Seq" in variant else None


def threads_in_command(sources: Iterable[SourceFile]) -> tuple[int | None, str | None]:
    """OpenMP threads and the line of a file that holds the command of the run, if there is one."""
    for source in sources:
        match = _COMMAND.search(source.head)
        if match and int(match[1]) > 0:
            return int(match[1]), match[0].decode("utf-8", "replace")
    return None, None
