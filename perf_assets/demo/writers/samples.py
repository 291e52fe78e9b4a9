"""Tables of samples: one row per run, one column per feature or value to predict."""

from pathlib import Path

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq


def write_samples_csv(path: Path, frame: pd.DataFrame) -> None:
    """Write `frame` as CSV without its index; numbers keep all their digits."""
    frame.to_csv(path, index=False, lineterminator="\n", encoding="utf-8")


def write_samples_parquet(path: Path, frame: pd.DataFrame) -> None:
    """Write `frame` as Parquet without its index, and without the versions of the libraries that made it."""
    table = pa.Table.from_pandas(frame, preserve_index=False).replace_schema_metadata(None)
    pq.write_table(table, path, compression="zstd", store_schema=False)
