"""Stand-ins for the tools that get_started.md runs on the machine: each writes what the real tool writes.

The files are made beforehand, by the simulation's writers of genuine formats; a stand-in copies what it is asked for.
"""

import os
import shutil
import subprocess
from dataclasses import replace
from pathlib import Path

from perf_assets.demo.fleet_machines import load_machines
from perf_assets.demo.rajaperf import benchmark_runs
from perf_assets.demo.writers.rajaperf_2026 import write_rajaperf_2026
from tests.docs.newbox import TWIN, write_files
from tests.docs.pages import commands

PAGE = "docs/get_started.md"
MEASURED = ("rajaperf_output", "hpctoolkit-sw4lite-database", "papi_hl_output", "perf.csv")
"""What the tools write there."""
_NOT_HERE = ("perf-assets", "python3")
"""The script that measures by itself, which tests/workflows/test_measure.py runs."""
_VALUE = 'value() { name=$1; shift; while [ $# -gt 0 ]; do [ "$1" = "$name" ] && { echo "$2"; return; }; shift; done; }'
_PROGRAMS = {
    # Of --variants all words up to the next option.
    "raja-perf.exe": """
        variants=$(echo "$*" | sed 's/.*--variants \\([^-]*\\) --.*/\\1/' | tr ' ' '+')
        out=$(value --outdir "$@"); mkdir -p "$out"
        cp "$MADE/rajaperf/$(value --size "$@")-$OMP_NUM_THREADS-$variants/"* "$out" """,
    "mpirun": 'shift 2; exec "$@"',
    "hpcrun": 'mkdir -p "$(value -o "$@")"',
    "hpcprof": """
        out=$(value -o "$@"); mkdir -p "$(dirname "$out")"
        for last; do :; done; [ -d "$last" ] && cp -r "$MADE/hpctoolkit-sw4lite-database/$(basename "$out")" "$out" """,
    "TestDfft": '[ -z "$PAPI_EVENTS" ] || cp -r "$MADE/papi_hl_output" .',
    "perf": 'cp "$MADE/perf.csv" "$(value -o "$@")"',
}


def measure(folder: Path, scratch: Path) -> None:
    """Run in a folder what the page says for the machine, line by line, as a shell does."""
    made, programs = scratch / "made", scratch / "programs"
    made.mkdir(parents=True)
    programs.mkdir()
    write_files(made)
    _make_benchmark(made / "rajaperf")
    for name, text in _PROGRAMS.items():
        for place in (programs, folder):
            (place / name).write_text(f"#!/bin/sh\nset -e\n{_VALUE}\n{text}\n")
            (place / name).chmod(0o755)
    environment = {**os.environ, "MADE": str(made), "PATH": f"{programs}{os.pathsep}{os.environ['PATH']}"}
    for command in commands(PAGE):
        if command.info == "machine" and command.words[0] not in _NOT_HERE:
            done = subprocess.run(
                ["sh", "-e", "-c", command.text],
                cwd=folder,
                env=environment,
                capture_output=True,
                text=True,
                check=False,
            )
            assert done.returncode == 0, f"{command.place}: {command.text}\n{done.stderr}"
    for name in _PROGRAMS:
        (folder / name).unlink()


def without_measurements(folder: Path) -> None:
    """Remove what tools of the machine wrote."""
    for name in MEASURED:
        path = folder / name
        shutil.rmtree(path) if path.is_dir() else path.unlink()


def _make_benchmark(folder: Path) -> None:
    """What RAJAPerf writes, by size, threads and variants; how many threads there were is in no file."""
    spec = load_machines()[TWIN]
    by_threads = {1: ("Base_Seq", "RAJA_Seq"), spec.cpu.cores: ("Base_OpenMP", "RAJA_OpenMP")}
    for run in benchmark_runs(spec, 1.0, 1):
        variants = by_threads.get(run.threads)
        if variants is not None:
            place = folder / f"{run.requested_size}-{run.threads}-{'+'.join(variants)}"
            place.mkdir(parents=True)
            kernels = tuple(kernel for kernel in run.kernels if kernel.variant in variants)
            write_rajaperf_2026(place, replace(run, kernels=kernels))
            (place / "cmd.txt").unlink()
