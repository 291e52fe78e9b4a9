"""What do observed runs give? Seven real GPUs: a model of 10 shots, then 100 jobs of the target handed in one by one.

Sources are Tesla-K40 and GTX-680, targets all others (12 pairs). The model (correction without prior) stays as it is;
`models/target/online.py` corrects it after every job. MAPE on the rows that are neither shots nor jobs, at most 300: of the
model alone, of the corrected one after 10, 30 and 100 jobs, and of a model that is fitted to shots and jobs anew, which
is what the next adaptation does. `coverage` is the share of test rows inside the 90% interval after 100 jobs.

Last line: one JSON object (medians over pairs and seeds). Needs `../shared/data`, or PERF_ASSETS_SHARED_DATA. Takes a
minute; an argument is the number of seeds (3).
"""

import argparse
import json
import time

import numpy as np
from paired_gpus import paired_gpus

from perf_assets.core.metrics import mape
from perf_assets.features.samples import Indices, PairedSamples
from perf_assets.models.common.questions import Questions
from perf_assets.models.target.correction import fit_correction
from perf_assets.models.target.online import OnlineCorrection, RunsAsSeen

SHOTS, JOBS, TEST = 10, (10, 30, 100), 300
SOURCES = ("Tesla-K40", "GTX-680")


def main(seeds: int, most_pairs: int | None = None) -> None:
    """Print each pair, and the JSON line."""
    samples, found = paired_gpus(), []
    sources = [samples.machines.index(name) for name in SOURCES if name in samples.machines]
    pairs = [(source, target) for source in sources for target in range(len(samples.machines)) if target != source]
    for source, target in pairs[:most_pairs]:
        rows = [_scores(samples, source, target, seed) for seed in range(seeds)]
        found += rows
        shown = ", ".join(f"{name} {np.mean([row[name] for row in rows]):.3f}" for name in rows[0])
        print(f"{samples.machines[source]} -> {samples.machines[target]}: {shown}", flush=True)
    print(json.dumps({name: round(float(np.median([row[name] for row in found])), 4) for name in found[0]}))


def _scores(samples: PairedSamples, source: int, target: int, seed: int) -> dict[str, float]:
    on_both = np.isfinite(samples.log_seconds[[source, target]]).all(axis=0) & ~samples.is_benchmark
    order = np.random.default_rng(seed).permutation(np.flatnonzero(on_both))
    shots, jobs, test = np.split(order, [SHOTS, SHOTS + JOBS[-1]])
    test = test[:TEST]
    true = samples.log_seconds[target, test]
    model = fit_correction(samples, source, target, shots, [None])
    seen = RunsAsSeen(model, samples)
    alone, spread = model.distribution(samples, test)
    residuals = samples.log_seconds[target, jobs] - model.predict(samples, jobs)
    expected = float(np.median(model.spread(samples, jobs)))
    scores = {"model": mape(np.exp(true), np.exp(alone))}
    runs, asked = (seen.of(_questions(samples, source, target, rows)) for rows in (jobs, test))
    for count in JOBS:
        start = time.process_time()
        correction = OnlineCorrection.fit(runs.at(np.arange(count)), residuals[:count], expected)
        took = time.process_time() - start
        moved, width = correction.correct(asked, 1.645 * spread)
        scores[f"after_{count}"] = mape(np.exp(true), np.exp(alone + moved))
    scores["fitted_anew"] = mape(
        np.exp(true),
        np.exp(fit_correction(samples, source, target, order[: SHOTS + JOBS[-1]], [None]).predict(samples, test)),
    )
    scores["coverage"] = float(np.mean(np.abs(true - alone - moved) <= width))
    scores["model_coverage"] = float(np.mean(np.abs(true - alone) <= 1.645 * spread))
    return {**scores, "update_cpu_seconds": took}


def _questions(samples: PairedSamples, source: int, target: int, rows: Indices) -> Questions:
    return Questions(
        [samples.machines[source]] * len(rows),
        [samples.machines[target]] * len(rows),
        samples.apps[rows].tolist(),
        [samples.configurations[row] for row in rows],
        samples.counters[source, rows],
        samples.log_seconds[source, rows],
    )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("seeds", nargs="?", type=int, default=3)
    parser.add_argument("--quick", action="store_true", help="seconds instead of minutes, figures without meaning")
    given = parser.parse_args()
    main(*(1, 1) if given.quick else (given.seeds,))
