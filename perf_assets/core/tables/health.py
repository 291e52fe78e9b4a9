"""The vocabulary, eighth part: how machines perform, against their own past."""

from perf_assets.core.tables.schema import IS_SIMULATED, MACHINE, Column, Table, Type

CORE, NODE, DEVICE = "core", "node", "device"
COMPUTE, MEMORY, CACHE, LAUNCH, OTHER = "compute", "memory", "cache", "launch", "other"

HEALTH = Table(
    "eval_machines__health",
    "RAJAPerf runs of a machine against its own past, one row per group of kernels and period between two changes of "
    "their time. Runs with the same sizes and threads are compared; a group's level is the median of log(seconds / "
    "seconds of the first run) over its kernels. Without a change, a second period begins with 1% chance at most per "
    "machine, however often one looks.",
    key=("machine", "setting", "place", "kind", "began_at"),
    columns=(
        MACHINE,
        Column("setting", Type.TEXT, "Problem size, ranks and threads of the runs"),
        Column("place", Type.TEXT, "Where the kernels ran: one core, all threads, a GPU", allowed=(CORE, NODE, DEVICE)),
        Column(
            "kind",
            Type.TEXT,
            "What limits these kernels; `other` is in between, or not known",
            allowed=(COMPUTE, MEMORY, CACHE, LAUNCH, OTHER),
        ),
        Column("began_at", Type.TIMESTAMP, "First run of the period (UTC)"),
        Column("newest_at", Type.TIMESTAMP, "Last run of the period (UTC)"),
        Column("runs_count", Type.INTEGER, "Runs in the period", unit="count", minimum=1),
        Column("kernels_count", Type.INTEGER, "Kernels of the group", unit="count", minimum=1),
        Column("time_ratio", Type.REAL, "Seconds over those of the first run, median", exclusive_minimum=0),
        Column("recent_time_ratio", Type.REAL, "The same of the last three runs", exclusive_minimum=0),
        Column(
            "log10_evidence",
            Type.REAL,
            "Most that bets on a further change have won, as a power of ten: 3.4 ends a period of the first setting",
        ),
        Column("environment", Type.TEXT, "Software of the period's first run, as far as is known", nullable=True),
        IS_SIMULATED,
    ),
)
