"""How fast is the scheduling simulator, and what are predictions worth to a scheduler?

Speed: EASY with users' estimates on KTH-SP2 (28,000 jobs, measured), and on the same trace fifteen times in a row
(420,000 jobs); CPU seconds of one process, compiling not included. Memory: the highest resident size of a process that
reads the trace, repeats it and schedules it. Worth, on KTH-SP2: mean bounded slowdown under EASY with estimates
learned from jobs that ended before, against users' estimates; jobs are killed at the time that users asked for, and
beside, at the predicted bound; means are over shaken submissions. Worth of moldable jobs: at load 1.0, against rigid
jobs with users' estimates, where jobs scale like problems of the fleet (simulated in the demo) as its target models
predict; needs a lake with target models (PERF_ASSETS_LAKE), and is null without.

With --against REVISION (of git), only speed: this code and that of the revision, checked out into a temporary folder,
schedule the same trace by every policy in turn, each in a process of its own.

Last line: one JSON object. Needs `../shared/data`, or PERF_ASSETS_SHARED_DATA. Takes a minute or two.
"""

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
from pathlib import Path
from time import process_time
from typing import Any

import numpy as np
from transfer_data import data_folder

from perf_assets.core.errors import BadInputError
from perf_assets.scheduling.choices import Estimates, KillAt, Planning, Policy
from perf_assets.scheduling.metrics import Metrics, measure
from perf_assets.scheduling.simulate import Machine, compile_all, simulate_trace
from perf_assets.scheduling.traces.swf import read_swf
from perf_assets.scheduling.traces.trace import Trace

NODES, TIMES, SHAKEN, RUNS = 100, 15, 20, 3
MEMORY = "--memory"
QUICK = "--quick"
FEW_JOBS = 1000
PROJECT = Path(__file__).resolve().parents[1]
_SPEEDS = """
import json, resource, sys
from time import process_time
try:
    from perf_assets.scheduling.traces.swf import read_swf
except ImportError:  # before modules moved into folders
    from perf_assets.scheduling.swf import read_swf
from pathlib import Path
from perf_assets.scheduling.choices import Planning, Policy
from perf_assets.scheduling.simulate import compile_all, simulate_trace

file, nodes, times, runs = sys.argv[1], *map(int, sys.argv[2:])
compile_all()
trace = read_swf(Path(file))
speeds = {}
for name, one in [(policy.value, trace) for policy in Policy] + [("easy, repeated", trace.repeated(times))]:
    seconds = []
    for _ in range(runs):
        started = process_time()
        simulate_trace(one, nodes, Policy(name.partition(",")[0]), Planning())
        seconds.append(process_time() - started)
    speeds[name] = len(one) / min(seconds)
print(json.dumps({"jobs_per_second": speeds, "mib": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024}))
"""
"""What is run with the code of each revision."""


def main() -> None:
    """Print all figures, and the JSON line."""
    trace = _trace()
    print(f"{trace.name}: {len(trace):,} jobs, load {trace.load(NODES):.2f}; compiled in {compile_all():.1f} s")
    small, large = _seconds_per_job(trace), _seconds_per_job(trace.repeated(TIMES))
    print(f"EASY: {1 / small:,.0f} jobs/s at {len(trace):,} jobs, {1 / large:,.0f} at {TIMES * len(trace):,}")
    command = [sys.executable, __file__, MEMORY, *([QUICK] if SHAKEN == 1 else [])]
    peak = float(subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()[-1])
    print(f"memory: {peak:.0f} MiB at {TIMES * len(trace):,} jobs")
    gains, killed = _predicted(trace)
    moldable = _moldable(trace)
    figures = {
        "jobs_per_second_28k": round(1 / small),
        "per_job_growth_420k": round(large / small, 2),
        "peak_mib_420k": round(peak),
        "slowdown_gain": round(gains["predicted"], 3),
        "killed_share": round(killed["predicted"], 4),
        "moldable_turnaround_gain": None if moldable is None else round(moldable, 3),
        "slowdown_gain_killed_at_bound": round(gains["predicted, killed at bound"], 3),
        "killed_share_at_bound": round(killed["predicted, killed at bound"], 4),
    }
    print(json.dumps(figures))


def against(revision: str) -> None:
    """Print the speed of this code and of an earlier one, measured in turns, and the JSON line."""
    with tempfile.TemporaryDirectory() as folder:
        earlier = Path(folder) / "earlier"
        git = ["git", "-C", str(PROJECT), "worktree"]
        subprocess.run([*git, "add", "--detach", "--quiet", str(earlier), revision], check=True)
        try:
            turns = [(name, _speeds(code)) for _ in range(2) for name, code in (("before", earlier), ("now", PROJECT))]
        finally:
            subprocess.run([*git, "remove", "--force", str(earlier)], check=True)
    best: dict[str, dict[str, float]] = {"before": {}, "now": {}}
    for name, found in turns:
        for policy, speed in found["jobs_per_second"].items():
            best[name][policy] = max(speed, best[name].get(policy, 0.0))
    mib = {name: found["mib"] for name, found in turns}
    for policy, speed in best["now"].items():
        before = best["before"][policy]
        print(f"{policy:14s} {speed:9,.0f} jobs/s, {before:9,.0f} before: {speed / before:.2f} times")
    print(f"memory {mib['now']:.0f} MiB, {mib['before']:.0f} before")
    print(json.dumps({"revision": revision, "jobs_per_second": best, "mib": mib}))


