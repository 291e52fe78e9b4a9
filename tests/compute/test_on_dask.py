"""Tasks on a real Dask cluster of two processes give what one process gives, whatever becomes of the workers."""

import itertools
import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pandas as pd
import pytest
from distributed import LocalCluster

from perf_assets.compute import clusters
from perf_assets.compute.profile import VARIABLE
from perf_assets.compute.side_by_side import side_by_side
from perf_assets.core.errors import ClusterError
from tests.compute.tasks import LOCAL, drawn, failing, killing, nested, noted, write_profile

if TYPE_CHECKING:
    from perf_assets.features.paired import PairedSamples


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The profile of a cluster that stays for all tests here."""
    yield write_profile(tmp_path_factory.mktemp("profile"), {"local": LOCAL})
    clusters.close_clusters()


@pytest.fixture
def on_cluster(cluster: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, str(cluster))
    monkeypatch.delenv("PERF_ASSETS_THREADS", raising=False)


@pytest.mark.usefixtures("on_cluster")
def test_tasks_run_on_both_workers_with_one_thread_each(monkeypatch: pytest.MonkeyPatch) -> None:
    found = dict(side_by_side(drawn, 2.0, range(20)))
    monkeypatch.setenv(VARIABLE, "laptop")
    monkeypatch.setenv("PERF_ASSETS_THREADS", "1")
    here = dict(side_by_side(drawn, 2.0, range(20)))
    assert {seed: value for seed, (value, *_) in found.items()} == {seed: value for seed, (value, *_) in here.items()}
    assert len({process for _, process, _ in found.values()} - {os.getpid()}) == 2
    assert {budget for *_, budget in found.values()} == {1}


@pytest.mark.usefixtures("on_cluster")
def test_few_tasks_are_submitted_at_once_and_none_after_the_caller_stopped(tmp_path: Path) -> None:
    tasks = side_by_side(noted, tmp_path, range(100))
    first = list(itertools.islice(tasks, 3))
    assert len(list(tmp_path.iterdir())) <= 3 + 2 * 2
    tasks.close()
    rest = [number for number in range(100) if number not in dict(first)]
    every = dict([*first, *side_by_side(noted, tmp_path, rest)])
    assert every == {number: number * number for number in range(100)}
    assert len(list(tmp_path.iterdir())) <= 100 + 2 * 2


@pytest.mark.usefixtures("on_cluster")
def test_a_task_whose_worker_is_killed_runs_again(tmp_path: Path) -> None:
    assert dict(side_by_side(killing, tmp_path, range(8))) == {number: number * number for number in range(8)}
    assert (tmp_path / "died").exists()


@pytest.mark.usefixtures("on_cluster")
def test_a_task_that_kills_every_worker_is_given_up(tmp_path: Path) -> None:
    with pytest.raises(ClusterError, match="workers died 3 times while doing 13"):
        list(side_by_side(killing, tmp_path, [13]))


@pytest.mark.usefixtures("on_cluster")
def test_an_error_of_a_task_is_raised_with_its_piece_and_not_tried_again(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="two is refused") as caught:
        list(side_by_side(failing, tmp_path, [1, 2, 3]))
    assert caught.value.__notes__ == ["while doing 2"]
    assert len(list(tmp_path.glob("tried-*"))) == 1


@pytest.mark.usefixtures("on_cluster")
def test_tasks_of_a_task_stay_in_its_process() -> None:
    for _, inner in side_by_side(nested, 1.0, [2, 3]):
        assert len({process for _, (_, process, _) in inner}) == 1


@pytest.mark.usefixtures("on_cluster")
def test_the_transfer_matrix_is_the_same(fleet: "PairedSamples", monkeypatch: pytest.MonkeyPatch) -> None:
    from perf_assets.models.transfer_matrix import matrix, pairs

    todo = pairs(fleet, 1)[:3]

    def scored() -> pd.DataFrame:
        found = sorted(matrix(fleet, todo), key=lambda pair_and_rows: todo.index(pair_and_rows[0]))
        return pd.concat([rows for _, rows in found], ignore_index=True)

    far = scored()
    monkeypatch.setenv(VARIABLE, "laptop")
    monkeypatch.setenv("PERF_ASSETS_THREADS", "1")
    pd.testing.assert_frame_equal(far, scored(), check_exact=True)


def test_an_existing_scheduler_is_used_and_a_missing_one_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    started = {"n_workers": 1, "host": "127.0.0.1", "dashboard_address": None}
    with LocalCluster(threads_per_worker=1, **started) as elsewhere:
        address = elsewhere.scheduler_address
        monkeypatch.setenv(VARIABLE, str(write_profile(tmp_path, {"existing": {"address": address}})))
        assert dict(side_by_side(noted, tmp_path, [2, 3])) == {2: 4, 3: 9}
        clusters.close_clusters()
    other = tmp_path / "other"
    other.mkdir()
    monkeypatch.setattr(clusters, "_CONNECT_SECONDS", 0.5)
    monkeypatch.setenv(VARIABLE, str(write_profile(other, {"existing": {"address": address}})))
    with pytest.raises(ClusterError, match=f"no Dask scheduler answers at {address}"):
        list(side_by_side(noted, tmp_path, [2]))
