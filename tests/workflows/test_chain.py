"""Machines are described once, source models take descriptions, target models start from registered source models."""

import json
import runpy
import shutil
from collections.abc import Iterator
from dataclasses import dataclass, replace
from getpass import getuser
from pathlib import Path

import mlflow
import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner
from fastapi.testclient import TestClient

from perf_assets.cli.main import cli
from perf_assets.core.errors import BadInputError
from perf_assets.core.tables.models import AMMS
from perf_assets.features.fleet.samples import FleetTables
from perf_assets.models.common.questions import Questions
from perf_assets.models.source.basis import PriorBasis
from perf_assets.models.source.settings import SourceSettings
from perf_assets.models.target.model import AdaptedTarget
from perf_assets.registry import amm as registered_amm
from perf_assets.registry.lineage import chain
from perf_assets.registry.source import NAME, WITH_AMM, load_source
from perf_assets.registry.tables.source import descriptions_text
from perf_assets.registry.target import register_target
from perf_assets.registry.versions import promote, unpin, versions
from perf_assets.serving.http.app import Limits, create_app
from perf_assets.serving.predictor import Predictor
from perf_assets.serving.requests import Run
from perf_assets.storage.lake import Lake
from perf_assets.storage.results import rows_of
from perf_assets.workflows.exports.downstream_inputs import make_inputs
from perf_assets.workflows.machines.describe import describe, description_of
from perf_assets.workflows.models.chains import roll_back
from perf_assets.workflows.models.paired_inputs import AdaptationInputs, adaptation_inputs, target_tags
from perf_assets.workflows.models.train import RegisteredSource, move_aliases, train_and_register
from tests.described import DescribedFleet, quick_encoder
from tests.features.fleet_tables import EIGHT, fleet_tables
from tests.installation import PROJECT

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1800), pytest.mark.xdist_group("chain")]
LATE = "cedar"
"""Lands its RAJAPerf runs after the training."""
SEVEN = tuple(machine for machine in EIGHT if machine != LATE)
SETTINGS = SourceSettings(
    without_amm=("raw_xgboost",),
    with_amm=("raw_amm_xgboost",),
    baselines=(),
    machine_models=("bilinear", "mixture"),
)
EXAMPLE = PROJECT / "examples" / "inputs" / "fit.py"
LIMITS = Limits(body_bytes=200_000, rows=100, seconds=60.0)
MADE_OF = {"manifests_digest": "abc", "manifests_count": "7", "is_simulated": "true"}


@dataclass(frozen=True)
class Site:
    """A lake with a trained source model, and the tables it was trained on."""

    lake: Lake
    tables: FleetTables
    made: RegisteredSource

    def inputs(self, machine: str, runs: pd.DataFrame | None = None, source: int | None = None) -> AdaptationInputs:
        """What the target model of a machine is made of, with its runs or others."""
        own = self.tables.runs[self.tables.runs["machine"] == machine] if runs is None else runs
        return adaptation_inputs(self.lake, machine, own, 0, "1", source)


def land(lake: Lake, tables: FleetTables, *machines: str) -> None:
    """Describe machines as ingestion does."""
    for machine in machines:
        (lake.landing / machine).mkdir(parents=True, exist_ok=True)
        own = tables.of([machine])
        describe(lake, machine, own.kernels, own.specs, is_simulated=True)


def encode(tables: FleetTables) -> int:
    """Register an encoder of the machines of tables."""
    return registered_amm.register_encoder(quick_encoder(tables), tables.kernels, MADE_OF, {}).version


def train(lake: Lake, runs: pd.DataFrame) -> RegisteredSource:
    return train_and_register(lake, runs, SETTINGS, MADE_OF, lambda line: None)


