"""The contract of every stored model: its answers, and how it is saved and loaded."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol, Self

import numpy as np

from perf_assets.features.samples import Examples, Floats, PairedSamples

NINETY_PERCENT = 1.645
"""Standard deviations of a normal distribution that 90% of its values are within."""


@dataclass(frozen=True, eq=False)
class Predicted:
    """Answers of a fitted model, one per question; vector models answer with one row per question."""

    log_time: Floats
    """Natural logarithm of what is predicted: seconds, or seconds relative to a reference.

    A model of a dataset whose values may be negative predicts the value itself (`AdaptedTransfer.is_log`)."""
    lower: Floats
    """Lower end of the 90% interval, in the unit of `log_time`."""
    upper: Floats
    reasons: Sequence[str]
    """Per question, what to know about the answer; empty where nothing is unusual."""

    @property
    def bounds(self) -> Floats:
        """Prediction, lower and upper end of its interval as one array."""
        return np.stack([self.log_time, self.lower, self.upper])


class PairPredictor(Protocol):
    """A fitted method that predicts a run on one machine from the run on another."""

    def predict(self, samples: PairedSamples, examples: Examples) -> Floats:
        """Log relative times; looks at counters of the sources and at benchmarks, never at times on the target."""


class StoredModel(Protocol):
    """A fitted model of a registered kind."""

    def predict(self, questions: Any, /) -> Predicted:
        """Answer questions; one about a machine that the model does not know is refused, or its answer has a reason."""

    def save(self, folder: Path) -> None:
        """Store into a folder, without pickle."""

    @classmethod
    def load(cls, folder: Path) -> Self:
        """Read what `save` wrote; raise UnreadableFileError where it is not there or of another release."""
