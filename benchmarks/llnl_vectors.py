"""From one run without counters, how well are its times on all machines predicted? Relative speeds measured at LLNL.

Two campaigns, which are never compared with each other: three machines and seven. A workload is known by application,
parsed arguments, ranks, and its time relative to Quartz on the machine that it ran on. Held out: a fifth of the
workloads, and each application in turn. Baselines: the most frequent order, the mean vector, a forest. Settings are the
defaults; none was chosen on these data. Last line: one JSON object. Needs `../shared/data`, or PERF_ASSETS_SHARED_DATA;
an argument is the number of seeds (1).
"""

import argparse
import json
import sys

from real_fleets import WORKLOADS, llnl_tables
from transfer_data import data_folder

from perf_assets.core.vector_settings import VectorSettings
from perf_assets.features.vectors import vector_table
from perf_assets.models.vectors.evaluation import BEST, PROTOCOLS, evaluate_vectors
from perf_assets.models.vectors.methods import MAJORITY, MEAN

SHOWN = ("r2", "r2_per_machine", "mae", "same_order", "top1", "regret")
METHODS = (MAJORITY, MEAN, "random_forest", BEST)
Table = dict[str, dict[str, float]]


def main(seeds: int, *, is_quick: bool) -> None:
    """Evaluate, print the tables and the JSON line."""
    found: dict[str, dict[str, Table]] = {}
    methods = (MAJORITY, MEAN) if is_quick else METHODS
    for campaign, tables in llnl_tables(data_folder()).items():
        samples = vector_table(tables, WORKLOADS)
        scores = evaluate_vectors(samples, "max", seeds, VectorSettings(), methods, progress=_say).scores
        found[campaign] = {
            protocol: {
                name: {key: float(scores[protocol][name][key]) for key in SHOWN}  # type: ignore[arg-type]
                for name in methods
            }
            for protocol in PROTOCOLS
        }
        for protocol, table in found[campaign].items():
            count = f"{len(samples.configurations)} workloads, {len(samples.machines)} machines"
            print(f"\n{campaign} campaign ({count}), by {protocol}: {', '.join(SHOWN)}")
            for name, score in table.items():
                print(f"  {name:14s} " + " ".join(f"{score[key]:7.3f}" for key in SHOWN))
    rounded = {
        campaign: {p: {n: {k: round(v, 4) for k, v in s.items()} for n, s in t.items()} for p, t in protocols.items()}
        for campaign, protocols in found.items()
    }
    print(json.dumps(rounded))


def _say(text: str) -> None:
    print(text, file=sys.stderr)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("seeds", nargs="?", type=int, default=1)
    parser.add_argument("--quick", action="store_true", help="seconds instead of minutes: baselines only")
    given = parser.parse_args()
    main(given.seeds, is_quick=given.quick)
