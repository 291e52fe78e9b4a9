"""How hard a transfer is, as models measure it and pages show it."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Severity:
    """Severity with what it must be compared with; all from 0 to 1."""

    severity: float
    floor: float
    """Split halves of the source, one of them at the target's number of rows: what severity 0 looks like."""
    ceiling: float
    """Source against target with shuffled labels: what no relation looks like."""
    rescaled: float
    """0 at the floor, 1 at the ceiling."""
    rows_count: int
    bins_count: int