def _speeds(code: Path) -> dict[str, Any]:
    """Jobs per second of processor time by policy, and the highest resident size, of the code in a folder."""
    file = next(data_folder("swf").glob("KTH-SP2*"))
    command = [sys.executable, "-c", _SPEEDS, str(file), *map(str, (NODES, TIMES, RUNS))]
    environment = {**os.environ, "PYTHONPATH": str(code)}
    done = subprocess.run(command, capture_output=True, text=True, check=True, env=environment, cwd=code)
    return dict(json.loads(done.stdout.splitlines()[-1]))


def _trace() -> Trace:
    trace = read_swf(next(data_folder("swf").glob("KTH-SP2*")))
    return trace.where(np.arange(len(trace)) < FEW_JOBS) if SHAKEN == 1 else trace


def _seconds_per_job(trace: Trace) -> float:
    """The best of some runs."""
    found = []
    for _ in range(RUNS):
        started = process_time()
        simulate_trace(trace, NODES, Policy.EASY, Planning())
        found.append((process_time() - started) / len(trace))
    return min(found)


def _memory() -> None:
    measure(simulate_trace(_trace().repeated(TIMES), NODES, Policy.EASY, Planning()))
    print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)


def _predicted(trace: Trace) -> tuple[dict[str, float], dict[str, float]]:
    """Gain over users' estimates under EASY, and share of killed jobs."""
    plans = {
        "user": Planning(),
        "oracle": Planning(Estimates.ORACLE),
        "predicted": Planning(Estimates.PREDICTED),
        "predicted, killed at bound": Planning(Estimates.PREDICTED, KillAt.BOUND),
        "bound, killed at bound": Planning(Estimates.BOUND, KillAt.BOUND),
    }
    traces = [trace, *(trace.shaken(seed) for seed in range(1, SHAKEN))]
    gains, killed = {}, {}
    for policy in (Policy.EASY_SJBF, Policy.EASY):
        baseline = np.nan
        for name, plan in plans.items():
            every = [measure(simulate_trace(shaken, NODES, policy, plan)) for shaken in traces]
            means = np.array([metrics.bounded_slowdown.mean for metrics in every])
            baseline = means.mean() if name == "user" else baseline
            gains[name] = float(1 - means.mean() / baseline)
            killed[name] = float(np.mean([metrics.killed / metrics.jobs for metrics in every]))
            print(f"{policy.value:9s} {name:26s} {_described(means, every[0])}; {gains[name]:+.1%} better than user")
    return gains, killed


def _described(means: "np.ndarray[tuple[int], np.dtype[np.float64]]", once: Metrics) -> str:
    return (
        f"bounded slowdown {means.mean():.1f} ({means.min():.1f} to {means.max():.1f} over {len(means)} traces), "
        f"killed {once.killed / once.jobs:.2%}, underestimated {once.underestimated / once.jobs:.0%}, "
        f"heads late {once.promises_broken / once.jobs:.1%}"
    )


def _moldable(trace: Trace) -> float | None:
    """Lower mean turnaround of the moldable predictor against practice, at full load, on the fleet of the lake."""
    from perf_assets.defs.resources import LakeResource
    from perf_assets.scheduling.experiment import FULL_LOAD, Experiment
    from perf_assets.scheduling.strategies import PRACTICE, PREDICTOR_MOLDABLE
    from perf_assets.workflows.scheduling.scheduled_problems import fleet_problems, most_scaling_machine

    lake = LakeResource().fleet()
    try:
        name = most_scaling_machine(lake)
        problems = fleet_problems(lake, [name])
    except BadInputError as error:
        print(f"moldable jobs are left out: {error}")
        return None
    found = measure_by_strategy(Experiment(trace, problems, Machine(name, NODES), 0).rows([FULL_LOAD], 1, print))
    for strategy, seconds in found.items():
        print(f"load 1.0, scaling of {name}: {strategy:26s} mean turnaround {seconds:,.0f} s")
    return 1 - found[PREDICTOR_MOLDABLE] / found[PRACTICE]


def measure_by_strategy(rows: list[dict[str, object]]) -> dict[str, float]:
    """Mean turnaround of each strategy, in seconds."""
    return {str(row["strategy"]): float(str(row["turnaround_mean_seconds"])) for row in rows}


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument(QUICK, action="store_true", help="seconds instead of minutes, figures without meaning")
    parser.add_argument(MEMORY, action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--against", metavar="REVISION", help="only speed, beside the code of this revision of git")
    given = parser.parse_args()
    if given.quick:
        TIMES, SHAKEN, RUNS = 2, 1, 1
    if given.against:
        against(given.against)
    else:
        _memory() if given.memory else main()
