"""Trees on parts: what the run and the machines are described with, and the downstream model."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from pydantic import BaseModel, Field

from perf_assets.features.samples import Examples, Floats, PairedSamples
from perf_assets.models.common.archive import Stored
from perf_assets.models.common.regressors import MOST_EXAMPLES, Regressor, fit_regressor
from perf_assets.models.source.tree_features import FIT, FeaturePart


class TreeSettings(BaseModel, frozen=True, extra="forbid"):
    """Settings of the trees: their inputs and their kind."""

    parts: tuple[str, ...] = ("counters",)
    """Names of parts, as in `tree_features.FIT`."""
    downstream: str = "xgboost"
    most_examples: int = Field(default=MOST_EXAMPLES, ge=1)


@dataclass(frozen=True, eq=False)
class DescribedTrees(Stored):
    """A downstream model on the columns of its parts, pooled over all ordered pairs of training machines.

    The samples it is used on must have the same counters and benchmark rows.
    """

    parts: Mapping[str, FeaturePart]
    trees: Regressor

    @classmethod
    def fit(
        cls,
        samples: PairedSamples,
        settings: TreeSettings | None = None,
        seed: int = 0,
        parts: Mapping[str, FeaturePart] | None = None,
    ) -> "DescribedTrees":
        """Fit the trees; parts that are fitted already may be given."""
        settings = settings or TreeSettings()
        fitted = {name: FIT[name](samples, seed) for name in settings.parts} if parts is None else dict(parts)
        examples = samples.examples().at_most(settings.most_examples, seed)
        ratios = samples.log_relative_time(examples)
        return cls(fitted, fit_regressor(settings.downstream, _columns(fitted, samples, examples), ratios, seed))

    def predict(self, samples: PairedSamples, examples: Examples) -> Floats:
        """Log relative times of examples."""
        return self.trees.predict(_columns(self.parts, samples, examples))


def _columns(parts: Mapping[str, FeaturePart], samples: PairedSamples, examples: Examples) -> Floats:
    return np.hstack([part.columns(samples, examples) for part in parts.values()])
