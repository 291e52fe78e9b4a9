"""The gate: choices that can be told beforehand."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pytest

from perf_assets.core.errors import BadInputError
from perf_assets.features.paired import Floats, Indices
from perf_assets.models.gate import choose, cross_fit

TRUTH = np.random.default_rng(0).normal(size=200)
SHOTS = np.arange(30)


@dataclass(frozen=True)
class Noisy:
    """Knows the truth up to noise, the same however often it is asked."""

    name: str
    rank: int
    noise: float
    seed: int = 0

    def fit(self, shots: Indices, seed: int) -> Callable[[Indices], Floats]:
        wrong = TRUTH + self.noise * np.random.default_rng(self.seed).normal(size=len(TRUTH))
        return lambda rows: np.asarray(wrong[rows])


def test_the_better_wins_and_the_loser_keeps_its_score() -> None:
    choice = choose(cross_fit([Noisy("bad", 0, 2.0), Noisy("good", 9, 0.1, 1)], TRUTH, SHOTS, 0))
    assert choice.name == "good"
    assert choice.weights == {"good": 1.0}
    assert [score.name for score in choice.scores] == ["good", "bad"]
    assert choice.scores[1].error > 1
    assert choice.scores[1].weight == 0
    assert choice.held_out.shape == (30,)


def test_ties_go_to_the_simpler() -> None:
    choice = choose(cross_fit([Noisy("complex", 5, 0.3), Noisy("simple", 1, 0.3)], TRUTH, SHOTS, 0))
    assert choice.weights == {"simple": 1.0}


def test_equally_good_ones_that_differ_are_blended() -> None:
    candidates = [Noisy("one", 1, 0.3, 1), Noisy("other", 2, 0.3, 2)]
    cross = cross_fit(candidates, TRUTH, SHOTS, 0)
    choice = choose(cross)
    assert set(choice.weights) == {"one", "other"}
    assert sum(choice.weights.values()) == pytest.approx(1)
    assert np.mean((choice.held_out - TRUTH[SHOTS]) ** 2) < min(score.error for score in choice.scores)


def test_trust_is_a_least_weight() -> None:
    cross = cross_fit([Noisy("trusted", 1, 0.5, 1), Noisy("good", 2, 0.1, 2)], TRUTH, SHOTS, 0)
    assert choose(cross, {"trusted": 0.4}).weights["trusted"] == pytest.approx(0.4)
    assert choose(cross, {"absent": 0.4}).weights == choose(cross).weights


def test_a_candidate_without_an_answer_loses() -> None:
    @dataclass(frozen=True)
    class Silent:
        name: str = "silent"
        rank: int = 0

        def fit(self, shots: Indices, seed: int) -> Callable[[Indices], Floats]:
            return lambda rows: np.full(len(rows), np.nan)

    assert choose(cross_fit([Silent(), Noisy("good", 9, 0.1)], TRUTH, SHOTS, 0)).weights == {"good": 1.0}


def test_one_shot_is_no_choice() -> None:
    with pytest.raises(BadInputError, match="at least 2 shots"):
        cross_fit([Noisy("one", 1, 0.3)], TRUTH, SHOTS[:1], 0)
