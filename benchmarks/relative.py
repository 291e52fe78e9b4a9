"""How well is a run's time on another machine predicted? Seven real GPUs, unseen applications and unseen machines.

Data: nvprof counters of nine CUDA programs; vectorAdd and matrix_sum_normal are the benchmark. Beside each score stand
the goals and what was known before (METHODS.md, section 3: plain pooled XGBoost; attention as a prototype).

Last line: one JSON object, MAPE as a ratio. Needs `../shared/data`, or PERF_ASSETS_SHARED_DATA. Takes some minutes;
an argument is the number of seeds (1). `--before` measures the first release, too, or another revision of this clone,
on the same tables: processor time and time by the clock of both, their MAPE side by side. `--machines` and
`--applications` take a part of the data.
"""

import argparse
import contextlib
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import pandas as pd
from transfer_data import data_folder

FIRST_RELEASE = "c775a1c"
BENCHMARK = ("vectorAdd", "matrix_sum_normal")
HERE = Path(__file__).resolve().parents[1]
GOALS = {"loao": 0.17, "lomo": 0.12}
KNOWN = {
    "raw_xgboost": (0.45, 0.37),
    "onehot_xgboost": (0.27, 0.39),
    "spec_xgboost": (0.24, 0.22),
    "raw_amm_xgboost": (0.24, 0.28),
    "raw_relative_amm_xgboost": (0.24, 0.20),
    "attention": (0.26, 0.144),
    "benchmark_mean": (0.35, 0.31),
}
"""MAPE measured before, for an unseen application and an unseen machine."""
NOT_COUNTERS = r"^(unnamed_0|AppId|Device|Context|Stream|Kernel|l1_cache_used)$"
SPECIFICATION = ["compute_version", "max_clock_rate", "num_of_cores", "L2", "bus", "memory_clock", "bandwith"]


Scores = dict[str, dict[str, dict[str, float]]]


@dataclass(frozen=True)
class Evaluated:
    """Scores by protocol and method, and what they cost."""

    scores: Scores
    processor_seconds: float
    """Of all processes that computed."""
    seconds: float


def main(
    seeds: int, before: str | None, machines: int | None, applications: int | None, options: Sequence[str] = ()
) -> None:
    """Evaluate, print both tables and the JSON line; with a revision, evaluate its code on the same tables, too."""
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        files = _tables(folder, machines, applications)
        spec = folder / "spec.csv"
        pd.DataFrame([{"machine": file.stem, **_data_sheet(file)} for file in files]).to_csv(spec, index=False)
        earlier = None
        if before is not None:
            with _checked_out(before, folder / "before") as code:
                earlier = _evaluate(files, spec, seeds, options, code)
        now = _evaluate(files, spec, seeds, options, HERE)
    for position, (protocol, methods) in enumerate(now.scores.items()):
        print(
            f"\n{protocol}: MAPE, spread over {seeds} seeds, median over folds, within 25%; "
            f"known before; goal of best{'' if before is None else f'; {before}'}"
        )
        for name, score in methods.items():
            known = f"{KNOWN[name][position]:6.1%}" if name in KNOWN else "     -"
            goal = f"{GOALS[protocol]:6.1%}" if name == "best" else "     -"
            shown = " ".join(f"{score[key]:6.1%}" for key in ("mape", "mape_std", "mape_median", "within_25"))
            beside = (
                ""
                if earlier is None or name not in earlier.scores[protocol]
                else (f"  {earlier.scores[protocol][name]['mape']:6.1%}")
            )
            print(f"{name:26s} {shown}  {known}  {goal}{beside}")
    flat = {protocol: {n: round(s["mape"], 4) for n, s in methods.items()} for protocol, methods in now.scores.items()}
    print(json.dumps({**flat, "goals": GOALS, **_costs(now, earlier)}))


