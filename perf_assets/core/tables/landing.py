"""The vocabulary, first part: tables of what landed. And the list of all tables of the warehouse."""

import hashlib
from collections.abc import Iterator

from annotated_types import Ge, Gt

from perf_assets.core.machines import PARTS, column_prefix
from perf_assets.core.tables.runs import DERIVED_TABLES
from perf_assets.core.tables.schema import (
    COUNTER,
    ENVIRONMENT,
    IS_SIMULATED,
    MACHINE,
    RUNNING_RATIO,
    UNIT,
    Column,
    Table,
    Type,
)

_ORIGIN = (
    MACHINE,
    Column("bundle", Type.TEXT, "Name of the landed bundle"),
    Column("bundle_digest", Type.TEXT, "sha256 of the bundle's manifest: which content these rows are from"),
    Column("run", Type.TEXT, "Path of the run inside the bundle; `.` is the bundle itself"),
)

BUNDLES = Table(
    "raw_landing__bundles",
    "What landed: one row a bundle, with what became of it. A bundle's rows are visible in the other tables "
    "if and only if its digest stands here as ingested.",
    key=("machine", "bundle"),
    columns=(
        MACHINE,
        Column("bundle", Type.TEXT, "Name of the landed bundle"),
        Column("bundle_digest", Type.TEXT, "sha256 of the bundle's manifest"),
        Column(
            "status", Type.TEXT, "Outcome of reading it", allowed=("ingested", "duplicate", "quarantined", "withdrawn")
        ),
        Column("reason", Type.TEXT, "Why it was not ingested, and what to do", nullable=True),
        Column("kind", Type.TEXT, "rajaperf, profile or samples; missing where the manifest is bad", nullable=True),
        Column("format", Type.TEXT, "File format that was recognised", nullable=True),
        Column("app", Type.TEXT, "Application", nullable=True),
        Column("dataset", Type.TEXT, "Dataset that a table of samples belongs to", nullable=True),
        Column("collected_at", Type.TIMESTAMP, "When it was measured (UTC)", nullable=True),
        Column("files_count", Type.INTEGER, "Files in the bundle", unit="count", minimum=0),
        Column("size_bytes", Type.INTEGER, "Size of all files together", unit="bytes", minimum=0),
        IS_SIMULATED,
        Column("record_part", Type.TEXT, "Part of the record that holds its rows", nullable=True),
    ),
)


def _figure(name: str, description: str, unit: str, kind: Type = Type.REAL) -> Column:
    """A figure from 0 on, which a file may lack."""
    return Column(name, kind, description, unit=unit, nullable=True, minimum=0)


TIMINGS = Table(
    "raw_rajaperf__timings",
    "RAJAPerf kernel times: one row per kernel, variant and tuning of a run. Rows that must not be used "
    "(no repetition was run, checksum failed) are kept and marked.",
    key=("machine", "bundle", "run", "kernel", "variant", "tuning"),
    columns=(
        *_ORIGIN,
        Column("kernel", Type.TEXT, "Kernel with its group, as in Stream_TRIAD"),
        Column("variant", Type.TEXT, "Programming model, as in Base_OpenMP"),
        Column("tuning", Type.TEXT, "Tuning of the variant, as in default or block_256"),
        Column("problem_size", Type.INTEGER, "Actual problem size, not the requested one", nullable=True, minimum=1),
        _figure("reps", "Repetitions", "count", Type.INTEGER),
        _figure("ranks", "MPI ranks; 0 for a run without MPI", "count", Type.INTEGER),
        Column("threads", Type.INTEGER, "OpenMP threads of a rank", unit="count", nullable=True, minimum=1),
        _figure("seconds_per_rep", "Mean time of a repetition", "seconds"),
        _figure("seconds_per_rep_min", "Fastest pass, or rank, per repetition", "seconds"),
        _figure("seconds_per_rep_max", "Slowest pass, or rank, per repetition", "seconds"),
        _figure("bytes_per_rep", "Bytes moved by a repetition", "bytes"),
        _figure("flops_per_rep", "Floating-point operations of a repetition", "count"),
        Column("counters", Type.TEXT, "Counters of the kernel, where the file has any, as a JSON object"),
        Column("compiler", Type.TEXT, "Compiler, where the files say", nullable=True),
        ENVIRONMENT,
        Column("is_valid", Type.BOOLEAN, "Whether the row may be used"),
        Column("invalid_reason", Type.TEXT, "Why not", nullable=True),
        IS_SIMULATED,
    ),
)

