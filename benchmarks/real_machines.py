"""How well do machine models predict on measured fleets? Kernels as applications, LLNL applications, SPEChpc.

Kernels: RAJAPerf groups Apps and Polybench on eight machines, each left out in turn. LLNL: relative speeds of six
applications, each machine and each application left out, within a campaign; nothing describes a machine there. SPEChpc:
each application left out between two processors, from counters. Two figures per method: MAPE (mean over what is left
out of the mean over pairs of machines) and the median error over workloads (mean over what is left out). Settings come
from inside of each training fold or from other data; docs/methods.md says which methods were made while these rows were
looked at.

Baselines: constant ratio (`pair_median`; of an unseen machine there is none, and it is `unchanged` or
`benchmark_mean`), mean benchmark ratio, roofline (bandwidth from TRIAD, peak from the benchmark kernel with most
operations per second), machine id (`onehot_xgboost`). A baseline that the data do not allow is said so: there are no
data sheets in them, and LLNL's and SPEChpc's tables have no benchmark. Last line: one JSON object of MAPE as a ratio.
Needs `../shared/data`, or PERF_ASSETS_SHARED_DATA.
"""

import argparse
import json
import sys
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

import numpy as np
from real_fleets import kernels, llnl_campaigns, spechpc
from transfer_data import data_folder

from perf_assets.features.folds import PROTOCOLS
from perf_assets.features.samples import Examples, Floats, PairedSamples
from perf_assets.models.common.threads import keep_blas_to_one_thread
from perf_assets.models.source.evaluation import mean_over_pairs
from perf_assets.models.source.methods import MethodFactory

KERNEL_METHODS = ("unchanged", "benchmark_mean", "typical", "onehot_xgboost", "raw_xgboost")
AMMS = ("raw_amm_xgboost", "raw_relative_amm_xgboost")
MACHINE_MODELS = ("bilinear", "mixture", "kernel_mixture", "anchored_xgboost", "attention", "best")
WITHOUT_BENCHMARK = ("unchanged", "pair_median", "typical", "onehot_xgboost", "raw_xgboost", "best")
WITH_COUNTERS = (*WITHOUT_BENCHMARK, "rates_xgboost")
NONE = {
    "kernels_lomo": "no constant ratio of an unseen machine, no data sheets",
    "llnl_lomo": "no constant ratio of an unseen machine, no benchmark (mean ratio, roofline), no data sheets",
    "llnl_loao": "no benchmark (mean ratio, roofline), no data sheets",
    "spechpc_loao": "no benchmark (mean ratio, roofline), no data sheets",
}
"""Baselines that the data do not allow."""
Table = dict[str, tuple[float, float]]
"""By method: MAPE, and median error over workloads."""


def main(names: Sequence[str], *, quick: bool) -> None:
    """Evaluate, print the tables and the JSON line."""
    keep_blas_to_one_thread()
    found = {}
    for name in names:
        found[name] = TABLES[name](data_folder(), quick)
        print(f"\n{name}: MAPE, median error over workloads ({NONE[name]})")
        for method, (mape, median) in sorted(found[name].items(), key=lambda item: item[1]):
            print(f"  {method:26s} {mape:8.1%} {median:8.1%}", flush=True)
    print(json.dumps({name: {m: round(mape, 4) for m, (mape, _) in table.items()} for name, table in found.items()}))


def _kernels(folder: Path, quick: bool) -> Table:
    samples = kernels(folder)
    methods = ("benchmark_mean", "kernel_mixture") if quick else (*KERNEL_METHODS, *AMMS, *MACHINE_MODELS)
    return _table(samples, methods, "lomo") | _scores(samples, "lomo", {"roofline": _roofline})


def _llnl(folder: Path, quick: bool, protocol: str) -> Table:
    methods = ("unchanged", "pair_median") if quick else WITHOUT_BENCHMARK
    return _mean([_table(samples, methods, protocol) for samples in llnl_campaigns(folder).values()])


def _spechpc(folder: Path, quick: bool) -> Table:
    return _table(spechpc(folder), ("unchanged", "pair_median") if quick else WITH_COUNTERS, "loao")


TABLES: dict[str, Callable[[Path, bool], Table]] = {
    "kernels_lomo": _kernels,
    "llnl_lomo": lambda folder, quick: _llnl(folder, quick, "lomo"),
    "llnl_loao": lambda folder, quick: _llnl(folder, quick, "loao"),
    "spechpc_loao": _spechpc,
}


def _table(samples: PairedSamples, methods: Sequence[str], protocol: str) -> Table:
    factory = MethodFactory()
    unseen = next(PROTOCOLS[protocol](samples)).unseen

    def predict(name: str) -> Callable[[PairedSamples, Examples, PairedSamples], Floats]:
        return lambda train, test, every: factory.fit(name, train, unseen).predict(every, test)

    return _scores(samples, protocol, {name: predict(name) for name in methods})


def _scores(
    samples: PairedSamples,
    protocol: str,
    methods: dict[str, Callable[[PairedSamples, Examples, PairedSamples], Floats]],
) -> Table:
    """Scores of functions that predict from training samples, the examples of a fold, and all samples."""
    parts: list[Table] = []
    for fold in PROTOCOLS[protocol](samples):
        train, true = fold.train, samples.log_relative_time(fold.test)
        parts.append({})
        for name, predict in methods.items():
            predicted = predict(train, fold.test, samples)
            mape = mean_over_pairs(samples, fold.test, predicted)["mape_ratio"]
            parts[-1][name] = mape, float(np.median(np.abs(np.expm1(predicted - true))))
        shown = ", ".join(f"{name} {mape:.1%}" for name, (mape, _) in parts[-1].items())
        print(f"{protocol} without {fold.held_out}: {shown}", file=sys.stderr, flush=True)
    return _mean(parts)


def _mean(parts: Iterable[Table]) -> Table:
    tables = list(parts)
    return {
        name: (float(np.mean([t[name][0] for t in tables])), float(np.mean([t[name][1] for t in tables])))
        for name in tables[0]
    }


def _roofline(_: PairedSamples, test: Examples, samples: PairedSamples) -> Floats:
    """Kernels take the longer of the time for their bytes and that for their operations."""
    moved, operations = samples.counters[0, :, 0], samples.counters[0, :, 1]
    seconds = np.exp(samples.log_seconds)
    triad = samples.apps == "Stream_TRIAD"
    bandwidth = (moved / seconds)[:, triad].max(axis=1)
    peak = np.nanmax((operations / seconds)[:, samples.is_benchmark], axis=1)
    times = np.log(np.maximum(moved / bandwidth[:, None], operations / peak[:, None]))
    return np.asarray(times[test.target, test.row] - times[test.source, test.row])


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("tables", nargs="*", choices=[[], *TABLES], help="tables to make; all where none is named")
    parser.add_argument("--quick", action="store_true", help="seconds instead of minutes: two methods in each table")
    given = parser.parse_args()
    main(given.tables or list(TABLES), quick=given.quick)
