"""Learning curves of target models on a fleet: of one machine, and of all ordered pairs."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from perf_assets.features.samples import PairedSamples, physical
from perf_assets.infra.fanout import side_by_side
from perf_assets.models.common.contract import NINETY_PERCENT
from perf_assets.models.common.threads import keep_blas_to_one_thread
from perf_assets.models.target.evaluation import Row, evaluate_paired, score_runs, shuffled_runs
from perf_assets.models.target.model import PRIOR_COMPONENTS
from perf_assets.models.target.prior import Prior, PriorOf, PriorParts, fit_prior, reference_machine
from perf_assets.models.target.view import adapt_view, pair_severity

SHOTS = (0, 5, 10, 20, 50)
_LEAST_TEST_ROWS = 20


def learning_curve(
    samples: PairedSamples,
    machine: str,
    prior_of: PriorOf,
    seeds: int,
    progress: Callable[[str], None],
    counts: Sequence[int] = SHOTS,
) -> pd.DataFrame:
    """Scores of a machine as the target of its reference machine, in every way programs see it."""
    keep_blas_to_one_thread()
    rows: list[Row] = []
    for target, name in enumerate(samples.machines):
        source = reference_machine(samples, target) if physical(name) == machine else None
        if source is not None:
            prior = prior_of(name, samples.machines[source])
            rows += _scores(samples, source, target, seeds, prior, counts)
            progress(f"{name} from {samples.machines[source]}: {len(rows)} scores")
    return _frame(rows)


@dataclass(frozen=True)
class Pair:
    """One ordered pair of machines, with its number of random draws."""

    source: str
    target: str
    seeds: int
    shots: tuple[int, ...] = SHOTS


def pairs(samples: PairedSamples, seeds: int, shots: Sequence[int] = SHOTS) -> list[Pair]:
    """Ordered pairs that share enough configurations for some shots and test rows."""
    seen = np.isfinite(samples.log_seconds) & ~samples.is_benchmark
    least = _LEAST_TEST_ROWS + min((count for count in shots if count), default=0)
    return [
        Pair(samples.machines[source], samples.machines[target], seeds, tuple(shots))
        for target in samples.training_machines
        for source in samples.training_machines
        if physical(samples.machines[source]) != physical(samples.machines[target])
        and (seen[source] & seen[target]).sum() >= least
    ]


def matrix(samples: PairedSamples, todo: Sequence[Pair]) -> Iterator[tuple[Pair, pd.DataFrame]]:
    """Scores of pairs with their severity, as they get done.

    What a prior is made of does not depend on the source: the priors of a target are made together, first.
    """
    targets = list(dict.fromkeys(pair.target for pair in todo))
    asked = [(target, tuple(pair.source for pair in todo if pair.target == target)) for target in targets]
    priors = {target: by_source for (target, _), by_source in side_by_side(_priors_of, samples, asked)}
    pieces = [(pair, priors[pair.target][pair.source]) for pair in todo]
    yield from ((pair, rows) for (pair, _), rows in side_by_side(_score_pair, samples, pieces))


def _priors_of(samples: PairedSamples, asked: tuple[str, tuple[str, ...]]) -> dict[str, Prior]:
    """Priors of a target by source."""
    (target, sources), parts = asked, PriorParts(0)
    place = samples.machines.index
    return {source: _prior(samples, place(target), place(source), parts) for source in sources}


def _score_pair(samples: PairedSamples, pair_and_prior: tuple[Pair, Prior]) -> pd.DataFrame:
    pair, prior = pair_and_prior
    source, target = samples.machines.index(pair.source), samples.machines.index(pair.target)
    scores = _frame(_scores(samples, source, target, pair.seeds, prior, pair.shots))
    hard = pair_severity(samples, source, target, shuffled_runs(samples, source, target, 0))
    return scores.assign(severity_ratio=np.nan if hard is None else hard)


def _scores(
    samples: PairedSamples, source: int, target: int, seeds: int, prior: Prior | None, counts: Sequence[int]
) -> list[Row]:
    shots = [count for count in counts if count + _LEAST_TEST_ROWS <= len(shuffled_runs(samples, source, target, 0))]
    if not shots:
        return []
    rows = evaluate_paired(samples, [source], [target], shots, range(seeds), priors={target: prior})
    return rows + [
        _score_product(samples, source, target, count, max(shots), seed, prior)
        for seed in range(seeds)
        for count in shots
    ]


def _prior(samples: PairedSamples, target: int, source: int, parts: PriorParts) -> Prior:
    return fit_prior(samples, target, 0, parts, PRIOR_COMPONENTS, source)


def _score_product(
    samples: PairedSamples, source: int, target: int, count: int, most: int, seed: int, prior: Prior | None
) -> Row:
    """Score what would be registered with `count` shots on the same test rows, and its interval."""
    order = shuffled_runs(samples, source, target, seed)
    shots, test = order[:count], order[most:]
    mean, width = adapt_view(samples, source, target, shots, seed, prior).distribution(samples, test)
    where: Row = {"target": samples.machines[target], "source": samples.machines[source]}
    score = score_runs(samples.log_seconds[target, test], mean, width / NINETY_PERCENT)
    return {**where, "shots": count, "seed": seed, "method": "product", **score}


def _frame(rows: Sequence[Row]) -> pd.DataFrame:
    columns = ["target", "source", "shots", "seed", "method", "mape", "log_rmse", "coverage_90"]
    renamed = {"mape": "mape_ratio", "coverage_90": "coverage_90_ratio"}
    return pd.DataFrame(rows, columns=columns).rename(columns=renamed).astype({"coverage_90_ratio": float})
