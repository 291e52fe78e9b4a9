"""Knowledge of sources about features of the target: weight of each feature, and expected values of the target.

Every source table is learned twice, on the shared features alone: by a Gaussian process with a length of its own for
every feature (smooth) and by boosted trees. The lengths are learned from all tables of a group together; they are the
metric of the group, in which few rows of the target can be compared much better than in plain standard deviations. A
function that does not predict rows of its own source that were held out, beyond chance, is left out.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize

from perf_assets.features.samples import Floats, Indices
from perf_assets.features.standardise import Scaler, signed_log
from perf_assets.features.tables.unpaired import TransferTable, shot_scaler, standardised_logs, varies
from perf_assets.models.common.averaged_gp import WEIGHT_FREEDOM, squared_distances
from perf_assets.models.common.small_models import fit_deep_trees
from perf_assets.models.common.trees import Forest

_METRIC_ROWS = 250
"""Rows of a table from which the metric is learned."""
_SMOOTH_ROWS = 600
"""Rows of a table that the smooth function interpolates."""
_ITERATIONS = 60
_HELD_OUT = 0.25
"""Share of a table's rows on which its functions are tried."""
_LEAST_ROWS = 12
"""Rows below which nothing can be held out of a table."""
_BEYOND_CHANCE = 2.0
"""Standard errors by which a function must be better than the mean of its table."""
_JITTER = 1e-5
_FLAT = 10.0
"""Variance of the level of a standardised target: as good as unknown."""


@dataclass(frozen=True, eq=False)
class SmoothFunction:
    """Mean of a Gaussian process with a linear and a squared-exponential kernel, in the metric of its group."""

    rows: Floats
    """Interpolated rows x features, in the metric."""
    coefficients: Floats
    level: float
    smooth_variance: float
    linear_variance: float

    @classmethod
    def fit(cls, rows: Floats, target: Floats, variances: Floats) -> "SmoothFunction":
        """Fit to rows x features in the metric; `variances`: smooth, linear and noise, for a target of variance 1."""
        smooth, linear, noise = (float(one) for one in variances)
        level = float(target.mean())
        kernel = _kernel(rows, rows, smooth, linear) + (noise + _JITTER) * np.eye(len(rows))
        return cls(rows, np.asarray(np.linalg.solve(kernel, target - level), float), level, smooth, linear)

    def predict(self, rows: Floats) -> Floats:
        """Target of rows x features in the metric."""
        kernel = _kernel(rows, self.rows, self.smooth_variance, self.linear_variance)
        return np.asarray(self.level + kernel @ self.coefficients)


@dataclass(frozen=True, eq=False)
class SourceFunction:
    """Expectation of one source for rows, at its own level."""

    source: str
    """Name of the source table."""
    error: float
    """Mean squared error on held-out rows of the source."""
    model: SmoothFunction | Forest


@dataclass(frozen=True, eq=False)
class SourceGroup:
    """Source tables that share the same features with the target."""

    positions: Indices
    """Position of each shared feature among the target's."""
    scaler: Scaler
    """Standardisation of the shared features, by the rows of all tables."""
    weights: Floats
    """Root of the weight of each shared feature that varies: what one standard deviation of it is worth."""
    functions: tuple[SourceFunction, ...]
    """Functions that know something, two per table at most."""

    @classmethod
    def fit(cls, tables: Sequence[TransferTable], same: Mapping[str, str], target: TransferTable) -> "SourceGroup":
        """Fit to tables that all have the features of `same` (source feature by target feature)."""
        shared = [name for name in target.counter_names if name in same]
        columns = [table.counters[:, [table.counter_names.index(same[n]) for n in shared]] for table in tables]
        targets = [table.target for table in tables]
        scaler, root, inputs, variances = _scaled_metric(columns, targets, shared, target.level_columns)
        functions: list[SourceFunction] = []
        for table, rows, own in zip(tables, inputs, variances, strict=True):
            functions += _fit_functions(table, rows, root, own)
        positions = np.array([target.counter_names.index(name) for name in shared], np.intp)
        return cls(positions, scaler, root, tuple(functions))

    def inputs(self, logs: Floats) -> Floats:
        """Standardised shared features, from signed logarithms of rows x target features."""
        return standardised_logs(self.scaler, logs[:, self.positions])

    def space(self, inputs: Floats) -> Floats:
        """Rows in the metric of the group, from what `inputs` gave."""
        return np.asarray(inputs * self.weights)

    def expected(self, inputs: Floats) -> Floats:
        """Rows x functions: target that each function expects."""
        space = self.space(inputs)
        by_function = [
            one.model.predict(space if isinstance(one.model, SmoothFunction) else inputs) for one in self.functions
        ]
        return np.column_stack(by_function) if by_function else np.empty((len(inputs), 0))


def fit_smooth(table: TransferTable) -> Callable[[Floats], Floats]:
    """The smooth function of one table in its own metric: target from signed logarithms of rows x features."""
    names, levels = table.counter_names, table.level_columns
    scaler, root, (rows,), (variances,) = _scaled_metric([table.counters], [table.target], names, levels)
    some = np.random.default_rng(0).permutation(len(table))[:_SMOOTH_ROWS]
    smooth = SmoothFunction.fit(rows[some] * root, table.target[some], variances)
    return lambda logs: smooth.predict(standardised_logs(scaler, logs) * root)


