"""A small fleet with registered models: cedar has two versions, the first the champion; the source models know all."""

import shutil
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from perf_assets.core.catalogue import load_catalogue
from perf_assets.features.fleet.samples import fleet_samples
from perf_assets.features.folds import Unseen
from perf_assets.features.samples import PairedSamples
from perf_assets.models.amm.encoder import AmmOptions
from perf_assets.models.source.blend import Blend
from perf_assets.models.source.error_size import ErrorSize
from perf_assets.models.source.methods import MethodFactory
from perf_assets.models.source.model import Machines, SourceModel
from perf_assets.models.source.training import BLEND, TrainedSource
from perf_assets.models.target.model import PRIOR_COMPONENTS, AdaptedTarget, adapt
from perf_assets.models.target.prior import refitted_priors
from perf_assets.registry.source import register_source
from perf_assets.registry.target import register_target
from perf_assets.registry.versions import promote
from perf_assets.serving.predictor import Predictor
from perf_assets.serving.requests import Run
from perf_assets.storage.lake import Lake
from tests.described import described_fleet
from tests.features.fleet_tables import SPEEDS, fleet_tables

MACHINE = "cedar"
NAME = "perf-target-cedar"
COUNTERS = ["PAPI_TOT_INS", "PAPI_LD_INS", "PAPI_SR_INS", "PAPI_BR_INS", "PAPI_L1_LDM"]


@dataclass(frozen=True)
class Fleet:
    """What was registered, and the truth it was made of."""

    tracking_uri: str
    samples: PairedSamples
    """All runs, also those of cedar that no model has seen."""
    models: tuple[AdaptedTarget, AdaptedTarget]

    @property
    def reference(self) -> str:
        return self.models[0].views[MACHINE].source

    def run(self, row: int, **changes: Any) -> Run:
        """A run on the reference machine."""
        samples = self.samples
        source = samples.machines.index(self.reference)
        name = samples.configurations[row]
        app = str(samples.apps[row])
        counters = dict(zip(samples.counter_names, samples.counters[source, row].tolist(), strict=True))
        given = {
            "machine": self.reference,
            "app": app,
            "args": name.removeprefix(f"{app} ").removesuffix(" (1 x 1)"),
            "ranks": 1,
            "threads": 1,
            "wall_seconds": float(np.exp(samples.log_seconds[source, row])),
            "counters": {k: v for k, v in counters.items() if k.endswith(("_ratio", "_count", "_bytes"))},
        }
        return Run.model_validate({**given, **changes})

    def seconds(self, row: int) -> float:
        """What the run takes on cedar."""
        return float(np.exp(self.samples.log_seconds[self.samples.machines.index(MACHINE), row]))

    def unseen(self) -> list[int]:
        """Configurations that ran on cedar and that the first model has not seen, in a random order."""
        target = self.samples.machines.index(MACHINE)
        rows = np.flatnonzero(np.isfinite(self.samples.log_seconds[target]) & ~self.samples.is_benchmark)
        known = set(self.models[0].views[MACHINE].model.shots)
        return [
            int(r) for r in np.random.default_rng(1).permutation(rows) if self.samples.configurations[r] not in known
        ]


def with_runs(samples: PairedSamples, count: int) -> PairedSamples:
    """Only so many runs of the machine are known."""
    target = samples.machines.index(MACHINE)
    seconds = samples.log_seconds.copy()
    rows = np.random.default_rng(0).permutation(np.flatnonzero(np.isfinite(seconds[target]) & ~samples.is_benchmark))
    seconds[target, rows[count:]] = np.nan
    return replace(samples, log_seconds=seconds)


def trained_source(samples: PairedSamples, encoder_version: str) -> TrainedSource:
    """Source models of the quickest parts, with errors as cross-validation stores them."""
    factory = MethodFactory(0, AmmOptions())
    blend = Blend({"bilinear": factory.fit("bilinear", samples, "machine")}, {"bilinear": 1.0}, 0.0)
    without = factory.fit("raw_xgboost", samples, "application")
    errors: dict[str, dict[Unseen, ErrorSize]] = {
        "with": {"application": ErrorSize(0.2, 0.0), "machine": ErrorSize(0.3, 0.0)},
        "without": {"application": ErrorSize(0.5, 0.0), "machine": ErrorSize(0.75, 0.0)},
    }
    model = SourceModel(
        machines=Machines.of(samples),
        without_amm=without,  # type: ignore[arg-type]
        with_amm={"application": blend, "machine": blend},
        errors=errors,
        encoder_version=encoder_version,
    )
    scores = pd.DataFrame(
        [
            {"unseen": unseen, "method": method, "mape_ratio": 0.3, "median_ape_ratio": 0.2, "log_rmse": error}
            for unseen, factor in (("application", 1.0), ("machine", 1.5))
            for method, error in (
                ("raw_xgboost", 0.5 * factor),
                (BLEND, 0.2 * factor),
            )
        ]
    )
    return TrainedSource(model, "raw_xgboost", scores, 0.0, 0.0)


@pytest.fixture(scope="session")
def fleet(empty_registry: Path, tmp_path_factory: pytest.TempPathFactory) -> Fleet:
    return _registered(tmp_path_factory.getbasetemp() / "serving", empty_registry)


@cache
def _registered(root: Path, registry: Path) -> Fleet:
    """Made once in this process: pytest would make the fixture again where tests of another folder import it."""
    root.mkdir()
    uri = f"sqlite:///{shutil.copyfile(registry, root / 'mlflow.db')}"
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PERF_ASSETS_LAKE", str(root))
        patch.setenv("MLFLOW_TRACKING_URI", uri)
        patch.setenv("PERF_ASSETS_THREADS", "1")
        samples = fleet_samples(fleet_tables(sizes=27))
        models = []
        for count in (6, 16):
            known = with_runs(samples, count)
            models.append(adapt(known, MACHINE, refitted_priors(known, 0, PRIOR_COMPONENTS), 0, lambda line: None))
        formulas = load_catalogue().resolve(COUNTERS, None)
        for model in models:
            version = register_target(model, formulas, {"is_simulated": "true"}, {})
            if version.version == 1:
                promote(version.name, version.version)
        described = described_fleet(fleet_tables())
        trained = trained_source(described.samples, described.encoder.encoder.version)
        for with_amm in (False, True):
            promote("perf-source", register_source(trained, described.samples, {}, with_amm=with_amm).version)
    return Fleet(uri, samples, (models[0], models[1]))


@pytest.fixture
def lake(fleet: Fleet, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Lake:
    """A lake of its own over the common registry; every machine has landed something."""
    root = tmp_path / "lake"
    for machine in SPEEDS:
        (root / "landing" / machine).mkdir(parents=True)
    monkeypatch.setenv("PERF_ASSETS_LAKE", str(root))
    monkeypatch.setenv("MLFLOW_TRACKING_URI", fleet.tracking_uri)
    return Lake(root)


@pytest.fixture
def predictor(lake: Lake) -> Predictor:
    return Predictor(lake)
