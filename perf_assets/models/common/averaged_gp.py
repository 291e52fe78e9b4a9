"""Gaussian processes averaged by their evidence: a model of few rows that may lean on sources, and need not.

    y(x) = level + slope * mean_s f_s(x) + g(x) + noise

The f_s are functions that were learned elsewhere (from a source, or from other rows of the target), g is a Gaussian
process whose kernel is a sum: a linear and a squared-exponential one in one of several spaces (the target's own
features, these with weights drawn at random, or features weighted as they matter on the sources), and a linear one in
the f_s, which gives each of them a weight of its own. Every combination of shares, length, noise, space and slope (0
or 1) of a fixed grid is a member. Members are not selected but averaged, each with the probability that its evidence
gives it. The evidence is that of all contrasts of the rows: level and variance are integrated out, so neither needs a
prior.

How much each of a few features of the target matters is not fitted, which a handful of rows would not bear, but
averaged over, too: weights are drawn from what is believed of them before any row is seen, and the evidence of the rows
says which of the draws are likely.

The members that do not look at any source hold half of the prior probability. So a source that is of no use can cost
at most a factor of two of evidence, whatever it is, and no rule decides beforehand which source is to be trusted.

Leave-one-out predictions of the average are exact: what a member says of a row without it, and the evidence it has
without that row, follow from the fit to all rows.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from pydantic import BaseModel, Field

from perf_assets.features.samples import Floats, Indices, Mask

_LENGTHS = (0.3, 0.6, 1.0, 2.0, 4.0)
"""Length of the squared exponential, in units of the root mean squared distance of two rows."""
_LINEAR_SHARES = (0.0, 0.3, 0.7, 0.95, 1.0)
"""Share of the linear kernel in the variance of what the sources do not explain."""
_SOURCE_SHARES = (0.0, 0.3, 0.7, 0.9, 0.97, 0.99)
"""Share of the source functions, each with a weight of its own, in the variance of the process."""
_SLOPES = (0.0, 1.0)
"""Slopes of the sources' mean: 0 is no influence; with 1, twice the time on the sources is twice that on the target."""
_NOISES = np.logspace(-4, 1, 16)
"""Variance of the noise relative to that of the process."""
_USUAL_NOISE, _NOISE_FACTOR = 0.03, 9.0
"""The noise is expected at 3% of the variance, within a factor of nine: a handful of rows is not interpolated."""
WEIGHT_FREEDOM = 3.0
"""Standard deviation of the logarithm of a feature's weight around an equal share: a factor of twenty either way."""
_DRAWS = 64
"""Metrics drawn: weights of all features, each with its own."""
_MOST_DRAWN_FEATURES = 20
"""Features up to which metrics are drawn. Of hundreds of counters no draw comes near the weights that they have, and
the draw that fits a handful of rows best does so by luck."""
_DRAWN_SHARES = (0.0, 0.3, 0.7)
"""Linear shares in a drawn metric: where the kernel is all but linear, the plain features are as good."""
_DRAWN_SOURCE_SHARES = (0.0, 0.7)
"""Shares of the source functions beside a drawn metric."""
_SIFTED_ROWS, _SIFTED_DRAWS = 64, 8
"""Rows by which the likeliest draws are chosen where there are more rows, and the number of draws that stay."""
_MOST_WEIGHED_ROWS = 250
"""Rows that members are weighed on where there are more; only the likely ones are fitted to all."""
_LIKELY, _NEGLIGIBLE = 1e-2, 1e-6
_NUMBERS_AT_ONCE = 2_000_000
"""Numbers that are compared at once, rows x training rows x features."""
_TINY, _CONSTANT = 1e-12, 1e-9

TARGET_ONLY, SOURCE_METRIC, SOURCE_FUNCTIONS = "target_only", "source_metric", "source_functions"
"""Kinds of members, by their inputs: the target's own features; these weighted as on the sources; source functions."""
_OWN, _DRAWN = "0", "drawn"
"""Names of spaces: the target's own features as they are, and with drawn weights."""


