"""Where the measured data of the benchmarks are, and how its GPU tables are read."""

import os
import sys
from pathlib import Path

import pandas as pd

GPU_NOT_FEATURES = (
    r"^(unnamed_0|Unnamed: 0|compute_version|gpu_id|gpu_name|l1_cache_used|max_clock_rate|num_of_cores|L2|bus)$",
    r"^(memory_clock|bandwith|AppId|Device|Context|Stream|Kernel)$",
    r"(?i)cycle|throughput|utilization|ipc|activity",
)
"""What describes the GPU, not the run; and counters that hold the GPU's own run time."""


def data_folder(part: str = "") -> Path:
    """The folder of measured data, or of a part of it; ends with a line where there is none."""
    given = os.environ.get("PERF_ASSETS_SHARED_DATA")
    folder = (Path(given) if given else Path(__file__).resolve().parents[2] / "shared" / "data") / part
    if not folder.is_dir():
        sys.exit(f"no measurements at {folder}; set PERF_ASSETS_SHARED_DATA to where they are")
    return folder


def gpu_frames(folder: Path) -> dict[str, pd.DataFrame]:
    """Table by GPU; a level such as `Low (3)` is the number 3."""
    return {
        path.stem: _levels_as_numbers(pd.read_csv(path, low_memory=False))
        for path in sorted((folder / "nvprof_gpus").glob("*.csv"))
    }


def _levels_as_numbers(frame: pd.DataFrame) -> pd.DataFrame:
    for name in frame.select_dtypes(object):
        found = frame[name].astype(str).str.extract(r"^[A-Za-z]+ \((\d+)\)$")[0]
        if found.notna().all():
            frame[name] = found.astype(float)
    return frame
