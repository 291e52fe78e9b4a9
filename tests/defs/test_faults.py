"""Faults inside of a run: it fails with what to do in its first line, and the next run succeeds."""

import subprocess
from collections.abc import Iterator
from pathlib import Path

import dagster as dg
import pytest

from perf_assets.defs.build import build_definitions
from perf_assets.defs.ingest import raw
from perf_assets.defs.resources import LakeResource
from perf_assets.storage.lake import Lake
from perf_assets.storage.warehouse import Warehouse
from tests.defs.conftest import land_perf_stat


def refresh(instance: dg.DagsterInstance, lake: LakeResource) -> tuple[bool, str]:
    """Whether a run succeeded, and the first line of its failure."""
    instance.add_dynamic_partitions("machines", ["quartz"])
    job = build_definitions(lake).resolve_job_def("refresh_machine")
    result = job.execute_in_process(instance=instance, partition_key="quartz", raise_on_error=False)
    for event in result.all_events:
        if event.is_step_failure:
            data = event.step_failure_data
            told = data.user_failure_data.description if data.user_failure_data else data.error.message
            return False, str(told).splitlines()[0]
    return result.success, ""


def runs_count(lake: Lake) -> int:
    return int(Warehouse(lake).frame("SELECT count(*) AS n FROM raw_profiles__runs")["n"].iloc[0])


@pytest.mark.slow
def test_a_reader_that_raises_loses_nothing(
    instance: dg.DagsterInstance, lake: Lake, lake_resource: LakeResource, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(3):
        land_perf_stat(lake, "quartz", f"b{number}", number)
    with monkeypatch.context() as patch:
        patch.setattr(raw, "read_bundle", lambda *arguments: 1 / 0)
        succeeded, told = refresh(instance, lake_resource)
    assert not succeeded
    assert told.startswith("a fault of perf_assets, report it with this run's log (ZeroDivisionError")
    assert refresh(instance, lake_resource) == (True, "")
    assert runs_count(lake) == 3


@pytest.fixture
def small_disk(lake: Lake) -> Iterator[Path]:
    """The record on a file system of 64 KiB."""
    lake.record.mkdir(parents=True)
    command = ["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", str(lake.record)]
    mounted = subprocess.run(command, capture_output=True, text=True, check=False)
    if mounted.returncode:
        pytest.skip(f"cannot mount a small file system here: {mounted.stderr.strip()}")
    yield lake.record
    # Lazily: a reader that is not collected yet may still hold a file of it open.
    subprocess.run(["umount", "--lazy", str(lake.record)], check=True)


@pytest.mark.slow
def test_a_full_disk_is_said_and_repaired_by_the_next_run(
    instance: dg.DagsterInstance, small_disk: Path, lake: Lake, lake_resource: LakeResource
) -> None:
    land_perf_stat(lake, "quartz", "b0", 0)
    filler = small_disk / "filler"
    with pytest.raises(OSError, match="No space"):
        filler.write_bytes(bytes(2**20))
    succeeded, told = refresh(instance, lake_resource)
    assert not succeeded
    assert "is full: free some space" in told
    assert list(small_disk.rglob("*.parquet")) == [], "nothing is half written"
    filler.unlink()
    assert refresh(instance, lake_resource) == (True, "")
    assert runs_count(lake) == 1


@pytest.mark.slow
def test_a_lake_that_cannot_be_locked_is_said(
    instance: dg.DagsterInstance, lake: Lake, lake_resource: LakeResource
) -> None:
    land_perf_stat(lake, "quartz", "b0", 0)
    lake.locks.parent.mkdir(parents=True, exist_ok=True)
    lake.locks.write_text("not a folder")
    succeeded, told = refresh(instance, lake_resource)
    assert not succeeded
    assert "what a landing started is tried again by itself" in told
    lake.locks.unlink()
    assert refresh(instance, lake_resource) == (True, "")
