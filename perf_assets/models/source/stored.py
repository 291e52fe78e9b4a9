"""All methods that predict a run on one machine from the run on another, and that a model can be made of."""

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