RUNS = Table(
    "raw_profiles__runs",
    "Application runs that were profiled: one row a run. Several runs of one configuration with different "
    "counters stay apart here.",
    key=("machine", "bundle", "run"),
    columns=(
        *_ORIGIN,
        Column("app", Type.TEXT, "Application"),
        Column("args", Type.TEXT, "Arguments as given"),
        Column("ranks", Type.INTEGER, "MPI ranks", unit="count", minimum=1),
        Column("threads", Type.INTEGER, "Threads of a rank", unit="count", minimum=1),
        Column("nodes", Type.INTEGER, "Nodes", unit="count", nullable=True, minimum=1),
        Column("gpus", Type.INTEGER, "GPUs used in all", unit="count", nullable=True, minimum=0),
        Column("wall_seconds", Type.REAL, "Run time", unit="seconds", nullable=True, exclusive_minimum=0),
        Column("target_column", Type.TEXT, "Samples: name of the column to predict", nullable=True),
        Column("target_value", Type.REAL, "Samples: value of that column", nullable=True),
        Column("labels", Type.TEXT, "What else the files say of the run, as a JSON object of texts"),
        ENVIRONMENT,
        Column("format", Type.TEXT, "File format"),
        Column("collected_at", Type.TIMESTAMP, "When it was measured (UTC)"),
        IS_SIMULATED,
    ),
)

COUNTERS = Table(
    "raw_profiles__counters",
    "Counters of the application runs under the machine's own names: one row per run and counter, the inclusive "
    "total of the whole program.",
    key=("machine", "bundle", "run", "counter"),
    columns=(
        *_ORIGIN,
        COUNTER,
        UNIT,
        Column("value_sum", Type.REAL, "Sum over all ranks and threads; samples: the value as given"),
        Column("value_mean_over_ranks", Type.REAL, "The sum divided by the number of ranks"),
        Column("value_min", Type.REAL, "Smallest value of one rank and thread"),
        Column("value_max", Type.REAL, "Largest value of one rank and thread"),
        RUNNING_RATIO,
    ),
)

_SHEET_TYPES: dict[object, Type] = {str: Type.TEXT, int: Type.INTEGER, float: Type.REAL}
_SHEET_UNITS = {
    ending: ending.replace("_per_", "/")
    for ending in ("bytes", "bytes_per_second", "bytes_per_cycle", "hertz", "bits", "seconds")
} | {"flops": "1/second"}
"""Unit of a figure by how its name ends; whole numbers of another name are counts."""


def _sheet_columns() -> Iterator[Column]:
    """Columns of the figures of a data sheet, which `core/machines.py` describes with their limits."""
    for part, model in PARTS.items():
        for name, field in model.model_fields.items():
            unit = next((unit for ending, unit in _SHEET_UNITS.items() if f"_{name}".endswith(f"_{ending}")), None)
            limits = {type(limit): limit for limit in field.metadata}
            yield Column(
                f"{column_prefix(part)}{name}",
                _SHEET_TYPES[field.annotation],
                field.description or "",
                unit=unit or ("count" if field.annotation is int else None),
                nullable=part in ("gpu", "network"),
                minimum=limits[Ge].ge if Ge in limits else None,
                exclusive_minimum=limits[Gt].gt if Gt in limits else None,
            )


SPECS = Table(
    "core_machines__specs",
    "Data sheets of the machines, from the newest `machine.yaml` that landed for each.",
    key=("machine",),
    columns=(
        *_ORIGIN,
        Column("name", Type.TEXT, "Name people use"),
        Column("microarchitecture", Type.TEXT, "Of the host processor, as the counter catalogue names it"),
        Column("sources", Type.TEXT, "Where the figures are from"),
        *_sheet_columns(),
    ),
)

RECORD_TABLES = (TIMINGS, RUNS, COUNTERS, SPECS)
"""Tables whose rows come out of bundles; `raw_landing__bundles` is the ledger over them."""
RAW_TABLES = (BUNDLES, *RECORD_TABLES)
TABLES = (*RAW_TABLES, *DERIVED_TABLES)


def vocabulary_digest() -> str:
    """Changes when a table's shape changes: a warehouse with another digest has to be rebuilt."""
    return hashlib.sha256("\n".join(table.ddl() for table in TABLES).encode()).hexdigest()
