"""A made-up fleet whose law is known, and methods small enough for it."""

import pytest

from perf_assets.features.tables.paired import Roles
from perf_assets.features.vectors import VectorSamples, vector_table
from perf_assets.models.vectors import blend as vector_blend
from perf_assets.models.vectors import growth as vector_growth
from perf_assets.models.vectors import methods as vector_methods
from perf_assets.models.vectors.vae_dnn import VaeDnn, VaeDnnSettings
from tests.models.fleets import tables

ROLES = Roles(("app", "size"), "app", "seconds", ())
SMALL = VaeDnnSettings(
    latent=8,
    vae_hidden=32,
    dnn_hidden=64,
    calibration_epochs=3,
    ramp_epochs=6,
    joint_epochs=25,
    most_dnn_epochs=25,
    patience=20,
)


@pytest.fixture(scope="module")
def samples() -> VectorSamples:
    frames = tables(9)
    frames["b"] = frames["b"].iloc[1:]
    return vector_table(frames, ROLES)


@pytest.fixture(autouse=True)
def _small_and_single(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PERF_ASSETS_THREADS", "1")
    monkeypatch.setattr(VaeDnn.__init__, "__defaults__", (SMALL, 0))
    monkeypatch.setattr(vector_blend, "COMPONENTS", ("vae_dnn", "random_forest"))
    monkeypatch.setattr(vector_methods, "_TREES", 20)
    monkeypatch.setattr(vector_growth, "_TREES", 20)
