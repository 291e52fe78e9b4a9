"""The vocabulary, fourth part: what became of every target model that was registered."""

from perf_assets.core.tables.schema import IS_SIMULATED, MACHINE, Column, Table, Type

PROMOTED, CHALLENGER = "promoted", "challenger"

VERDICTS = Table(
    "eval_target__verdicts",
    "Target models as they were judged when they were registered: their error beside that of the champion and of the "
    "best target-only baseline on the same held-out runs, what was decided, and whether new runs had contradicted the "
    "champion.",
    key=("machine", "version"),
    columns=(
        MACHINE,
        Column("version", Type.INTEGER, "Version in MLflow", minimum=1),
        Column("judged_at", Type.TIMESTAMP, "When, in UTC"),
        Column("decision", Type.TEXT, "Whether it became champion", allowed=(PROMOTED, CHALLENGER)),
        Column("reason", Type.TEXT, "Why, for people"),
        Column("shots", Type.INTEGER, "Runs on the machine that it was fitted to", unit="count", minimum=0),
        Column("held_out_count", Type.INTEGER, "Held-out runs that it was judged on", unit="count", minimum=0),
        Column("mape_ratio", Type.REAL, "Mean |predicted / true - 1|", unit="ratio", nullable=True, minimum=0.0),
        Column("log_rmse", Type.REAL, "Root mean square of log(predicted / true)", nullable=True, minimum=0.0),
        Column("champion_version", Type.INTEGER, "Champion at that time", nullable=True, minimum=1),
        Column("champion_log_rmse", Type.REAL, "The champion's on the same runs", nullable=True, minimum=0.0),
        Column("target_only_mape_ratio", Type.REAL, "The best target-only baseline's", nullable=True, minimum=0.0),
        Column("target_only_log_rmse", Type.REAL, "The best target-only baseline's", nullable=True, minimum=0.0),
        Column(
            "threshold_ratio",
            Type.REAL,
            "Most that its squared error may be, over the champion's and over the baseline's",
            unit="ratio",
            minimum=0.0,
        ),
        Column(
            "severity_ratio",
            Type.REAL,
            "How hard the transfer is: 0 as a machine to itself, 1 where nothing is in common; the hardest view",
            unit="ratio",
            nullable=True,
            minimum=0.0,
            maximum=1.0,
        ),
        Column("new_runs_count", Type.INTEGER, "Runs that the champion had not seen", unit="count", minimum=0),
        Column("outside_count", Type.INTEGER, "Of these, outside of its 90% interval", unit="count", minimum=0),
        Column(
            "allowed_count",
            Type.INTEGER,
            "Most that chance explains (99%, however often one looks)",
            unit="count",
            minimum=0,
        ),
        Column("has_drifted", Type.BOOLEAN, "Whether more were outside than chance explains"),
        IS_SIMULATED,
    ),
)
