"""From landed tables to the champion of a dataset, by the sensors alone; the same answers from the shell and MLflow."""

import json
from pathlib import Path

import dagster as dg
import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner, Result

from perf_assets.cli.main import cli
from perf_assets.core.errors import BadInputError
from perf_assets.core.tables.datasets import DATASET_SCORES, DATASET_VERDICTS, MODELX_TABLE
from perf_assets.defs.build import build_definitions
from perf_assets.defs.ingest.sensor import landing_sensor
from perf_assets.defs.partitions import datasets
from perf_assets.defs.resources import LakeResource
from perf_assets.defs.transfers import assets
from perf_assets.defs.transfers.assets import ADAPTED, CAN_BE_ADAPTED
from perf_assets.defs.transfers.automation import dataset_sensor, weekly_datasets
from perf_assets.registry.versions import CHAMPION, load, versions
from perf_assets.storage.lake import Lake
from perf_assets.storage.results import rows_of, stored
from tests.defs.reads import check_edges, recorded_reads
from tests.workflows.little_datasets import ingest, land_table, land_three, runs


class Platform:
    """A lake and a Dagster instance; what the sensors ask for is run in this process."""

    def __init__(self, lake: Lake, instance: dg.DagsterInstance) -> None:
        self.lake, self.instance = lake, instance
        self.resource = LakeResource(root=str(lake.root))
        self.definitions = build_definitions(self.resource)
        self.cursor: str | None = None

    def tick(self) -> list[tuple[str, str]]:
        """Jobs and datasets that the sensor of datasets asks for; partitions that it adds are added."""
        context = dg.build_sensor_context(self.instance, cursor=self.cursor, resources={"lake": self.resource})
        result = dataset_sensor(context)
        assert isinstance(result, dg.SensorResult)
        self.cursor = result.cursor
        for request in result.dynamic_partitions_requests or []:
            self.instance.add_dynamic_partitions(request.partitions_def_name, list(request.partition_keys))
        return [(str(request.job_name), str(request.partition_key)) for request in result.run_requests or []]

    def run(self, job: str, dataset: str) -> dg.ExecuteInProcessResult:
        """Run a job of a dataset."""
        config = {"ops": {"eval_dataset__scores": {"config": {"seeds": 1}}}} if job == "adapt_dataset" else {}
        result = self.definitions.resolve_job_def(job).execute_in_process(
            instance=self.instance, partition_key=dataset, run_config=config
        )
        assert result.success
        return result


@pytest.fixture
def platform(lake: Lake, kept_instance: dg.DagsterInstance, monkeypatch: pytest.MonkeyPatch) -> Platform:
    monkeypatch.setenv("PERF_ASSETS_LAKE", str(lake.root))
    monkeypatch.setenv("PERF_ASSETS_THREADS", "1")
    monkeypatch.delenv("MLFLOW_TRACKING_URI", raising=False)
    return Platform(lake, kept_instance)


def checks_of(result: dg.ExecuteInProcessResult) -> dict[str, bool]:
    return {found.check_name: found.passed for found in result.get_asset_check_evaluations()}


