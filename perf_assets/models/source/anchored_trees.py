"""Trees that learn how far a run departs from the mean benchmark ratio of a pair of machines.

Without an anchor a tree can only repeat ratios it has seen; with it, an unseen pair starts from its own measured
ratio. Benchmark rows are training runs as well where they have counters, and every application counts the same.
"""

from dataclasses import dataclass

import numpy as np
from pydantic import BaseModel

from perf_assets.features.samples import Examples, Floats, PairedSamples, balanced_weights
from perf_assets.features.standardise import Scaler, fit_scaler
from perf_assets.models.amm.relative import RelativeAmm
from perf_assets.models.common.archive import Stored
from perf_assets.models.common.regressors import MOST_EXAMPLES, Regressor, fit_regressor


class AnchoredSettings(BaseModel, frozen=True, extra="forbid"):
    """Settings of anchored trees."""

    with_specification: bool = False
    """Whether the specifications of both machines are inputs."""


@dataclass(frozen=True, eq=False)
class AnchoredTrees(Stored):
    """XGBoost on counters and the relative AMM, and on both machines' specification where it is known.

    The samples it is used on must have the same counters and benchmark rows.
    """

    settings: AnchoredSettings
    scaler: Scaler
    machine: RelativeAmm
    trees: Regressor

    @classmethod
    def fit(cls, samples: PairedSamples, settings: AnchoredSettings | None = None, seed: int = 0) -> "AnchoredTrees":
        """Learn from everything that can be seen."""
        settings = settings or AnchoredSettings()
        scaler, machine = fit_scaler(samples, with_benchmark=True), RelativeAmm.fit(samples)
        examples = samples.examples(with_benchmark=samples.learns_from_benchmark).at_most(MOST_EXAMPLES, seed)
        columns = _columns(settings, scaler, machine, samples, examples)
        departure = samples.log_relative_time(examples) - machine.anchor_of(samples, examples)
        trees = fit_regressor("xgboost", columns, departure, seed, balanced_weights(samples, examples))
        return cls(settings, scaler, machine, trees)

    def predict(self, samples: PairedSamples, examples: Examples) -> Floats:
        """Log relative times of examples."""
        columns = _columns(self.settings, self.scaler, self.machine, samples, examples)
        return self.trees.predict(columns) + self.machine.anchor_of(samples, examples)


def _columns(
    settings: AnchoredSettings, scaler: Scaler, machine: RelativeAmm, samples: PairedSamples, examples: Examples
) -> Floats:
    parts = [
        scaler.transform(samples.counters[examples.source, examples.row]),
        machine.vectors(samples)[examples.source, examples.target],
    ]
    if settings.with_specification:
        assert samples.specification is not None, "no specification was given"
        parts.append(samples.specification[examples.target] - samples.specification[examples.source])
    return np.hstack(parts)
