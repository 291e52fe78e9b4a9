"""Runs damaged on purpose, as when a file system fills up or a job is killed while its results are written."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

_DAMAGED: Mapping[str, tuple[str, int]] = {"quartz": ("Kripke", 20), "ruby": ("Kripke", 21)}
"""Application, and place in its sequence, of the one run that is damaged on purpose, by machine."""


@dataclass(frozen=True)
class _Accident:
    """What happened to the last file that matches a pattern."""

    pattern: str
    kept_share: float | None
    """Share of the file's bytes that is left; None: the file is missing."""


_ACCIDENTS: Mapping[str, tuple[_Accident, ...]] = {
    "quartz": (_Accident("set*/*.metric-db", 0.6), _Accident("set*/experiment.xml", None)),
    "ruby": (_Accident("set*/profile.db", 0.6), _Accident("set*/meta.db", None)),
}


def is_damaged(machine: str, app: str, index: int) -> bool:
    """Whether this configuration (by its place in the application's sequence) is damaged on a machine."""
    return _DAMAGED.get(machine) == (app, index)


def with_damage(write: Callable[[Path], None], machine: str, index: int) -> Callable[[Path], None]:
    """Files after an accident."""
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
