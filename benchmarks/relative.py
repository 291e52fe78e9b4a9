"""How well is a run's time on another machine predicted? Seven real GPUs, unseen applications and unseen machines.

Data: nvprof counters of nine CUDA programs; vectorAdd and matrix_sum_normal are the benchmark. Beside each score stand
the goals and what was known before (METHODS.md, section 3: plain pooled XGBoost; attention as a prototype).

Last line: one JSON object, MAPE as a ratio. Needs `../shared/data`, or PERF_ASSETS_SHARED_DATA. Takes some minutes;
an argument is the number of seeds (1).
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pandas as pd
from transfer_data import data_folder

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


def main(seeds: int, against: Path | None, machines: int | None = None, *only: str) -> None:
    """Evaluate, print both tables and the JSON line; with some machines and further options, if not with all.

    `against` is a folder with another version of the code: both are timed, and their scores compared.
    """
    files = sorted(data_folder("nvprof_gpus").glob("*.csv"))[:machines]
    with tempfile.TemporaryDirectory() as temporary:
        spec = Path(temporary) / "spec.csv"
        rows = [{"machine": file.stem, **_data_sheet(file)} for file in files]
        pd.DataFrame(rows).to_csv(spec, index=False)
        start = time.monotonic()
        found = _evaluate(files, spec, seeds, only, Path(__file__).resolve().parents[1])
        seconds = time.monotonic() - start
        timed = {"seconds": round(seconds, 1)}
        if against is not None:
            start = time.monotonic()
            before = _evaluate(files, spec, seeds, only, against.resolve())
            timed["times_faster"] = round((time.monotonic() - start) / seconds, 2)
            timed["largest_difference"] = max(
                abs(score["mape"] - found[p][name]["mape"]) for p in before for name, score in before[p].items()
            )
    for position, (protocol, methods) in enumerate(found.items()):
        print(
            f"\n{protocol}: MAPE, spread over {seeds} seeds, median over folds, within 25%; known before; goal of best"
        )
        for name, score in methods.items():
            before = f"{KNOWN[name][position]:6.1%}" if name in KNOWN else "     -"
            goal = f"{GOALS[protocol]:6.1%}" if name == "best" else ""
            shown = " ".join(f"{score[key]:6.1%}" for key in ("mape", "mape_std", "mape_median", "within_25"))
            print(f"{name:26s} {shown}  {before}  {goal}")
    flat = {protocol: {n: round(s["mape"], 4) for n, s in methods.items()} for protocol, methods in found.items()}
    print(json.dumps({**flat, "goals": GOALS, **timed}))


def _data_sheet(file: Path) -> dict[str, float]:
    first = pd.read_csv(file, usecols=SPECIFICATION, nrows=1).iloc[0]
    return {name: float(first[name]) for name in SPECIFICATION}


def _evaluate(
    files: list[Path], spec: Path, seeds: int, only: tuple[str, ...], code: Path
) -> dict[str, dict[str, dict[str, float]]]:
    """Scores by the code in a folder that has the package `perf_assets`."""
    command = [sys.executable, "-c", "from perf_assets.cli.main import main; main()", "evaluate", "relative", "--json"]
    for file in files:
        command += ["--table", f"{file.stem}={file}"]
    command += ["--key", "AppName,Input.Size,Block.X,Block.Y", "--app-column", "AppName", "--time-column", "Duration"]
    command += ["--benchmark-app", "vectorAdd", "--benchmark-app", "matrix_sum_normal"]
    command += ["--drop", NOT_COUNTERS, "--spec", str(spec), "--seeds", str(seeds), *only]
    environment = {**os.environ, "PYTHONPATH": str(code)}
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True, env=environment, cwd=code)
    protocols: dict[str, dict[str, dict[str, float]]] = json.loads(done.stdout)["protocols"]
    return protocols


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("seeds", nargs="?", type=int, default=1)
    parser.add_argument("--quick", action="store_true", help="seconds instead of minutes, figures without meaning")
    parser.add_argument(
        "--against", type=Path, metavar="FOLDER", help="other code (git archive REV perf_assets) to time"
    )
    given = parser.parse_args()
    quick = (3, "--methods", "raw_xgboost,benchmark_mean")
    main(1 if given.quick else given.seeds, given.against, *(quick if given.quick else ()))
