"""`perf-assets train` with two methods instead of all: for tests of what follows from trained models."""

import os
import sys

from perf_assets.cli.main import main
from perf_assets.models.source import training as source_training

if __name__ == "__main__":
    source_training.WITHOUT_AMM = ("raw_xgboost",)
    source_training.WITH_AMM = ("raw_amm_xgboost",)
    os.environ["PERF_ASSETS_THREADS"] = "1"  # the other core has other tests
    sys.argv = ["perf-assets", "train", "--json"]
    main()
