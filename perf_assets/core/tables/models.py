"""The vocabulary, third part: tables of machine models and of what models were scored with."""

from perf_assets.core.tables.datasets import DATASET_TABLES
from perf_assets.core.tables.health import HEALTH
from perf_assets.core.tables.schedule import SCALING, TURNAROUND
from perf_assets.core.tables.schema import IS_SIMULATED, MACHINE, Column, Table, Type
from perf_assets.core.tables.vectors import VECTOR_GROWTH, VECTOR_SCORES, VECTOR_VERDICTS
from perf_assets.core.tables.verdicts import VERDICTS

_ATTENTION = Column("attention_ratio", Type.REAL, "Share of attention", unit="ratio", minimum=0.0, maximum=1.0)
AMMS = Table(
    "model_amm__machines",
    "Descriptions of machines, which all models read: AMM vectors by option of Algorithm 1, RAJAPerf kernel times, and "
    "the numbers of the data sheet. Made once per machine and encoder; those of older encoders stay as long as a "
    "registered source model uses them. A machine with GPUs has a second AMM without them, for programs that do not "
    "use GPUs.",
    key=("machine", "encoder_version", "part", "seen_as", "option", "item", "problem_size"),
    columns=(
        MACHINE,
        Column("encoder_version", Type.TEXT, "Identity of the frozen encoder"),
        Column("part", Type.TEXT, "What the row says", allowed=("amm", "kernel", "sheet")),
        Column("seen_as", Type.TEXT, "The machine, or (of an AMM) the machine without its GPUs"),
        Column("option", Type.TEXT, "Of an AMM weighting and normalisation; of a kernel where it ran"),
        Column("item", Type.TEXT, "Component from 0, kernel, or property of the data sheet"),
        Column("problem_size", Type.INTEGER, "Of a kernel its problem size, else 0", minimum=0),
        Column("value", Type.REAL, "Component, seconds per repetition of a kernel, or property"),
        Column("bytes_per_rep", Type.REAL, "Bytes that a kernel moves", unit="bytes", nullable=True),
        Column("flops_per_rep", Type.REAL, "Operations of a kernel", unit="count", nullable=True),
        Column("is_chosen", Type.BOOLEAN, "Whether it is an AMM of the option that the encoder chose"),
        Column("was_in_training", Type.BOOLEAN, "Whether the encoder was trained on this machine's benchmark too"),
        IS_SIMULATED,
    ),
)

BEHAVES_LIKE = Table(
    "model_source__behaves_like",
    "Which RAJAPerf kernels an application behaves like, seen from a machine: share of attention, mean over its runs.",
    key=("machine", "app", "kernel"),
    columns=(
        Column("machine", Type.TEXT, "Machine that the runs were measured on"),
        Column("app", Type.TEXT, "Application"),
        Column("kernel", Type.TEXT, "Kernel"),
        _ATTENTION,
        Column("runs_count", Type.INTEGER, "Configurations behind it", unit="count", minimum=1),
        IS_SIMULATED,
    ),
)

FEATURE_MASKS = Table(
    "model_source__feature_masks",
    "Which features TabNet's attention looks at when it embeds a run: mean mask over the runs of an application.",
    key=("app", "feature"),
    columns=(
        Column("app", Type.TEXT, "Application"),
        Column("feature", Type.TEXT, "Feature of the run"),
        _ATTENTION,
        IS_SIMULATED,
    ),
)

