"""The vocabulary, fourth part: how times follow the width of a run, and what schedules are worth."""

from perf_assets.core.tables.schema import IS_SIMULATED, MACHINE, Column, Table, Type

TURNAROUND = Table(
    "out_schedule__turnaround",
    "What predictions are worth to a scheduler: a job trace is scheduled by several strategies at several loads. The "
    "trace says when jobs come, how wide and how long they are; the fleet says how they scale; target models predict.",
    key=("strategy", "load_ratio", "repetition"),
    columns=(
        Column("trace", Type.TEXT, "Job trace"),
        Column("trace_path", Type.TEXT, "File of the trace; none where it is the simulated one", nullable=True),
        Column("seed", Type.INTEGER, "Seed of which job is which problem, and of drawn jobs", minimum=0),
        Column("machine", Type.TEXT, "Machine of the fleet whose runs say how jobs scale"),
        Column("champion_version", Type.INTEGER, "Version of the machine's target model that predicted", minimum=1),
        Column("nodes_count", Type.INTEGER, "Nodes of the scheduled machine", unit="count", minimum=1),
        Column("strategy", Type.TEXT, "Practice, oracle or predictor; rigid or moldable"),
        Column("policy", Type.TEXT, "Scheduling policy"),
        Column("estimates", Type.TEXT, "What is planned with", allowed=("user", "oracle", "predicted", "bound")),
        Column("kill_at", Type.TEXT, "Where jobs are killed", allowed=("request", "bound", "never")),
        Column("is_moldable", Type.BOOLEAN, "Whether jobs may run on fewer nodes than they asked for"),
        Column("load_ratio", Type.REAL, "Node-seconds that come in over those there are", unit="ratio", minimum=0.0),
        Column("repetition", Type.INTEGER, "0 is the trace as it is; others have shaken submissions", minimum=0),
        Column("jobs_count", Type.INTEGER, "Jobs", unit="count", minimum=1),
        Column("turnaround_mean_seconds", Type.REAL, "From submission to end", unit="seconds", minimum=0.0),
        Column("turnaround_median_seconds", Type.REAL, "Median of it", unit="seconds", minimum=0.0),
        Column("turnaround_p95_seconds", Type.REAL, "95th percentile of it", unit="seconds", minimum=0.0),
        Column("wait_mean_seconds", Type.REAL, "From submission to start", unit="seconds", minimum=0.0),
        Column("wait_p95_seconds", Type.REAL, "95th percentile of it", unit="seconds", minimum=0.0),
        Column("bounded_slowdown_mean", Type.REAL, "(wait + run) / max(run, 10 s), at least 1", minimum=1.0),
        Column("bounded_slowdown_p95", Type.REAL, "95th percentile of it", minimum=1.0),
        Column("makespan_seconds", Type.REAL, "First submission to last end", unit="seconds", minimum=0.0),
        Column("utilisation_ratio", Type.REAL, "Node-seconds used until the last end", unit="ratio", minimum=0.0),
        Column("node_hours", Type.REAL, "Node-hours used", minimum=0.0),
        Column("killed_count", Type.INTEGER, "Jobs that were killed", unit="count", minimum=0),
        Column("killed_node_hours", Type.REAL, "Node-hours of jobs that were killed", minimum=0.0),
        Column("underestimated_count", Type.INTEGER, "Jobs that ran longer than planned", unit="count", minimum=0),
        Column(
            "promises_broken_count", Type.INTEGER, "Heads that started later than promised", unit="count", minimum=0
        ),
        Column("is_trace_simulated", Type.BOOLEAN, "Whether the trace is simulated, too"),
        IS_SIMULATED,
    ),
)


def _error(name: str, of: str) -> Column:
    return Column(name, Type.REAL, f"Mean |predicted / true - 1| of {of}", unit="ratio", minimum=0.0)


SCALING = Table(
    "eval_scaling__widths",
    "How well the time at a width that was not run is known, by machine and application: every width is left out in "
    "turn and predicted from the others, by the model of scaling and by what it is compared with, on the same runs. "
    "Applications that ran on fewer than four widths are not here: with one left out there is no model of scaling.",
    key=("machine", "app"),
    columns=(
        MACHINE,
        Column("app", Type.TEXT, "Application"),
        Column("width", Type.TEXT, "What the width is: ranks where runs do not say nodes", allowed=("nodes", "ranks")),
        Column("runs_count", Type.INTEGER, "Configurations with a time", unit="count", minimum=1),
        Column("widths_count", Type.INTEGER, "Widths, each left out in turn", unit="count", minimum=4),
        _error("mape_ratio", "the model of scaling"),
        _error("nearest_width_mape_ratio", "the same run on the nearest width that was run"),
        _error("power_law_mape_ratio", "a power law of all parameters"),
        _error("amdahl_mape_ratio", "Amdahl's law"),
        _error("extra_p_mape_ratio", "Extra-P's normal form"),
        Column("inside_ratio", Type.REAL, "Runs inside of the model's 90% interval", unit="ratio", minimum=0.0),
        IS_SIMULATED,
    ),
)
