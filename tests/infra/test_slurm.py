"""Tasks in jobs of a real Slurm, over encrypted connections."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from perf_assets.core.errors import ClusterError
from perf_assets.infra import clusters
from perf_assets.infra.fanout import side_by_side
from perf_assets.infra.profile import VARIABLE
from tests.infra.slurm import QUEUE, asked, missing_programs, slurm
from tests.infra.tasks import drawn, in_job, write_profile

PROJECT = Path(__file__).resolve().parents[2]
pytestmark = [
    pytest.mark.integration,
    pytest.mark.skipif(bool(missing_programs()), reason=f"not installed (slurm-wlm, munge): {missing_programs()}"),
]


@pytest.fixture(scope="module")
def queue(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    with slurm(tmp_path_factory.mktemp("slurm")) as environment, pytest.MonkeyPatch.context() as patch:
        for name, value in environment.items():
            patch.setenv(name, value)
        yield environment
        clusters.close_clusters()


def settings(folder: Path, queue: str) -> dict[str, object]:
    return {
        "queue": queue,
        "jobs": 2,
        "cores": 1,
        "memory": "1GB",
        "walltime": "00:10:00",
        "interface": "lo",
        "log_directory": str(folder),
        "shared_directory": str(folder),
        "prologue": [f"export PYTHONPATH={PROJECT}", "export MADE_BY=prologue"],
    }


def test_jobs_do_the_tasks_and_end(queue: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, str(write_profile(tmp_path, {"slurm": settings(tmp_path, QUEUE)})))
    jobs, values, killed = set(), {}, ""
    for number, (value, job, made_by) in side_by_side(in_job, 2.0, range(40)):
        jobs.add(job)
        values[number] = value
        assert made_by == "prologue"
        if len(jobs) == 2 and not killed:
            killed = job
            asked("scancel", "--signal=KILL", "--full", job, environment=queue)
    assert values == {number: drawn(2.0, number)[0] for number in range(40)}
    assert len(jobs) == 2
    clusters.close_clusters()
    remaining = asked("squeue", "-h", "-t", "RUNNING,PENDING", "-o", "%i", environment=queue)
    assert remaining == "", remaining


@pytest.mark.usefixtures("queue")
def test_a_queue_that_is_not_there_is_told_in_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(
        VARIABLE, str(write_profile(tmp_path, {"slurm": settings(tmp_path, "nowhere")}, start_seconds=5.0))
    )
    with pytest.raises(ClusterError, match=r"Slurm refuses jobs of workers: .*nowhere"):
        list(side_by_side(drawn, 2.0, [1]))