@pytest.fixture(scope="module")
def site(empty_registry: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    root = tmp_path_factory.mktemp("chain")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PERF_ASSETS_LAKE", str(root))
        patch.setenv("MLFLOW_TRACKING_URI", f"sqlite:///{root}/mlflow/mlflow.db")
        patch.setenv("PERF_ASSETS_THREADS", "1")
        (root / "mlflow").mkdir()
        shutil.copyfile(empty_registry, root / "mlflow" / "mlflow.db")
        lake, tables = Lake(root), fleet_tables(fleet=EIGHT)
        early = tables.of([*SEVEN])
        encode(early)
        land(lake, early, *SEVEN)
        yield Site(lake, tables, train(lake, early.runs))


def run_on(site: Site, machine: str) -> Run:
    """A run on a machine; on fir, which has none in the lake, one that was done on ash."""
    measured_on = "ash" if machine == "fir" else machine
    runs = site.tables.runs
    row = json.loads(runs[runs["machine"] == measured_on].iloc[0].to_json(double_precision=15)) | {"machine": machine}
    counters = {k: float(v) for k, v in row.items() if str(k).endswith(("_ratio", "_count", "_bytes"))}
    given = {name: row[name] for name in ("machine", "app", "args", "ranks", "threads", "wall_seconds")}
    return Run.model_validate({**given, "counters": counters, "uses_gpus": bool(row["gpus"])})


def test_a_machine_that_lands_after_training_is_answered_with_its_amm_from_every_machine(site: Site) -> None:
    with pytest.raises(BadInputError, match="cedar"):
        Predictor(site.lake).predict([run_on(site, "ash")], LATE)
    before = versions(NAME)
    land(site.lake, site.tables, LATE)
    predictor = Predictor(site.lake)
    model = load_source(before[WITH_AMM])
    assert LATE not in model.machines.samples.machines
    served = mlflow.pyfunc.load_model(f"models:/{NAME}@{WITH_AMM}")
    for machine in SEVEN:
        run = run_on(site, machine)
        (answer,) = predictor.predict([run], LATE)
        assert (answer.model, answer.is_with_amm) == (NAME, True)
        size = np.log(answer.upper_seconds / answer.predicted_seconds) / 1.6449
        expected = model.errors["with"]["machine"]
        assert 0.999 * expected.near < size < 1.001 * expected.at(1.0), "between machines that are alike and unlike"
        asked = pd.DataFrame(
            [
                {
                    "target_machine": LATE,
                    "source_machine": machine,
                    **run.model_dump(include={"app", "args", "ranks", "threads", "wall_seconds", "uses_gpus"}),
                    **run.measured,
                }
            ]
        )
        newer = descriptions_text(description_of(site.lake, LATE, model.encoder_version))
        found = served.predict(asked, params={"descriptions": newer}).iloc[0]
        assert found["predicted_seconds"] == pytest.approx(answer.predicted_seconds, rel=1e-6)
        assert found["upper_seconds"] == pytest.approx(answer.upper_seconds, rel=1e-6)
        assert found["model"] == WITH_AMM
        with TestClient(create_app(predictor, LIMITS, None), "http://127.0.0.1") as client:
            told = client.post("/predict", json={"target": LATE, "runs": [run.model_dump()]}).json()["predictions"][0]
        assert told["predicted_seconds"] == pytest.approx(answer.predicted_seconds, rel=1e-6)
    assert versions(NAME) == before, "nothing was trained"


def test_the_source_model_is_no_worse_than_plain_answers(site: Site) -> None:
    assert site.made.is_not_worse
    for blend, plain in site.made.log_errors.values():
        assert blend <= 1.001 * plain
    worse = replace(site.made, log_errors={"machine": (1.43, 1.04)})
    assert not worse.is_not_worse


def test_the_prior_does_not_know_the_runs_of_its_own_machine(described: DescribedFleet) -> None:
    runs, fleet = described.tables.runs, described.descriptions
    slow = runs.assign(wall_seconds=np.where(runs["machine"] == "birch", 10.0, 1.0) * runs["wall_seconds"])
    expected = {}
    for name, trained_on in (("as it is", runs), ("ten times slower", slow)):
        basis = PriorBasis.fit(trained_on, fleet, SETTINGS)
        for machine in ("birch", "cedar"):
            own = trained_on[trained_on["machine"] == machine]
            samples, prior = basis.with_machine(machine, own, fleet), basis.prior(machine, "ash", fleet)
            examples, place = samples.examples(), samples.machines.index
            asked = examples.where((examples.source == place("ash")) & (examples.target == place(machine)))
            expected[machine, name] = (prior.weights, prior.half_widths, prior.predict(samples, asked))
    before, after = expected["birch", "as it is"], expected["birch", "ten times slower"]
    assert before[0], "known machines have taught that the prior is good for something"
    assert before[:2] == after[:2]
    assert before[2] == pytest.approx(after[2], abs=1e-12)
    others = [expected["cedar", name][2] for name in ("as it is", "ten times slower")]
    assert others[0] != pytest.approx(others[1], abs=1e-2), "of other machines it learns from these runs"


def seconds(model: AdaptedTarget, machine: str) -> np.ndarray:
    samples, source = model.samples, model.views[machine].source
    here = samples.machines.index(source)
    rows = np.flatnonzero(np.isfinite(samples.log_seconds[here]) & ~samples.is_benchmark)[:5]
    asked = Questions(
        [source] * len(rows),
        [machine] * len(rows),
        samples.apps[rows].tolist(),
        [f"new {row}" for row in rows],
        samples.counters[here, rows],
        samples.log_seconds[here, rows],
    )
    return np.exp(model.predict(asked).log_time)


def test_another_source_version_makes_another_target_and_chains_can_be_read_and_rolled_back(site: Site) -> None:
    first_version = versions(NAME)[WITH_AMM]
    runs = site.tables.runs[site.tables.runs["machine"] == LATE]
    few = runs[runs["app"] == "Kripke"][:3]
    land(site.lake, site.tables, LATE)
    first = site.inputs(LATE, few)
    model = first.adapt(lambda line: None)
    version = register_target(model, [], target_tags(first, MADE_OF), {})
    promote(version.name, version.version)
    links = chain(f"perf-target-{LATE}")
    assert [(link.name, link.version) for link in links] == [
        (f"perf-target-{LATE}", 1),
        (NAME, first_version),
        ("perf-amm", 1),
    ]
    printed = CliRunner().invoke(cli, ["models", f"perf-target-{LATE}", "--lineage", "--json"])
    assert [link["name"] for link in json.loads(printed.stdout)["lineage"]] == [link.name for link in links]

    # A training on other data: another encoder, another source model.
    other = site.tables
    slower = other.runs.assign(
        wall_seconds=np.where(other.runs["machine"] == "birch", 3.0, 1.0) * other.runs["wall_seconds"]
    )
    encode(other)
    land(site.lake, other, *EIGHT)
    second_made = train(site.lake, slower[slower["machine"] != LATE])
    second_version = second_made.versions[True].version
    assert versions(NAME)[WITH_AMM] == second_version
    assert len(encoders_that_described(site, LATE)) == 2, "the encoder of the source model before is still in use"
    again = site.inputs(LATE, few, first_version)
    assert again.digest == first.digest
    second = site.inputs(LATE, few)
    assert second.digest != first.digest
    assert seconds(again.adapt(lambda line: None), LATE) == pytest.approx(seconds(model, LATE), rel=1e-9)
    adapted = second.adapt(lambda line: None)
    assert seconds(adapted, LATE) != pytest.approx(seconds(model, LATE), rel=1e-3)

    promote(version.name, register_target(adapted, [], target_tags(second, MADE_OF), {}).version)
    assert [link.version for link in chain(version.name)] == [2, second_version, 2]
    assert roll_back(site.lake, version.name) == ("champion", 1, 2)
    assert [link.version for link in chain(version.name)] == [1, first_version, 1]
    going_back_to_an_encoder_keeps_chains_whole(site)
    assert roll_back(site.lake, NAME) == (WITH_AMM, first_version, second_version)
    (answer,) = Predictor(site.lake).predict([run_on(site, "elm")], "birch")
    assert answer.model_version == first_version
    move_aliases(second_made)
    assert versions(NAME)[WITH_AMM] == first_version, "a person has chosen another one"
    assert unpin(NAME) == [f"{WITH_AMM}: version {first_version} by {getuser()}"]
    move_aliases(replace(second_made, log_errors={"machine": (1.43, 1.04)}))
    assert versions(NAME)[WITH_AMM] == first_version, "an alias moves to what is not worse than plain answers"
    move_aliases(second_made)
    assert versions(NAME)[WITH_AMM] == second_version
    assert second.described is not None
    path = site.lake.record / AMMS.name / f"machine={LATE}" / "rows.parquet"
    kept = pd.read_parquet(path)
    kept[kept["encoder_version"] == second.described.encoder_version].to_parquet(path, index=False)
    for name in (NAME, registered_amm.NAME):
        with pytest.raises(BadInputError, match=rf"{name} version \d+ could not answer for {LATE}: its encoder"):
            roll_back(site.lake, name)


def encoders_that_described(site: Site, machine: str) -> set[str]:
    rows = rows_of(site.lake, AMMS, machine)
    assert rows is not None
    return set(rows["encoder_version"])


def going_back_to_an_encoder_keeps_chains_whole(site: Site) -> None:
    """A third encoder, which no source model takes yet, comes and goes."""
    before = encoders_that_described(site, LATE)
    encode(site.tables.of(["ash", "birch", LATE]))
    land(site.lake, site.tables, LATE)
    assert len(encoders_that_described(site, LATE)) == 3
    assert roll_back(site.lake, registered_amm.NAME) == ("champion", 2, 3)
    land(site.lake, site.tables, LATE)
    assert encoders_that_described(site, LATE) == before, "what no registered model takes is gone"
    (answer,) = Predictor(site.lake).predict([run_on(site, "elm")], "birch")
    assert (answer.model, answer.is_with_amm) == (NAME, True)


def test_the_inputs_of_downstream_models_are_exported_and_can_be_learned_from(
    site: Site, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(BadInputError, match="no inputs of models yet"):
        CliRunner().invoke(cli, ["export", "inputs", "--out", str(tmp_path / "f.parquet")], catch_exceptions=False)
    rows = make_inputs(site.lake, site.tables.runs)
    done = CliRunner().invoke(cli, ["export", "inputs", "--out", str(tmp_path / "f.parquet"), "--json"])
    assert json.loads(done.stdout)["rows"] == len(rows)
    table = pd.read_parquet(tmp_path / "f.parquet")
    assert {"relative_time", "is_simulated", "encoder_version", "source_version"} <= set(table)
    assert {"embedding_0", "source_amm_0", "target_amm_0"} <= set(table)
    monkeypatch.setattr("sys.argv", ["fit.py", str(tmp_path / "f.parquet")])
    found = runpy.run_path(str(EXAMPLE))
    assert f"of {len(rows)} rows" in capsys.readouterr().out
    assert found["model"].fit(found["inputs"], found["wanted"]).score(found["inputs"], found["wanted"]) > 0.8
