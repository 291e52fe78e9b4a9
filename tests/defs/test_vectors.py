"""From landed files of a small simulated fleet to the registered vector model, its verdicts and scores, by assets."""

from datetime import UTC, datetime, timedelta
from pathlib import Path

import dagster as dg
import pytest
from click.testing import CliRunner

from perf_assets.cli.main import cli
from perf_assets.core.errors import BadInputError
from perf_assets.core.tables.vectors import ALL_APPS, VECTOR_GROWTH, VECTOR_SCORES, VECTOR_VERDICTS
from perf_assets.core.vector_settings import VectorSettings
from perf_assets.defs.build import build_definitions
from perf_assets.defs.resources import LakeResource
from perf_assets.defs.vectors.assets import VECTOR, check_vector_model
from perf_assets.registry.versions import load, promote, roll_back, versions
from perf_assets.storage.lake import Lake
from perf_assets.storage.landing import land
from perf_assets.storage.results import stored
from perf_assets.workflows.models.vectors import state
from tests.defs.reads import check_edges, recorded_reads
from tests.defs.test_training import metadata, run
from tests.docs.newbox import copy_lake
from tests.installation import Installation, bundles_of
from tests.trained_site import MACHINES

QUICK = VectorSettings.quick().model_dump()
NAME = "perf-relative-vector"
STEPS = (VECTOR, VECTOR_VERDICTS.name)


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_from_ingested_machines_to_vectors(trained_once: Installation, tmp_path: Path) -> None:
    lake = Lake(tmp_path)
    copy_lake(trained_once.lake.root, lake.root)
    with pytest.MonkeyPatch.context() as patch, dg.instance_for_test() as instance:
        patch.setenv("PERF_ASSETS_LAKE", str(lake.root))
        patch.setenv("PERF_ASSETS_THREADS", "1")
        patch.delenv("MLFLOW_TRACKING_URI", raising=False)
        instance.add_dynamic_partitions("machines", list(MACHINES))
        run(instance, lake, "train_fleet", assets=STEPS)
        assert instance.get_latest_materialization_event(dg.AssetKey(VECTOR)) is None, "nothing to follow yet"
        trained = {"model_vector__relative": {"config": {"retrain": True, **QUICK}}}
        scored = {"score_vectors": {"config": {"protocols": ["sample"], **QUICK}}}
        with recorded_reads() as reads:
            run(instance, lake, "train_fleet", steps=trained, assets=STEPS)
            run(instance, lake, "evaluate_methods", steps=scored, assets=(VECTOR_SCORES.name, VECTOR_GROWTH.name))
            run(instance, lake, "report_fleet")
        check_edges(reads, "vectors")
        shown = metadata(instance, VECTOR)
        assert shown["mlflow_uri"] == "models:/perf-relative-vector/1"
        assert shown["is_simulated"] == "true"
        served = load(NAME, "champion")
        assert set(served.predict(served.input_example)["machine"]) == set(MACHINES)
        a_landed_machine_joins_by_itself(instance, lake)
        a_machine_joins_by_command(instance)
        the_next_training_is_judged_beside_the_champion(instance, lake, trained)
    scores = stored(lake, VECTOR_SCORES, "")
    assert set(scores["protocol"]) == {"sample"}
    assert set(scores["method"]) == {*QUICK["components"], "majority", "mean", "best"}
    assert (scores["app"] == ALL_APPS).sum() == 5
    assert scores["is_simulated"].all()
    assert set(stored(lake, VECTOR_GROWTH, "")["method"]) == {"head", "constant", "from_nothing", "retrained"}
    assert (lake.reports / "vectors.html").read_text().count("<figure>") == 7


def land_and_ingest(instance: dg.DagsterInstance, lake: Lake, machine: str) -> None:
    for part in bundles_of(machine):
        for bundle in part:
            land(lake, bundle.facts, bundle.name, bundle.write)
    instance.add_dynamic_partitions("machines", [machine])
    run(instance, lake, "ingest_machine", (machine,))


