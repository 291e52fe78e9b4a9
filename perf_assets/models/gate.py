"""The gate: which candidate, or which blend of them, becomes the target model, by cross-fitting on the shots.

Every candidate predicts every shot from a fit that did not see it. Weights follow these held-out errors, and ties go
to the simpler candidate. The scores of those that lose are kept.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from perf_assets.core.errors import BadInputError
from perf_assets.features.paired import Floats, Indices, Mask
from perf_assets.models.candidates import Candidate
from perf_assets.models.residual import folds_of

_FOLDS = 5
_FEW = 20
"""Shots up to which there are twice as many folds: each of them costs little and every shot counts."""
_REPEATS = 2
"""Times that more shots are cut into folds: which shots stand together makes a difference."""
_APART = 1000
"""Between the seeds of the folds of two repeats."""
_TIE = 0.01
"""Candidates whose predictions are this near, relative to their squared error, are tied."""
_HOPELESS = 8.0
"""Times the smallest held-out squared error; a candidate beyond has no weight."""
_TEMPER = 0.2
"""Power of the likelihood."""
_EDGE = 2.0
_DRAWS = 200
_LEAST_WEIGHT = 0.03


@dataclass(frozen=True)
class CandidateScore:
    """How a candidate did on shots it had not seen."""

    name: str
    rank: int
    error: float
    """Mean squared held-out error of the target."""
    weight: float
    """In the chosen model; 0 for one that lost."""


@dataclass(frozen=True)
class Choice:
    """What the gate decided, and on what grounds."""

    weights: Mapping[str, float]
    """By candidate, summing to 1."""
    scores: tuple[CandidateScore, ...]
    """Of all candidates, best first."""
    held_out: Floats
    """What the chosen blend predicts for each shot from fits that did not see it."""

    @property
    def name(self) -> str:
        """The candidate with the largest weight; `a+b` for a blend."""
        return "+".join(sorted(self.weights, key=lambda name: -self.weights[name]))


@dataclass(frozen=True)
class CrossFit:
    """Held-out predictions of the shots."""

    candidates: tuple[Candidate, ...]
    predicted: Floats
    """Repeats (other folds) x candidates x shots."""
    target: Floats

    def weights_among(self, names: Sequence[str]) -> dict[str, float]:
        """Weights of some of the candidates, as if there were no others."""
        chosen = [i for i, candidate in enumerate(self.candidates) if candidate.name in names]
        weights = blend_weights(self.predicted[:, chosen], self.target)
        return {self.candidates[i].name: float(w) for i, w in zip(chosen, weights, strict=True) if w > 0}


def cross_fit(candidates: Sequence[Candidate], target: Floats, shots: Indices, seed: int) -> CrossFit:
    """Fit every candidate on folds of the shots; `target` is that of all rows of the target's samples."""
    if len(shots) < 2:
        raise BadInputError("choosing a model by cross-fitting needs at least 2 shots")
    is_few = len(shots) <= _FEW
    repeats = 1 if is_few else _REPEATS
    predicted = np.empty((repeats, len(candidates), len(shots)))
    asked = list(range(len(candidates)))
    for repeat in range(repeats):
        predicted[repeat] = predicted[0]
        # Candidates inside of folds: they share what is fitted on the same shots.
        for inside, outside in folds_of(len(shots), 2 * _FOLDS if is_few else _FOLDS, seed + _APART * repeat):
            for i in asked:
                predicted[repeat, i, outside] = candidates[i].fit(shots[inside], seed)(shots[outside])
        # Who has no chance is not asked again.
        asked = np.flatnonzero(_usable(_bounded((predicted[0] - target[shots]) ** 2))).tolist()
    # A candidate without an answer loses; it must not spoil the blend.
    worst = np.abs(target[shots]).max() + 1e3
    return CrossFit(tuple(candidates), np.nan_to_num(predicted, nan=worst, posinf=worst, neginf=-worst), target[shots])


def choose(cross: CrossFit, trusted: Mapping[str, float] | None = None) -> Choice:
    """Weights of the candidates by their held-out errors.

    `trusted` gives the least weight of candidates that the shots do not contradict.
    """
    kept = _without_ties(cross)
    weights = np.zeros(len(cross.candidates))
    weights[kept] = blend_weights(cross.predicted[:, kept], cross.target)
    names = [candidate.name for candidate in cross.candidates]
    for name, least in (trusted or {}).items():
        here = np.array([n == name for n in names])
        if here.any() and weights[here].sum() < least:
            others = float(weights[~here].sum())
            weights = np.where(here, least / here.sum(), weights * (1 - least) / max(others, 1e-12))
    errors = np.mean((cross.predicted - cross.target) ** 2, axis=(0, 2))
    scores = [
        CandidateScore(candidate.name, candidate.rank, float(error), float(weight))
        for candidate, error, weight in zip(cross.candidates, errors, weights, strict=True)
    ]
    return Choice(
        {name: float(weight) for name, weight in zip(names, weights, strict=True) if weight > 0},
        tuple(sorted(scores, key=lambda score: score.error)),
        np.asarray(weights @ cross.predicted[0]),
    )


def blend_weights(predicted: Floats, target: Floats) -> Floats:
    """Weights (not negative, sum 1) of repeats x candidates x shots.

    How likely a candidate is the best if other shots had been drawn: likelihoods, tempered because the shots are few
    and their errors have long tails, averaged over a Bayesian bootstrap of the shots.
    """
    squares = np.mean([_bounded((once - target) ** 2) for once in predicted], axis=0)
    usable = _usable(squares)
    shares = np.random.default_rng(0).dirichlet(np.ones(len(target)), _DRAWS)
    errors = shares @ squares[usable].T + 1e-12
    likelihoods = (errors / errors.min(axis=1, keepdims=True)) ** (-_TEMPER * len(target) / 2)
    weights = np.zeros(len(squares))
    weights[usable] = (likelihoods / likelihoods.sum(axis=1, keepdims=True)).mean(axis=0)
    weights = np.where(weights < min(_LEAST_WEIGHT, weights.max()), 0, weights)
    return np.asarray(weights / weights.sum())


def _usable(squares: Floats) -> Mask:
    """Candidates that have a chance."""
    means = squares.mean(axis=1)
    return np.asarray(means <= _HOPELESS * np.nanmin(means) + 1e-12)


def _bounded(squares: Floats) -> Floats:
    """Squared errors of candidates x shots that grow linearly beyond twice the best candidate's typical error.

    A single shot at the edge of the others is extrapolated when it is held out, which says little about a model that
    will have seen it.
    """
    scale = float(np.nanmin(squares.mean(axis=1))) + 1e-12
    relative = np.sqrt(squares / scale)
    return np.asarray(scale * np.where(relative <= _EDGE, relative**2, 2 * _EDGE * relative - _EDGE**2))


def _without_ties(cross: CrossFit) -> Indices:
    """Candidates but for those that predict what a simpler one does."""
    kept: list[int] = []
    for i in sorted(range(len(cross.candidates)), key=lambda i: cross.candidates[i].rank):
        mine = cross.predicted[:, i]
        error = float(np.mean((mine - cross.target) ** 2))
        apart = [float(np.mean((mine - cross.predicted[:, j]) ** 2)) for j in kept]
        if not apart or min(apart) > _TIE * error:
            kept.append(i)
    return np.array(sorted(kept), np.intp)
