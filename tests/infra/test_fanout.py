"""Work in several processes gives what work in one gives."""

import os
from pathlib import Path

import pytest

from perf_assets.core.errors import ClusterError
from perf_assets.features.samples import PairedSamples
from perf_assets.infra.fanout import side_by_side
from perf_assets.infra.threads import VARIABLE, thread_budget
from tests.infra.tasks import killing
from tests.models.fleets import fleet


def digest_and_process(samples: PairedSamples, piece: int) -> tuple[str, int, int, int]:
    if piece < 0:
        raise ValueError("no such piece")
    return samples.digest, piece * piece, thread_budget(), os.getpid()


def test_a_budget_of_one_stays_in_this_process(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, "1")
    samples = fleet(rows=3)
    found = list(side_by_side(digest_and_process, samples, [1, 2, 3]))
    assert found == [(n, (samples.digest, n * n, 1, os.getpid())) for n in (1, 2, 3)]


@pytest.mark.slow
def test_a_budget_of_two_is_two_processes_of_one_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, "2")
    samples = fleet(rows=3)
    found = dict(side_by_side(digest_and_process, samples, [1, 2, 3]))
    assert {piece: result[:3] for piece, result in found.items()} == {n: (samples.digest, n * n, 1) for n in (1, 2, 3)}
    assert os.getpid() not in {result[3] for result in found.values()}
    assert os.environ[VARIABLE] == "2"


@pytest.mark.slow
def test_an_error_of_a_worker_reaches_the_caller(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, "2")
    with pytest.raises(ValueError, match="no such piece"):
        list(side_by_side(digest_and_process, fleet(rows=3), [-1, -2, -3, 4]))


@pytest.mark.slow
def test_what_a_killed_process_was_doing_is_done_by_another(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv(VARIABLE, "2")
    assert dict(side_by_side(killing, tmp_path, range(5))) == {n: n * n for n in range(5)}
    assert (tmp_path / "died").is_file()
    with pytest.raises(ClusterError, match="processes died 4 times"):
        list(side_by_side(killing, tmp_path, [12, 13]))
