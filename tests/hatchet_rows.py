"""What hatchet reads, for comparison, in a process of its own.

Hatchet forks: in a process where other tests left threads and signal handlers, its children may wait for ever.
"""

from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import pandas as pd
import pytest


def hatchet_rows(folder: Path, reader: str = "from_hpctoolkit", **options: Any) -> pd.DataFrame:
    """Rows of a database without their index; `is_root` marks those of roots. Skips without hatchet."""
    pytest.importorskip("hatchet")
    with ProcessPoolExecutor(1, get_context("spawn")) as pool:
        return pool.submit(_rows, str(folder), reader, options).result()


def _rows(folder: str, reader: str, options: dict[str, Any]) -> pd.DataFrame:
    import hatchet

    frame = getattr(hatchet.GraphFrame, reader)(folder, **options)
    nodes = frame.dataframe.index.get_level_values("node")
    rows: pd.DataFrame = frame.dataframe.assign(is_root=[node in frame.graph.roots for node in nodes])
    return rows.reset_index(drop=True)
