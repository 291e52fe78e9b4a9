"""The vocabulary, second part: tables of application configurations, derived from the raw ones."""

from perf_assets.core.environment import UNKNOWN
from perf_assets.core.tables.canonical import VECTOR_FEATURES, XAMM_FEATURES, Feature
from perf_assets.core.tables.schema import COUNTER, IS_SIMULATED, MACHINE, RUNNING_RATIO, UNIT, Column, Table, Type

CONFIGURATION = ("app", "args", "ranks", "threads")
"""Columns that two runs on two machines share where they are runs of the same configuration."""

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

ENVIRONMENTS = Table(
    "core_runs__environments",
    "The software that a machine's runs were made with, by application; runs on GPUs are often of another build, and "
    "count by themselves (`SW4lite on GPUs`, `RAJAPerf on GPUs`). One is "
    "the default: the one that was named, or the newest that has at least half of the configurations of the largest. "
    "All tables of configurations and kernel times are of it, and of runs that say less of their software and "
    "contradict nothing; a time counts from the latter only where the default has none.",
    key=("machine", "app", "environment"),
    columns=(
        MACHINE,
        Column("app", Type.TEXT, "Application, with ` on GPUs` where its runs used some"),
        Column("environment", Type.TEXT, "Software, as parts between `; `; `unknown` where no file says"),
        Column("environment_digest", Type.TEXT, "Short name of it"),
        Column("runs_count", Type.INTEGER, "Runs made with it", unit="count", minimum=1),
        Column("configurations_count", Type.INTEGER, "Different configurations among them", unit="count", minimum=1),
        Column("newest_at", Type.TIMESTAMP, "When the newest of them was measured (UTC)", nullable=True),
        Column("is_named", Type.BOOLEAN, "Whether a person chose it as default"),
        Column("is_default", Type.BOOLEAN, "Whether it is the default"),
        Column("is_counted", Type.BOOLEAN, "Whether its runs count: it is the default, or says less than it"),
    ),
)
RAJAPERF_APP = """
    CASE WHEN regexp_matches(variant, 'CUDA|HIP|SYCL|OpenMPTarget') THEN 'RAJAPerf on GPUs' ELSE 'RAJAPerf' END
"""
"""SQL of what kernel runs are called among environments: those on GPUs are often of another build."""
_RUN_APP = "runs.app || CASE WHEN runs.gpus > 0 THEN ' on GPUs' ELSE '' END"
"""SQL of what application runs are called among environments."""
TIMED_RUNS = f"""(
    SELECT machine, {_RUN_APP} AS app, coalesce(environment, '{UNKNOWN}') AS environment,
           hash(args, ranks, threads) AS configuration, bundle || '/' || run AS run, collected_at,
           wall_seconds AS seconds
    FROM raw_profiles__runs AS runs
    UNION ALL
    SELECT machine, {RAJAPERF_APP}, coalesce(environment, '{UNKNOWN}'),
           hash(kernel, problem_size, variant, tuning, threads), bundle || '/' || run, collected_at, seconds_per_rep
    FROM raw_rajaperf__timings JOIN raw_landing__bundles USING (machine, bundle)
    WHERE is_valid AND seconds_per_rep > 0
)"""
"""SQL of everything that was timed, in all environments; a kernel is a configuration of RAJAPerf."""
CURRENT_RUNS = f"""(
    SELECT runs.*, is_default FROM raw_profiles__runs AS runs
    JOIN {ENVIRONMENTS.name} AS made ON made.machine = runs.machine AND made.app = {_RUN_APP}
        AND made.environment = coalesce(runs.environment, '{UNKNOWN}')
    WHERE is_counted
)"""
"""SQL of the application runs that count, and whether each is of the default environment itself."""

DERIVED_TABLES = (ENVIRONMENTS, MERGED_COUNTERS, FEATURES, VECTOR_FEATURES_TABLE, UNMATCHED)