def invoke(*arguments: str) -> Result:
    return CliRunner().invoke(cli, list(arguments))


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_landed_tables_become_champions_by_themselves(platform: Platform, tmp_path: Path) -> None:
    land_three(platform.lake)
    landed = landing_sensor(dg.build_sensor_context(platform.instance, resources={"lake": platform.resource}))
    assert isinstance(landed, dg.SensorResult)
    added = {r.partitions_def_name: set(r.partition_keys) for r in landed.dynamic_partitions_requests or []}
    assert added == {"machines": {"quartz", "spmv"}, "datasets": {"new", "old", "spmv"}}
    assert platform.tick() == [], "nothing is ingested yet"
    ingest(platform.lake)
    asked = platform.tick()
    assert asked == [("assemble_dataset", name) for name in ("new", "old", "spmv")]
    with recorded_reads() as reads:
        for job, name in asked:
            platform.run(job, name)
        assert platform.tick() == [("adapt_dataset", name) for name in ("new", "old", "spmv")]
        assert platform.tick() == []
        result = platform.run("adapt_dataset", "new")
        modelx_table_is_made(platform)
    check_edges(reads, "datasets")
    assert checks_of(result) == {CAN_BE_ADAPTED: True, "not_worse": True, "champion_holds": True}
    assert versions("perf-transfer-new") == {CHAMPION: 1}
    page = (platform.lake.reports / "dataset-new.html").read_text()
    for part in ("Severity", "What was tried", "Learning curve", "Which feature stands", "What to measure next"):
        assert part in page
    scores = rows_of(platform.lake, DATASET_SCORES, "new")
    assert scores is not None
    assert {"product", "target_gp", "source_zero_shot"} <= set(scores["method"])
    shell_and_registry_agree(tmp_path)
    a_new_table_makes_a_new_version(platform)


def modelx_table_is_made(platform: Platform) -> None:
    config = {"ops": {"eval_modelx__table": {"config": {"seeds": 1, "shots": ["5"], "targets": ["new"]}}}}
    result = platform.definitions.resolve_job_def("evaluate_methods").execute_in_process(
        instance=platform.instance, run_config=config, asset_selection=[dg.AssetKey(MODELX_TABLE.name)]
    )
    assert checks_of(result) == {assets.HAS_DATASETS: True}
    (row,) = stored(platform.lake, MODELX_TABLE, "").to_dict("records")
    assert (row["target"], row["sources"], row["shots"], row["seeds"]) == ("new", "old + spmv", 5, 1)
    assert row["features"] == "shared"
    for method in ("product", "zero_shot", "target_best", "oracle_100x"):
        assert row[method] >= 0
    assert "new" in (platform.lake.reports / "modelx.html").read_text()


def shell_and_registry_agree(folder: Path) -> None:
    asked = runs(6, 7, 9.0).drop(columns="seconds")
    asked.loc[2, "solver"] = "never"
    asked.to_csv(folder / "ask.csv", index=False)
    served = load("perf-transfer-new", CHAMPION)
    assert {"flops", "solver"} < set(served.metadata.get_input_schema().input_names())
    assert len(served.predict(served.input_example)) == 3
    direct = served.predict(asked.astype({"ranks": float}))
    done = invoke("predict", "--model", "perf-transfer-new", str(folder / "ask.csv"), "--json")
    assert done.exit_code == 0, done.output
    document = json.loads(done.stdout)
    assert (document["model"], document["version"]) == ("perf-transfer-new", 1)
    found = pd.DataFrame(document["answers"])
    for column in ("predicted", "lower", "upper"):
        assert found[column].to_numpy() == pytest.approx(direct[column].to_numpy(), rel=1e-9)
    assert "'never' was never seen" in found["note"][2]
    written = invoke(
        "predict", "--model", "perf-transfer-new/1", str(folder / "ask.csv"), "--out", str(folder / "a.csv")
    )
    assert written.exit_code == 0
    assert np.abs(pd.read_csv(folder / "a.csv")["predicted"] / direct["predicted"] - 1).max() < 1e-9
    wrong = {
        "nobody": "no model nobody is registered: there are perf-transfer-new",
        "perf-transfer-new@old": "perf-transfer-new has no @old",
        "perf-transfer-new/7": "perf-transfer-new has no version 7",
        "a@b@c": "names no model",
    }
    for name, line in wrong.items():
        refused = invoke("predict", "--model", name, str(folder / "ask.csv"))
        assert isinstance(refused.exception, BadInputError)
        assert line in str(refused.exception)
    asked.assign(flops="many").to_csv(folder / "bad.csv", index=False)
    refused = invoke("predict", "--model", "perf-transfer-new", str(folder / "bad.csv"))
    assert "column flops must hold a number: row 0 has 'many'" in str(refused.exception)