class AverageSettings(BaseModel, frozen=True):
    """Prior beliefs, before any row is seen."""

    target_only_prior: float = Field(default=0.5, gt=0, lt=1)
    """Probability that the sources are of no use."""
    aligned_prior: float = Field(default=0.01, gt=0, lt=1)
    """Probability that sources are of use through a map of features that was drawn from the shots themselves: of a
    hundred such maps one may look right by chance."""

    @property
    def of_aligned(self) -> "AverageSettings":
        """Settings for sources that enter through an alignment only."""
        return self.model_copy(update={"target_only_prior": 1 - self.aligned_prior})


@dataclass(frozen=True, eq=False)
class Inputs:
    """Rows as the members see them."""

    spaces: tuple[Floats, ...]
    """Rows x features each, standardised; the first is the target's own, the others come from sources."""
    functions: Floats
    """Rows x source functions: the target that each of them expects, at any level; there may be none."""

    @classmethod
    def alone(cls, rows: Floats) -> "Inputs":
        """Inputs of rows x standardised features, without any source."""
        return cls((rows,), np.empty((len(rows), 0)))

    def at(self, rows: Indices) -> "Inputs":
        """The inputs of some of the rows."""
        return Inputs(tuple(space[rows] for space in self.spaces), self.functions[rows])

    def __len__(self) -> int:
        return len(self.functions)


class Member(NamedTuple):
    """One process of the grid."""

    space: str
    """Position among the spaces of the inputs (`0` is the target's own), or `drawn` and the position of the draw."""
    linear_share: float
    length: float
    source_share: float
    slope: float
    noise: float

    @property
    def kind(self) -> str:
        """Kind of the member: the target alone, the metric of the sources, or their functions."""
        if self.source_share > 0 or self.slope > 0:
            return SOURCE_FUNCTIONS
        return TARGET_ONLY if self.space == _OWN or self.is_drawn else SOURCE_METRIC

    @property
    def is_drawn(self) -> bool:
        """Whether features have weights that were drawn."""
        return self.space.startswith(_DRAWN)


