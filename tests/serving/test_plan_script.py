"""A plan as a script: run for real, its bundles land; names and arguments stay words."""

import os
import subprocess
from pathlib import Path

import pytest

from perf_assets.cli.commands.answers.plan import plan_script
from perf_assets.core.catalogue import load_catalogue
from perf_assets.core.manifest import Manifest, parse_manifest
from perf_assets.serving.answers import PlannedRun
from perf_assets.workflows.landing.event_sets import event_sets, measure_script


def planned(rank: int, app: str, args: str, ranks: int = 1, threads: int = 1, nodes: int = 1) -> PlannedRun:
    return PlannedRun("newbox", rank, f"{app} {args}", app, 0.2, 0.1, True, 8, 0.25, args, ranks, threads, nodes)


def text_of(runs: list[PlannedRun], system: str | None = None) -> str:
    return plan_script("newbox", runs, measure_script(event_sets(load_catalogue(), None)), system)


def run(text: str, folder: Path, **variables: str) -> "subprocess.CompletedProcess[str]":
    script = folder / "plan.sh"
    script.write_text(text)
    return subprocess.run(
        ["sh", str(script)],
        capture_output=True,
        text=True,
        check=False,
        cwd=folder,
        env={**os.environ, "PATH": f"{folder}:{os.environ['PATH']}", **variables},
    )


@pytest.fixture
def launcher(tmp_path: Path) -> Path:
    """An mpirun that starts the program on the spot, as often as it is told."""
    program = tmp_path / "mpirun"
    program.write_text('#!/bin/sh\nn=$2; shift 2\nwhile [ $n -gt 0 ]; do "$@" || exit 1; n=$((n - 1)); done\n')
    program.chmod(0o755)
    return program


@pytest.mark.usefixtures("launcher")
def test_what_the_script_leaves_is_what_was_planned(tmp_path: Path) -> None:
    hostile = "$(touch hacked) `touch hacked` 'a b' ; touch hacked"
    runs = [planned(1, "Kripke", "--groups 64", ranks=2, threads=2), planned(2, "Laghos v3", hostile)]
    text = text_of(runs)
    assert "# 2 runs that say most about newbox: 0.5 node-hours in all" in text
    assert "expected error from 20.0% to 10.0%, 0.25 node-hours" in text
    done = run(text, tmp_path)
    assert done.returncode == 2
    assert done.stderr == "no program for Kripke: set program_kripke\n"
    done = run(text, tmp_path, program_kripke="true", program_laghos_v3="echo", out="bundles of mine")
    assert done.returncode == 0, done.stderr
    assert "perf-assets land" in done.stderr
    found: dict[str, Manifest] = {}
    for file in (tmp_path / "bundles of mine").glob("*/manifest.json"):
        manifest = parse_manifest(file.read_bytes())
        found[str(manifest.app)] = manifest
    kripke = found["Kripke"]
    assert (kripke.machine, kripke.args, kripke.ranks, kripke.threads) == ("newbox", "--groups 64", 2, 2)
    assert found["Laghos v3"].args == "$(touch hacked) `touch hacked` a b ; touch hacked"
    assert not (tmp_path / "hacked").exists()


@pytest.mark.usefixtures("launcher")
def test_a_run_that_fails_does_not_keep_the_others_from_running(tmp_path: Path) -> None:
    done = run(
        text_of([planned(1, "bad", ""), planned(2, "good", "x")]), tmp_path, program_bad="false", program_good="true"
    )
    assert done.returncode == 1
    assert "ended with code 1: nothing was kept" in done.stderr
    assert len(list((tmp_path / "bundles").iterdir())) == 1


def test_a_job_asks_for_the_most_that_a_run_needs() -> None:
    runs = [planned(1, "A-b", "", ranks=8, threads=4, nodes=2), planned(2, "A_b", '"', ranks=2)]
    text = text_of(runs, "slurm")
    assert text.startswith("#!/bin/sh\n#SBATCH")
    assert "#SBATCH --nodes=2\n#SBATCH --ntasks=8\n" in text
    assert "--launcher 'srun -N 2 -n 8 -c 4'" in text
    assert "program_a_b_1=${program_a_b_1:-A_b}" in text
    assert "flux run -N 1 -n 2 -c 1" in text_of(runs, "flux")
