"""`perf-assets train` with two methods instead of all and a short training of the attention; notes what steps read."""

import atexit
import os
import sys
from functools import partial
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from perf_assets.cli.main import main
from perf_assets.models.source import attention
from tests.defs.reads import READS, recorded_reads

if __name__ == "__main__":
    attention.AttentionSettings = partial(attention.AttentionSettings, steps=60, members=1)
    methods = ("raw_xgboost", "raw_amm_xgboost")
    os.environ["PERF_ASSETS_THREADS"] = "1"  # the other core has other tests
    sys.argv = ["perf-assets", "train", *(word for name in methods for word in ("--method", name)), "--json"]
    with recorded_reads() as reads:
        # The command ends the process itself, after what is registered here.
        atexit.register(reads.save, Path(os.environ["PERF_ASSETS_LAKE"]).parent / READS)
        main()
