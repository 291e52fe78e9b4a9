"""A machine joins the fleet: encoder and hidden layers stay as they are, and a head for it is fitted on a few runs.

A head is a ridge regression from what the frozen net says about a run: the times it predicts on the known machines, and
the last hidden layer. How much it may depart from a constant is chosen on shots that are left out in turn.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import pandas as pd

from perf_assets.compute.side_by_side import side_by_side
from perf_assets.core.metrics import mape
from perf_assets.features.paired import Floats, Indices
from perf_assets.features.vectors import VectorSamples, by_sample, centred
from perf_assets.models.vae_dnn import VaeDnn
from perf_assets.models.vector_methods import tree_columns

SHOTS = (5, 10, 20)
_PENALTIES = (0.3, 3.0, 30.0, 300.0, 3000.0)
_COMPONENTS = 12
_TREES = 100
Progress = Callable[[str], None]


@dataclass(frozen=True)
class Head:
    """Log time on the new machine, less the level of the configuration, from columns of a run."""

    middle: Floats
    scale: Floats
    slopes: Floats
    offset: float

    @classmethod
    def fit(cls, columns: Floats, target: Floats, groups: Indices) -> "Head":
        """Ridge; the penalty with the smallest error on configurations that are left out in turn."""
        errors = [_left_out_error(columns, target, groups, penalty) for penalty in _PENALTIES]
        return cls._ridge(columns, target, _PENALTIES[int(np.argmin(errors))])

    @classmethod
    def _ridge(cls, columns: Floats, target: Floats, penalty: float) -> "Head":
        middle, scale = columns.mean(axis=0), columns.std(axis=0) + 1e-6
        scaled, offset = (columns - middle) / scale, float(target.mean())
        gram = scaled.T @ scaled + penalty * np.eye(scaled.shape[1])
        return cls(middle, scale, np.linalg.solve(gram, scaled.T @ (target - offset)), offset)

    def predict(self, columns: Floats) -> Floats:
        """One number a row."""
        return np.asarray((columns - self.middle) / self.scale @ self.slopes + self.offset)


@dataclass(frozen=True)
class GrownFleet:
    """A net that knows the other machines, made ready for heads of one that it does not know."""

    net: VaeDnn
    directions: Floats
    """Principal directions of the last hidden layer: it is far wider than there are shots."""

    @classmethod
    def fit(cls, samples: VectorSamples, seed: int) -> "GrownFleet":
        """Samples without the new machine."""
        net = VaeDnn(seed=seed).fit(samples)
        hidden = net.transform(samples)
        directions = np.linalg.svd(hidden - hidden.mean(axis=0), full_matrices=False)[2][:_COMPONENTS]
        return cls(net, directions)

    def columns(self, samples: VectorSamples, machine: int) -> Floats:
        """What a head is told about a run."""
        known = np.delete(self.net.predict(samples), machine, axis=1)
        return np.hstack([known, self.net.transform(samples) @ self.directions.T])


def grow(samples: VectorSamples, seeds: int, progress: Progress = lambda _: None) -> pd.DataFrame:
    """Every machine in turn as the new one: error of its relative times over the number of shots, beside baselines.

    Rows: machine, shots, seed, method, mape_ratio (of the time on the new machine relative to the one that the run was
    measured on), samples_count. Methods: `head` (this module), `constant` (the mean of the shots), `from_nothing` (a
    forest on the shots alone) and `retrained` (the net trained with all training runs of the machine).
    """
    pieces = [(machine, seed) for seed in range(seeds) for machine in range(len(samples.machines))]
    found = []
    for (machine, seed), rows in side_by_side(_grow_machine, samples, pieces):
        found.append(rows)
        progress(f"{samples.machines[machine]} as the new machine, seed {seed}: {len(found)} of {len(pieces)}")
    return pd.concat(found, ignore_index=True).sort_values(["machine", "shots", "seed", "method"], ignore_index=True)


def _grow_machine(samples: VectorSamples, piece: tuple[int, int]) -> pd.DataFrame:
    machine, seed = piece
    fold = next(by_sample(samples, seed))
    ran = np.isfinite(samples.log_seconds[:, machine])
    train = samples.at(fold.train)
    others = train.without_machine(machine)
    tested = samples.at(fold.test & ran)
    tested = tested.where(tested.source != machine)
    candidates = np.flatnonzero(np.isfinite(train.log_seconds[:, machine]))
    if len(candidates) < min(SHOTS) or not len(tested):
        return pd.DataFrame(columns=_COLUMNS)
    fleet = GrownFleet.fit(others, seed)
    own = fleet.net.predict(tested)[np.arange(len(tested)), tested.source]
    true = np.exp(tested.targets[:, machine] - tested.targets[np.arange(len(tested)), tested.source])
    found = []
    for shots, method, predicted in _predictions(fleet, train, tested, machine, candidates, seed):
        found.append((shots, method, mape(true, np.exp(predicted - own))))
    whole = _retrained(samples, seed).predict(tested)
    relative = np.exp(whole[:, machine] - whole[np.arange(len(tested)), tested.source])
    found += [(shots, "retrained", mape(true, relative)) for shots in dict.fromkeys(shots for shots, *_ in found)]
    rows = pd.DataFrame(found, columns=["shots", "method", "mape_ratio"])
    return rows.assign(machine=samples.machines[machine], seed=seed, samples_count=len(tested))[list(_COLUMNS)]


@lru_cache(1)
def _retrained(samples: VectorSamples, seed: int) -> VaeDnn:
    """The net that knows all machines, for all that are left out in turn."""
    return VaeDnn(seed=seed).fit(samples.at(next(by_sample(samples, seed)).train))


_COLUMNS = ("machine", "shots", "seed", "method", "mape_ratio", "samples_count")


def _predictions(
    fleet: GrownFleet, train: VectorSamples, tested: VectorSamples, machine: int, candidates: Indices, seed: int
) -> Iterator[tuple[int, str, Floats]]:
    """Shots, method, and log times on the new machine less the level of the configuration."""
    from sklearn.ensemble import RandomForestRegressor

    others = np.delete(np.arange(len(train.machines)), machine)
    level = train.log_seconds[:, others] - centred(train.log_seconds[:, others])
    target = train.log_seconds[:, machine] - np.nanmean(level, axis=1)
    order = np.random.default_rng(seed).permutation(candidates)
    asked = fleet.columns(tested, machine)
    for shots in (count for count in SHOTS if count <= len(order)):
        of_shots = train.where(np.isin(train.row, order[:shots]) & (train.source != machine))
        wanted = target[of_shots.row]
        head = Head.fit(fleet.columns(of_shots, machine), wanted, of_shots.row)
        yield shots, "head", head.predict(asked)
        yield shots, "constant", np.full(len(tested), float(np.mean(target[order[:shots]])))
        forest = RandomForestRegressor(_TREES, max_features=0.3, n_jobs=1, random_state=seed)
        forest.fit(tree_columns(of_shots, train.machines), wanted)
        yield shots, "from_nothing", np.asarray(forest.predict(tree_columns(tested, train.machines)))


def _left_out_error(columns: Floats, target: Floats, groups: Indices, penalty: float) -> float:
    errors = []
    for group in np.unique(groups):
        left_out = groups == group
        if left_out.all():
            return 0.0
        head = Head._ridge(columns[~left_out], target[~left_out], penalty)
        errors.append(float(np.mean((head.predict(columns[left_out]) - target[left_out]) ** 2)))
    return float(np.mean(errors))