def a_new_table_makes_a_new_version(platform: Platform) -> None:
    land_table(platform.lake, runs(12, 12, 9.0), "quartz", "seconds", dataset="new")
    ingest(platform.lake, "quartz")
    assert platform.tick() == [("assemble_dataset", "new")], "and no other dataset"
    platform.run("assemble_dataset", "new")
    assert platform.tick() == [("adapt_dataset", "new")]
    platform.run("adapt_dataset", "new")
    verdicts = rows_of(platform.lake, DATASET_VERDICTS, "new")
    assert verdicts is not None
    assert verdicts["version"].tolist() == [1, 2]
    assert verdicts["shots"].tolist() == [24, 36]
    assert verdicts["new_runs_count"].tolist() == [0, 12]
    assert platform.tick() == []
    again = platform.run("adapt_dataset", "new")
    assert max(versions("perf-transfer-new").values()) == 2, "the same data makes no other version"
    assert again.success


@pytest.mark.slow
def test_a_dataset_that_is_alone_waits_for_a_second_one_and_says_so(platform: Platform) -> None:
    land_table(platform.lake, runs(20, 1), "quartz", "seconds", dataset="old")
    ingest(platform.lake)
    assert platform.tick() == [("assemble_dataset", "old")]
    platform.run("assemble_dataset", "old")
    assert platform.tick() == [("adapt_dataset", "old")]
    result = platform.run("adapt_dataset", "old")
    (check,) = result.get_asset_check_evaluations()
    assert (check.check_name, check.passed) == (CAN_BE_ADAPTED, False)
    assert "only dataset" in str(check.metadata["missing"].value)
    assert not result.asset_materializations_for_node("eval_dataset__verdicts")
    land_table(platform.lake, runs(20, 2), "ruby", "seconds", dataset="new")
    ingest(platform.lake)
    assert platform.tick() == [("assemble_dataset", "new")]
    platform.run("assemble_dataset", "new")
    assert platform.tick() == [("adapt_dataset", "new"), ("adapt_dataset", "old")]
    requests = weekly_datasets(dg.build_schedule_context(platform.instance, resources={"lake": platform.resource}))
    assert [request.partition_key for request in requests] == ["new", "old"]


def test_modelx_table_says_where_there_are_too_few_datasets(platform: Platform) -> None:
    result = platform.definitions.resolve_job_def("evaluate_methods").execute_in_process(
        instance=platform.instance, asset_selection=[dg.AssetKey(MODELX_TABLE.name)]
    )
    (check,) = result.get_asset_check_evaluations()
    assert (check.check_name, check.passed) == (assets.HAS_DATASETS, False)
    assert "needs two datasets" in str(check.metadata["missing"].value)


def test_the_landing_command_names_dataset_and_target(platform: Platform, tmp_path: Path) -> None:
    runs(8, 1).to_csv(tmp_path / "t.csv", index=False)
    done = invoke("land", str(tmp_path / "t.csv"), "--kind", "samples", "--dataset", "mine", "--target", "seconds")
    assert done.exit_code == 0, done.output
    assert platform.lake.machines() == ["mine"]
    refused = invoke("land", str(tmp_path / "t.csv"), "--kind", "samples", "--dataset", "A b", "--target", "seconds")
    assert "is not allowed" in str(refused.exception)
    missing = invoke("land", str(tmp_path / "t.csv"), "--machine", "ruby", "--kind", "samples", "--target", "nothing")
    assert "no row has a number in the column 'nothing'" in str(missing.exception)
    assert platform.lake.machines() == ["mine"], "nothing landed"
    unknown = invoke("adapt", "--dataset", "nobody")
    assert isinstance(unknown.exception, BadInputError)


def test_partitions_of_datasets_are_their_own() -> None:
    assert datasets.name == "datasets"
    graph = build_definitions().resolve_asset_graph()
    assert graph.get(dg.AssetKey(ADAPTED)).partitions_def == datasets
