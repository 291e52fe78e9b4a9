"""Checkpoints of a long computation: rows of finished tasks, from which it goes on after an interruption."""

import shutil
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from perf_assets.core.manifest import digest_of
from perf_assets.infra.files import replacing
from perf_assets.infra.locks import exclusive
from perf_assets.storage.lake import Lake

_WAIT_SECONDS = 60.0
Rows = list[dict[str, Any]]


class Checkpoints:
    """A Parquet file per finished task, in a folder for these inputs; files of other inputs are deleted."""

    def __init__(self, lake: Lake, name: str, inputs: str) -> None:
        self._all = lake.root / "unfinished" / name
        self._folder = self._all / digest_of(inputs.encode())[:16]
        self._lock = lake.locks / f"unfinished-{name}.lock"
        for other in self._all.glob("*"):
            if other != self._folder:
                shutil.rmtree(other)

    def get(self, task: str) -> Rows | None:
        """Rows of a task that was done before; None where it was not."""
        file = self._folder / f"{digest_of(task.encode())}.parquet"
        rows: Rows | None = pq.read_table(file, partitioning=None).to_pylist() if file.is_file() else None
        return rows

    def put(self, task: str, rows: Rows) -> None:
        """Keep the rows of a task."""
        file = self._folder / f"{digest_of(task.encode())}.parquet"
        with exclusive(self._lock, f"the folder {self._all}", _WAIT_SECONDS), replacing(file) as temporary:
            pq.write_table(pa.Table.from_pylist(rows), temporary)

    def finish(self) -> None:
        """Forget everything: what was made is stored elsewhere."""
        shutil.rmtree(self._all, ignore_errors=True)
