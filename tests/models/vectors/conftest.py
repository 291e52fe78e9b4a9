"""A made-up fleet whose law is known, and methods small enough for it."""

import pytest

from perf_assets.core.vector_settings import VectorSettings
from perf_assets.features.tables.paired import Roles
from perf_assets.features.vectors import VectorSamples, vector_table
from tests.models.fleets import tables

ROLES = Roles(("app", "size"), "app", "seconds", ())
SETTLED = {"vae_hidden": 32, "dnn_hidden": 64, "calibration_epochs": 3, "ramp_epochs": 6, "patience": 20}
SMALL = VectorSettings.quick().net.model_copy(update={**SETTLED, "joint_epochs": 25, "most_dnn_epochs": 25})
SETTINGS = VectorSettings.quick().model_copy(update={"net": SMALL})


@pytest.fixture(scope="module")
def samples() -> VectorSamples:
    frames = tables(9)
    frames["b"] = frames["b"].iloc[1:]
    return vector_table(frames, ROLES)


@pytest.fixture(autouse=True)
def _small_and_single(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PERF_ASSETS_THREADS", "1")
