"""`perf-assets train` with two methods instead of all: for tests of what follows from trained models."""

import sys

from perf_assets.cli.main import main
from perf_assets.models.source import training as source_training

if __name__ == "__main__":
    source_training.WITHOUT_AMM = ("raw_xgboost",)
    source_training.WITH_AMM = ("raw_amm_xgboost",)
    sys.argv = ["perf-assets", "train", "--json"]
    main()
