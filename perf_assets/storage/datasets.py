"""Datasets: tables of samples as they were given, put together again from the rows of their bundles.

Numbers of a table stand in the record as counters, words as labels of its rows, and what says which run a row is
(application, arguments, ranks, …) as columns of the run. A dataset is all rows of all bundles that belong to it, as a
plain table: words are words again, a cell that was empty is missing.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq

from perf_assets.core.errors import BadInputError, UnknownError, listed
from perf_assets.core.manifest import digest_of
from perf_assets.core.tables.landing import BUNDLES, COUNTERS, RUNS
from perf_assets.core.text import as_word
from perf_assets.infra.files import replacing
from perf_assets.storage.lake import Lake
from perf_assets.storage.warehouse import Warehouse

if TYPE_CHECKING:
    import pandas as pd

ROWS = "core_datasets__rows"
_FILE = "rows.parquet"
_ROW = "__row__"
"""Index of a stored table: machine, bundle and run of each row."""
_FACTS = b"perf_assets"
_IDENTITY = ("app", "args", "ranks", "threads", "nodes", "gpus", "wall_seconds")
_RUN = ["machine", "bundle", "run"]
_OF_DATASET = f"""
    SELECT machine, bundle, bundle_digest FROM {BUNDLES.name} WHERE status = 'ingested' AND dataset = $dataset
