"""The script that measures on a node, run for real: perf, Cachegrind and time, with the oldest Python it promises."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from perf_assets.cli.main import cli
from perf_assets.core.catalogue import load_catalogue
from perf_assets.core.manifest import parse_manifest
from perf_assets.readers.bundle import read_bundle
from perf_assets.storage.lake import LandedBundle
from perf_assets.storage.landing import verified_manifest
from perf_assets.workflows.event_sets import perf_events

PROGRAM = [sys.executable, "-c", "sum(range(100000))"]


@pytest.fixture
def script(tmp_path: Path) -> Path:
    done = CliRunner().invoke(cli, ["measure", "--script", "--microarchitecture", "zen3"])
    assert done.exit_code == 0, done.output
    file = tmp_path / "measure.py"
    file.write_text(done.stdout)
    return file


def oldest_python() -> str:
    """Python 3.8, where pyenv has it."""
    found = sorted(Path("/root/.pyenv/versions").glob("3.8.*/bin/python"))
    return str(found[0]) if found else sys.executable


def run(script: Path, *arguments: str | Path) -> "subprocess.CompletedProcess[str]":
    command = [oldest_python(), str(script), *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, check=False, cwd=script.parent)


def landed(printed: str) -> tuple[list[dict[str, object]], list[dict[str, object]]]:
    """Runs and counters of the bundle that was left, as they would land."""
    bundle = LandedBundle(Path(printed.strip()))
    manifest = verified_manifest(bundle, "newbox")
    rows = read_bundle(bundle.directory, manifest, bundle.digest, bundle.name).rows
    return list(rows["raw_profiles__runs"]), list(rows["raw_profiles__counters"])


@pytest.mark.skipif(shutil.which("perf") is None, reason="perf is not installed")
def test_perf_counts_what_this_machine_can(script: Path, tmp_path: Path) -> None:
    options = ["--machine", "newbox", "--out", tmp_path / "out", "--tool", "perf", "--repeats", "2"]
    done = run(script, *options, "--", *PROGRAM)
    assert done.returncode == 0, done.stderr
    runs, counters = landed(done.stdout)
    assert len(runs) >= 2
    assert all(row["wall_seconds"] and row["app"] == Path(sys.executable).name for row in runs)
    assert {"task-clock", "page-faults"} <= {str(row["counter"]) for row in counters}


@pytest.mark.skipif(shutil.which("valgrind") is None, reason="valgrind is not installed")
def test_cachegrind_stands_in_for_counters(script: Path, tmp_path: Path) -> None:
    options = ["--machine", "newbox", "--out", tmp_path / "out", "--tool", "cachegrind", "--app", "true"]
    done = run(script, *options, "--", shutil.which("true") or "true")
    assert done.returncode == 0, done.stderr
    runs, counters = landed(done.stdout)
    assert [row["is_simulated"] for row in runs] == [True]
    assert {"Ir", "Dr", "Bc"} <= {str(row["counter"]) for row in counters}


def test_time_alone_is_a_table(script: Path, tmp_path: Path) -> None:
    done = run(script, "--machine", "newbox", "--out", tmp_path, "--tool", "time", "--repeats", "3", "--", *PROGRAM)
    runs, _ = landed(done.stdout)
    assert len(runs) == 3
    assert all(isinstance(row["wall_seconds"], float) for row in runs)


def test_rajaperf_runs_below_and_above_the_caches_with_several_threads(script: Path, tmp_path: Path) -> None:
    program = tmp_path / "raja-perf.exe"
    program.write_text('#!/bin/sh\nwhile [ "$1" != --outdir ]; do shift; done\necho "$OMP_NUM_THREADS" > "$2/ran"\n')
    program.chmod(0o755)
    done = run(script, "--machine", "newbox", "--out", tmp_path / "out", "--rajaperf", program)
    assert done.returncode == 0, done.stderr
    folder = Path(done.stdout.strip())
    assert parse_manifest((folder / "manifest.json").read_bytes()).kind == "rajaperf"
    commands = [file.read_text() for file in folder.glob("*/cmd.txt")]
    assert len(commands) == 2 * len({1, max(len(os.sched_getaffinity(0)) // 2, 1), len(os.sched_getaffinity(0))})
    assert len({command.partition("--size ")[2].split()[0] for command in commands}) == 2
    assert str(tmp_path) not in "".join(commands)


def test_nothing_is_left_of_a_command_that_fails(script: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    done = run(script, "--machine", "newbox", "--out", out, "--tool", "time", "--", sys.executable, "-c", "exit(3)")
    assert (done.returncode, done.stdout) == (2, "")
    assert "ended with code 3: nothing was kept" in done.stderr
    assert list(out.iterdir()) == []
    for wrong in (["--", "nowhere-to-be-found"], [], ["--repeats", "0", "--", "true"]):
        done = run(script, "--machine", "newbox", "--out", out, "--tool", "time", *wrong)
        assert done.returncode == 2
        assert len(done.stderr.splitlines()) == 1


@pytest.mark.parametrize("system", ["slurm", "flux"])
def test_a_job_script_does_the_same(script: Path, tmp_path: Path, system: str) -> None:
    options = ["--machine", "newbox", "--out", tmp_path / "out", "--tool", "time", f"--{system}", "2"]
    done = run(script, *options, "--", *PROGRAM)
    job = tmp_path / "job.sh"
    job.write_text(done.stdout)
    assert "--nodes=2" in done.stdout
    assert f"--{system}" not in done.stdout
    ran = subprocess.run(["sh", str(job)], capture_output=True, text=True, check=False, cwd=tmp_path)
    assert ran.returncode == 0, ran.stderr
    assert json.loads((Path(ran.stdout.strip()) / "manifest.json").read_text())["machine"] == "newbox"


def test_events_are_those_of_the_catalogue() -> None:
    catalogue = load_catalogue()
    zen = perf_events(catalogue, "zen3")
    assert {"instructions", "branches", "ex_ret_instr", "stalled-cycles-backend"} <= set(zen)
    intel = perf_events(catalogue, "sapphirerapids")
    assert {"mem_inst_retired.all_loads", "fp_arith_inst_retired.scalar_double"} <= set(intel)
    assert "ex_ret_instr" not in intel
    for events in (zen, intel):
        assert not [event for event in events if event.isupper() or "__" in event or event.startswith("PAPI")]
        resolved = {formula.quantity for formula in catalogue.resolve(events, None)}
        assert {"instructions", "branches", "loads", "stores", "l1_load_misses", "memory_stall"} <= resolved
