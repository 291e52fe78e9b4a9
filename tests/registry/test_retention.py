"""What `perf-assets prune` keeps, and what it removes with its files."""

import json
import sqlite3
import time
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path

import mlflow
import pytest
from click.testing import CliRunner
from mlflow import MlflowClient

from perf_assets.cli.main import cli
from perf_assets.core.errors import BadInputError
from perf_assets.core.site import RetentionSettings
from perf_assets.registry.lineage import AMM, ENCODER, SOURCE, SOURCE_VERSION
from perf_assets.registry.retention import superfluous
from perf_assets.registry.store import open_store
from perf_assets.registry.versions import promote, tags_by_version

TARGET = "perf-target-dane"
LATER = timedelta(days=400)


def register(client: MlflowClient, root: Path, name: str, **tags: str) -> tuple[int, Path]:
    """A version with a run and a file, without the seconds of logging a model."""
    with suppress(mlflow.MlflowException):
        client.create_registered_model(name)
    found = client.get_experiment_by_name(name)
    place = (root / "mlflow" / "artifacts").as_uri()
    experiment = found.experiment_id if found else client.create_experiment(name, artifact_location=place)
    run = client.create_run(experiment)
    client.log_text(run.info.run_id, "fitted", "fitted.txt")
    client.set_terminated(run.info.run_id)
    version = client.create_model_version(name, run.info.artifact_uri, run.info.run_id, tags=tags)
    return int(version.version), Path(run.info.artifact_uri.removeprefix("file://"))


@pytest.fixture
def files(own_registry: Path) -> dict[tuple[str, int], Path]:
    """Three encoders, three source models, eight versions of a target: folder of each version."""
    client = open_store()
    made = {}
    for encoder in ("e1", "e2", "e3"):
        number, folder = register(client, own_registry, AMM, **{ENCODER: encoder})
        made[AMM, number] = folder
    for encoder in ("e1", "e2", "e3"):
        number, folder = register(client, own_registry, SOURCE, kind="with-amm", **{ENCODER: encoder})
        made[SOURCE, number] = folder
    for source in (1, 1, 2, 2, 1, 3, 3, 3):
        number, folder = register(client, own_registry, TARGET, **{SOURCE_VERSION: str(source)})
        made[TARGET, number] = folder
    for name, number in ((AMM, 3), (SOURCE, 3), (TARGET, 2), (TARGET, 3)):
        promote(name, number)
    return made


def test_what_an_alias_or_a_chain_needs_stays(files: dict[tuple[str, int], Path]) -> None:
    found = superfluous(RetentionSettings(versions=1, days=1), datetime.now(UTC) + LATER)
    gone = set(found.versions)
    assert {number for name, number in files if name == TARGET} - {n for name, n in gone if name == TARGET} == {2, 3, 8}
    assert (SOURCE, 1) not in gone, "target 2, which a roll-back goes back to, starts from it"
    assert not {key for key in gone if key[0] in (SOURCE, AMM)}, "and all encoders are of a source model that stays"
    young = superfluous(RetentionSettings(versions=1, days=1))
    assert young.versions == ()
    assert young.runs == ()
    client = open_store()
    client.delete_model_version(TARGET, "3")
    client.delete_model_version(TARGET, "4")
    found = superfluous(RetentionSettings(versions=1, days=1), datetime.now(UTC) + LATER)
    assert {(SOURCE, 2), (AMM, 2)} <= set(found.versions), "nothing starts from it any more"


@pytest.mark.slow
def test_the_command_removes_files_and_what_is_kept_answers(
    files: dict[tuple[str, int], Path], own_registry: Path
) -> None:
    client = open_store()
    lone = client.create_run(client.get_experiment_by_name(TARGET).experiment_id)
    client.set_terminated(lone.info.run_id, end_time=int(1000 * (time.time() - 86400 * 400)))
    (own_registry / "site.yaml").write_text("retention: {versions: 1, days: 1}")
    made = client.get_model_version(TARGET, "1").creation_timestamp
    assert made > 0
    tried = CliRunner().invoke(cli, ["prune", "--dry-run", "--json"])
    assert tried.exit_code == 0, tried.output
    assert json.loads(tried.stdout) == {"versions": [], "runs": [lone.info.run_id], "is_dry_run": True}
    age(own_registry)
    done = CliRunner().invoke(cli, ["prune", "--json"])
    assert done.exit_code == 0, done.output
    removed = {(row["name"], row["version"]) for row in json.loads(done.stdout)["versions"]}
    assert removed == {(TARGET, number) for number in (1, 4, 5, 6, 7)}
    assert set(tags_by_version(TARGET)) == {2, 3, 8}
    assert not [key for key in removed if (files[key] / "fitted.txt").exists()]
    assert [(files[key] / "fitted.txt").read_text() for key in files.keys() - removed] == ["fitted"] * 9
    with pytest.raises(mlflow.MlflowException):
        client.get_run(lone.info.run_id)


def age(root: Path) -> None:
    """Let everything have been registered long ago."""
    with sqlite3.connect(root / "mlflow" / "mlflow.db") as database:
        database.execute("UPDATE model_versions SET creation_time = creation_time - 40000000000")


def test_a_registry_of_others_is_left_alone(own_registry: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MLFLOW_TRACKING_URI", "http://127.0.0.1:1")
    refused = CliRunner().invoke(cli, ["prune"])
    assert isinstance(refused.exception, BadInputError)
    assert "is not of this lake" in str(refused.exception)
