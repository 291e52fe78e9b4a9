"""Tasks on a real Dask cluster of two processes give what one process gives, whatever becomes of the workers."""

import itertools
import os
import resource
import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
import pytest
from distributed import LocalCluster

from perf_assets.core.errors import ClusterError
from perf_assets.infra import clusters
from perf_assets.infra.fanout import side_by_side
from perf_assets.infra.profile import VARIABLE
from perf_assets.infra.resume import Rows
from perf_assets.readers.bundle import read_bundle
from perf_assets.scheduling.experiment import Experiment
from perf_assets.scheduling.simulate import Machine
from perf_assets.storage.checkpoints import Checkpoints
from perf_assets.storage.lake import Lake, LandedBundle
from perf_assets.workflows.landing.ingest import Prepared, ingest_machine, read_ahead
from tests.defs.conftest import land_perf_stat, spoil
from tests.infra.tasks import LOCAL, drawn, failing, killing, nested, new_pages, noted, write_profile
from tests.models.fleets import fleet as small_fleet
from tests.scheduling.test_fleet_jobs import PROBLEMS
from tests.scheduling.traces import drawn_trace

pytestmark = pytest.mark.slow

if TYPE_CHECKING:
    from perf_assets.features.samples import PairedSamples


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The profile of a cluster that stays for all tests here."""
    yield write_profile(tmp_path_factory.mktemp("profile"), {"local": LOCAL})
    clusters.close_clusters()


@pytest.fixture
def on_cluster(cluster: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, str(cluster))
    monkeypatch.delenv("PERF_ASSETS_THREADS", raising=False)


def here(monkeypatch: pytest.MonkeyPatch) -> None:
    """From now on in this process alone."""
    monkeypatch.setenv(VARIABLE, "laptop")
    monkeypatch.setenv("PERF_ASSETS_THREADS", "1")


@pytest.mark.usefixtures("on_cluster")
def test_workers_use_freed_memory_again() -> None:
    """As this process does; Dask's setting made every array of new pages."""
    size, count = 2**17, 200
    ((_, pages),) = side_by_side(new_pages, size, [count])
    assert pages < 0.2 * count * size * np.dtype(float).itemsize / resource.getpagesize()


@pytest.mark.usefixtures("on_cluster")
def test_tasks_run_on_both_workers_with_one_thread_each(monkeypatch: pytest.MonkeyPatch) -> None:
    found = dict(side_by_side(drawn, 2.0, range(20)))
    here(monkeypatch)
    same = dict(side_by_side(drawn, 2.0, range(20)))
    assert {seed: value for seed, (value, *_) in found.items()} == {seed: value for seed, (value, *_) in same.items()}
    assert len({process for _, process, _ in found.values()} - {os.getpid()}) == 2
    assert {budget for *_, budget in found.values()} == {1}


@pytest.mark.usefixtures("on_cluster")
def test_few_tasks_are_submitted_at_once_and_none_after_the_caller_stopped(tmp_path: Path) -> None:
    tasks = side_by_side(noted, tmp_path, range(100))
    first = list(itertools.islice(tasks, 3))
    assert len(list(tmp_path.iterdir())) <= 3 + 2 * 2
    tasks.close()  # type: ignore[attr-defined]
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
    from perf_assets.models.target.matrix import matrix, pairs

    todo = pairs(fleet, 1)[:3]

    def scored() -> pd.DataFrame:
        found = dict(matrix(fleet, todo))
        return pd.concat([found[pair] for pair in todo], ignore_index=True)

    far = scored()
    here(monkeypatch)
    pd.testing.assert_frame_equal(far, scored(), check_exact=True)


class Counting(Checkpoints):
    """Results of an interrupted run, and how many were made since."""

    fitted = 0

    def put(self, task: str, rows: Rows) -> None:
        self.fitted += 1
        super().put(task, rows)


@pytest.mark.usefixtures("on_cluster")
def test_folds_go_on_after_an_interruption_with_the_same_scores(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    from perf_assets.models.source import experiments

    samples, lines = small_fleet(rows=6), list[str]()
    few = {"machine_descriptions": ("raw_xgboost", "benchmark_mean")}
    chosen = {"loao": few, "lomo": few}

    def interrupt(line: str) -> None:
        lines.append(line)
        if len(lines) == 3:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        experiments.run_experiments(samples, 1, interrupt, Checkpoints(lake, "folds", samples.digest), chosen)
    done_before = len(list((lake.root / "unfinished").rglob("*.parquet")))
    assert done_before == 3
    again: list[str] = []
    # In this process, and without what was kept: a fold that was fitted again would show.
    here(monkeypatch)
    whole = experiments.run_experiments(samples, 1, again.append, experiments=chosen)
    kept = Counting(lake, "folds", samples.digest)
    far = experiments.run_experiments(samples, 1, again.append, kept, chosen)
    assert kept.fitted == len(again) / 2 - done_before
    pd.testing.assert_frame_equal(far, whole, check_exact=True)


@pytest.mark.usefixtures("on_cluster")
def test_bundles_read_by_workers_make_the_same_record(lake: Lake, tmp_path: Path) -> None:
    for number in range(120):
        landed = land_perf_stat(lake, "quartz", f"run-{number:03d}", 1000 + number - (number == 70))
        if number == 50:
            spoil(landed)
    other = Lake(tmp_path / "other")
    shutil.copytree(lake.root, other.root)
    given: list[bool] = []

    def noted_ahead(bundles: Sequence[LandedBundle]) -> Iterator[Prepared | None]:
        for prepared in read_ahead(bundles):
            given.append(prepared is not None)
            yield prepared

    near = ingest_machine(lake, "quartz", read_bundle)
    far = ingest_machine(other, "quartz", read_bundle, read_ahead=noted_ahead)
    assert near == far
    assert (far.ingested_count, far.duplicate_count, far.quarantined_count) == (118, 1, 1)
    assert given == [number != 50 for number in range(120)]
    assert contents(lake.record) == contents(other.record)


def contents(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.mark.usefixtures("on_cluster")
def test_a_sweep_of_schedules_is_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    experiment = Experiment(drawn_trace(200, 8, 1), PROBLEMS, Machine("box", 8), 0)
    far = experiment.rows([0.7, 1.0], 2, lambda _: None)
    here(monkeypatch)
    assert far == experiment.rows([0.7, 1.0], 2, lambda _: None)


def test_an_existing_scheduler_is_used_and_a_lost_one_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    started = {"n_workers": 1, "host": "127.0.0.1", "dashboard_address": None}
    with LocalCluster(threads_per_worker=1, **started) as elsewhere:
        address = elsewhere.scheduler_address
        monkeypatch.setenv(VARIABLE, str(write_profile(tmp_path, {"existing": {"address": address}})))
        assert dict(side_by_side(noted, tmp_path, [2, 3])) == {2: 4, 3: 9}
        tasks = side_by_side(noted, tmp_path, range(50))
        next(tasks)
        elsewhere.close()
        with pytest.raises(ClusterError, match="the Dask scheduler is gone"):
            list(tasks)
        clusters.close_clusters()
    other = tmp_path / "other"
    other.mkdir()
    gone = {"address": address, "connect_seconds": 0.5}
    monkeypatch.setenv(VARIABLE, str(write_profile(other, {"existing": gone})))
    with pytest.raises(ClusterError, match=f"no Dask scheduler answers at {address}"):
        list(side_by_side(noted, tmp_path, [2]))
