"""The vocabulary, fifth part: tables about models of datasets."""

from perf_assets.core.tables.schema import IS_SIMULATED, Column, Table, Type
from perf_assets.core.tables.verdicts import VERDICTS

_DATASET = Column("dataset", Type.TEXT, "Dataset, from the manifests of its tables")

DATASET_VERDICTS = Table(
    "eval_dataset__verdicts",
    "Models of datasets as they were judged when they were registered: their error beside that of the champion and of "
    "the best baseline of the rows alone on the same held-out rows, what was decided, and whether new rows had "
    "contradicted the champion. Errors are of logarithms unless the dataset's settings say otherwise.",
    key=("dataset", "version"),
    columns=(_DATASET, *VERDICTS.columns[1:]),
)

DATASET_SCORES = Table(
    "eval_dataset__scores",
    "Learning curve of a dataset: errors over the number of its rows that are learned from, beside baselines on the "
    "same test rows.",
    key=("dataset", "shots", "seed", "method"),
    columns=(
        _DATASET,
        Column("sources", Type.TEXT, "Datasets that it is adapted from"),
        Column("shots", Type.INTEGER, "Rows that were given", unit="count", minimum=0),
        Column("seed", Type.INTEGER, "Which random draw of shots", minimum=0),
        Column("method", Type.TEXT, "Method, or baseline"),
        Column("mape_ratio", Type.REAL, "Mean |predicted / true - 1| over the test rows", unit="ratio", minimum=0.0),
        Column("log_rmse", Type.REAL, "Root mean square error of what is predicted", minimum=0.0),
        IS_SIMULATED,
    ),
)

MODELX_TABLE = Table(
    "eval_modelx__table",
    "ModelX's table on the datasets of the lake: each is the target in turn, all others are its sources. Errors are "
    "mean squared errors of the logarithm, means over seeds, on the same shots and test rows.",
    key=("target", "shots"),
    columns=(
        Column("sources", Type.TEXT, "Datasets that it is adapted from"),
        Column("target", Type.TEXT, "Dataset to predict"),
        Column("shots", Type.INTEGER, "Rows of the target that were given", unit="count", minimum=1),
        Column("seeds", Type.INTEGER, "Draws of the shots", unit="count", minimum=1),
        Column(
            "features",
            Type.TEXT,
            "Whether sources have the target's features",
            allowed=("shared", "partly shared", "not shared"),
        ),
        Column("severity", Type.REAL, "How hard the transfer is, 0 to 1", nullable=True, minimum=0.0, maximum=1.0),
        Column("product", Type.REAL, "Error of what would be registered", minimum=0.0),
        Column("zero_shot", Type.REAL, "Error of the sources as they are", nullable=True, minimum=0.0),
        Column("linear_probe", Type.REAL, "Error of linear probing", nullable=True, minimum=0.0),
        Column("fine_tune", Type.REAL, "Error of fine-tuning", nullable=True, minimum=0.0),
        Column("target_best", Type.REAL, "Error of the best model of the shots alone, in hindsight", minimum=0.0),
        Column("target_best_method", Type.TEXT, "Which that is"),
        Column("oracle_100x", Type.REAL, "Error of a supervised model on 100 times the shots", minimum=0.0),
        Column("oracle_100x_spread", Type.REAL, "Its standard deviation over seeds", minimum=0.0),
        Column("improvement", Type.REAL, "Over the best use of a source", unit="percent", nullable=True),
        Column("winner", Type.TEXT, "Method with the smallest error, without the supervised one"),
        Column("matches_oracle", Type.BOOLEAN, "Whether the product is within the supervised model's spread"),
        Column("mape", Type.REAL, "Mean |predicted / true - 1| of the product", unit="ratio", minimum=0.0),
        Column("coverage_90", Type.REAL, "Share of test rows inside the 90% interval", unit="ratio", minimum=0.0),
        Column("chosen", Type.TEXT, "What the product leaned on for most seeds"),
        IS_SIMULATED,
    ),
)
DATASET_TABLES = (DATASET_VERDICTS, DATASET_SCORES, MODELX_TABLE)