XAMM_SCORES = Table(
    "eval_xamm__scores",
    "Scores of the xAMM experiments: one row per experiment, method, scenario, held-out fold and seed. All methods of "
    "an experiment are scored on the same rows.",
    key=("experiment", "protocol", "method", "scenario", "held_out", "seed"),
    columns=(
        Column("experiment", Type.TEXT, "Which experiment"),
        Column("protocol", Type.TEXT, "What was held out", allowed=("loao", "lomo")),
        Column("method", Type.TEXT, "Description of run and machines, and downstream model"),
        Column("scenario", Type.TEXT, "Kinds of source and target, as in CPU->GPU"),
        Column("held_out", Type.TEXT, "Application or machine that was held out"),
        Column("seed", Type.INTEGER, "Seed of all that is random", minimum=0),
        Column("mape_ratio", Type.REAL, "Mean over ordered pairs of mean |predicted / true - 1|", unit="ratio"),
        Column("median_ape_ratio", Type.REAL, "Median |predicted / true - 1|", unit="ratio", minimum=0.0),
        Column("log_rmse", Type.REAL, "Root mean square of log(predicted / true)", minimum=0.0),
        Column("within_10_ratio", Type.REAL, "Share of predictions within 10%", unit="ratio", minimum=0.0),
        Column("within_25_ratio", Type.REAL, "Share of predictions within 25%", unit="ratio", minimum=0.0),
        Column("examples_count", Type.INTEGER, "Predictions scored", unit="count", minimum=1),
        IS_SIMULATED,
    ),
)

XAMM_EMBEDDINGS = Table(
    "eval_xamm__embeddings",
    "Two-dimensional t-SNE pictures of the embeddings of all application runs.",
    key=("embedding", "machine", "configuration"),
    columns=(
        Column("embedding", Type.TEXT, "Kind of embedding"),
        Column("machine", Type.TEXT, "Machine of the run"),
        Column("configuration", Type.TEXT, "Application, arguments, ranks and threads"),
        Column("app", Type.TEXT, "Application"),
        Column("x", Type.REAL, "First coordinate"),
        Column("y", Type.REAL, "Second coordinate"),
        IS_SIMULATED,
    ),
)

_TRANSFER_SCORE = (
    Column("target", Type.TEXT, "Machine to predict for, or the machine without its GPUs"),
    Column("source", Type.TEXT, "Reference machine whose runs predict"),
    Column("shots", Type.INTEGER, "Runs on the target that were given", unit="count", minimum=0),
    Column("seed", Type.INTEGER, "Which random draw of shots", minimum=0),
    Column("method", Type.TEXT, "Method, or baseline"),
    Column("mape_ratio", Type.REAL, "Mean |predicted / true - 1| over the test rows", unit="ratio", minimum=0.0),
    Column("log_rmse", Type.REAL, "Root mean square of log(predicted / true)", minimum=0.0),
    Column(
        "coverage_90_ratio",
        Type.REAL,
        "Share of test rows inside the 90% interval, where the method has one",
        unit="ratio",
        nullable=True,
        minimum=0.0,
        maximum=1.0,
    ),
    IS_SIMULATED,
)

TRANSFER_SCORES = Table(
    "eval_transfer__scores",
    "Learning curve of a machine: error of target models over the number of runs on it, from its reference machine, "
    "beside baselines on the same test rows.",
    key=("machine", "target", "source", "shots", "seed", "method"),
    columns=(MACHINE, *_TRANSFER_SCORE),
)

TRANSFER_MATRIX = Table(
    "eval_transfer__matrix",
    "All ordered pairs of machines x numbers of shots x seeds x methods, with the severity of each transfer.",
    key=("target", "source", "shots", "seed", "method"),
    columns=(
        *_TRANSFER_SCORE,
        Column(
            "severity_ratio",
            Type.REAL,
            "How hard the transfer is: 0 at the floor of a machine to itself, 1 where nothing is in common",
            unit="ratio",
            nullable=True,
            minimum=0.0,
            maximum=1.0,
        ),
        Column("data_digest", Type.TEXT, "Samples that the pair was scored on"),
    ),
)

RESULT_TABLES = (
    AMMS,
    BEHAVES_LIKE,
    FEATURE_MASKS,
    XAMM_SCORES,
    XAMM_EMBEDDINGS,
    TRANSFER_SCORES,
    TRANSFER_MATRIX,
    VERDICTS,
    VECTOR_SCORES,
    VECTOR_GROWTH,
    VECTOR_VERDICTS,
    SCALING,
    TURNAROUND,
    HEALTH,
    *DATASET_TABLES,
)
"""Made by models, stored as Parquet beside the record and loaded whole."""
