"""Are machines compared rightly? Seven real GPUs: each predicted from 10 of its runs and all runs on another.

From Tesla-K40 and from GTX-680 as the machine of today; models are corrections without prior; the 10 runs are not among
those that are compared. Of each application, and of all with equal weights (the portfolio): the share of machines whose
true relative time lies inside the 90% interval of the comparison, where errors of runs go together, and inside one
where they are independent. Of pairs of machines: the share that is put into an order (whole intervals lie apart), the
share of these orders that is right, and the share that is right when every pair is put into the order of its values.

Last line: one JSON object (means over sources and seeds). Needs `../shared/data`, or PERF_ASSETS_SHARED_DATA. Takes
half a minute; an argument is the number of seeds (10).
"""

import argparse
import itertools
import json
from collections.abc import Sequence

import numpy as np
from paired_gpus import paired_gpus

from perf_assets.core.comparison import Estimate, total, typical
from perf_assets.features.samples import Floats, PairedSamples
from perf_assets.models.common.contract import NINETY_PERCENT
from perf_assets.models.target.correction import fit_correction

SHOTS = 10
SOURCES = ("Tesla-K40", "GTX-680")


def main(seeds: int, sources: Sequence[str]) -> None:
    """Print each source and seed, and the JSON line."""
    samples, found = paired_gpus(), []
    for source, seed in itertools.product(sources, range(seeds)):
        found.append(_scores(samples, samples.machines.index(source), seed))
        shown = ", ".join(f"{name} {value:.2f}" for name, value in found[-1].items())
        print(f"{source}, seed {seed}: {shown}", flush=True)
    print(json.dumps({name: round(float(np.nanmean([one[name] for one in found])), 4) for name in found[0]}))


def _scores(samples: PairedSamples, source: int, seed: int) -> dict[str, float]:
    everywhere = np.isfinite(samples.log_seconds).all(axis=0) & ~samples.is_benchmark
    order = np.random.default_rng(seed).permutation(np.flatnonzero(everywhere))
    shots, rows = order[:SHOTS], order[SHOTS:]
    today, apps = samples.log_seconds[source, rows], samples.apps[rows]
    together, independent, true = [], [], []
    for target in (machine for machine in range(len(samples.machines)) if machine != source):
        mean, spread = fit_correction(samples, source, target, shots, [None]).distribution(samples, rows)
        estimates = _estimates(mean - today, NINETY_PERCENT * spread)
        together.append(_levels([typical(found) for found in _by(apps, estimates)]))
        independent.append(_levels([typical([], found) for found in _by(apps, estimates)]))
        measured = _estimates(samples.log_seconds[target, rows] - today, np.zeros(len(rows)))
        true.append(_levels([typical(found) for found in _by(apps, measured)]))
    scores: dict[str, float] = {}
    for level, places in (("portfolio", [0]), ("application", range(1, len(true[0])))):
        judged = [[[one[place] for one in kind] for kind in (together, independent, true)] for place in places]
        for name in ("coverage", "coverage_if_independent", "ordered", "order_right", "order_right_if_always"):
            scores[f"{level}_{name}"] = float(np.nanmean([_judged(*one)[name] for one in judged]))
    return scores


def _estimates(logs: Floats, half_widths: Floats) -> list[Estimate]:
    ends = np.exp([logs, logs - half_widths, logs + half_widths])
    return [Estimate(*values) for values in ends.T.tolist()]


def _by(apps: "np.ndarray", estimates: Sequence[Estimate]) -> list[list[Estimate]]:
    return [[one for one, name in zip(estimates, apps, strict=True) if name == app] for app in np.unique(apps)]


def _levels(by_app: list[Estimate]) -> list[Estimate]:
    """The portfolio, then each application."""
    return [total([one.times(1 / len(by_app)) for one in by_app]), *by_app]


def _judged(found: list[Estimate], independent: list[Estimate], true: list[Estimate]) -> dict[str, float]:
    """Of one application or the portfolio on all machines."""
    pairs = list(itertools.combinations(range(len(true)), 2))
    is_less = {(i, j): true[i].value < true[j].value for i, j in pairs}
    apart = {(i, j): found[i].upper < found[j].lower or found[j].upper < found[i].lower for i, j in pairs}
    agrees = {(i, j): (found[i].value < found[j].value) == is_less[i, j] for i, j in pairs}
    right = [agrees[pair] for pair in pairs if apart[pair]]
    return {
        "coverage": float(np.mean([one.lower <= t.value <= one.upper for one, t in zip(found, true, strict=True)])),
        "coverage_if_independent": float(
            np.mean([one.lower <= t.value <= one.upper for one, t in zip(independent, true, strict=True)])
        ),
        "ordered": float(np.mean(list(apart.values()))),
        "order_right": float(np.mean(right)) if right else float("nan"),
        "order_right_if_always": float(np.mean(list(agrees.values()))),
    }


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("seeds", nargs="?", type=int, default=10)
    parser.add_argument("--quick", action="store_true", help="seconds instead of minutes, figures without meaning")
    given = parser.parse_args()
    main(*(1, SOURCES[:1]) if given.quick else (given.seeds, SOURCES))