def _scaled_metric(
    columns: Sequence[Floats], targets: Sequence[Floats], names: Sequence[str], level_columns: Mapping[str, str]
) -> tuple[Scaler, Floats, list[Floats], list[Floats]]:
    """Scaler of all tables' rows, roots of the weights of features, standardised rows and variances of each table."""
    scaler = shot_scaler(np.vstack(columns), np.array([name in level_columns for name in names]))
    inputs = [standardised_logs(scaler, signed_log(values)) for values in columns]
    word_of = [level_columns.get(name, name) for name in np.array(names)[varies(scaler)]]
    features = np.unique(word_of, return_inverse=True)[1].astype(np.intp)
    weights, variances = _fit_metric(inputs, targets, features)
    return scaler, np.sqrt(weights)[features], inputs, variances


def _fit_functions(table: TransferTable, rows: Floats, root: Floats, variances: Floats) -> list[SourceFunction]:
    """The smooth function and the trees of a table, as far as they know something."""
    if len(table) < _LEAST_ROWS or not rows.shape[1]:
        return []
    order = np.random.default_rng(0).permutation(len(table))
    out, kept = np.split(order, [int(_HELD_OUT * len(order))])

    def smooth(chosen: Indices) -> SmoothFunction:
        some = chosen[:_SMOOTH_ROWS]
        return SmoothFunction.fit(rows[some] * root, table.target[some], variances)

    def trees(chosen: Indices) -> Forest:
        return fit_deep_trees(rows[chosen], table.target[chosen])

    true = table.target[out]
    by_mean = (true - table.target[kept].mean()) ** 2
    functions: list[SourceFunction] = []
    for fit, inputs in ((smooth, rows * root), (trees, rows)):
        errors = (fit(kept).predict(inputs[out]) - true) ** 2
        gain = by_mean - errors
        if gain.mean() > _BEYOND_CHANCE * gain.std() / np.sqrt(len(out)):
            functions.append(SourceFunction(table.name, float(errors.mean()), fit(order)))
    return functions


def _fit_metric(
    inputs: Sequence[Floats], targets: Sequence[Floats], features: NDArray[np.intp]
) -> tuple[Floats, list[Floats]]:
    """Weight of every feature, one for all tables, and smooth, linear and noise variance of every table.

    Maximum a posteriori of the evidence of all tables, each with a standardised target. `features` says which columns
    are indicators of the same word: they have one weight.
    """
    count = int(features.max()) + 1 if len(features) else 0
    if not count:
        return np.empty(0), [np.array([1.0, 0.0, 1.0])] * len(inputs)
    data = []
    for rows, target in zip(inputs, targets, strict=True):
        some = np.random.default_rng(0).permutation(len(target))[:_METRIC_ROWS]
        data.append((rows[some], (target[some] - target[some].mean()) / (target[some].std() + 1e-9)))
    start = np.concatenate([np.full(count, -np.log(count)), np.tile([0.0, -1.0, -3.0], len(data))])
    bounds = [(-12.0, 5.0)] * count + [(-8.0, 4.0), (-12.0, 4.0), (-9.0, 1.0)] * len(data)

    def objective(logs: Floats) -> tuple[float, Floats]:
        apart = (logs[:count] + np.log(count)) / WEIGHT_FREEDOM
        value, gradient = 0.5 * float(apart @ apart), np.zeros_like(logs)
        gradient[:count] = apart / WEIGHT_FREEDOM
        weights = np.exp(logs[:count])[features]
        for i, (rows, wanted) in enumerate(data):
            own = slice(count + 3 * i, count + 3 * i + 3)
            lost, by_weight, by_variance = _evidence_loss(rows, wanted, weights, np.exp(logs[own]))
            value += lost
            gradient[:count] += np.bincount(features, by_weight, minlength=count)
            gradient[own] += by_variance
        return value, gradient

    optimum = minimize(objective, start, jac=True, method="L-BFGS-B", bounds=bounds, options={"maxiter": _ITERATIONS}).x
    return np.exp(optimum[:count]), [np.exp(optimum[count + 3 * i : count + 3 * i + 3]) for i in range(len(data))]


def _evidence_loss(rows: Floats, wanted: Floats, weights: Floats, variances: Floats) -> tuple[float, Floats, Floats]:
    """Negative log evidence, and its gradient by the logarithms of weights (by column) and of variances."""
    smooth, linear, noise = variances
    scaled = rows * np.sqrt(weights)
    products = scaled @ scaled.T
    near = np.exp(-0.5 * squared_distances(scaled, scaled))
    kernel = smooth * near + linear * products + _FLAT + (noise + _JITTER) * np.eye(len(rows))
    lower = np.linalg.cholesky(kernel)
    inverse = np.linalg.inv(kernel)
    dual = inverse @ wanted
    slope = 0.5 * (inverse - np.outer(dual, dual))
    of_near = smooth * slope * near
    by_distance = 2 * (rows**2 * of_near.sum(axis=1)[:, None]).sum(axis=0) - 2 * np.einsum(
        "ij,ij->j", rows, of_near @ rows
    )
    by_product = linear * np.einsum("ij,ij->j", rows, slope @ rows)
    by_variance = [smooth * (slope * near).sum(), linear * (slope * products).sum(), noise * np.trace(slope)]
    value = 0.5 * float(wanted @ dual) + float(np.log(np.diag(lower)).sum())
    return value, weights * (by_product - 0.5 * by_distance), np.array(by_variance)


def _kernel(rows: Floats, others: Floats, smooth: float, linear: float) -> Floats:
    return np.asarray(smooth * np.exp(-0.5 * squared_distances(rows, others)) + linear * rows @ others.T)
