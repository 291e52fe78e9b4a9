"""The measured GPUs of `shared/data` as paired samples; two programs describe the machines."""

import os
import sys
from pathlib import Path

import pandas as pd

from perf_assets.features.samples import PairedSamples
from perf_assets.features.tables.paired import Roles, pair_tables

NOT_COUNTERS = r"^(unnamed_0|AppId|Device|Context|Stream|Kernel|l1_cache_used)$"
KEY = ("AppName", "Input.Size", "Block.X", "Block.Y")
ROLES = Roles(KEY, "AppName", "Duration", ("vectorAdd", "matrix_sum_normal"), (NOT_COUNTERS,))


def paired_gpus() -> PairedSamples:
    """All GPUs; ends with a line where the measurements are not there."""
    given = os.environ.get("PERF_ASSETS_SHARED_DATA")
    folder = (Path(given) if given else Path(__file__).resolve().parents[2] / "shared" / "data") / "nvprof_gpus"
    files = sorted(folder.glob("*.csv"))
    if not files:
        sys.exit(f"no measurements at {folder}; set PERF_ASSETS_SHARED_DATA to where they are")
    return pair_tables({file.stem: pd.read_csv(file, low_memory=False) for file in files}, ROLES)
