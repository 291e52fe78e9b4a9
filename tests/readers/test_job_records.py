"""Job records of Slurm and Flux as runs."""

import csv
import json
from pathlib import Path

import pytest

from perf_assets.core.errors import UnreadableFileError
from perf_assets.core.manifest import Manifest
from perf_assets.readers.bundle import read_bundle
from perf_assets.readers.read import read

SACCT = """\
JobID|JobName|User|Cluster|Partition|State|Elapsed|NNodes|NTasks|AllocTRES|ConsumedEnergyRaw|WorkDir
101|kripke|ted|ruby|pbatch|COMPLETED|1-02:03:04|4||cpu=224,gres/gpu=8,node=4|123456|/home/ted
101.batch|batch|||||1-02:03:04|1|1|||
101.0|kripke.exe|||||1-02:03:00|4|224|||
102|amg|ted|ruby|pdebug|CANCELLED by 4711|00:10:00|1|||0|/home/ted
103|amg|ted|ruby|pdebug|TIMEOUT|01:00:00|1|||0|/home/ted
104|laghos|ted|ruby|pdebug|COMPLETED|05:30|2|||0|/home/ted
105|laghos|ted|ruby|pdebug|RUNNING|00:00:05|2||||/home/ted
"""
FLUX = [
    {"id": "f1", "name": "app", "ntasks": 8, "nnodes": 2, "t_submit": 1.0, "t_run": 10.0, "t_cleanup": 40.5,
     "result": "COMPLETED", "username": "ted", "queue": "pbatch"},
    {"id": "f2", "name": "app", "t_submit": 1.0, "t_run": 10.0, "t_cleanup": 11.0, "result": "CANCELED"},
]  # fmt: skip


def test_completed_jobs_of_slurm_are_runs(tmp_path: Path) -> None:
    file = tmp_path / "jobs.txt"
    file.write_text(SACCT)
    reading = read(file)
    assert reading.format == "jobs-sacct"
    first, second = reading.profiles
    assert (first.run, first.labels["app"], first.hosts, first.ranks) == ("jobs.txt#101", "kripke", 4, 224)
    assert (first.wall_seconds, first.labels["gpus"]) == (93784.0, "8")
    assert first.metrics["energy (J)"].sum == 123456
    assert (second.wall_seconds, second.metrics, "ranks" in second.labels) == (330.0, {}, False)
    assert "ted" not in repr(reading)


def test_they_become_rows_of_the_record(tmp_path: Path) -> None:
    file = tmp_path / "jobs.txt"
    file.write_text(SACCT)
    facts = {"machine": "ruby", "kind": "samples", "target": "wall_seconds", "collected_at": "2026-11-16T12:00:00Z"}
    entry = {"path": "jobs.txt", "size": len(SACCT), "sha256": "0" * 64}
    manifest = Manifest.model_validate({**facts, "files": [entry]})
    rows = read_bundle(tmp_path, manifest, "d", "b").rows
    runs = list(rows["raw_profiles__runs"])
    assert [(row["app"], row["nodes"], row["ranks"], row["wall_seconds"], row["gpus"]) for row in runs] == [
        ("kripke", 4, 224, 93784.0, 8),
        ("laghos", 2, 1, 330.0, 0),
    ]
    assert [row["counter"] for row in rows["raw_profiles__counters"]] == ["energy (J)"]


def test_accounting_in_csv_is_read_as_runs(shared_data: Path) -> None:
    """1,000 jobs of NREL's Eagle; who ran them, where, and how they were submitted is not kept."""
    folder = shared_data / "jobs"
    if not folder.is_dir():
        pytest.skip(f"no job records at {folder}")
    reading = read(folder)
    with (folder / "eagle_1000_jobs.csv").open(newline="") as stream:
        rows = [row for row in csv.DictReader(stream) if row["state"] == "COMPLETED" and float(row["run_time"]) > 0]
    assert reading.format == "jobs-csv"
    assert len(reading.profiles) == len(rows)
    for profile, row in zip(reading.profiles, rows, strict=True):
        assert (profile.labels["app"], profile.hosts) == (row["name"], int(row["nodes_req"]))
        assert (profile.wall_seconds, profile.labels["gpus"]) == (float(row["run_time"]), row["gpus_req"])
    kept = repr(reading)
    assert not any(words in kept for words in ("user0014", "account0003", "work_dir0", "submit_line0"))


@pytest.mark.parametrize(
    ("rows", "problem"),
    [
        ("1,a,COMPLETED", "has 3 cells instead of 4 in row 2"),
        ("1,a,CANCELLED,3", "no job that is completed, with a time .1 CANCELLED"),
        ('1,"a,COMPLETED,3', "is no proper CSV"),
        ("1,a,COMPLETED,long", "run_time|ElapsedRaw"),
    ],
)
def test_accounting_that_cannot_be(tmp_path: Path, rows: str, problem: str) -> None:
    file = tmp_path / "jobs.csv"
    file.write_text(f"job_id,name,state,run_time\n{rows}\n")
    with pytest.raises(UnreadableFileError, match=problem):
        read(file)


@pytest.mark.parametrize("is_lines", [True, False])
def test_completed_jobs_of_flux_are_runs(tmp_path: Path, is_lines: bool) -> None:
    file = tmp_path / "jobs.json"
    file.write_text("\n".join(map(json.dumps, FLUX)) if is_lines else json.dumps({"jobs": FLUX}))
    reading = read(file)
    (job,) = reading.profiles
    assert (reading.format, job.run, job.wall_seconds, job.hosts, job.ranks) == (
        "jobs-flux",
        "jobs.json#f1",
        30.5,
        2,
        8,
    )
    assert "ted" not in repr(reading)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (SACCT.replace("COMPLETED", "FAILED"), "no job that is completed, with a time .2 FAILED"),
        (SACCT[:-20], "fields instead of 12 in line 8"),
        (SACCT + SACCT.splitlines()[1] + "\n", "has the job 101 twice"),
        (json.dumps({**FLUX[0], "t_cleanup": 5.0}), "ends before it starts"),
        (json.dumps(FLUX[0])[:-4], "not valid JSON"),
    ],
)
def test_bad_records_are_refused(tmp_path: Path, text: str, message: str) -> None:
    file = tmp_path / "jobs"
    file.write_text(text)
    with pytest.raises(UnreadableFileError, match=message):
        read(file)
