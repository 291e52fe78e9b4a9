"""From one run, how well are its times on all machines predicted? Seven real GPUs, and the simulated fleet of a lake.

Every method beside its baselines, on unseen configurations and on unseen applications; beside them the goals, and what
Nichols, Yeom and Bhatele report on their own data (not public, so not to be compared row by row).

Last line: one JSON object. The GPUs need `../shared/data`, or PERF_ASSETS_SHARED_DATA; the fleet needs a lake with
ingested machines (PERF_ASSETS_LAKE), and is left out without one. Takes some 20 minutes on two cores; an argument is
the number of seeds (1).
"""

import argparse
import json
import subprocess
import sys
from pathlib import Path

from transfer_data import data_folder

NOT_COUNTERS = r"^(unnamed_0|AppId|Device|Context|Stream|Kernel|l1_cache_used|Start)(\.1)?$"
GOALS = {
    "gpus": {"sample r2": 0.95, "app same_order above majority": 0.15, "app regret at most": 0.03},
    "fleet": {"sample r2": 0.90, "sample same_order above majority": 0.15},
}
PAPER = {"vae_dnn": {"r2": 0.81, "same_order": 0.91}, "random_forest": {"r2": 0.68}, "majority": {"same_order": 0.80}}
SHOWN = ("r2", "r2_per_machine", "mae", "mape", "same_order", "top1", "regret", "auc")
Scores = dict[str, dict[str, dict[str, float]]]


def main(seeds: int, *, is_quick: bool) -> None:
    """Evaluate, print the tables and the JSON line."""
    found = {"gpus": _gpus(seeds, *(3, "--methods", "majority") if is_quick else ())}
    fleet = None if is_quick else _fleet(seeds)
    if fleet is not None:
        found["fleet"] = fleet
    for data, protocols in found.items():
        for protocol, methods in protocols.items():
            print(f"\n{data}, by {protocol}, {seeds} seeds: {', '.join(SHOWN)}")
            for name, score in methods.items():
                print(f"{name:15s} " + " ".join(f"{score[key]:7.3f}" for key in SHOWN))
    print(f"\nthe paper, on its data: {PAPER}")
    reached = {} if is_quick else {data: _reached(protocols) for data, protocols in found.items()}
    print(json.dumps({"reached": reached, "goals": GOALS, "scores": found}))


def _reached(protocols: Scores) -> dict[str, float]:
    figures = {"sample r2": protocols["sample"]["best"]["r2"], "app regret": protocols["app"]["best"]["regret"]}
    for protocol, methods in protocols.items():
        figures |= {f"{protocol} {name}": methods["best"][name] for name in ("coverage", "stated_order", "same_order")}
        best, forest, majority = (methods[name] for name in ("best", "random_forest", "majority"))
        figures[f"{protocol} same_order above majority"] = best["same_order"] - majority["same_order"]
        figures[f"{protocol} r2 above forest"] = best["r2"] - forest["r2"]
    return {name: round(value, 4) for name, value in figures.items()}


def _gpus(seeds: int, machines: int | None = None, *only: str) -> Scores:
    files = sorted(data_folder("nvprof_gpus").glob("*.csv"))[:machines]
    command = [str(Path(sys.executable).with_name("perf-assets")), "evaluate", "vector", "--json"]
    for file in files:
        command += ["--table", f"{file.stem}={file}"]
    command += ["--key", "AppName,Input.Size,Block.X,Block.Y", "--app-column", "AppName", "--time-column", "Duration"]
    command += ["--drop", NOT_COUNTERS, "--seeds", str(seeds), *only]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    protocols: Scores = json.loads(done.stdout)["protocols"]
    return protocols


def _fleet(seeds: int) -> Scores | None:
    from perf_assets.core.errors import BadInputError
    from perf_assets.core.vector_settings import VectorSettings
    from perf_assets.defs.resources import LakeResource
    from perf_assets.models.vectors.evaluation import evaluate_vectors

    try:
        samples = LakeResource().fleet().vector_samples()
    except (BadInputError, OSError) as error:
        print(f"no fleet: {error}", file=sys.stderr)
        return None
    found = evaluate_vectors(
        samples, "max", seeds, VectorSettings(), progress=lambda text: print(text, file=sys.stderr)
    )
    return found.scores  # type: ignore[return-value]


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("seeds", nargs="?", type=int, default=1)
    parser.add_argument("--quick", action="store_true", help="seconds instead of minutes, figures without meaning")
    given = parser.parse_args()
    main(given.seeds, is_quick=given.quick)
