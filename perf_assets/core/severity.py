"""How hard a transfer is, as models measure it and pages show it."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Severity:
    """Severity with what it must be compared with."""

    severity: float
    """Root mean squared error of the source's functions on the shots, or angle between directions (0 to 1)."""
    floor: float
    """What severity 0 looks like: the source on rows of its own."""
    ceiling: float
    """What no relation looks like: the target's labels shuffled."""
    rescaled: float
    """0 at the floor, 1 at the ceiling."""
    rows_count: int
    measure: str
    """`functions` where source and target share features, else `directions`."""
