"""Gaussian processes averaged by their evidence: a model of few rows that may lean on sources, and need not.

    y(x) = level + slope * mean_s f_s(x) + g(x) + noise

The f_s are functions that were learned elsewhere (from a source, or from other rows of the target), g is a Gaussian
process whose kernel is a sum: a linear and a squared-exponential one in one of several spaces (the target's own
features, or features weighted as they matter on the sources), and a linear one in the f_s, which gives each of them a
weight of its own. Every combination of shares, length, noise, space and slope (0 or 1) of a fixed grid is a member.
Members are not selected but averaged, each with the probability that its evidence gives it. The evidence is that of
all contrasts of the rows: level and variance are integrated out, so neither needs a prior.

The members that do not look at any source hold half of the prior probability. So a source that is of no use can cost
at most a factor of two of evidence, whatever it is, and no rule decides beforehand which source is to be trusted.

Leave-one-out predictions of the average are exact: what a member says of a row without it, and the evidence it has
without that row, follow from the fit to all rows.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, Field

from perf_assets.features.samples import Floats, Indices, Mask

_LENGTHS = (0.3, 0.6, 1.0, 2.0, 4.0)
"""Length of the squared exponential, in units of the root mean squared distance of two rows."""
_LINEAR_SHARES = (0.0, 0.3, 0.7, 0.95, 1.0)
"""Share of the linear kernel in the variance of what the sources do not explain."""
_SOURCE_SHARES = (0.0, 0.3, 0.7, 0.9, 0.97, 0.99)
"""Share of the source functions, each with a weight of its own, in the variance of the process."""
_SLOPES = (0.0, 1.0)
"""Slope of the sources' mean: it says nothing, or what takes twice as long on the sources does so on the target."""
_NOISES = np.logspace(-4, 1, 16)
"""Variance of the noise relative to that of the process."""
_USUAL_NOISE, _NOISE_FACTOR = 0.03, 9.0
"""The noise is expected at 3% of the variance, within a factor of nine: a handful of rows is not interpolated."""
_MANY = 250
"""Rows that members are weighed on where there are more; only the likely ones are fitted to all."""
_LIKELY, _NEGLIGIBLE = 1e-2, 1e-6
_TINY, _CONSTANT = 1e-12, 1e-9

TARGET_ONLY, SOURCE_METRIC, SOURCE_FUNCTIONS = "target_only", "source_metric", "source_functions"
"""What a member looks at: the target's own features; these weighted as on the sources; functions of the sources."""


class AverageSettings(BaseModel, frozen=True):
    """What is believed before any row is seen."""

    target_only_prior: float = Field(default=0.5, gt=0, lt=1)
    """Probability that the sources are of no use."""
    aligned_prior: float = Field(default=0.01, gt=0, lt=1)
    """Probability that sources are of use through a map of features that was drawn from the shots themselves: of a
    hundred such maps one may look right by chance."""

    @property
    def of_aligned(self) -> "AverageSettings":
        """What is believed where sources have their say through such a map alone."""
        return self.model_copy(update={"target_only_prior": 1 - self.aligned_prior})


@dataclass(frozen=True, eq=False)
class Inputs:
    """What the members see of rows."""

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

    space: int
    linear_share: float
    length: float
    source_share: float
    slope: float
    noise: float

    @property
    def kind(self) -> str:
        """What it looks at."""
        if self.source_share > 0 or self.slope > 0:
            return SOURCE_FUNCTIONS
        return SOURCE_METRIC if self.space > 0 else TARGET_ONLY


