"""Profiles: what is shipped, and what is refused in one line."""

import os
from pathlib import Path

import pytest
import yaml

from perf_assets.core.errors import BadInputError
from perf_assets.defs.build import profile_executor
from perf_assets.infra import threads
from perf_assets.infra.profile import (
    FILES,
    NAMES,
    VARIABLE,
    DaskProfile,
    InProcessProfile,
    MultiprocessProfile,
    current_profile,
    read_profile,
)
from perf_assets.infra.threads import process_count, thread_budget

SHIPPED = {"laptop": InProcessProfile, "workstation": MultiprocessProfile, "cluster": DaskProfile}


@pytest.fixture(autouse=True)
def _no_threads_given(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(threads.VARIABLE, raising=False)


def test_the_laptop_is_what_holds_without_a_word(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(VARIABLE, raising=False)
    assert isinstance(current_profile(), InProcessProfile)
    assert thread_budget() == min(2, threads.core_count())
    assert profile_executor().name == "in_process"


def test_every_name_has_its_file_and_executor(monkeypatch: pytest.MonkeyPatch) -> None:
    assert tuple(SHIPPED) == NAMES
    found = []
    for name, kind in SHIPPED.items():
        monkeypatch.setenv(VARIABLE, name)
        assert isinstance(current_profile(), kind)
        found.append(profile_executor().name)
    assert found == ["in_process", "multiprocess", "dask"]


def test_what_the_cluster_file_shows_of_other_clusters_is_right(tmp_path: Path) -> None:
    head, mark, clusters = (FILES / "cluster.yaml").read_text().partition("  # existing:")
    shown = yaml.safe_load(f"{mark}{clusters}".replace("  # ", "", 1).replace("\n  # ", "\n"))
    settings = yaml.safe_load(head)
    for name, cluster in shown.items():
        path = tmp_path / f"{name}.yaml"
        path.write_text(yaml.safe_dump(settings | {"cluster": {name: cluster}}))
        assert isinstance(read_profile(path), DaskProfile)
    assert set(shown) == {"existing", "slurm"}


def test_processes_and_threads_fit_the_cores(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, "workstation")
    monkeypatch.setattr(os, "sched_getaffinity", lambda process: set(range(8)))
    assert thread_budget() == 2
    assert process_count(None) == 4
    assert process_count(3) == 3
    monkeypatch.setenv(threads.VARIABLE, "3")
    assert process_count(None) == 2
    with pytest.raises(BadInputError, match="4 processes of 3 threads are more than the 8 cores here"):
        process_count(4)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("executor: in_process\nthreads_per_process: 0\n", "threads_per_process: Input should be greater than"),
        ("executor: in_process\nthreads_per_process: 2\nthread: 1\n", "thread: there is no such field"),
        ("executor: spark\n", "'spark'"),
        ("threads_per_process: 2\n", "executor"),
        ("- 1\n", "should be a valid dictionary"),
        ("executor: [", "is not YAML"),
    ],
)
def test_a_wrong_file_is_told_in_one_line(tmp_path: Path, text: str, told: str) -> None:
    path = tmp_path / "mine.yaml"
    path.write_text(text)
    with pytest.raises(BadInputError) as caught:
        read_profile(path)
    assert told in str(caught.value)
    assert "mine.yaml" in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_cluster_is_one_of_three(tmp_path: Path) -> None:
    path = tmp_path / "two.yaml"
    local = {"workers": 1, "memory_per_worker": "1GB"}
    settings = {"executor": "dask", "tasks_per_worker": 2, "retries": 3, "start_seconds": 60.0}
    path.write_text(yaml.safe_dump(settings | {"cluster": {"local": local, "existing": {"address": "tcp://a:1"}}}))
    with pytest.raises(BadInputError, match="give exactly one of local, existing, slurm"):
        read_profile(path)


@pytest.mark.parametrize("name", ["laptpo", "cluster.yaml", "/no/such/file.yaml"])
def test_an_unknown_profile_is_told(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, name)
    with pytest.raises(BadInputError, match=name):
        current_profile()
