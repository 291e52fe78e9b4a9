"""Quality of joining the fleet: each machine in turn, with few runs, as a head on the frozen net, beside baselines."""

from collections.abc import Callable, Iterator
from functools import lru_cache

import numpy as np
import pandas as pd

from perf_assets.core.metrics import mape
from perf_assets.core.vector_settings import VaeDnnSettings
from perf_assets.features.samples import Floats, Indices
from perf_assets.features.vectors import VectorSamples, by_sample, levelled
from perf_assets.infra.fanout import side_by_side
from perf_assets.models.vectors.head import Head
from perf_assets.models.vectors.methods import tree_columns
from perf_assets.models.vectors.vae_dnn import VaeDnn

SHOTS = (5, 10, 20)
Progress = Callable[[str], None]


def grow(
    samples: VectorSamples, seeds: int, net: VaeDnnSettings, progress: Progress = lambda _: None, trees: int = 100
) -> pd.DataFrame:
    """Every machine in turn as the new one: error of its relative times over the number of shots, beside baselines.

    Rows: machine, shots, seed, method, mape_ratio (of the time on the new machine relative to the one that the run was
    measured on), samples_count. Methods: `head` (`vector_head`), `constant` (the mean of the shots), `from_nothing` (a
    forest of `trees` on the shots alone) and `retrained` (the net trained with all training runs of the machine).
    """
    pieces = [(machine, seed, net, trees) for seed in range(seeds) for machine in range(len(samples.machines))]
    of_machines = []
    for (machine, seed, *_), rows in side_by_side(_grow_machine, samples, pieces):
        of_machines.append(rows)
        progress(f"{samples.machines[machine]} as the new machine, seed {seed}: {len(of_machines)} of {len(pieces)}")
    return pd.concat(of_machines, ignore_index=True).sort_values(
        ["machine", "shots", "seed", "method"], ignore_index=True
    )


def _grow_machine(samples: VectorSamples, piece: tuple[int, int, VaeDnnSettings, int]) -> pd.DataFrame:
    machine, seed, settings, trees = piece
    fold = next(by_sample(samples, seed))
    ran = np.isfinite(samples.log_seconds[:, machine])
    train = samples.at(fold.train)
    others = train.without_machine(machine)
    tested = samples.at(fold.test & ran)
    tested = tested.where(tested.source != machine)
    candidates = np.flatnonzero(np.isfinite(train.log_seconds[:, machine]))
    if len(candidates) < min(SHOTS) or not len(tested):
        return pd.DataFrame(columns=_COLUMNS)
    net = VaeDnn.fit(others, settings, seed)
    rows = np.arange(len(tested))
    true = tested.targets[:, machine] - tested.targets[rows, tested.source]
    errors = [
        (shots, method, mape(np.exp(true), np.exp(predicted)))
        for shots, method, predicted in _predictions(net, train, tested, machine, candidates, seed, trees)
    ]
    whole = _retrained(samples, seed, settings).predict(tested)
    relative = np.exp(whole[:, machine] - whole[rows, tested.source])
    error = mape(np.exp(true), relative)
    errors += [(shots, "retrained", error) for shots in dict.fromkeys(shots for shots, *_ in errors)]
    scores = pd.DataFrame(errors, columns=["shots", "method", "mape_ratio"])
    return scores.assign(machine=samples.machines[machine], seed=seed, samples_count=len(tested))[list(_COLUMNS)]


@lru_cache(1)
def _retrained(samples: VectorSamples, seed: int, settings: VaeDnnSettings) -> VaeDnn:
    """The net that knows all machines, for all that are left out in turn."""
    return VaeDnn.fit(samples.at(next(by_sample(samples, seed)).train), settings, seed)


_COLUMNS = ("machine", "shots", "seed", "method", "mape_ratio", "samples_count")


def _predictions(
    net: VaeDnn, train: VectorSamples, tested: VectorSamples, machine: int, candidates: Indices, seed: int, trees: int
) -> Iterator[tuple[int, str, Floats]]:
    """Shots, method, and log times on the new machine less those on the machine of the run."""
    from sklearn.ensemble import RandomForestRegressor

    order = np.random.default_rng(seed).permutation(candidates)
    asked, _, own = _known(net, tested, machine)
    for shots in (count for count in SHOTS if count <= len(order)):
        few = train.where(np.isin(train.row, order[:shots]) & (train.source != machine))
        wanted = few.targets[:, machine] - few.targets[np.arange(len(few)), few.source]
        known, of_shots, level = _known(net, few, machine)
        yield shots, "head", Head.fit(known, wanted, of_shots, few.row).predict(asked) - own
        yield shots, "constant", float(np.mean(wanted + level)) - own
        forest = RandomForestRegressor(trees, max_features=0.3, n_jobs=1, random_state=seed)
        forest.fit(tree_columns(few, train.machines), wanted + level)
        yield shots, "from_nothing", np.asarray(forest.predict(tree_columns(tested, train.machines))) - own


def _known(net: VaeDnn, samples: VectorSamples, machine: int) -> tuple[Floats, Indices, Floats]:
    """Predicted log times on the other machines less their mean; where among them each run was measured; that time."""
    levels, source = levelled(np.delete(net.predict(samples), machine, axis=1)), samples.source
    source = source - (source > machine)
    return levels, source, levels[np.arange(len(samples)), source]
