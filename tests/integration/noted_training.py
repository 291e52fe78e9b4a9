"""`perf-assets` with the given arguments, which notes what its steps read."""

import atexit
import os
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from perf_assets.cli.main import main
from tests.defs.reads import READS, recorded_reads

if __name__ == "__main__":
    with recorded_reads() as reads:
        # The command ends the process itself, after what is registered here.
        atexit.register(reads.save, Path(os.environ["PERF_ASSETS_LAKE"]).parent / READS)
        main()
