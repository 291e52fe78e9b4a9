"""How fast are Caliper profiles of applications read, against thicket? Both on the same files, in one run.

The LULESH profiles of Opal (27, 64, 125 ranks), each several times under names of its own; copies differ in their
launch date, as thicket takes files with the same metadata for one. Times of all regions must agree, or the benchmark
fails. Each time is the smallest of several repetitions, which take turns. Last line: one JSON object with the ratio
theirs / ours. Needs `../shared/data`, or PERF_ASSETS_SHARED_DATA, and the development extra.
"""

import argparse
import gc
import json
import math
import re
import sys
import tempfile
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

from transfer_data import data_folder

from perf_assets.core.measurements import Reading
from perf_assets.readers.read import read

_GOAL = 10.0
_LAUNCHED = re.compile(r"data=(16\d{8}),")


def copies(files: list[Path], folder: Path, count: int) -> list[Path]:
    """Each file several times, as runs that started one second apart."""
    written = []
    for file in files:
        text = file.read_text()
        launched = _LAUNCHED.search(text)
        if launched is None:
            raise SystemExit(f"{file} says no launch date")
        for number in range(count):
            copy = folder / f"{number}-{file.name}"
            copy.write_text(text.replace(launched[0], f"data={int(launched[1]) + number},"))
            written.append(copy)
    return written


def seconds_of(work: Callable[[], Any]) -> tuple[float, Any]:
    """Seconds and result."""
    start = time.perf_counter()
    result = work()
    return time.perf_counter() - start, result


def check(ours: Reading, composed: Any) -> None:
    """End the benchmark where a time differs."""
    theirs = {}
    for (node, profile), row in composed.dataframe.iterrows():
        if not math.isnan(row["Total time"]):
            path = tuple(part.frame["name"] for part in node.path())
            theirs[Path(composed.profile_mapping[profile]).name, path] = row["Total time"]
    found = {(p.run, region.path): region.time.sum for p in ours.profiles for region in p.regions}
    if found.keys() != theirs.keys():
        raise SystemExit(f"ours has {len(found)} regions of runs, theirs {len(theirs)}")
    for key, seconds in found.items():
        if not math.isclose(seconds, theirs[key], rel_tol=1e-9):
            raise SystemExit(f"{key}: ours is {seconds!r}, theirs {theirs[key]!r}")


def main() -> int:
    """Print the times and the JSON line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--quick", action="store_true", help="seconds instead of minutes, figures without meaning")
    is_quick = parser.parse_args().quick
    files = sorted(data_folder("caliper/lulesh_opal").glob("*.cali"))
    warnings.simplefilter("ignore")
    try:
        import thicket
    except ImportError as error:
        print(f"{error.name} is not installed: pip install -c constraints.txt -e '.[dev]'", file=sys.stderr)
        return 2
    # What was imported is no garbage; going through it again and again would be added to the times of both.
    gc.collect()
    gc.freeze()
    ours = theirs = math.inf
    with tempfile.TemporaryDirectory(prefix="caliper-") as folder:
        profiles = copies(files, Path(folder), 1 if is_quick else 5)
        for _ in range(1 if is_quick else 3):
            our_seconds, reading = seconds_of(lambda: read(Path(folder)))
            their_seconds, composed = seconds_of(
                lambda: thicket.Thicket.from_caliperreader([str(file) for file in profiles], disable_tqdm=True)
            )
            check(reading, composed)
            ours, theirs = min(ours, our_seconds), min(theirs, their_seconds)
    ratio = theirs / ours
    met = "met" if ratio >= _GOAL else "NOT met"
    print(f"{len(profiles)} profiles: ours {ours * 1e3:.1f} ms, thicket {theirs * 1e3:.1f} ms, goal {_GOAL:g}x {met}")
    print(json.dumps({"caliper_vs_thicket": round(ratio, 1), "profiles": len(profiles)}))
    return 0


if __name__ == "__main__":
    sys.exit(main())
