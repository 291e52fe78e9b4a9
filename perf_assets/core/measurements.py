"""Content of a file as a reader returns it: kernel timings of a benchmark run and whole-program profiles.

All times are seconds and all sizes bytes; a metric keeps the unit that its tool wrote.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

RUN_TIMES = frozenset({"REALTIME", "real_time_nsec", "duration_time"})
"""Names of the run time in HPCToolkit, PAPI and perf: it is kept beside the counters, but is not a counter."""

RELATIVE_TIME = "relative time"
"""Label of runs whose time is relative to that on some machine, and not in seconds; its value says to which, as in
`to quartz`."""


def is_run_time(metric: str) -> bool:
    """Whether a metric is the run time, whatever unit its name carries."""
    return metric.partition(" ")[0] in RUN_TIMES


@dataclass(frozen=True, slots=True)
class KernelTiming:
    """One RAJAPerf kernel, variant and tuning of one run."""

    run: str
    """Identity of the run: path prefix of its reports, relative to the folder that was read."""
    kernel: str
    variant: str
    tuning: str
    problem_size: int | None
    """Actual size, not the requested one."""
    reps: int | None
    ranks: int | None
    """MPI ranks; 0 for a run without MPI."""
    threads: int | None
    """OpenMP threads; None where the files do not say."""
    seconds_per_rep: float | None
    seconds_per_rep_min: float | None
    seconds_per_rep_max: float | None
    bytes_per_rep: float | None
    flops_per_rep: float | None
    is_valid: bool
    invalid_reason: str | None = None
    counters: dict[str, float] = field(default_factory=dict)
    """Further measurements of the kernel, by the tool's own name (top-down shares …)."""
    environment: str | None = None
    """Software that it was made with, where the files say."""


@dataclass(frozen=True, slots=True)
class MetricTotal:
    """Inclusive total of one metric at the root of a program."""

    sum: float
    """Over all ranks and threads."""
    mean_over_ranks: float
    """`sum` divided by the number of ranks."""
    min: float
    """Smallest value of one profile (rank and thread)."""
    max: float
    """Largest value of one profile (rank and thread)."""
    unit: str
    """Unit as the tool names it: sec, usec, bytes, count …"""
    running_ratio: float | None = None
    """Share of the run in which a multiplexed counter was live; None where the tool does not say."""


@dataclass(frozen=True, slots=True)
class Region:
    """Time of a region that a program was annotated with, inclusive of the regions in it."""

    path: tuple[str, ...]
    time: MetricTotal
    """Seconds over the ranks that came there."""
    is_communication: bool
    """Whether it is a call of MPI."""


@dataclass(frozen=True, slots=True)
class Profile:
    """Whole-program totals of one application run."""

    run: str
    """Path of the profile relative to what was read, `.` for the thing itself; a table adds `#row`."""
    ranks: int
    threads_per_rank: int
    metrics: dict[str, MetricTotal]
    """Metrics by the tool's own name, without HPCToolkit's ` (I)` or `:Sum (I)` suffix."""
    wall_seconds: float | None = None
    hosts: int | None = None
    labels: dict[str, str] = field(default_factory=dict)
    """Other facts that the file gives of this run, as text. `perf-assets land` takes the machine from `cluster` or
    `machine`, the application from `app` or `program`, arguments from `args`, the date from `launched_at`, ranks from
    `jobsize`; `counters` = "simulated" marks counts that were not measured; all others are kept as they are.
    """
    regions: Sequence[Region] = ()
    """Regions in which the time went, for tools that say."""


@dataclass(frozen=True, slots=True)
class Reading:
    """All that was found in one file or directory."""

    format: str
    metadata: dict[str, str] = field(default_factory=dict)
    timings: list[KernelTiming] = field(default_factory=list)
    profiles: Sequence[Profile] = field(default_factory=list)
    """A list, or for a large table of samples a sequence that makes its profiles when asked."""
