"""From landed files of a small simulated fleet to registered models, tables and pages, through the assets."""

import json
import sqlite3
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import dagster as dg
import numpy as np
import pytest
from click.testing import CliRunner

from perf_assets.cli.main import cli
from perf_assets.core.errors import BadInputError
from perf_assets.core.manifest import BundleFacts
from perf_assets.core.tables.models import AMMS, BEHAVES_LIKE, FEATURE_MASKS, TRANSFER_MATRIX, TRANSFER_SCORES
from perf_assets.core.tables.schedule import TURNAROUND
from perf_assets.core.tables.verdicts import VERDICTS
from perf_assets.defs.build import build_definitions
from perf_assets.defs.machines.assets import MAP
from perf_assets.defs.reports.fleet import FLEET_PAGE
from perf_assets.defs.resources import LakeResource
from perf_assets.defs.sources.assets import WITH_AMM
from perf_assets.defs.targets.assets import ADAPTED
from perf_assets.demo.fleet import fleet_bundles
from perf_assets.registry.versions import load, promote, roll_back, tags_of, versions
from perf_assets.scheduling.fleet_jobs import Problem
from perf_assets.storage.lake import Lake
from perf_assets.storage.landing import land
from perf_assets.storage.results import stored
from perf_assets.storage.warehouse import Warehouse
from perf_assets.workflows.scheduling import scheduled_problems
from tests.conftest import COLLECTED_AT
from tests.defs.reads import READS, Reads, check_edges, recorded_reads
from tests.docs.newbox import copy_lake
from tests.installation import Installation, bundles_of, land_bundles
from tests.reports.site_checks import check_site
from tests.scheduling.traces import line, write
from tests.trained_site import MACHINES, copy_of

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1800), pytest.mark.xdist_group("training")]
TARGET = "dane"
FLEET = (*MACHINES, TARGET)


@dataclass(frozen=True)
class Site:
    """A lake, and the instance that its runs are in."""

    lake: Lake
    instance: dg.DagsterInstance
    reads: Reads


