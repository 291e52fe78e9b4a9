"""Fitted methods as folders: saved with their kind, and loaded again by it."""

from pathlib import Path
from typing import Protocol

from perf_assets.core.errors import UnreadableFileError
from perf_assets.models.common import archive
from perf_assets.models.common.contract import PairPredictor
from perf_assets.models.source.anchored_trees import AnchoredTrees
from perf_assets.models.source.attention import BenchmarkAttention
from perf_assets.models.source.bilinear import BilinearModel
from perf_assets.models.source.described_trees import DescribedTrees
from perf_assets.models.source.mixture import KernelMixture, MachineMixture
from perf_assets.models.source.plain import BenchmarkMean, PairMedian, Unchanged
from perf_assets.models.source.typical import TypicalTimes

_FILE = "kind.json"
_KINDS: dict[str, type["StoredPredictor"]] = {
    kind.__name__: kind
    for kind in (
        AnchoredTrees,
        BenchmarkAttention,
        BenchmarkMean,
        BilinearModel,
        DescribedTrees,
        KernelMixture,
        MachineMixture,
        PairMedian,
        TypicalTimes,
        Unchanged,
    )
}


class StoredPredictor(PairPredictor, Protocol):
    """A fitted method that can be stored."""

    def save(self, folder: Path) -> None:
        """Store into a folder, without pickle."""

    @classmethod
    def load(cls, folder: Path) -> "StoredPredictor":
        """Read what `save` wrote."""


def save_predictor(predictor: StoredPredictor, folder: Path) -> None:
    """Store a fitted method with its kind."""
    folder.mkdir(parents=True, exist_ok=True)
    predictor.save(folder)
    archive.save_description(folder / _FILE, {"kind": type(predictor).__name__})


def load_predictor(folder: Path) -> StoredPredictor:
    """A saved method of any kind."""
    try:
        return _KINDS[archive.load_description(folder / _FILE)["kind"]].load(folder)
    except (ValueError, KeyError) as error:
        raise UnreadableFileError(f"{folder} is no saved model ({error})") from None
