"""Embeddings of samples behind one interface: what a sample is, in a few numbers, learned from a target or without."""

from collections.abc import Callable
from typing import Any, Protocol, Self

from numpy.typing import NDArray

from perf_assets.core.errors import BadInputError
from perf_assets.features.samples import Floats

EMBEDDINGS = ("raw", "tabnet", "nn", "ae", "vae")


class Embedding(Protocol):
    """What all of them do. Inputs are standardised, rows x features, without NaN; targets are rows x outputs."""

    losses: list[float]
    """Mean training loss of each epoch."""

    def fit(self, features: Floats, targets: Floats) -> Self:
        """Learn from training rows."""

    def transform(self, features: Floats) -> Floats:
        """Rows x width of the embedding."""

    def description(self) -> dict[str, Any]:
        """What is needed beside the arrays to make it again: JSON."""

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Fitted weights."""

    def restore(self, arrays: dict[str, NDArray[Any]]) -> Self:
        """Take fitted weights from `arrays`."""


class RawEmbedding:
    """The features themselves."""

    def __init__(self) -> None:
        self.losses: list[float] = []

    def fit(self, features: Floats, targets: Floats) -> Self:
        """Nothing to learn."""
        return self

    def transform(self, features: Floats) -> Floats:
        """Features, unchanged."""
        return features

    def description(self) -> dict[str, Any]:
        """Its kind."""
        return {"kind": "raw"}

    def arrays(self) -> dict[str, NDArray[Any]]:
        """None."""
        return {}

    def restore(self, arrays: dict[str, NDArray[Any]]) -> Self:
        """Nothing to take."""
        return self


def make_embedding(kind: str, seed: int = 0, **settings: Any) -> Embedding:
    """An embedding by name."""
    if kind == "raw":
        return RawEmbedding()
    if kind == "tabnet":
        from perf_assets.models.amm.tabnet import TabNetEmbedding

        return TabNetEmbedding(seed=seed, **settings)
    if kind in ("nn", "ae", "vae"):
        from perf_assets.models.amm.dense import AutoEncoder, HiddenLayer, VariationalAutoEncoder

        kinds: dict[str, Callable[..., Embedding]] = {
            "nn": HiddenLayer,
            "ae": AutoEncoder,
            "vae": VariationalAutoEncoder,
        }
        return kinds[kind](seed=seed, **settings)
    raise BadInputError(f"embedding {kind!r} is not known: use one of {', '.join(EMBEDDINGS)}")


def restore_embedding(description: dict[str, Any], arrays: dict[str, NDArray[Any]]) -> Embedding:
    """A fitted embedding from what was saved of it."""
    settings = {name: value for name, value in description.items() if name != "kind"}
    return make_embedding(description["kind"], **settings).restore(arrays)