@pytest.fixture(scope="module")
def once(trained_once: Installation, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """The trained fleet and a machine that joined it, with all models, made once; not to be changed."""
    copied = copy_of(trained_once, tmp_path_factory.mktemp("training") / "site")
    with pytest.MonkeyPatch.context() as patch, dg.DagsterInstance.from_config(str(copied.home)) as instance:
        lake = copied.lake
        _use(patch, lake)
        patch.setenv("PERF_ASSETS_THREADS", "1")
        land_bundles(copied, (bundle for part in bundles_of(TARGET) for bundle in part))
        instance.add_dynamic_partitions("machines", [TARGET])
        with recorded_reads() as reads:
            run(instance, lake, "ingest_machine", (TARGET,))
            scored = {"eval_transfer__scores": {"config": {"seeds": 1, "shots": [0, 5]}}}
            run(instance, lake, "adapt_machine", (TARGET,), scored)
            run(instance, lake, "train_fleet", assets=(MAP,))
            run(instance, lake, "report_fleet")
        yield Site(lake, instance, reads)


def _use(patch: pytest.MonkeyPatch, lake: Lake) -> None:
    patch.setenv("PERF_ASSETS_LAKE", str(lake.root))
    # Opening a registry sets it.
    patch.setenv("MLFLOW_TRACKING_URI", f"sqlite:///{lake.root}/mlflow/mlflow.db")


@pytest.fixture
def made(once: Site, monkeypatch: pytest.MonkeyPatch) -> Site:
    """To be looked at."""
    _use(monkeypatch, once.lake)
    return once


@pytest.fixture
def site(once: Site, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Site:
    """A copy, to be changed."""
    copy_lake(once.lake.root, tmp_path / "lake")
    _use(monkeypatch, Lake(tmp_path / "lake"))
    return Site(Lake(tmp_path / "lake"), once.instance, once.reads)


def run(
    instance: dg.DagsterInstance,
    lake: Lake,
    job: str,
    machines: tuple[str | None, ...] = (None,),
    steps: dict[str, object] | None = None,
    assets: Sequence[str] = (),
) -> None:
    chosen = [dg.AssetKey(name) for name in assets] or None
    definition = build_definitions(LakeResource(root=str(lake.root))).resolve_job_def(job)
    for machine in machines:
        config = {"ops": steps} if steps else None
        assert definition.execute_in_process(
            config, instance=instance, partition_key=machine, asset_selection=chosen
        ).success


def metadata(instance: dg.DagsterInstance, asset: str) -> dict[str, object]:
    event = instance.get_latest_materialization_event(dg.AssetKey(asset))
    assert event is not None
    assert event.asset_materialization is not None
    return {name: value.value for name, value in event.asset_materialization.metadata.items()}


def test_an_edge_of_the_graph_means_that_the_child_reads_the_parent(made: Site) -> None:
    check_edges(made.reads, "training")


def test_steps_of_the_training_read_their_parents_and_nothing_else(trained_once: Installation) -> None:
    check_edges(Reads.load(trained_once.root / READS), "trained_once")


def test_every_machine_has_its_amm_of_one_encoder(made: Site) -> None:
    lake = made.lake
    rows = stored(lake, AMMS, "")
    assert set(rows["seen_as"]) == {*FLEET, "lassen (host)"}
    assert rows["encoder_version"].nunique() == 1
    amms = rows[rows["part"] == "amm"]
    assert (amms.groupby(["seen_as", "option"]).size() == 8).all()
    assert amms["option"].nunique() == 12
    assert {"core", "busy_core", "half_busy_core", "device"} == set(rows.loc[rows["part"] == "kernel", "option"])
    assert rows["is_simulated"].all()
    described = made.instance.get_materialized_partitions(dg.AssetKey(AMMS.name))
    assert described == set(FLEET), "the step that trains the encoder describes all machines"
    for name in ("amm.json", "amm.parquet", "amm.html"):
        assert (lake.reports / name).stat().st_size > 500


def test_source_models_are_registered_and_shown_beside_baselines(made: Site) -> None:
    assert set(versions("perf-source")) == {"with-amm", "without-amm"}
    shown = metadata(made.instance, WITH_AMM)
    assert shown["mlflow_uri"] == f"models:/perf-source/{versions('perf-source')['with-amm']}"
    for method in ("raw_xgboost", "onehot_xgboost", "spec_xgboost", "with_amm"):
        assert method in str(shown["scores_on_held_out"])
    assert shown["is_simulated"] is True
    assert len(tags_of("perf-source", versions("perf-source")["with-amm"])["manifests_digest"]) == 64


def test_what_models_look_at_is_kept(made: Site) -> None:
    likeness = stored(made.lake, BEHAVES_LIKE, "")
    assert likeness.groupby(["machine", "app"])["attention_ratio"].sum().to_numpy() == pytest.approx(1.0, abs=1e-3)
    masks = stored(made.lake, FEATURE_MASKS, "")
    assert "branch_ratio" in set(masks["feature"])


def test_the_target_model_answers_with_an_interval(made: Site) -> None:
    served = load("perf-target-dane", "champion")
    found = served.predict(served.input_example)
    assert (found["lower_seconds"] < found["predicted_seconds"]).all()
    assert (found["predicted_seconds"] < found["upper_seconds"]).all()
    scores = stored(made.lake, TRANSFER_SCORES, "")
    assert set(scores["machine"]) == {"dane"}
    assert {"paired", "target_gp", "source_unchanged"} <= set(scores["method"])
    assert 0.0 < metadata(made.instance, TRANSFER_SCORES.name)["coverage_90"] <= 1.0
    page = (made.lake.reports / "machine-dane.html").read_text()
    source, encoder = versions("perf-source")["with-amm"], versions("perf-amm")["champion"]
    assert f"perf-target-dane version 1, from perf-source version {source}, perf-amm version {encoder}" in page
    assert "imulated" in page


def test_all_pairs_are_scored_once_and_the_fleet_has_its_page(site: Site) -> None:
    lake, instance = site.lake, site.instance
    steps: dict[str, object] = {"eval_transfer__matrix": {"config": {"seeds": 1, "shots": [0, 5]}}}
    with recorded_reads() as reads:
        run(instance, lake, "evaluate_methods", steps=steps, assets=(TRANSFER_MATRIX.name,))
    check_edges(reads, "pairs")
    first = metadata(instance, TRANSFER_MATRIX.name)
    assert first["pairs_kept_from_before_count"] == 0
    assert first["pairs_count"] == stored(lake, TRANSFER_MATRIX, "")[["source", "target"]].drop_duplicates().shape[0]
    run(instance, lake, "evaluate_methods", steps=steps, assets=(TRANSFER_MATRIX.name,))
    assert metadata(instance, TRANSFER_MATRIX.name)["pairs_kept_from_before_count"] == first["pairs_count"]
    the_fleet_has_its_page(lake, instance)


def test_the_scheduling_experiment_reads_runs_and_the_champion(
    site: Site, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # The small machine has no run that its model was not fitted to: after all is read, how a problem scales is given.
    seconds = (np.array([9.0, 4.0]) * factor for factor in (1, 1.1, 1.3))
    scaling = Problem("wave", np.zeros(2, np.int64), np.array([1, 4]), *seconds)
    monkeypatch.setattr(scheduled_problems, "_problems", lambda runs, machines: [scaling])
    jobs = [line(n, 900 * n, 500 + 61 * (n % 9), 1 + n % 8, 3600, user=n % 3) for n in range(60)]
    config = {"trace": str(write(tmp_path / "t.swf", *jobs)), "machine": TARGET, "repetitions": 1, "loads": [1.0]}
    with recorded_reads() as reads:
        run(site.instance, site.lake, "simulate_schedules", steps={"out_schedule__turnaround": {"config": config}})
    check_edges(reads, "schedules")
    assert metadata(site.instance, TURNAROUND.name)["champion"] == f"perf-target-{TARGET} version 1"


def test_a_machine_that_lands_later_is_predicted_from_every_machine_without_training(site: Site) -> None:
    lake, before = site.lake, versions("perf-source")
    for bundle in fleet_bundles(0.12, 0, ["epyc-vm"]):
        if bundle.facts.kind == "rajaperf":
            land(lake, bundle.facts, bundle.name, bundle.write)
    site.instance.add_dynamic_partitions("machines", ["epyc-vm"])
    run(site.instance, lake, "ingest_machine", ("epyc-vm",))
    for machine in FLEET:
        done = CliRunner().invoke(cli, ["predict", "--from", machine, "--to", "epyc-vm", "--json"])
        assert done.exit_code == 0, done.output
        answers = json.loads(done.stdout)["predictions"]
        assert answers
        assert {(answer["model"], answer["is_with_amm"]) for answer in answers} == {("perf-source", True)}
        assert all(answer["lower_seconds"] < answer["upper_seconds"] for answer in answers)
    assert versions("perf-source") == before


def refresh(instance: dg.DagsterInstance, lake: Lake) -> dg.ExecuteInProcessResult:
    job = build_definitions(LakeResource(root=str(lake.root))).resolve_job_def("refresh_machine")
    config = {
        "ops": {
            "model_target__adapted": {"config": {"only_if_changed": True}},
            "eval_transfer__scores": {"config": {"seeds": 1, "shots": [0, 5]}},
        }
    }
    return job.execute_in_process(config, instance=instance, partition_key="dane", raise_on_error=False)


def test_what_did_not_change_is_kept(site: Site) -> None:
    lake, instance = site.lake, site.instance
    before = versions("perf-target-dane")
    assert refresh(instance, lake).success
    assert versions("perf-target-dane") == before
    assert "same data" in str(metadata(instance, ADAPTED)["kept"])


def land_slow_runs(lake: Lake, count: int) -> None:
    """Runs of configurations that are known, which take four times as long: more than there were before."""
    query = "SELECT app, args, ranks, threads, 4 * wall_seconds AS wall_seconds FROM core_runs__features"
    rows = Warehouse(lake).frame(f"{query} WHERE machine = 'dane' ORDER BY ALL LIMIT {count}")
    rows = rows.loc[rows.index.repeat(9)]
    facts = {"machine": "dane", "kind": "samples", "target": "wall_seconds", "tags": {"simulated": "true"}}
    facts = BundleFacts.model_validate(facts | {"collected_at": COLLECTED_AT})
    land(lake, facts, f"slow-{count}", lambda folder: rows.to_csv(folder / "samples.csv", index=False))


def test_a_locked_registry_drift_and_aliases_of_one_target(site: Site) -> None:
    lake, instance = site.lake, site.instance
    before = versions("perf-target-dane")
    land_slow_runs(lake, 1)
    locker = sqlite3.connect(lake.root / "mlflow" / "mlflow.db", isolation_level=None)
    locker.execute("BEGIN EXCLUSIVE")
    result = refresh(instance, lake)
    locker.close()
    assert not result.success
    (failure,) = [event.step_failure_data for event in result.all_events if event.is_step_failure]
    assert failure.user_failure_data is not None
    assert "the MLflow database is locked" in str(failure.user_failure_data.description)
    assert versions("perf-target-dane") == before
    assert refresh(instance, lake).success
    assert max(versions("perf-target-dane").values()) > before["champion"]
    slow_runs_are_drift(lake, instance)
    aliases_move_and_come_back()


def slow_runs_are_drift(lake: Lake, instance: dg.DagsterInstance) -> None:
    land_slow_runs(lake, 30)
    assert refresh(instance, lake).success
    last = stored(lake, VERDICTS, "").iloc[-1]
    assert last["has_drifted"]
    assert last["outside_count"] > last["allowed_count"]
    assert "Drift: new runs contradicted" in (lake.reports / "machine-dane.html").read_text()
    records = instance.event_log_storage.get_latest_asset_check_execution_by_key(
        [dg.AssetCheckKey(dg.AssetKey(ADAPTED), "champion_holds")]
    )
    (record,) = records.values()
    assert record.status.value == "FAILED"


def aliases_move_and_come_back() -> None:
    name = "perf-target-dane"
    before = versions(name)["champion"]
    promote(name, 1)
    assert versions(name)["champion"] == 1
    assert roll_back(name) == (before, 1)
    assert versions(name) == {"champion": before, "challenger": 1}
    with pytest.raises(BadInputError, match="has no version 99"):
        promote(name, 99)


def the_fleet_has_its_page(lake: Lake, instance: dg.DagsterInstance) -> None:
    done = CliRunner().invoke(cli, ["report", "--json"])
    assert done.exit_code == 0, done.output
    # Machines without a model of their own have a checklist.
    pages = {machine: f"machine-{machine}.html" for machine in sorted(FLEET)}
    assert json.loads(done.stdout) == {
        "index": str(lake.reports / "index.html"),
        "machines": pages,
        "others": ["amm.html", "pairs.html"],
        "failures": [],
    }
    page = (lake.reports / "index.html").read_text()
    for machine in FLEET:
        assert machine in page
    assert {*check_site(lake.reports)} == {"index.html", "amm.html", "pairs.html", *pages.values()}
    assert metadata(instance, FLEET_PAGE)["champions_count"] == 1
