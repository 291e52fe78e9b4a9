"""Fitted methods as folders: stored with the name of their class, and loaded again by it."""

from pathlib import Path

from perf_assets.models.common import archive
from perf_assets.models.source.anchored_trees import AnchoredTrees
from perf_assets.models.source.attention import BenchmarkAttention
from perf_assets.models.source.bilinear import BilinearModel
from perf_assets.models.source.described_trees import DescribedTrees
from perf_assets.models.source.mixture import KernelMixture, MachineMixture
from perf_assets.models.source.plain import BenchmarkMean, PairMedian, Unchanged
from perf_assets.models.source.typical import TypicalTimes

StoredPredictor = (
    AnchoredTrees
    | BenchmarkAttention
    | BenchmarkMean
    | BilinearModel
    | DescribedTrees
    | KernelMixture
    | MachineMixture
    | PairMedian
    | TypicalTimes
    | Unchanged
)
"""Fitted methods that can be stored."""


def load_predictor(folder: Path) -> StoredPredictor:
    """A stored method of any kind."""
    predictor: StoredPredictor = archive.read(folder / archive.Stored.FILE, StoredPredictor)
    return predictor
