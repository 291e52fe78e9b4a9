"""`perf-assets train` with two methods instead of all, and small nets: for tests of what follows from models."""

import os
import sys
from functools import partial

from perf_assets.cli.main import main
from perf_assets.models.source import attention
from perf_assets.models.source import training as source_training

if __name__ == "__main__":
    attention.AttentionSettings = partial(attention.AttentionSettings, steps=60, members=1)
    source_training.WITHOUT_AMM = ("raw_xgboost",)
    source_training.WITH_AMM = ("raw_amm_xgboost",)
    os.environ["PERF_ASSETS_THREADS"] = "1"  # the other core has other tests
    sys.argv = ["perf-assets", "train", "--json"]
    main()
