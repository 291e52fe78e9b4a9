import csv
import platform
from pathlib import Path

import pandas as pd
import pyarrow.parquet as pq

from perf_assets.demo.fleet import write_samples_csv, write_samples_parquet

FRAME = pd.DataFrame(
    {"app": ["Kripke, small", 'say "hi"'], "instructions": [12345678901234567, 0], "runtime": [0.1 + 0.2, None]},
    index=[5, 9],
)


def test_csv_keeps_every_digit(tmp_path: Path) -> None:
    write_samples_csv(tmp_path / "samples.csv", FRAME)
    assert list(csv.reader((tmp_path / "samples.csv").read_text().splitlines())) == [
        ["app", "instructions", "runtime"],
        ["Kripke, small", "12345678901234567", "0.30000000000000004"],
        ['say "hi"', "0", ""],
    ]
    assert b"\r" not in (tmp_path / "samples.csv").read_bytes()


def test_parquet_comes_back_equal(tmp_path: Path) -> None:
    write_samples_parquet(tmp_path / "samples.parquet", FRAME)
    table = pq.read_table(tmp_path / "samples.parquet")
    pd.testing.assert_frame_equal(table.to_pandas(), FRAME.reset_index(drop=True))
    assert table.schema.metadata is None


def test_same_frame_same_bytes(tmp_path: Path) -> None:
    for name in ("one", "two"):
        write_samples_csv(tmp_path / f"{name}.csv", FRAME)
        write_samples_parquet(tmp_path / f"{name}.parquet", FRAME.copy())
    for suffix in ("csv", "parquet"):
        data = (tmp_path / f"one.{suffix}").read_bytes()
        assert data == (tmp_path / f"two.{suffix}").read_bytes()
        assert platform.python_version().encode() not in data
        assert pd.__version__.encode() not in data
