"""How well do machine models predict on measured fleets? Kernels as applications, LLNL applications, SPEChpc.

Kernels: RAJAPerf groups Apps and Polybench on eight machines, each left out in turn. LLNL: relative speeds of six
applications, each machine and each application left out, within a campaign; nothing describes a machine there. SPEChpc:
each application left out between two processors, from counters. MAPE as a ratio, mean over what is left out; settings
come from inside of each training fold, but `likeness` and the stronger penalties of `mixture` were added while these
kernels were looked at. Baselines: constant ratio (`pair_median`, for a known pair), time unchanged, mean benchmark
ratio, roofline (the TRIAD ratio), machine id (`onehot_xgboost`); there are no data sheets in the data. Last line: one
JSON object. Needs `../shared/data`, or PERF_ASSETS_SHARED_DATA.
"""

import argparse
import json
import sys
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from real_fleets import kernels, llnl_campaigns, spechpc
from transfer_data import data_folder

from perf_assets.features.samples import PairedSamples
from perf_assets.models.source.evaluation import evaluate_relative

KERNEL_METHODS = ("unchanged", "benchmark_mean", "typical", "onehot_xgboost", "raw_xgboost")
AMMS = ("raw_amm_xgboost", "raw_relative_amm_xgboost")
MACHINE_MODELS = ("bilinear", "mixture", "kernel_mixture", "anchored_xgboost", "attention", "best")
WITHOUT_BENCHMARK = ("unchanged", "pair_median", "typical", "onehot_xgboost", "raw_xgboost", "best")
Table = dict[str, float]


def main(*, quick: bool) -> None:
    """Evaluate, print the tables and the JSON line."""
    folder = data_folder()
    fleet = kernels(folder)
    some = ("benchmark_mean", "mixture") if quick else (*KERNEL_METHODS, *AMMS, *MACHINE_MODELS)
    found = {"kernels_lomo": {**_table(fleet, some, "lomo"), "roofline": _roofline(fleet)}}
    cheap = ("unchanged", "pair_median") if quick else WITHOUT_BENCHMARK
    for protocol in ("lomo", "loao"):
        tables = [_table(samples, cheap, protocol) for samples in llnl_campaigns(folder).values()]
        found[f"llnl_{protocol}"] = {name: float(np.mean([table[name] for table in tables])) for name in cheap}
    found["spechpc_loao"] = _table(spechpc(folder), cheap, "loao")
    for title, table in found.items():
        print(f"\n{title}: MAPE")
        for name, value in sorted(table.items(), key=lambda item: item[1]):
            print(f"  {name:26s} {value:8.1%}")
    print(json.dumps({title: {name: round(v, 4) for name, v in table.items()} for title, table in found.items()}))


def _table(samples: PairedSamples, methods: Sequence[str], protocol: str) -> Table:
    found = evaluate_relative(samples, list(methods), (protocol,), progress=lambda line: print(line, file=sys.stderr))
    return {name: float(scores["mape"]) for name, scores in found[protocol].items()}  # type: ignore[arg-type]


def _roofline(samples: PairedSamples) -> float:
    """Every kernel changes by the ratio of TRIAD's bandwidths: of peaks there is nothing in the data."""
    triad = samples.is_benchmark & (samples.apps == "Stream_TRIAD")
    only = replace(samples, is_benchmark=triad)
    rows = triad | ~samples.is_benchmark
    shown = replace(
        only,
        configurations=tuple(np.array(samples.configurations)[rows]),
        apps=samples.apps[rows],
        is_benchmark=triad[rows],
        counters=samples.counters[:, rows],
        log_seconds=samples.log_seconds[:, rows],
    )
    return _table(shown, ("benchmark_mean",), "lomo")["benchmark_mean"]


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--quick", action="store_true", help="seconds instead of minutes: two methods in each table")
    main(quick=parser.parse_args().quick)
