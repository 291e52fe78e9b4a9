"""Trees on parts: what the run and the machines are described with, and the downstream model."""

from collections.abc import Mapping
from pathlib import Path

import numpy as np

from perf_assets.features.samples import Examples, Floats, PairedSamples
from perf_assets.models.common import archive
from perf_assets.models.common.regressors import MOST_EXAMPLES, Regressor, load_regressor, make_regressor
from perf_assets.models.source.tree_features import LOAD, FeaturePart

_FILE = "described.npz"


class DescribedTrees:
    """A downstream model on the columns of its parts, pooled over all ordered pairs of training machines."""

    def __init__(self, parts: Mapping[str, FeaturePart], trees: Regressor) -> None:
        self.parts = dict(parts)
        self._trees = trees

    @classmethod
    def fit(
        cls,
        samples: PairedSamples,
        parts: Mapping[str, FeaturePart],
        downstream: str,
        seed: int,
        most: int = MOST_EXAMPLES,
    ) -> "DescribedTrees":
        """Fit the trees on fitted parts and at most `most` examples."""
        model = cls(parts, make_regressor(downstream, seed))
        examples = samples.examples().at_most(most, seed)
        model._trees.fit(model._columns(samples, examples), samples.log_relative_time(examples))
        return model

    def predict(self, samples: PairedSamples, examples: Examples) -> Floats:
        """Log relative times."""
        return self._trees.predict(self._columns(samples, examples))

    def save(self, folder: Path) -> None:
        """Store into a folder, without pickle."""
        self._trees.save(folder)
        archive.save(folder / _FILE, {"parts": list(self.parts)}, {})
        for name, part in self.parts.items():
            part.save(folder / f"{name}.npz")

    @classmethod
    def load(cls, folder: Path) -> "DescribedTrees":
        """Read what `save` wrote. The samples it is used on must have the same counters and benchmark rows."""
        names = archive.load(folder / _FILE)[0]["parts"]
        return cls({name: LOAD[name](folder / f"{name}.npz") for name in names}, load_regressor(folder))

    def _columns(self, samples: PairedSamples, examples: Examples) -> Floats:
        return np.hstack([part.columns(samples, examples) for part in self.parts.values()])
