"""Learning curves of target models on a fleet: of one machine, and of all ordered pairs."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from perf_assets.core.errors import BadInputError
from perf_assets.features.paired import PairedSamples, physical
from perf_assets.models.adapted import PRIOR_COMPONENTS, reference_machine
from perf_assets.models.blas_threads import keep_blas_to_one_thread
from perf_assets.models.paired_evaluation import Row, evaluate_paired
from perf_assets.models.paired_prior import PriorParts, attention_prior
from perf_assets.models.severity import severity
from perf_assets.models.side_by_side import side_by_side

SHOTS = (0, 5, 10, 20, 50)
_LEAST_TEST_ROWS = 20


def learning_curve(samples: PairedSamples, machine: str, seeds: int, progress: Callable[[str], None]) -> pd.DataFrame:
    """Scores of a machine as the target of its reference machine, in every way programs see it."""
    keep_blas_to_one_thread()
    rows: list[Row] = []
    for target, name in enumerate(samples.machines):
        source = reference_machine(samples, target) if physical(name) == machine else None
        if source is not None:
            rows += _scores(samples, source, target, seeds)
            progress(f"{name} from {samples.machines[source]}: {len(rows)} scores")
    return _frame(rows)


@dataclass(frozen=True)
class Pair:
    """One ordered pair of machines, with its number of random draws."""

    source: str
    target: str
    seeds: int


def pairs(samples: PairedSamples, seeds: int) -> list[Pair]:
    """Ordered pairs that share enough configurations for some shots and test rows."""
    seen = np.isfinite(samples.log_seconds) & ~samples.is_benchmark
    return [
        Pair(samples.machines[source], samples.machines[target], seeds)
        for target in samples.training_machines
        for source in samples.training_machines
        if physical(samples.machines[source]) != physical(samples.machines[target])
        and (seen[source] & seen[target]).sum() >= min(s for s in SHOTS if s) + _LEAST_TEST_ROWS
    ]


def matrix(samples: PairedSamples, todo: Sequence[Pair]) -> Iterator[tuple[Pair, pd.DataFrame]]:
    """Scores of pairs with their severity, as they get done."""
    yield from side_by_side(_score_pair, samples, todo)


def _score_pair(samples: PairedSamples, pair: Pair) -> pd.DataFrame:
    source, target = samples.machines.index(pair.source), samples.machines.index(pair.target)
    found = _frame(_scores(samples, source, target, pair.seeds))
    found["severity_ratio"] = _severity(samples, source, target)
    return found


def _scores(samples: PairedSamples, source: int, target: int, seeds: int) -> list[Row]:
    both = (np.isfinite(samples.log_seconds[[source, target]]).all(axis=0) & ~samples.is_benchmark).sum()
    shots = [count for count in SHOTS if count + _LEAST_TEST_ROWS <= both]
    if not shots:
        return []
    prior = attention_prior(samples, target, 0, PriorParts(0), PRIOR_COMPONENTS)
    return evaluate_paired(samples, [source], [target], shots, range(seeds), priors={target: prior})


def _severity(samples: PairedSamples, source: int, target: int) -> float:
    runs = [np.isfinite(samples.log_seconds[m]) & ~samples.is_benchmark for m in (source, target)]
    counters = [samples.counters[m][r] for m, r in zip((source, target), runs, strict=True)]
    measured = [c[:, np.isfinite(c).all(axis=0)] for c in counters]
    times = [samples.log_seconds[m][r] for m, r in zip((source, target), runs, strict=True)]
    try:
        return severity(measured[0], times[0], measured[1], times[1]).rescaled
    except BadInputError:
        return float("nan")


def _frame(rows: Sequence[Row]) -> pd.DataFrame:
    columns = ["target", "source", "shots", "seed", "method", "mape", "log_rmse", "coverage_90"]
    renamed = {"mape": "mape_ratio", "coverage_90": "coverage_90_ratio"}
    return pd.DataFrame(rows, columns=columns).rename(columns=renamed).astype({"coverage_90_ratio": float})
