"""Embeddings of samples behind one interface: what a sample is, in a few numbers, learned from a target or without."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

from numpy.typing import NDArray

from perf_assets.core.errors import BadInputError
from perf_assets.features.samples import Floats

if TYPE_CHECKING:
    from perf_assets.models.amm.nets import EmbeddingNet

EMBEDDINGS = ("raw", "tabnet", "nn", "ae", "vae")


@dataclass(frozen=True, eq=False)
class Embedding:
    """A fitted embedding. Inputs are standardised, rows x features, without NaN."""

    kind: str
    """One of `EMBEDDINGS`; `raw` are the features themselves."""
    settings: Mapping[str, float]
    """Settings and shape of the net."""
    weights: Mapping[str, NDArray[Any]]
    losses: tuple[float, ...] = ()
    """Mean training loss of each epoch."""

    @classmethod
    def fit(cls, kind: str, features: Floats, targets: Floats, seed: int = 0, **settings: float) -> "Embedding":
        """Learn from training rows; targets are rows x outputs."""
        if kind not in EMBEDDINGS:
            raise BadInputError(f"embedding {kind!r} is not known: use one of {', '.join(EMBEDDINGS)}")
        if kind == "raw":
            return cls(kind, {}, {})
        net = _net_of(kind, {"seed": seed, **settings}).fit(features, targets)
        return cls(kind, net.settings, net.weights(), tuple(net.losses))

    def transform(self, features: Floats) -> Floats:
        """Rows x width of the embedding."""
        return features if self.kind == "raw" else self._net.transform(features)

    def masks(self, features: Floats) -> Floats:
        """Rows x features: how much TabNet attends to each feature of each row; every row sums to 1."""
        from perf_assets.models.amm.nets import TabNetEmbedding

        assert isinstance(self._net, TabNetEmbedding), f"{self.kind} attends to nothing"
        return self._net.masks(features)

    @cached_property
    def _net(self) -> "EmbeddingNet":
        return _net_of(self.kind, self.settings).with_weights(self.weights)


def _net_of(kind: str, settings: Mapping[str, float]) -> "EmbeddingNet":
    from perf_assets.models.amm.nets import NETS

    return NETS[kind](settings)
