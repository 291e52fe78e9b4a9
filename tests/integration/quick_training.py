"""`perf-assets train` with two methods instead of all: for tests of what follows from trained models."""

import os
import sys

from perf_assets.cli.main import main

if __name__ == "__main__":
    methods = ("raw_xgboost", "raw_amm_xgboost")
    os.environ["PERF_ASSETS_THREADS"] = "1"  # the other core has other tests
    sys.argv = ["perf-assets", "train", *(word for name in methods for word in ("--method", name)), "--json"]
    main()