def _tables(folder: Path, machines: int | None, applications: int | None) -> list[Path]:
    """The files of the GPUs, or of some, with rows of some applications beside the benchmark."""
    files = sorted(data_folder("nvprof_gpus").glob("*.csv"))[:machines]
    if applications is None:
        return files
    parts = []
    for file in files:
        table = pd.read_csv(file, low_memory=False)
        others = sorted(set(table["AppName"]) - set(BENCHMARK))[:applications]
        parts.append(folder / file.name)
        table[table["AppName"].isin([*BENCHMARK, *others])].to_csv(parts[-1], index=False)
    return parts


@contextlib.contextmanager
def _checked_out(revision: str, folder: Path) -> Iterator[Path]:
    """The code of a revision in a folder of its own, for as long as it is needed."""
    git = ["git", "-C", str(HERE)]
    if subprocess.run([*git, "cat-file", "-e", f"{revision}^{{commit}}"], capture_output=True, check=False).returncode:
        sys.exit(f"revision {revision} is not in this clone: fetch it (git fetch --unshallow), or name another one")
    subprocess.run([*git, "worktree", "add", "--quiet", "--detach", str(folder), revision], check=True)
    try:
        yield folder
    finally:
        subprocess.run([*git, "worktree", "remove", "--force", str(folder)], check=True)


def _costs(now: Evaluated, before: Evaluated | None) -> dict[str, float]:
    costs = {"processor_seconds": round(now.processor_seconds, 1), "seconds": round(now.seconds, 1)}
    if before is None:
        return costs
    both = [
        (score["mape"], now.scores[protocol][name]["mape"])
        for protocol, methods in before.scores.items()
        for name, score in methods.items()
        if name in now.scores[protocol]
    ]
    return costs | {
        "processor_seconds_before": round(before.processor_seconds, 1),
        "seconds_before": round(before.seconds, 1),
        "times_less_processor_time": round(before.processor_seconds / now.processor_seconds, 2),
        "times_faster": round(before.seconds / now.seconds, 2),
        "largest_difference": round(max(abs(one - other) for one, other in both), 4),
    }


def _data_sheet(file: Path) -> dict[str, float]:
    first = pd.read_csv(file, usecols=SPECIFICATION, nrows=1).iloc[0]
    return {name: float(first[name]) for name in SPECIFICATION}


def _evaluate(files: list[Path], spec: Path, seeds: int, options: Sequence[str], code: Path) -> Evaluated:
    """Scores by the code in a folder that has the package `perf_assets`."""
    command = [sys.executable, "-c", "from perf_assets.cli.main import main; main()", "evaluate", "relative", "--json"]
    for file in files:
        command += ["--table", f"{file.stem}={file}"]
    command += ["--key", "AppName,Input.Size,Block.X,Block.Y", "--app-column", "AppName", "--time-column", "Duration"]
    for name in BENCHMARK:
        command += ["--benchmark-app", name]
    command += ["--drop", NOT_COUNTERS, "--spec", str(spec), "--seeds", str(seeds), *options]
    environment = {**os.environ, "PYTHONPATH": str(code)}
    start, used = time.monotonic(), _children_seconds()
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True, env=environment, cwd=code)
    return Evaluated(
        scores=json.loads(done.stdout)["protocols"],
        processor_seconds=_children_seconds() - used,
        seconds=time.monotonic() - start,
    )


def _children_seconds() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("seeds", nargs="?", type=int, default=1)
    parser.add_argument("--quick", action="store_true", help="seconds instead of minutes, figures without meaning")
    parser.add_argument(
        "--before",
        nargs="?",
        const=FIRST_RELEASE,
        metavar="REVISION",
        help="measure this code, too [the first release]",
    )
    parser.add_argument("--machines", type=int, metavar="N", help="only so many machines (4 have folds within folds)")
    parser.add_argument("--applications", type=int, metavar="N", help="only so many applications beside the benchmark")
    parser.add_argument("--methods", metavar="A,B,...", help="only these methods")
    given = parser.parse_args()
    methods = "raw_xgboost,benchmark_mean" if given.quick else given.methods
    main(
        1 if given.quick else given.seeds,
        given.before,
        3 if given.quick else given.machines,
        given.applications,
        () if methods is None else ("--methods", methods),
    )
