"""The tables that the source models were trained on, frozen: target models start from them until the next training."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq

from perf_assets.core.errors import BadInputError
from perf_assets.core.manifest import digest_of
from perf_assets.infra.files import put_back, replacing_folder, sha256_of
from perf_assets.infra.leases import Lease, leased
from perf_assets.storage.lake import Lake

if TYPE_CHECKING:
    import pandas as pd

_FOLDER, _DESCRIPTION = "source_pool", "description.json"
_WAIT_SECONDS = 60.0


@dataclass(frozen=True)
class SourcePool:
    """Tables of all machines at the time of training."""

    tables: dict[str, "pd.DataFrame"]
    digest: str
    """Changes when and only when a table does."""
    provenance: dict[str, str]
    """What the tables and the models trained on them were made of."""


def freeze(lake: Lake, tables: dict[str, "pd.DataFrame"], provenance: dict[str, str]) -> None:
    """Replace the pool."""
    with _alone(lake) as lease, replacing_folder(lake.models / _FOLDER) as folder:
        for name, rows in tables.items():
            pq.write_table(pa.Table.from_pandas(rows, preserve_index=False), folder / f"{name}.parquet")
        (folder / _DESCRIPTION).write_text(json.dumps(provenance))
        lease.check()


def frozen(lake: Lake) -> SourcePool:
    """The pool; refuses where nothing was trained yet."""
    folder = lake.models / _FOLDER
    with _alone(lake):
        put_back(folder)
        if not (folder / _DESCRIPTION).is_file():
            raise BadInputError("there are no source models yet to start from: run 'perf-assets train'")
        files = sorted(folder.glob("*.parquet"))
        tables: dict[str, pd.DataFrame] = {file.stem: pq.read_table(file).to_pandas() for file in files}
        digest = digest_of("".join(sha256_of(file) for file in files).encode())
        return SourcePool(tables, digest, json.loads((folder / _DESCRIPTION).read_text()))


@contextmanager
def _alone(lake: Lake) -> Iterator[Lease]:
    with leased(lake.locks / "source-pool.lock", "the pool of source data", _WAIT_SECONDS) as lease:
        yield lease
