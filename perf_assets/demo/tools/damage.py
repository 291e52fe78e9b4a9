"""Runs that failed: the file system filled up, or the job was killed while its results were written or copied."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from zlib import crc32

_PERIOD = 130
"""One configuration out of this many fails."""


@dataclass(frozen=True)
class _Accident:
    """What happened to the last file that matches a pattern."""

    pattern: str
    kept_share: float | None
    """Of the file's bytes; None: the file is missing."""


_ACCIDENTS: Mapping[str, tuple[_Accident, ...]] = {
    "quartz": (_Accident("set*/*.metric-db", 0.6), _Accident("set*/experiment.xml", None)),
    "ruby": (_Accident("set*/profile.db", 0.6), _Accident("set*/meta.db", None)),
    "corona": (_Accident("set*/profile.db", None), _Accident("set*/meta.db", 0.6)),
    "lassen": (_Accident("set*/profile.db", 0.6), _Accident("set*/meta.db", None)),
    "dane": (_Accident("set*/papi_hl_output/rank_*.json", 0.6),),
    # perf writes its file at the very end.
    "epyc-vm": (_Accident("perf-stat.csv", 0.0),),
}


def is_damaged(machine: str, app: str, index: int) -> bool:
    """Whether this configuration (by its place in the application's sequence) failed on a machine."""
    return (index + crc32(f"{machine}|{app}".encode())) % _PERIOD == 0


def with_damage(write: Callable[[Path], None], machine: str, index: int) -> Callable[[Path], None]:
    """The same files after an accident."""
    accidents = _ACCIDENTS[machine]
    accident = accidents[index % len(accidents)]

    def damaged(directory: Path) -> None:
        write(directory)
        victim = sorted(directory.glob(accident.pattern))[-1]
        content = victim.read_bytes()
        if accident.kept_share is None:
            victim.unlink()
        else:
            victim.write_bytes(content[: int(len(content) * accident.kept_share)])

    return damaged