@dataclass(frozen=True, eq=False)
class AveragedGp:
    """The fitted average, collapsed into one set of coefficients per kernel: as quick to ask as a single process."""

    rows: Inputs
    """Training rows."""
    coefficients: Mapping[str, Floats]
    """Coefficient of each training row, by kernel (`linear/SPACE`, `smooth/SPACE/LENGTH`, `source`)."""
    units: tuple[float, ...]
    """Mean squared distance of two training rows, by space."""
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
        if len(target) > _MANY:
            chosen = np.sort(np.random.default_rng(0).permutation(len(target))[:_MANY])
        kernels = _Kernels.of(inputs.at(chosen))
        fits = list(_fit_grid(kernels, target[chosen]))
        members = [member for fit in fits for member in fit.members]
        log_weights = np.concatenate([fit.evidence for fit in fits]) + _log_prior(
            members, settings or AverageSettings()
        )
        if len(chosen) < len(target):
            weights = _normalised(log_weights)
            likely = np.flatnonzero(weights >= min(_LIKELY, weights.max()))
            kernels = _Kernels.of(inputs)
            fits = [_fit_members(kernels, target, [members[i]]) for i in likely]
            members, log_weights = [members[i] for i in likely], log_weights[likely]
        return cls._collapse(kernels, target, members, _Fits.joined(fits), log_weights)

    @classmethod
    def _collapse(
        cls, kernels: "_Kernels", target: Floats, members: Sequence[Member], fits: "_Fits", log_weights: Floats
    ) -> "AveragedGp":
        weights = _normalised(log_weights)
        weights = np.where(weights > _NEGLIGIBLE, weights, 0.0)
        weights /= weights.sum()
        level, slope = 0.0, 0.0
        coefficients: dict[str, Floats] = {}
        for i in np.flatnonzero(weights).tolist():
            member, dual = members[i], fits.dual[i]
            explained = member.slope * kernels.mean_function + member.noise * dual
            for name, share in _parts(member):
                share_of_dual = weights[i] * share / kernels.scales[name] * dual
                coefficients[name] = coefficients.get(name, 0.0) + share_of_dual
                explained = explained + share * (kernels.matrices[name] @ dual)
            level += weights[i] * float(np.mean(target - explained))
            slope += weights[i] * member.slope
        kinds = np.array([member.kind for member in members])
        return cls(
            rows=kernels.inputs,
            coefficients=coefficients,
            units=kernels.units,
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
        """Target of rows."""
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
        return mean

    def description(self) -> dict[str, Any]:
        """Everything that is not an array."""
        return {
            "units": list(self.units),
            "level": self.level,
            "slope": self.slope,
            "shares": dict(self.shares),
            "kernels": list(self.coefficients),
        }

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Training rows and coefficients; held-out predictions are not stored."""
        arrays: dict[str, NDArray[Any]] = {f"space{i}": space for i, space in enumerate(self.rows.spaces)}
        arrays["functions"] = self.rows.functions
        return arrays | {f"coefficients{i}": one for i, one in enumerate(self.coefficients.values())}

    @classmethod
    def restore(cls, description: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> "AveragedGp":
        """A fitted average from what `description` and `arrays` gave; it has no held-out predictions."""
        spaces = tuple(arrays[f"space{i}"] for i in range(len(description["units"])))
        coefficients = {name: arrays[f"coefficients{i}"] for i, name in enumerate(description["kernels"])}
        return cls(
            rows=Inputs(spaces, arrays["functions"]),
            coefficients=coefficients,
            units=tuple(description["units"]),
            level=description["level"],
            slope=description["slope"],
            shares=description["shares"],
            held_out=np.empty(0),
            held_out_by_kind={},
        )


@dataclass(frozen=True, eq=False)
class _Kernels:
    """Kernel matrices of the training rows, each scaled to a mean variance of 1 over the contrasts of the rows."""

    inputs: Inputs
    matrices: Mapping[str, Floats]
    scales: Mapping[str, float]
    units: tuple[float, ...]
    contrasts: Floats
    """Rows x (rows - 1): an orthonormal basis of all that does not change with the level."""
    mean_function: Floats
    """Mean of the source functions at each row; 0 without any."""

    @classmethod
    def of(cls, inputs: Inputs) -> "_Kernels":
        count = len(inputs)
        centring = np.eye(count) - 1.0 / count
        units = tuple(2 * float(((s - s.mean(axis=0)) ** 2).sum(axis=1).mean()) + _TINY for s in inputs.spaces)
        raw: dict[str, Floats] = {}
        for i, (space, unit) in enumerate(zip(inputs.spaces, units, strict=True)):
            raw[f"linear/{i}"] = space @ space.T / max(space.shape[1], 1)
            squares = squared_distances(space, space)
            raw |= {f"smooth/{i}/{length}": _smooth(squares, length, unit) for length in _LENGTHS}
        mean_function = np.zeros(count)
        if inputs.functions.shape[1]:
            raw["source"] = inputs.functions @ inputs.functions.T / inputs.functions.shape[1]
            mean_function = inputs.functions.mean(axis=1)
        variances = {k: float((m * centring).sum()) / max(count - 1, 1) for k, m in raw.items()}
        # A kernel in which all rows are alike says nothing, and must not be blown up.
        scales = {k: variance if variance > _CONSTANT else np.inf for k, variance in variances.items()}
        basis = np.linalg.qr(np.column_stack([np.ones(count), np.eye(count)[:, : count - 1]]))[0]
        matrices = {name: matrix / scales[name] for name, matrix in raw.items()}
        return cls(
            inputs=inputs,
            matrices=matrices,
            scales=scales,
            units=units,
            contrasts=basis[:, 1:],
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
    has_functions = kernels.inputs.functions.shape[1] > 0
    for space in range(len(kernels.inputs.spaces)):
        for linear in _LINEAR_SHARES:
            for length in _LENGTHS if linear < 1 else (1.0,):
                for source in _SOURCE_SHARES if has_functions else (0.0,):
                    members = [
                        Member(space, linear, length, source, slope, float(noise))
                        for slope in (_SLOPES if has_functions else (0.0,))
                        for noise in _NOISES
                    ]
                    yield _fit_members(kernels, target, members)


def _fit_members(kernels: _Kernels, target: Floats, members: Sequence[Member]) -> _Fits:
    """Members that have the same kernel and differ in slope and noise."""
    contrasts = kernels.contrasts
    kernel = np.sum([share * kernels.matrices[name] for name, share in _parts(members[0])], axis=0)
    values, vectors = np.linalg.eigh(contrasts.T @ kernel @ contrasts)
    slopes, noises = np.array([(member.slope, member.noise) for member in members]).T
    wanted = target[:, None] - slopes * kernels.mean_function[:, None]
    projected = vectors.T @ (contrasts.T @ wanted)
    spectra = np.maximum(values, 0)[:, None] + noises
    rotated = contrasts @ vectors
    dual = rotated @ (projected / spectra)
    diagonal = np.maximum((rotated**2) @ (1 / spectra), _TINY)
    squares = (projected**2 / spectra).sum(axis=0) + _TINY
    logs = np.log(spectra).sum(axis=0)
    degrees = len(target) - 1
    residual = dual / diagonal
    squares_without = np.maximum(squares - residual**2 * diagonal, _TINY)
    return _Fits(
        tuple(members),
        -0.5 * (degrees * np.log(squares) + logs),
        dual.T,
        residual.T,
        (-0.5 * ((degrees - 1) * np.log(squares_without) + logs + np.log(diagonal))).T,
    )


def _parts(member: Member) -> list[tuple[str, float]]:
    """Kernels of a member with their shares."""
    rest = 1 - member.source_share
    parts = [
        (f"linear/{member.space}", rest * member.linear_share),
        (f"smooth/{member.space}/{member.length}", rest * (1 - member.linear_share)),
        ("source", member.source_share),
    ]
    return [(name, share) for name, share in parts if share > 0]


def _log_prior(members: Sequence[Member], settings: AverageSettings) -> Floats:
    """Logarithm of the prior probability of each member."""
    noises = np.array([member.noise for member in members])
    logs = -0.5 * (np.log(noises / _USUAL_NOISE) / np.log(_NOISE_FACTOR)) ** 2
    is_alone = np.array([member.kind == TARGET_ONLY for member in members])
    for chosen, mass in ((is_alone, settings.target_only_prior), (~is_alone, 1 - settings.target_only_prior)):
        if chosen.any():
            logs[chosen] += np.log(mass) - np.log(np.exp(logs[chosen]).sum())
    return np.asarray(logs)


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