@dataclass(frozen=True, eq=False)
class DrawnMetrics:
    """Processes in drawn metrics of the target's own features, reduced to as few arrays as possible."""

    weights: Floats
    """Metrics x features: what a squared difference counts."""
    units: Floats
    """Mean squared distance of two training rows, by metric."""
    coefficients: Floats
    """Metrics x lengths x training rows."""
    slopes: Floats
    """Sum of all linear kernels: one number per feature."""

    def predict(self, rows: Floats, known: Floats) -> Floats:
        """Sum of the kernels at rows x own features; `known` are the training rows."""
        mean = np.asarray(rows @ self.slopes)
        if not len(self.weights):
            return mean
        at_once = max(1, _NUMBERS_AT_ONCE // max(known.size, 1))
        for start in range(0, len(rows), at_once):
            block = slice(start, start + at_once)
            squares = (rows[block, None] - known) ** 2 @ (self.weights / self.units[:, None]).T
            for length, of_rows in zip(_LENGTHS, self.coefficients.transpose(1, 2, 0), strict=True):
                mean[block] += np.einsum("ijk,jk->i", _smooth(squares, length, 1.0), of_rows)
        return mean


@dataclass(frozen=True, eq=False)
class AveragedGp:
    """The fitted average, collapsed into one set of coefficients per kernel: as quick to ask as a single process."""

    rows: Inputs
    """Training rows."""
    coefficients: Mapping[str, Floats]
    """Coefficient of each training row, by kernel (`linear/SPACE`, `smooth/SPACE/LENGTH`, `source`)."""
    units: tuple[float, ...]
    """Mean squared distance of two training rows, by space."""
    metrics: DrawnMetrics
    level: float
    slope: float
    shares: Mapping[str, float]
    """Probability of each kind of member, given the training rows."""
    held_out: Floats
    """Leave-one-out predictions of the training rows by the average."""
    held_out_by_kind: Mapping[str, Floats]
    """Leave-one-out predictions of the members of each kind alone."""

    @classmethod
    def fit(cls, inputs: Inputs, target: Floats, settings: AverageSettings | None = None) -> "AveragedGp":
        """Weigh all members by the evidence of the rows' target (2 rows or more)."""
        chosen = np.arange(len(target))
        if len(target) > _MOST_WEIGHED_ROWS:
            chosen = np.sort(np.random.default_rng(0).permutation(len(target))[:_MOST_WEIGHED_ROWS])
        drawn = _sifted(inputs.at(chosen), target[chosen], _drawn(inputs.spaces[0].shape[1]))
        kernels = _Kernels.of(inputs.at(chosen), drawn)
        fits = list(_fit_grid(kernels, target[chosen]))
        members = [member for fit in fits for member in fit.members]
        log_weights = np.concatenate([fit.evidence for fit in fits]) + _log_prior(
            members, settings or AverageSettings(), len(drawn) / _DRAWS
        )
        if len(chosen) < len(target):
            weights = _normalised(log_weights)
            likely = np.flatnonzero(weights >= min(_LIKELY, weights.max()))
            kernels = _Kernels.of(inputs, drawn)
            fits = list(_fit_members(kernels, target, [[members[i]] for i in likely]))
            members, log_weights = [members[i] for i in likely], log_weights[likely]
        return cls._collapse(kernels, target, members, _Fits.joined(fits), log_weights)

    @classmethod
    def _collapse(
        cls, kernels: "_Kernels", target: Floats, members: Sequence[Member], fits: "_Fits", log_weights: Floats
    ) -> "AveragedGp":
        weights = _normalised(log_weights)
        weights = np.where(weights > _NEGLIGIBLE, weights, 0.0)
        weights /= weights.sum()
        slope = float(weights @ [member.slope for member in members])
        level = float(target.mean()) - slope * float(kernels.mean_function.mean())
        coefficients: dict[str, Floats] = {}
        for parts, dual in _weighted(members, weights, fits.dual):
            for name, share in parts:
                coefficients[name] = coefficients.get(name, 0.0) + share / kernels.scales[name] * dual
                level -= share * float(kernels.matrices[name].mean(axis=0) @ dual)
        kinds = np.array([member.kind for member in members])
        own = {name: coefficients.pop(name) for name in list(coefficients) if f"/{_DRAWN}" in name}
        return cls(
            rows=kernels.inputs,
            coefficients=coefficients,
            units=kernels.units[: len(kernels.inputs.spaces)],
            metrics=_collapsed(kernels, own),
            level=level,
            slope=slope,
            shares={str(kind): float(weights[kinds == kind].sum()) for kind in np.unique(kinds)},
            held_out=_held_out(target, fits, log_weights),
            held_out_by_kind={
                str(kind): _held_out(target, fits.where(kinds == kind), log_weights[kinds == kind])
                for kind in np.unique(kinds)
            },
        )

    def predict(self, inputs: Inputs) -> Floats:
        """Predicted target of each row."""
        mean = np.full(len(inputs), self.level)
        squares: dict[int, Floats] = {}
        for name, coefficients in self.coefficients.items():
            kind, *where = name.split("/")
            if kind == "source":
                mean += inputs.functions @ (self.rows.functions.T @ coefficients) / inputs.functions.shape[1]
                continue
            space, ours = int(where[0]), self.rows.spaces[int(where[0])]
            if kind == "linear":
                mean += inputs.spaces[space] @ (ours.T @ coefficients) / max(ours.shape[1], 1)
            else:
                if space not in squares:
                    squares[space] = squared_distances(inputs.spaces[space], ours)
                mean += _smooth(squares[space], float(where[1]), self.units[space]) @ coefficients
        if self.slope:
            mean += self.slope * inputs.functions.mean(axis=1)
        return np.asarray(mean + self.metrics.predict(inputs.spaces[0], self.rows.spaces[0]))


@dataclass(frozen=True, eq=False)
class _Kernels:
    """Kernel matrices of the training rows, each scaled to a mean variance of 1 over the contrasts of the rows."""

    inputs: Inputs
    drawn: Floats
    """Metrics x own features: drawn weights."""
    matrices: Mapping[str, Floats]
    scales: Mapping[str, float]
    units: tuple[float, ...]
    """Mean squared distance of two rows: of every space of the inputs, then of every drawn metric."""
    contrasts: Floats
    """Rows x (rows - 1): an orthonormal basis of all that does not change with the level."""
    contrasted: Mapping[str, Floats]
    """The matrices among the contrasts."""
    mean_function: Floats
    """Mean of the source functions at each row; 0 without any."""

    @classmethod
    def of(cls, inputs: Inputs, drawn: Floats) -> "_Kernels":
        count = len(inputs)
        centring = np.eye(count) - 1.0 / count
        spaces = {str(i): space for i, space in enumerate(inputs.spaces)}
        spaces |= {f"{_DRAWN}{i}": inputs.spaces[0] * np.sqrt(weights) for i, weights in enumerate(drawn)}
        units = tuple(2 * float(((s - s.mean(axis=0)) ** 2).sum(axis=1).mean()) + _TINY for s in spaces.values())
        raw: dict[str, Floats] = {}
        for (name, space), unit in zip(spaces.items(), units, strict=True):
            raw[f"linear/{name}"] = space @ space.T / max(space.shape[1], 1)
            squares = squared_distances(space, space)
            raw |= {f"smooth/{name}/{length}": _smooth(squares, length, unit) for length in _LENGTHS}
        mean_function = np.zeros(count)
        if inputs.functions.shape[1]:
            raw["source"] = inputs.functions @ inputs.functions.T / inputs.functions.shape[1]
            mean_function = inputs.functions.mean(axis=1)
        variances = {k: float((m * centring).sum()) / max(count - 1, 1) for k, m in raw.items()}
        # A kernel in which all rows are alike says nothing, and must not be blown up.
        scales = {k: variance if variance > _CONSTANT else np.inf for k, variance in variances.items()}
        basis = np.linalg.qr(np.column_stack([np.ones(count), np.eye(count)[:, : count - 1]]))[0][:, 1:]
        matrices = {name: matrix / scales[name] for name, matrix in raw.items()}
        return cls(
            inputs=inputs,
            drawn=drawn,
            matrices=matrices,
            scales=scales,
            units=units,
            contrasts=basis,
            contrasted={name: basis.T @ matrix @ basis for name, matrix in matrices.items()},
            mean_function=mean_function,
        )


@dataclass(frozen=True, eq=False)
class _Fits:
    """Members fitted to the same rows."""

    members: tuple[Member, ...]
    evidence: Floats
    """Logarithm of the evidence of each member, up to a constant."""
    dual: Floats
    """Members x rows: coefficients of the kernel."""
    residual: Floats
    """Members x rows: target less what the member predicts for it from all other rows."""
    evidence_without: Floats
    """Members x rows: evidence of all other rows."""

    @classmethod
    def joined(cls, fits: Sequence["_Fits"]) -> "_Fits":
        arrays = ("evidence", "dual", "residual", "evidence_without")
        members = tuple(member for fit in fits for member in fit.members)
        return cls(members, *(np.concatenate([getattr(fit, name) for fit in fits]) for name in arrays))

    def where(self, chosen: Mask) -> "_Fits":
        members = tuple(member for member, is_chosen in zip(self.members, chosen, strict=True) if is_chosen)
        return _Fits(
            members, self.evidence[chosen], self.dual[chosen], self.residual[chosen], self.evidence_without[chosen]
        )


def _fit_grid(kernels: _Kernels, target: Floats) -> Iterator[_Fits]:
    """All members; those that differ in slope or noise alone share one eigendecomposition."""
    for space in range(len(kernels.inputs.spaces)):
        yield from _fit_space(kernels, target, str(space), _LINEAR_SHARES, _SOURCE_SHARES)
    for draw in range(len(kernels.drawn)):
        yield from _fit_drawn(kernels, target, draw)


def _fit_drawn(kernels: _Kernels, target: Floats, draw: int) -> Iterator[_Fits]:
    """All members of one drawn metric."""
    return _fit_space(kernels, target, f"{_DRAWN}{draw}", _DRAWN_SHARES, _DRAWN_SOURCE_SHARES)


def _fit_space(
    kernels: _Kernels, target: Floats, space: str, linear_shares: Sequence[float], source_shares: Sequence[float]
) -> Iterator[_Fits]:
    """All members of one space; without source functions there are no shares and slopes of them."""
    has_functions = kernels.inputs.functions.shape[1] > 0
    alike = [
        [
            Member(space, linear, length, source, slope, float(noise))
            for slope in (_SLOPES if has_functions else (0.0,))
            for noise in _NOISES
        ]
        for linear in linear_shares
        for length in (_LENGTHS if linear < 1 else (1.0,))
        for source in (source_shares if has_functions else (0.0,))
    ]
    return _fit_members(kernels, target, alike)


def _drawn(features: int) -> Floats:
    """Metrics x features: weights as they may be, always the same; one feature has no metric but its own."""
    if not 2 <= features <= _MOST_DRAWN_FEATURES:
        return np.empty((0, features))
    return np.exp(WEIGHT_FREEDOM * np.random.default_rng(0).standard_normal((_DRAWS, features)))


def _sifted(inputs: Inputs, target: Floats, drawn: Floats) -> Floats:
    """The likeliest of the drawn metrics, by some of the rows; all of them where rows are few."""
    if len(target) <= _SIFTED_ROWS or not len(drawn):
        return drawn
    some = np.random.default_rng(0).permutation(len(target))[:_SIFTED_ROWS]
    kernels = _Kernels.of(Inputs.alone(inputs.spaces[0][some]), drawn)
    evidence = []
    for draw in range(len(drawn)):
        fits = _Fits.joined(list(_fit_drawn(kernels, target[some], draw)))
        evidence.append(np.logaddexp.reduce(fits.evidence + _log_noise_prior(fits.members)))
    return drawn[np.sort(np.argsort(evidence)[-_SIFTED_DRAWS:])]


def _collapsed(kernels: _Kernels, coefficients: Mapping[str, Floats]) -> DrawnMetrics:
    """Coefficients of kernels in drawn metrics, by name, in as few arrays as can be."""
    own = kernels.inputs.spaces[0]
    smooth = np.zeros((len(kernels.drawn), len(_LENGTHS), len(own)))
    slopes = np.zeros(own.shape[1])
    for name, of_rows in coefficients.items():
        kind, space, *length = name.split("/")
        draw = int(space.removeprefix(_DRAWN))
        if kind == "linear":
            slopes += kernels.drawn[draw] * (own.T @ of_rows) / max(own.shape[1], 1)
        else:
            smooth[draw, _LENGTHS.index(float(length[0]))] = of_rows
    used = np.flatnonzero(smooth.any(axis=(1, 2)))
    units = np.array(kernels.units[len(kernels.inputs.spaces) :])
    return DrawnMetrics(kernels.drawn[used], units[used], smooth[used], slopes)


def _fit_members(kernels: _Kernels, target: Floats, alike: Sequence[Sequence[Member]]) -> Iterator[_Fits]:
    """Members in groups of the same size; those of a group have the same kernel, and differ in slope and noise."""
    at_once = max(1, _NUMBERS_AT_ONCE // len(target) ** 2)
    for start in range(0, len(alike), at_once):
        yield _fit_groups(kernels, target, alike[start : start + at_once])


def _fit_groups(kernels: _Kernels, target: Floats, alike: Sequence[Sequence[Member]]) -> _Fits:
    contrasts = kernels.contrasts
    among = [np.sum([share * kernels.contrasted[name] for name, share in _parts(group[0])], axis=0) for group in alike]
    values, vectors = np.linalg.eigh(np.stack(among))
    settings = np.array([[(member.slope, member.noise) for member in group] for group in alike])
    slopes, noises = settings[:, None, :, 0], settings[:, None, :, 1]
    wanted = target[:, None] - slopes * kernels.mean_function[:, None]
    projected = vectors.transpose(0, 2, 1) @ (contrasts.T @ wanted)
    spectra = np.maximum(values, 0)[:, :, None] + noises
    rotated = contrasts @ vectors
    dual = rotated @ (projected / spectra)
    diagonal = np.maximum((rotated**2) @ (1 / spectra), _TINY)
    squares = (projected**2 / spectra).sum(axis=1, keepdims=True) + _TINY
    logs = np.log(spectra).sum(axis=1, keepdims=True)
    degrees = len(target) - 1
    residual = dual / diagonal
    squares_without = np.maximum(squares - residual**2 * diagonal, _TINY)
    without = -0.5 * ((degrees - 1) * np.log(squares_without) + logs + np.log(diagonal))
    by_member = [np.concatenate(one.transpose(0, 2, 1)) for one in (dual, residual, without)]
    evidence = -0.5 * (degrees * np.log(squares) + logs)
    return _Fits(tuple(member for group in alike for member in group), evidence.ravel(), *by_member)


def _weighted(
    members: Sequence[Member], weights: Floats, dual: Floats
) -> Iterator[tuple[list[tuple[str, float]], Floats]]:
    """Kernels with their shares, and the weighted sum of the dual coefficients, of members that follow each other and
    have the same kernel.
    """
    kernels = [member[: Member._fields.index("slope")] for member in members]
    starts = [i for i, kernel in enumerate(kernels) if i == 0 or kernel != kernels[i - 1]]
    sums = np.add.reduceat(weights[:, None] * dual, starts)
    for start, total in zip(starts, sums, strict=True):
        if total.any():
            yield _parts(members[start]), total


def _parts(member: Member) -> list[tuple[str, float]]:
    """Kernels of a member with their shares."""
    rest = 1 - member.source_share
    parts = [
        (f"linear/{member.space}", rest * member.linear_share),
        (f"smooth/{member.space}/{member.length}", rest * (1 - member.linear_share)),
        ("source", member.source_share),
    ]
    return [(name, share) for name, share in parts if share > 0]


def _log_prior(members: Sequence[Member], settings: AverageSettings, kept: float) -> Floats:
    """Logarithm of the prior probability of each member; `kept`: share of the drawn metrics that are left.

    With sources and without, it is as likely that the target's own features matter alike (or as on the sources) as that
    each has a weight of its own.
    """
    logs = _log_noise_prior(members)
    is_alone = np.array([member.kind == TARGET_ONLY for member in members])
    is_drawn = np.array([member.is_drawn for member in members])
    for looks, mass in ((is_alone, settings.target_only_prior), (~is_alone, 1 - settings.target_only_prior)):
        is_split = (looks & is_drawn).any()
        for chosen, share in ((looks & ~is_drawn, 0.5 if is_split else 1.0), (looks & is_drawn, 0.5 * kept)):
            if chosen.any():
                logs[chosen] += np.log(share * mass) - np.log(np.exp(logs[chosen]).sum())
    return logs


def _log_noise_prior(members: Sequence[Member]) -> Floats:
    noises = np.array([member.noise for member in members])
    return np.asarray(-0.5 * (np.log(noises / _USUAL_NOISE) / np.log(_NOISE_FACTOR)) ** 2)


def _held_out(target: Floats, fits: _Fits, log_weights: Floats) -> Floats:
    """Leave-one-out predictions of an average, whose weights do not know the row that is left out either."""
    logs = (log_weights - fits.evidence)[:, None] + fits.evidence_without
    weights = np.exp(logs - logs.max(axis=0))
    return np.asarray(target - (weights * fits.residual).sum(axis=0) / weights.sum(axis=0))


def _normalised(log_weights: Floats) -> Floats:
    weights = np.exp(log_weights - log_weights.max())
    return np.asarray(weights / weights.sum())


def _smooth(squares: Floats, length: float, unit: float) -> Floats:
    return np.asarray(np.exp(-0.5 * squares / (length**2 * unit)))


def squared_distances(rows: Floats, others: Floats) -> Floats:
    """Squared Euclidean distance of every row to every other row."""
    ours, theirs = np.einsum("ij,ij->i", rows, rows), np.einsum("ij,ij->i", others, others)
    return np.asarray(np.maximum(ours[:, None] + theirs[None] - 2 * rows @ others.T, 0))
