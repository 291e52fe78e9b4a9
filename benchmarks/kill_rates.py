"""Do wall-time limits keep the rate of kills that they promise? Measured on real jobs, later than those learned from.

Jobs of real logs that were run before by the same user on as many nodes with the same request (and, in SWF, program):
each has a limit from the median of those that had ended when it was submitted, and from errors of the log's first half
(`perf-assets advise` does this with runs of a lake). How many of the second half run longer is printed beside the
promise, and what a normal distribution of errors around medians would have given (which advise used before).

Last line: one JSON object. Needs `../shared/data`, or PERF_ASSETS_SHARED_DATA.
"""

import argparse
import json
import math
import statistics
from pathlib import Path
from typing import Any

import numpy as np
from transfer_data import data_folder

from perf_assets.scheduling.traces.read import read_trace
from perf_assets.scheduling.traces.trace import Trace
from perf_assets.serving.advice import exceeded_by

RATES = (0.01, 0.05, 0.1, 0.2)
EAGLE = "eagle_1000_jobs.csv"


def logs(folder: Path) -> list[Trace]:
    """Two SWF logs, and a thousand Slurm jobs."""
    swf = [read_trace(path) for path in sorted((folder / "swf").glob("*.swf.gz"))]
    return [*swf, read_trace(folder / "jobs" / EAGLE, "America/Denver")]


def errors_of(trace: Trace) -> np.ndarray:
    """Logarithm of each job's time over the median of those of its kind that had ended before; NaN without such.

    Jobs count as ended so long after their submission as they ran: waits are no part of a trace.
    """
    # Names of Slurm jobs are new for most jobs: users, sizes and requests say more.
    program = np.zeros(len(trace)) if trace.application_names else trace.application
    keys = np.stack([trace.user, trace.nodes, np.nan_to_num(trace.request, nan=-1), program], axis=1)
    kind = np.unique(keys, axis=0, return_inverse=True)[1].reshape(-1)
    ended: dict[int, list[tuple[float, float]]] = {}
    errors = np.full(len(trace), np.nan)
    for job, submit in enumerate(trace.submit):
        known = [run for end, run in ended.setdefault(int(kind[job]), []) if end <= submit]
        if known:
            errors[job] = math.log(trace.run[job] / statistics.median(known))
        ended[int(kind[job])].append((float(submit + trace.run[job]), float(trace.run[job])))
    return errors


def kept(trace: Trace) -> list[dict[str, Any]]:
    """Promised rates, and those of the log's second half."""
    errors, half = errors_of(trace), len(trace) // 2
    before, after = (part[np.isfinite(part)] for part in (errors[:half], errors[half:]))
    return [
        {
            "log": trace.name, "promised": rate, "jobs": len(after),
            "measured": float(np.mean(after > exceeded_by(before.tolist(), rate))),
            "normal": float(np.mean(after > statistics.NormalDist(0, float(before.std())).inv_cdf(1 - rate))),
        }
        for rate in RATES
    ]  # fmt: skip


def main() -> None:
    """Measure, print, and the JSON line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--quick", action="store_true", help="the first 2,000 jobs of each log")
    given = parser.parse_args()
    rows = []
    for trace in logs(data_folder()):
        rows += kept(trace.window("0..2000") if given.quick else trace)
    for row in rows:
        print(f"{row['log'][:30]:30s} {row['jobs']:6,} jobs, promised {row['promised']:.0%}, measured "
              f"{row['measured']:.1%}; with normal errors {row['normal']:.1%}")  # fmt: skip
    print(json.dumps({"rates": rows, "quick": given.quick}))


if __name__ == "__main__":
    main()
