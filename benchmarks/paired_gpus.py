"""The measured GPUs of `shared/data` as paired samples; two programs describe the machines."""

import pandas as pd
from transfer_data import data_folder

from perf_assets.features.samples import PairedSamples
from perf_assets.features.tables.paired import Roles, pair_tables

NOT_COUNTERS = r"^(unnamed_0|AppId|Device|Context|Stream|Kernel|l1_cache_used)$"
KEY = ("AppName", "Input.Size", "Block.X", "Block.Y")
ROLES = Roles(KEY, "AppName", "Duration", ("vectorAdd", "matrix_sum_normal"), (NOT_COUNTERS,))


def paired_gpus() -> PairedSamples:
    """All GPUs; ends with a line where the measurements are not there."""
    files = sorted(data_folder("nvprof_gpus").glob("*.csv"))
    return pair_tables({file.stem: pd.read_csv(file, low_memory=False) for file in files}, ROLES)
