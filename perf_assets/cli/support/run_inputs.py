"""What the paths of xAMM's configuration file name, read."""

from pathlib import Path
from typing import TYPE_CHECKING

from perf_assets.cli.support.tables import read_table
from perf_assets.core.errors import BadInputError

if TYPE_CHECKING:
    from perf_assets.core.measurements import KernelTiming
    from perf_assets.features.tables.xamm_benchmarks import BenchmarkTable

_TABLE_ENDINGS = (".csv", ".tsv", ".txt", ".parquet")


def read_benchmarks(field: str, path: Path) -> "BenchmarkTable":
    """Benchmark runs of one machine or of many: tables, or RAJAPerf outputs; the field's name is for messages."""
    from perf_assets.features.tables.xamm_benchmarks import benchmark_table, suite_tables

    if not path.exists():
        raise BadInputError(f"{field}: {path} does not exist")
    timings: dict[str, list[KernelTiming]] = {}
    tables = {}
    for entry in _entries(path):
        name = entry.stem if entry.is_file() else entry.name
        if name in timings or name in tables:
            raise BadInputError(f"{field}: two entries of {path.name} are named {name!r}")
        if _is_rajaperf(entry):
            from perf_assets.readers.read import read

            timings[name] = read(entry, "rajaperf").timings
        elif entry.is_file():
            tables[name] = read_table(entry)
        else:
            raise BadInputError(f"{field}: no RAJAPerf results in the folder {entry}")
    if not timings and not tables:
        raise BadInputError(f"{field}: no table and no RAJAPerf results in {path}")
    return benchmark_table({**tables, **(suite_tables(timings) if timings else {})})


def _entries(path: Path) -> list[Path]:
    """One a machine: the file, the folder with RAJAPerf reports in it, or all tables and sub-folders of a folder."""
    if path.is_file():
        return [path]
    found = sorted(entry for entry in path.iterdir() if not entry.name.startswith("."))
    files = [entry for entry in found if entry.is_file()]
    if any(_is_rajaperf(file) for file in files):
        return [path]
    return [entry for entry in found if entry.is_dir() or entry.suffix.lower() in _TABLE_ENDINGS]


def _is_rajaperf(path: Path) -> bool:
    """Whether a file is an output of RAJAPerf, or a folder holds some."""
    from perf_assets.readers.files import scan
    from perf_assets.readers.formats import kind_of
    from perf_assets.readers.read import RAJAPERF_KINDS

    return any(kind_of(source.head) in RAJAPERF_KINDS for source in scan(path))
