"""Runs that Dagster launches, under the profiles other than the laptop's."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pandas as pd
import pytest
from distributed import LocalCluster

from perf_assets.core.tables.models import TRANSFER_MATRIX
from perf_assets.defs.resources import LakeResource
from perf_assets.features.fleet.samples import fleet_samples
from perf_assets.infra.profile import VARIABLE
from perf_assets.storage.results import stored
from tests.infra.tasks import write_profile
from tests.installation import PROJECT, Installation

pytestmark = [pytest.mark.integration, pytest.mark.timeout(1800), pytest.mark.xdist_group("profiles")]


@pytest.fixture
def site(trained_once: Installation, tmp_path: Path) -> Installation:
    """The trained fleet, to be changed."""
    shutil.copytree(trained_once.root, tmp_path / "site")
    return Installation(tmp_path / "site")


def launch(environment: dict[str, str], config: dict[str, object], *what: str) -> "subprocess.CompletedProcess[str]":
    """Start a run of "--job NAME" or "--assets NAME"."""
    command = [Path(sys.executable).with_name("dg"), "launch", *what, "--config-json", json.dumps(config)]
    return subprocess.run(
        command, env=environment, cwd=PROJECT, capture_output=True, text=True, timeout=600, check=False
    )


def test_a_run_on_dask_workers_scores_pairs_as_one_process_does(
    site: Installation, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from perf_assets.models.target.matrix import matrix, pairs

    # Workers have this environment too: LocalCluster starts them from here.
    for name, value in site.environment().items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("PYTHONPATH", str(PROJECT))
    profile = tmp_path / "profile.yaml"
    monkeypatch.setenv(VARIABLE, str(profile))
    with LocalCluster(2, threads_per_worker=1, host="127.0.0.1", dashboard_address="127.0.0.1:0") as cluster:
        assert write_profile(tmp_path, {"existing": {"address": cluster.scheduler_address}}) == profile
        config = {"ops": {"eval_transfer__matrix": {"config": {"seeds": 1}}}}
        done = launch(dict(os.environ), config, "--assets", TRANSFER_MATRIX.name)
        assert done.returncode == 0, done.stderr
        ran = set(cluster.scheduler.task_prefixes)
    assert {"priors_of", "score_pair"} <= ran, ran
    assert any(name.endswith(f".{TRANSFER_MATRIX.name}") for name in ran), ran

    monkeypatch.setenv(VARIABLE, "laptop")
    monkeypatch.setenv("PERF_ASSETS_THREADS", "1")
    samples = fleet_samples(LakeResource().fleet().tables())
    every = pairs(samples, 1)
    found = stored(site.lake, TRANSFER_MATRIX, "")
    assert len(found[["source", "target"]].drop_duplicates()) == len(every) > 1
    for pair, rows in matrix(samples, every[:2]):
        far = found[(found["source"] == pair.source) & (found["target"] == pair.target)]
        order = ["method", "shots", "seed"]
        near, far = (frame.sort_values(order, ignore_index=True)[rows.columns] for frame in (rows, far))
        pd.testing.assert_frame_equal(near, far, check_exact=True, check_dtype=False)


def test_a_workstation_runs_steps_in_their_own_processes(site: Installation) -> None:
    environment = site.environment() | {VARIABLE: "workstation", "PYTHONPATH": str(PROJECT)}
    done = launch(environment, {}, "--job", "report_fleet")
    assert done.returncode == 0, done.stderr
    assert "Launching subprocess for" in done.stderr + done.stdout
    assert (site.lake.reports / "index.html").is_file()


def test_a_wrong_profile_is_one_line(site: Installation, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, "laptpo")
    done = site.run("evaluate", "pairs")
    assert done.returncode == 2
    assert done.stderr.splitlines()[-1].startswith("perf-assets: PERF_ASSETS_PROFILE=laptpo: use laptop")
    assert "Traceback" not in done.stderr
