"""The vocabulary, second part: tables of application configurations, derived from the raw ones."""

from perf_assets.core.tables.canonical import VECTOR_FEATURES, XAMM_FEATURES, Feature
from perf_assets.core.tables.schema import COUNTER, IS_SIMULATED, MACHINE, RUNNING_RATIO, UNIT, Column, Table, Type

CONFIGURATION = ("app", "args", "ranks", "threads")
"""What makes two runs on two machines runs of the same thing."""

_CONFIGURATION = (
    Column("app", Type.TEXT, "Application"),
    Column("args", Type.TEXT, "Arguments without those of the back end; a sample without any has its own name"),
    Column("ranks", Type.INTEGER, "MPI ranks", unit="count", minimum=1),
    Column("threads", Type.INTEGER, "Threads of a rank", unit="count", minimum=1),
)
_RUNS = (
    Column("runs_count", Type.INTEGER, "Profiling runs behind it", unit="count", minimum=1),
    Column("runs", Type.TEXT, "Those runs, as a JSON list of bundle/run"),
)
_RUN_COLUMNS = (
    MACHINE,
    *_CONFIGURATION,
    Column("nodes", Type.INTEGER, "Nodes", unit="count", nullable=True, minimum=1),
    Column("gpus", Type.INTEGER, "GPUs used in all", unit="count", nullable=True, minimum=0),
    Column(
        "wall_seconds", Type.REAL, "Run time, median of the runs", unit="seconds", nullable=True, exclusive_minimum=0
    ),
    Column("wall_seconds_min", Type.REAL, "Fastest run", unit="seconds", nullable=True, exclusive_minimum=0),
    Column("wall_seconds_max", Type.REAL, "Slowest run", unit="seconds", nullable=True, exclusive_minimum=0),
    *_RUNS,
)

MERGED_COUNTERS = Table(
    "core_runs__counters",
    "Counters of application configurations, merged over the profiling runs of each: a counter is taken from the runs "
    "that have it.",
    key=("machine", *CONFIGURATION, "counter"),
    columns=(
        MACHINE,
        *_CONFIGURATION,
        COUNTER,
        UNIT,
        Column("value", Type.REAL, "Sum over ranks and threads, divided by ranks; median of the runs that have it"),
        Column("value_min", Type.REAL, "Smallest of these runs"),
        Column("value_max", Type.REAL, "Largest of these runs"),
        Column(
            "value_per_instruction",
            Type.REAL,
            "The same divided by the instructions of the same run; median of the runs that have both",
            nullable=True,
        ),
        RUNNING_RATIO,
        *_RUNS,
    ),
)


def _feature_table(name: str, description: str, features: tuple[Feature, ...]) -> Table:
    return Table(
        name,
        description,
        key=("machine", *CONFIGURATION),
        columns=(
            *_RUN_COLUMNS,
            *(feature.column() for feature in features),
            Column("missing_mask", Type.INTEGER, "Bit i is set where feature i (from 0) is missing", minimum=0),
            Column("formulas", Type.TEXT, "Counters behind each quantity, as a JSON object; the same for a machine"),
            IS_SIMULATED,
        ),
    )


FEATURES = _feature_table(
    "core_runs__features",
    "The 14 canonical features of xAMM (Table II), one row per application configuration. What a machine cannot "
    "measure is missing, never -1. Counts and bytes are sums over ranks and threads divided by ranks.",
    XAMM_FEATURES,
)
VECTOR_FEATURES_TABLE = _feature_table(
    "core_runs__vector_features",
    "The canonical features of relative-performance vectors (Nichols et al.), one row per application configuration.",
    VECTOR_FEATURES,
)
COUNTERS_WIDE = "core_runs__counters_wide"
"""Schema with one table per machine: a row per configuration, a column per counter of that machine."""

UNMATCHED = Table(
    "core_pairs__unmatched",
    "Configurations of a machine that have no counterpart on another machine, and why.",
    key=("machine", "other_machine", *CONFIGURATION),
    columns=(
        MACHINE,
        Column("other_machine", Type.TEXT, "Machine without the counterpart"),
        *_CONFIGURATION,
        Column("reason", Type.TEXT, "Why there is none"),
    ),
    of_machine="$machine IN (machine, other_machine)",
)

DERIVED_TABLES = (MERGED_COUNTERS, FEATURES, VECTOR_FEATURES_TABLE, UNMATCHED)
