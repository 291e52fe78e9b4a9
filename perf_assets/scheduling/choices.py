"""Choices for a scheduler: its policy, the times that it plans with, the limits at which it kills."""

from dataclasses import dataclass
from enum import Enum

from perf_assets.core.errors import BadInputError

KILL_TARGET = 0.01


class Policy(Enum):
    """Rule that decides which job starts."""

    FCFS = "fcfs"
    """First come, first served: nobody passes the head of the queue."""
    SJF = "sjf"
    """The job with the shortest estimate is the head; nobody passes it."""
    EASY = "easy"
    """First come, first served; others may pass the head if they do not delay it."""
    EASY_SJBF = "easy-sjbf"
    """EASY backfilling with the shortest of the waiting jobs first."""
    CONSERVATIVE = "conservative"
    """Others may pass if they delay nobody who came before them."""


class Estimates(Enum):
    """Run times that a scheduler plans with."""

    USER = "user"
    """The time that the user asked for."""
    ORACLE = "oracle"
    """The run time itself: what perfect predictions would give."""
    PREDICTED = "predicted"
    """The median of what jobs like this one took; corrected upwards where a job runs longer."""
    BOUND = "bound"
    """An upper bound that past jobs stayed below but for the kill target."""


class KillAt(Enum):
    """Limit at which a running job is ended."""

    REQUEST = "request"
    """Kill at the time that the user asked for, as is usual."""
    BOUND = "bound"
    """Kill at the predicted bound."""
    NEVER = "never"


@dataclass(frozen=True)
class Planning:
    """Run times that a scheduler plans with, and limits at which it kills."""

    estimates: Estimates = Estimates.USER
    kill_at: KillAt = KillAt.REQUEST
    kill_target: float = KILL_TARGET

    def __post_init__(self) -> None:
        if self.kill_at is KillAt.BOUND and self.estimates in (Estimates.USER, Estimates.ORACLE):
            raise BadInputError("jobs can be killed at the bound only where estimates are predicted")

    @property
    def learns(self) -> bool:
        """Whether estimates come from jobs that have ended."""
        return self.estimates in (Estimates.PREDICTED, Estimates.BOUND)
