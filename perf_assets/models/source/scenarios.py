"""Scores of predicted relative times by scenario: from which kind of machine to which."""

from collections.abc import Iterator

import numpy as np
import pandas as pd

from perf_assets.features.fleet.samples import uses_device
from perf_assets.features.samples import Examples, Floats, PairedSamples

ALL = "all"
"""The scenario that every ordered pair belongs to."""
Score = dict[str, str | float | int]


def scenario_of(samples: PairedSamples, examples: Examples) -> "pd.Series[str]":
    """`CPU->GPU` for an example whose source has no GPUs that programs use, and whose target has."""
    kinds = np.where(uses_device(samples), "GPU", "CPU")
    return pd.Series([f"{kinds[s]}->{kinds[t]}" for s, t in zip(examples.source, examples.target, strict=True)])


def scenario_scores(samples: PairedSamples, examples: Examples, predicted: Floats) -> Iterator[Score]:
    """Scores of each scenario that occurs, and of all together: means over ordered pairs of machines.

    The median is over examples.
    """
    scenarios = scenario_of(samples, examples).to_numpy()
    wrong = np.abs(np.expm1(predicted - samples.log_relative_time(examples)))
    every = [(str(name), scenarios == name) for name in np.unique(scenarios)]
    for scenario, chosen in [*every, (ALL, np.ones(len(examples), bool))]:
        yield {
            "scenario": scenario,
            **mean_over_pairs(samples, examples.where(chosen), predicted[chosen]),
            "median_ape_ratio": float(np.median(wrong[chosen])),
            "examples_count": int(chosen.sum()),
        }


def mean_over_pairs(samples: PairedSamples, examples: Examples, predicted: Floats) -> dict[str, float]:
    """`mape_ratio`, `log_rmse`, and shares of examples within 10 and 25%: means over ordered pairs of machines."""
    wrong = predicted - samples.log_relative_time(examples)
    relative = np.abs(np.expm1(wrong))
    each = pd.DataFrame(
        {
            "pair": examples.source * len(samples.machines) + examples.target,
            "mape_ratio": relative,
            "log_rmse": wrong**2,
            "within_10_ratio": relative <= 0.10,
            "within_25_ratio": relative <= 0.25,
        }
    )
    by_pair = each.groupby("pair").mean()
    by_pair["log_rmse"] = np.sqrt(by_pair["log_rmse"])
    return {str(name): float(value) for name, value in by_pair.mean().items()}
