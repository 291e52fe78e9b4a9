"""Embeddings learn, also from few rows, and survive storage."""

from pathlib import Path

import numpy as np
import pytest

from perf_assets.core.errors import BadInputError
from perf_assets.features.samples import Floats
from perf_assets.models.amm.embeddings import EMBEDDINGS, Embedding
from perf_assets.models.amm.nets import batch_size
from perf_assets.models.common import archive


@pytest.fixture(scope="module")
def rows() -> tuple[Floats, Floats]:
    """200 rows whose target depends on two of ten features."""
    generator = np.random.default_rng(0)
    features = generator.standard_normal((200, 10))
    return features, (2 * features[:, 3] - features[:, 7])[:, None]


def test_batches_are_a_quarter_of_the_rows_at_most() -> None:
    assert [batch_size(n) for n in (10, 200, 1023, 100_000)] == [2, 32, 128, 1024]


@pytest.mark.slow
def test_tabnet_trains_on_200_rows(rows: tuple[Floats, Floats]) -> None:
    untrained = Embedding.fit("tabnet", *rows, epochs=0)
    trained = Embedding.fit("tabnet", *rows, epochs=40)
    before, after = untrained.weights, trained.weights
    weights = [name for name in before if name.endswith("weight")]
    assert weights
    assert all(not np.array_equal(before[name], after[name]) for name in weights if "final_mapping" in name)
    changed = [name for name in weights if not np.array_equal(before[name], after[name])]
    assert len(changed) >= 0.9 * len(weights)
    assert trained.losses[-1] < 0.5 * trained.losses[0]


@pytest.mark.slow
def test_tabnet_attends_to_what_matters(rows: tuple[Floats, Floats]) -> None:
    embedding = Embedding.fit("tabnet", *rows, epochs=40)
    importance = embedding.masks(rows[0]).mean(axis=0)
    assert importance.sum() == pytest.approx(1.0)
    assert set(np.argsort(importance)[-2:]) == {3, 7}
    assert embedding.masks(rows[0]).sum(axis=1) == pytest.approx(np.ones(200))


@pytest.mark.slow
def test_tabnet_embeds_by_sums_of_relu_outputs(rows: tuple[Floats, Floats]) -> None:
    embedding = Embedding.fit("tabnet", *rows, epochs=5)
    found = embedding.transform(rows[0])
    assert found.shape == (200, 8)
    assert (found >= 0).all()
    assert embedding.transform(rows[0][:1]) == pytest.approx(found[:1], abs=1e-5), "not in evaluation mode"


@pytest.mark.parametrize(("kind", "gain"), [("nn", 0.5), ("ae", 0.8), ("vae", 0.95)])
def test_dense_nets_learn(kind: str, gain: float, rows: tuple[Floats, Floats]) -> None:
    embedding = Embedding.fit(kind, *rows, epochs=30)
    assert embedding.losses[-1] < gain * embedding.losses[0]
    assert embedding.transform(rows[0]).shape == (200, 8)


@pytest.mark.slow
@pytest.mark.parametrize("kind", EMBEDDINGS)
def test_embeddings_survive_storage(kind: str, rows: tuple[Floats, Floats], tmp_path: Path) -> None:
    settings = {} if kind == "raw" else {"epochs": 3}
    embedding = Embedding.fit(kind, *rows, seed=1, **settings)
    archive.write(tmp_path / "embedding.npz", embedding)
    again = archive.read(tmp_path / "embedding.npz", Embedding)
    assert again.transform(rows[0]) == pytest.approx(embedding.transform(rows[0]), abs=1e-6)


def test_unknown_embeddings_are_refused(rows: tuple[Floats, Floats]) -> None:
    with pytest.raises(BadInputError, match="use one of raw"):
        Embedding.fit("pca", *rows)
