"""Trees that learn how far a run departs from the mean benchmark ratio of a pair of machines.

Without an anchor a tree can only repeat ratios it has seen; with it, an unseen pair starts from its own measured
ratio. Benchmark rows are training runs as well where they have counters, and every application counts the same.
"""

from pathlib import Path

import numpy as np

from perf_assets.features.samples import Examples, Floats, PairedSamples, balanced_weights
from perf_assets.features.standardise import Scaler, fit_scaler
from perf_assets.models.amm.relative import RelativeAmm
from perf_assets.models.common import archive
from perf_assets.models.common.regressors import MOST_EXAMPLES, Regressor, load_regressor, make_regressor

_FILE = "anchored.npz"


class AnchoredTrees:
    """XGBoost on counters and the relative AMM, and on both machines' specification where it is known."""

    def __init__(self, seed: int = 0, *, with_specification: bool = False) -> None:
        self._seed = seed
        self._with_specification = with_specification
        self._scaler: Scaler
        self._machine: RelativeAmm
        self._trees: Regressor

    def fit(self, samples: PairedSamples) -> "AnchoredTrees":
        """Learn from everything that can be seen."""
        self._scaler = fit_scaler(samples, with_benchmark=True)
        self._machine = RelativeAmm.fit(samples)
        examples = samples.examples(with_benchmark=samples.learns_from_benchmark).at_most(MOST_EXAMPLES, self._seed)
        weights = balanced_weights(samples, examples)
        departure = samples.log_relative_time(examples) - self._anchor(samples, examples)
        self._trees = make_regressor("xgboost", self._seed)
        self._trees.fit(self._columns(samples, examples), departure, weights)
        return self

    def predict(self, samples: PairedSamples, examples: Examples) -> Floats:
        """Log relative times."""
        return self._trees.predict(self._columns(samples, examples)) + self._anchor(samples, examples)

    def save(self, folder: Path) -> None:
        """Store into a folder, without pickle."""
        self._trees.save(folder)
        description = {"seed": self._seed, "with_specification": self._with_specification}
        archive.save(folder / _FILE, description, {**self._scaler.arrays(), **self._machine.arrays()})

    @classmethod
    def load(cls, folder: Path) -> "AnchoredTrees":
        """Read what `save` wrote. The samples it is used on must have the same counters and benchmark rows."""
        description, arrays = archive.load(folder / _FILE)
        model = cls(description["seed"], with_specification=description["with_specification"])
        model._scaler, model._machine = Scaler.from_arrays(arrays), RelativeAmm.from_arrays(arrays)
        model._trees = load_regressor(folder)
        return model

    def _anchor(self, samples: PairedSamples, examples: Examples) -> Floats:
        return np.asarray(self._machine.anchor(samples)[examples.source, examples.target])

    def _columns(self, samples: PairedSamples, examples: Examples) -> Floats:
        parts = [
            self._scaler.transform(samples.counters[examples.source, examples.row]),
            self._machine.vectors(samples)[examples.source, examples.target],
        ]
        if self._with_specification:
            assert samples.specification is not None, "no specification was given"
            parts.append(samples.specification[examples.target] - samples.specification[examples.source])
        return np.hstack(parts)