"""


@dataclass(frozen=True, eq=False)
class StoredDataset:
    """All rows of a dataset so far."""

    name: str
    target_column: str
    frame: "pd.DataFrame"
    """Columns as they were landed; the index identifies the run of a row."""
    is_simulated: bool
    digest: str
    """Changes with the bundles that it is made of."""
    bundles: Sequence[str] = field(default_factory=tuple)
    """Digests of their manifests."""
    notes: Sequence[str] = ()
    """Notes on how it was put together."""


def dataset_digests(warehouse: Warehouse) -> dict[str, str]:
    """Digest of the bundles of each dataset that has been ingested, by name."""
    query = f"""
        SELECT dataset, machine, bundle, bundle_digest FROM {BUNDLES.name}
        WHERE status = 'ingested' AND dataset IS NOT NULL ORDER BY ALL
    """
    rows = warehouse.frame(query)
    return {
        str(name): _digest(of_dataset[["machine", "bundle", "bundle_digest"]])
        for name, of_dataset in rows.groupby("dataset")
    }


def assembled(warehouse: Warehouse, name: str) -> StoredDataset:
    """A dataset from the warehouse; refuses one that nothing belongs to, or whose bundles predict different columns."""
    import pandas as pd

    wanted: dict[str, object] = {"dataset": name}
    bundles = warehouse.frame(f"{_OF_DATASET} ORDER BY ALL", wanted)
    runs = warehouse.frame(
        f"SELECT * FROM {RUNS.name} WHERE (machine, bundle) IN (SELECT (machine, bundle) FROM ({_OF_DATASET}))", wanted
    )
    if runs.empty:
        raise UnknownError(f"dataset {name!r} has no rows: there are {listed(sorted(dataset_digests(warehouse)))}")
    numbers = warehouse.frame(
        f"""
        SELECT machine, bundle, run, counter, value_sum FROM {COUNTERS.name}
        WHERE (machine, bundle) IN (SELECT (machine, bundle) FROM ({_OF_DATASET}))
        """,
        wanted,
    )
    target = _target(name, runs)
    runs = runs.sort_values("run", key=lambda names: names.map(_natural), kind="stable")
    runs = runs.sort_values(["machine", "bundle"], kind="stable").set_index(_RUN)
    words = pd.DataFrame([json.loads(labels) for labels in runs["labels"]], index=runs.index)
    measured = numbers.pivot(index=_RUN, columns="counter", values="value_sum").reindex(runs.index)
    frame = _joined(_identity(runs), words, measured).drop(columns=target, errors="ignore")
    frame[target] = runs["target_value"].astype(float)
    frame.index = pd.Index(["/".join(key) for key in runs.index], name=_ROW)
    is_again = frame.duplicated()
    notes = [f"{int(is_again.sum())} rows landed more than once and count once"] if is_again.any() else []
    return StoredDataset(
        name=name,
        target_column=target,
        frame=frame[~is_again],
        is_simulated=bool(runs["is_simulated"].any()),
        digest=_digest(bundles),
        bundles=bundles["bundle_digest"].tolist(),
        notes=notes,
    )


def store_dataset(lake: Lake, dataset: StoredDataset) -> Path:
    """Replace the stored table of a dataset; where it is."""
    path = _path(lake, dataset.name)
    facts = {
        "target_column": dataset.target_column,
        "is_simulated": dataset.is_simulated,
        "digest": dataset.digest,
        "bundles": list(dataset.bundles),
        "notes": list(dataset.notes),
    }
    table = pa.Table.from_pandas(dataset.frame, preserve_index=True)
    table = table.replace_schema_metadata({**(table.schema.metadata or {}), _FACTS: json.dumps(facts).encode()})
    with replacing(path) as temporary:
        pq.write_table(table, temporary, compression="zstd")
    return path


def stored_dataset(lake: Lake, name: str) -> StoredDataset:
    """A dataset as it was stored; refuses where it was not."""
    path = _path(lake, name)
    if not path.is_file():
        known = listed(stored_names(lake)) or "none yet"
        raise UnknownError(f"dataset {name!r} is not known; there are {known}: land samples with --dataset")
    table = pq.read_table(path, partitioning=None)
    facts: Mapping[str, Any] = json.loads(table.schema.metadata[_FACTS])
    return StoredDataset(name=name, frame=table.to_pandas(), **facts)


def stored_names(lake: Lake) -> list[str]:
    """Datasets whose tables are stored, sorted."""
    return sorted(path.parent.name.removeprefix("dataset=") for path in (lake.record / ROWS).glob(f"dataset=*/{_FILE}"))


def _path(lake: Lake, name: str) -> Path:
    return lake.record / ROWS / f"dataset={name}" / _FILE


def _digest(bundles: "pd.DataFrame") -> str:
    return digest_of(repr(bundles.to_numpy().tolist()).encode())


def _target(name: str, runs: "pd.DataFrame") -> str:
    first = runs.drop_duplicates("target_column").sort_values("collected_at")
    if len(first) > 1:
        named = listed([f"{row.target_column} ({row.bundle})" for row in first.itertuples()])
        raise BadInputError(
            f"dataset {name!r}: its bundles predict different columns, {named}: land them again with one --target, or "
            "as two datasets"
        )
    return str(first["target_column"].iloc[0])


def _natural(run: str) -> tuple[str, int]:
    """Order of the rows of a file: row 10 comes after row 9."""
    file, hash_sign, row = run.rpartition("#")
    return (file, int(row)) if hash_sign and row.isdigit() else (run, 0)


def _identity(runs: "pd.DataFrame") -> "pd.DataFrame":
    """Identity columns of the rows, as far as they vary; generated names become missing values."""
    import pandas as pd

    machine, bundle, run = (runs.index.get_level_values(name) for name in _RUN)
    identity = runs[list(_IDENTITY)].copy()
    identity["app"] = identity["app"].where(identity["app"] != bundle)
    identity["args"] = identity["args"].where(
        (identity["args"] != machine + "/" + bundle + "/" + run) & (identity["args"] != "")
    )
    identity.insert(0, "machine", machine)
    differing = [column for column in identity if identity[column].nunique() > 1]
    return pd.DataFrame(identity[differing])


def _joined(identity: "pd.DataFrame", words: "pd.DataFrame", measured: "pd.DataFrame") -> "pd.DataFrame":
    """One table; a column that holds numbers in one bundle and words in another holds words."""
    both = [str(column) for column in words if column in measured]
    for column in both:
        words[column] = words[column].where(words[column].notna(), measured[column].map(as_word, na_action="ignore"))
    own = [column for column in identity if column not in words and column not in measured]
    return identity[own].join(words).join(measured.drop(columns=both))