def a_landed_machine_joins_by_itself(instance: dg.DagsterInstance, lake: Lake) -> None:
    land_and_ingest(instance, lake, "dane")
    warehouse = LakeResource(root=str(lake.root)).warehouse()
    assert state(warehouse, 14).absent_machines == ("dane",)
    # What the automation starts: no configuration.
    run(instance, lake, "train_fleet", assets=STEPS)
    shown = metadata(instance, VECTOR)
    assert (shown["mlflow_uri"], shown["joined"]) == ("models:/perf-relative-vector/2", "dane")
    assert isinstance(shown["shots_count"], int)
    assert shown["shots_count"] >= 3
    assert str(shown["weights_of_known_machines"]).count("ruby") == 2
    verdicts = stored(lake, VECTOR_VERDICTS, "")
    assert verdicts["decision"].tolist() == ["promoted", "promoted"]
    assert "dane joined with" in verdicts["reason"].iloc[-1]
    assert verdicts["champion_log_rmse"].iloc[-1] == pytest.approx(verdicts["log_rmse"].iloc[-1])
    served = load(NAME, "champion")
    answers = served.predict(served.input_example, params={"relative_to": "dane"})
    assert set(answers["machine"]) == {*MACHINES, "dane"}
    assert (answers.loc[answers["machine"] == "dane", "relative_time"] == 1.0).all()
    with pytest.raises(BadInputError, match="runs on 'dane' are not known to this model, only those on lassen, quartz"):
        served.predict(served.input_example.assign(source_machine="dane"))
    run(instance, lake, "train_fleet", assets=STEPS)
    assert versions(NAME) == {"champion": 2}, "nothing is new, so nothing is made"
    now = state(warehouse, 14)
    assert now.absent_machines == ()
    assert now.problems(datetime.now(UTC)) == []
    assert "days ago (limit 14)" in now.problems(datetime.now(UTC) + timedelta(days=20))[0]


def a_machine_joins_by_command(instance: dg.DagsterInstance) -> None:
    done = CliRunner().invoke(cli, ["vectors", "--add", "dane"])
    assert done.exit_code == 0, done.output
    assert done.stdout == "models:/perf-relative-vector@champion  (version 3)\n"
    assert metadata(instance, VECTOR)["mlflow_uri"] == "models:/perf-relative-vector/3"
    (run,) = instance.get_runs(limit=1)
    assert run.job_name == "train_fleet"
    assert run.asset_selection == {dg.AssetKey(name) for name in STEPS}, "that is what a person re-executes"


def the_next_training_is_judged_beside_the_champion(
    instance: dg.DagsterInstance, lake: Lake, trained: dict[str, object]
) -> None:
    run(instance, lake, "train_fleet", steps=trained, assets=STEPS)
    last = stored(lake, VECTOR_VERDICTS, "").iloc[-1]
    assert (last["version"], last["champion_version"]) == (4, 3)
    assert set(last["machines"].split(", ")) == {*MACHINES, "dane"}
    assert last["champion_log_rmse"] > 0, "both have held out the same samples"
    if versions(NAME)["champion"] != 4:
        promote(NAME, 4)
    resource = LakeResource(root=str(lake.root))
    checks = {result.check_name: result for result in check_vector_model(resource)}  # type: ignore[attr-defined]
    assert checks["is_current"].passed
    assert checks["not_worse"].passed == (last["decision"] == "promoted")
    assert roll_back(NAME) == (3, 4)


def test_the_weekly_schedule_trains_the_vector_model_and_its_settings_are_in_the_launchpad() -> None:
    definitions = build_definitions()
    (weekly,) = (s for s in definitions.schedules or [] if s.name == "weekly_training")
    assert isinstance(weekly, dg.ScheduleDefinition)
    with dg.build_schedule_context() as context:
        (request,) = weekly.evaluate_tick(context).run_requests or []
    assert request.run_config["ops"]["model_vector__relative"]["config"] == {"retrain": True}
    selected = definitions.resolve_job_def(weekly.job_name).asset_layer.selected_asset_keys
    made = {key.to_user_string() for key in selected}
    assert {"model_amm__encoder", "model_source__with_amm", VECTOR} <= made
    (scoring,) = (s for s in definitions.schedules or [] if s.name == "weekly_evaluation")
    with dg.build_schedule_context() as context:
        (request,) = scoring.evaluate_tick(context).run_requests or []
    assert {dg.AssetKey("eval_modelx__table"), dg.AssetKey("eval_xamm__report")} <= set(request.asset_selection or ())
    job = definitions.resolve_job_def("train_fleet")
    given = {
        "ops": {
            "model_vector__relative": {"config": {"retrain": True, "net": {"latent": 4}, "components": ["xgboost"]}}
        }
    }
    assert dg.validate_run_config(job, given)["ops"]["model_vector__relative"]["config"]["net"]["latent"] == 4
    graph = definitions.resolve_asset_graph()
    for name in (VECTOR, VECTOR_VERDICTS.name, "out_schedule__turnaround"):
        assert graph.get(dg.AssetKey(name)).automation_condition is not None, name


def test_options_of_training_do_not_go_with_a_machine_that_joins() -> None:
    for option in (["--seed", "1"], ["--evaluate", "1"], ["--relative-to", "min"], ["--quick"]):
        done = CliRunner().invoke(cli, ["vectors", "--add", "dane", *option])
        assert isinstance(done.exception, BadInputError)
        assert "--add takes the model in use as it is" in str(done.exception)


def test_a_machine_that_is_not_there_does_not_join(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PERF_ASSETS_LAKE", str(tmp_path))
    for machine in ("", "nowhere"):
        done = CliRunner().invoke(cli, ["vectors", "--add", machine])
        assert isinstance(done.exception, BadInputError)
