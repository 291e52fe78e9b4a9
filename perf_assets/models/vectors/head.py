"""A machine that joins the fleet: it behaves like machines that are known, which a few runs are enough to tell.

The last layer of a net has a row for each machine. The row of a new one is a mean of rows, weighted by how well each of
them explains shots that are left out in turn: the known rows, each moved by a constant; none of them, a constant alone;
and the row of a ridge regression, which wins where the machine is unlike all others and there are shots enough to tell.
Nothing else of the net changes. The same holds for whatever predicts times of known machines.
"""

from dataclasses import dataclass

import numpy as np
from scipy.special import softmax, stdtr, stdtrit

from perf_assets.core.errors import BadInputError
from perf_assets.features.samples import Floats, Indices, Mask
from perf_assets.features.vectors import levelled

LEAST_SHOTS = 3
_LEAST_ERROR = 1e-9
_PENALTIES = (0.1, 1.0, 10.0)
"""Ridge penalties, in squared log times."""


@dataclass(frozen=True)
class Head:
    """Log time on a new machine from log times on the known ones, both less their mean over the known ones."""

    weights: Floats
    """One for each known machine."""
    offset: float
    spread: float
    """Root mean square error (log) of shots that were left out in turn."""
    shots_count: int

    @classmethod
    def fit(cls, known: Floats, log_ratio: Floats, source: Indices, configurations: Indices) -> "Head":
        """Fit to shots.

        `known` are predicted log times (shots x known machines), `log_ratio` is the true log time on the new machine
        less that on the machine of the run, whose column is `source`; shots of one configuration are left out together.
        """
        level_free = levelled(known)
        target = log_ratio + level_free[np.arange(len(source)), source]
        group = np.unique(configurations, return_inverse=True)[1]
        count = len(np.unique(group))
        if count < LEAST_SHOTS:
            raise BadInputError(f"there are {count} configurations to learn from, and {LEAST_SHOTS} are needed")
        machines = level_free.shape[1]
        rows = [_Row.of(slopes, level_free, target, group) for slopes in (*np.eye(machines), np.zeros(machines))]
        rows.append(min((_ridge(level_free, target, group, penalty) for penalty in _PENALTIES), key=_error))
        shares = softmax(-0.5 * count * np.log([_error(row) + _LEAST_ERROR for row in rows]))
        spread = float(np.sqrt(np.mean((shares @ [row.left_out for row in rows]) ** 2)))
        offset = float(shares @ [row.offset for row in rows])
        return cls(shares @ [row.slopes for row in rows], offset, spread, count)

    def predict(self, known: Floats) -> Floats:
        """Log times on the new machine, on the level of `known`."""
        return np.asarray(levelled(known) @ self.weights + self.offset + known.mean(axis=1))

    def stays(self, known: Floats) -> Floats:
        """Per row, the probability that the new machine is between its neighbours in the order."""
        predicted, ordered = self.predict(known), np.sort(known, axis=1)
        fenced = np.pad(ordered, ((0, 0), (1, 1)), constant_values=((0, 0), (-np.inf, np.inf)))
        place = (ordered < predicted[:, None]).sum(axis=1)
        rows = np.arange(len(known))
        below, above = fenced[rows, place] - predicted, fenced[rows, place + 1] - predicted
        degrees, scale = self.shots_count - 1, self.spread + _LEAST_ERROR
        return np.asarray(stdtr(degrees, above / scale) - stdtr(degrees, below / scale))

    def half_width(self, level: float, of_known: Floats) -> float:
        """Half width of an interval of log times: scatter of the shots, and of the known machines behind it."""
        own = self.spread * float(stdtrit(self.shots_count - 1, (1 + level) / 2))
        return float(np.hypot(own, of_known @ np.abs(self.weights)))


@dataclass(frozen=True)
class _Row:
    """A candidate for the row of a new machine."""

    slopes: Floats
    offset: float
    left_out: Floats
    """Errors of the shots, each as if its configuration had not been seen."""

    @classmethod
    def of(cls, slopes: Floats, known: Floats, target: Floats, group: Indices) -> "_Row":
        """Fit the offset alone, with given slopes."""
        residual = target - known @ slopes
        means = np.bincount(group, residual) / np.bincount(group)
        without = (means.sum() - means) / (len(means) - 1)
        return cls(slopes, float(means.mean()), residual - without[group])


def _ridge(known: Floats, target: Floats, group: Indices, penalty: float) -> _Row:
    """Slopes and offset fitted; towards 0, which is the mean of the known machines."""

    def fitted(kept: Mask) -> tuple[Floats, Floats, float]:
        middle, mean = known[kept].mean(axis=0), float(target[kept].mean())
        centred = known[kept] - middle
        # The penalty is that of a configuration: its shots say almost the same.
        gram = centred.T @ centred / kept.sum() + penalty / len(np.unique(group[kept])) * np.eye(known.shape[1])
        return np.linalg.solve(gram, centred.T @ (target[kept] - mean) / kept.sum()), middle, mean

    left_out = np.empty(len(target))
    for number in np.unique(group):
        own = group == number
        slopes, middle, mean = fitted(~own)
        left_out[own] = target[own] - (known[own] - middle) @ slopes - mean
    slopes, middle, mean = fitted(np.ones(len(target), bool))
    return _Row(slopes, mean - float(middle @ slopes), left_out)


def _error(row: _Row) -> float:
    return float(np.mean(row.left_out**2))
