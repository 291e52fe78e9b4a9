"""The vocabulary, fourth part: what relative-performance vectors were scored with."""

from perf_assets.core.tables.schema import IS_SIMULATED, Column, Table, Type
from perf_assets.core.tables.verdicts import CHALLENGER, PROMOTED

ALL_APPS = "(all)"
"""Placeholder for all applications together."""
PAPER_MACHINES = ("quartz", "ruby", "corona", "lassen")
PAPER_PROTOCOL = "paper"
"""Unseen configurations on the four machines of Nichols et al. alone."""


def _share(name: str, description: str) -> Column:
    return Column(name, Type.REAL, description, unit="ratio", nullable=True, minimum=0.0, maximum=1.0)


VECTOR_SCORES = Table(
    "eval_vector__scores",
    "Scores of relative-performance vectors on held-out configurations (protocol sample: 80/20, a configuration with "
    "all its samples; protocol paper: the same with the four machines of the paper alone) and held-out applications "
    "(protocol app). All methods of a protocol are scored on the same rows; none where no sample ran on the reference.",
    key=("protocol", "method", "seed", "app"),
    columns=(
        Column("protocol", Type.TEXT, "What was held out", allowed=("sample", "app", PAPER_PROTOCOL)),
        Column("method", Type.TEXT, "Method, or baseline"),
        Column("seed", Type.INTEGER, "Seed of the split and of all that is random", minimum=0),
        Column("app", Type.TEXT, f"Application of the held-out samples, or {ALL_APPS}"),
        Column("relative_to", Type.TEXT, "Reference: max (slowest), min (fastest), or a machine"),
        Column("r2", Type.REAL, "R2 of relative times, about the mean of all entries", nullable=True),
        Column("r2_per_machine", Type.REAL, "The same about the mean of each machine", nullable=True),
        Column("mae_ratio", Type.REAL, "Mean |predicted - true| of relative times", unit="ratio", nullable=True),
        Column("mape_ratio", Type.REAL, "Mean |predicted / true - 1|", unit="ratio", nullable=True),
        _share("same_order_ratio", "Share of samples with all machines in the true order"),
        _share("top1_ratio", "Share of samples whose fastest machine is found"),
        Column("regret_ratio", Type.REAL, "Mean extra time on the predicted best machine", unit="ratio", nullable=True),
        _share("auc_ratio", "Area under the ROC curve of 'the majority order holds'"),
        _share("coverage_ratio", "Share of relative times within their 90% intervals; of methods that give some"),
        _share("stated_order_ratio", "Mean stated probability of the order; to be compared with same_order_ratio"),
        Column("samples_count", Type.INTEGER, "Held-out samples", unit="count", minimum=1),
        IS_SIMULATED,
    ),
)

VECTOR_VERDICTS = Table(
    "eval_vector__verdicts",
    "Models of relative-performance vectors as they were judged when they were registered: error of log relative times "
    "on held-out samples beside that of the mean vector and of the champion, and what was decided.",
    key=("version",),
    columns=(
        Column("version", Type.INTEGER, "Version of perf-relative-vector in MLflow", minimum=1),
        Column("judged_at", Type.TIMESTAMP, "When, in UTC"),
        Column("decision", Type.TEXT, "Whether it became champion", allowed=(PROMOTED, CHALLENGER)),
        Column("reason", Type.TEXT, "Why, for people"),
        Column("machines", Type.TEXT, "Machines that it speaks of"),
        Column("held_out_count", Type.INTEGER, "Held-out samples that it was judged on", unit="count", minimum=0),
        Column("log_rmse", Type.REAL, "Root mean square error on unseen configurations", minimum=0.0),
        Column("mean_vector_log_rmse", Type.REAL, "Error of the mean vector as every answer", minimum=0.0),
        Column("champion_version", Type.INTEGER, "Champion at that time", nullable=True, minimum=1),
        Column("champion_log_rmse", Type.REAL, "The champion's on shared samples", nullable=True, minimum=0.0),
        Column("application_log_rmse", Type.REAL, "Root mean square error on unseen applications", minimum=0.0),
        Column(
            "champion_application_log_rmse", Type.REAL, "The champion's on shared samples", nullable=True, minimum=0.0
        ),
        Column("threshold_ratio", Type.REAL, "Most that its squared error may be over the others'", minimum=0.0),
        IS_SIMULATED,
    ),
)

VECTOR_GROWTH = Table(
    "eval_vector__growth",
    "A machine joins the fleet: error of its relative times over the number of its runs, beside baselines on the same "
    "rows; every machine in turn.",
    key=("machine", "shots", "seed", "method"),
    columns=(
        Column("machine", Type.TEXT, "The new machine"),
        Column("shots", Type.INTEGER, "Runs on it that were given", unit="count", minimum=1),
        Column("seed", Type.INTEGER, "Seed of the split and of the shots", minimum=0),
        Column("method", Type.TEXT, "head, constant, from_nothing or retrained"),
        Column(
            "mape_ratio", Type.REAL, "Mean |predicted / true - 1| of the time on it / time on the source", unit="ratio"
        ),
        Column("samples_count", Type.INTEGER, "Held-out samples", unit="count", minimum=1),
        IS_SIMULATED,
    ),
)
