"""How many shots does a planned choice save against a random one? Seven real GPUs, every ordered pair.

The target's runs are split in halves: from one, shots are drawn at random or planned (`models/target/planner.py`,
five at a time, the model refitted after each five), on the other the error is measured. Both start from the prior
alone. For each pair the errors are averaged over the seeds; a random choice of 10, 20 and 30 shots has some error,
and the planned choice needs fewer or more shots for the same (linear between measured numbers of shots; at most 50).
Saved is one minus their ratio, the median of the three. One prior seed for each target.

Last line: one JSON object: median over pairs of the shots saved, and the share of pairs that save at least 30%. Needs
`../shared/data`, or PERF_ASSETS_SHARED_DATA. Takes some minutes; an argument is the number of seeds (3).
"""

import argparse
import json

import numpy as np
from paired_gpus import paired_gpus

from perf_assets.core.metrics import mape
from perf_assets.features.samples import Floats, Indices, PairedSamples
from perf_assets.models.target.correction import PairedModel, fit_paired
from perf_assets.models.target.planner import plan
from perf_assets.models.target.prior import COMPONENTS, Prior, PriorParts, fit_prior

COUNTS = np.arange(0, 51, 5)
REFERENCES = (10, 20, 30)
WON = 0.30


def main(seeds: int, components: tuple[str, ...] = COMPONENTS, most: int | None = None) -> None:
    """Print what every pair saves, and the JSON line; of some targets, each from as many sources, if not of all."""
    samples, parts = paired_gpus(), PriorParts(0)
    saved: list[float] = []
    for target in range(len(samples.machines))[:most]:
        prior = fit_prior(samples, target, 0, parts, components)
        for source in [machine for machine in range(len(samples.machines)) if machine != target][:most]:
            curves = [_curves(samples, source, target, seed, prior) for seed in range(seeds)]
            by_chance, planned = np.mean(curves, axis=0)
            saved.append(float(np.median([_saved(by_chance, planned, count) for count in REFERENCES])))
            shown = ", ".join(
                f"{count}: {by_chance[position]:.1%} / {planned[position]:.1%}"
                for position, count in enumerate(COUNTS.tolist())
                if count in (0, *REFERENCES, 50)
            )
            names = f"{samples.machines[source]} -> {samples.machines[target]}"
            print(f"{names:26s} shots: random / planned error  {shown}; saved {saved[-1]:.0%}", flush=True)
    won = float(np.mean(np.array(saved) >= WON))
    print(json.dumps({"shots_saved_median": round(float(np.median(saved)), 3), "pairs_won_share": round(won, 3)}))


def _curves(samples: PairedSamples, source: int, target: int, seed: int, prior: Prior) -> tuple[Floats, Floats]:
    """Error over the number of shots, drawn at random and planned."""
    on_both = np.isfinite(samples.log_seconds[[source, target]]).all(axis=0) & ~samples.is_benchmark
    order = np.random.default_rng(seed).permutation(np.flatnonzero(on_both))
    pool, test = order[: len(order) // 2], order[len(order) // 2 :]

    def fitted(shots: Indices) -> PairedModel:
        return fit_paired(samples, source, target, shots, prior=prior)

    def error(model: PairedModel) -> float:
        return mape(np.exp(samples.log_seconds[target, test]), np.exp(model.predict(samples, test)))

    by_chance = np.array([error(fitted(pool[:count])) for count in COUNTS])
    shots, planned = pool[:0], [by_chance[0]]
    model = fitted(shots)
    for more in np.diff(COUNTS):
        found = plan(model, samples, pool, int(more), population=pool)
        shots = np.concatenate([shots, np.array([run.row for run in found], np.intp)])
        model = fitted(shots)
        planned.append(error(model))
    return by_chance, np.array(planned)


def _saved(by_chance: Floats, planned: Floats, count: int) -> float:
    """Share of `count` random shots that planned ones do without, at the same error; negative if they need more."""
    wanted = by_chance[np.searchsorted(COUNTS, count)]
    reached = np.flatnonzero(planned <= wanted)
    if not len(reached):
        return float(1 - COUNTS[-1] / count)
    after = int(reached[0])
    if after == 0:
        return 1.0
    share = (planned[after - 1] - wanted) / (planned[after - 1] - planned[after])
    return float(1 - (COUNTS[after - 1] + share * (COUNTS[after] - COUNTS[after - 1])) / count)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("seeds", nargs="?", type=int, default=3)
    parser.add_argument("--quick", action="store_true", help="seconds instead of minutes, figures without meaning")
    given = parser.parse_args()
    if given.quick:
        COUNTS, REFERENCES = COUNTS[:3], REFERENCES[:1]
    main(*(1, ("bilinear",), 1) if given.quick else (given.seeds,))
