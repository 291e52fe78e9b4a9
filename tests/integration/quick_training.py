"""`perf-assets train` with two methods instead of all: for tests of what follows from trained models."""

import sys

from perf_assets.cli.main import main

if __name__ == "__main__":
    methods = ("raw_xgboost", "raw_amm_xgboost")
    sys.argv = ["perf-assets", "train", *(word for name in methods for word in ("--method", name)), "--json"]
    main()
