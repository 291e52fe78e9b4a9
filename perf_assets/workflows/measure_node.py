#!/usr/bin/env python3
"""Measure a command on this node and leave a bundle that 'perf-assets land' takes as it is.

One file without dependencies (Python 3.8 or later): copy it to where the program runs.

    python3 measure.py --machine newbox --out bundles -- ./app -n 100          perf stat, or Cachegrind, or time alone
    python3 measure.py --machine newbox --out bundles --rajaperf ./raja-perf.exe
    python3 measure.py --machine newbox --out bundles --slurm 2 -- ./app       print a job script instead
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import platform
import re
import shlex
import shutil
import subprocess
import sys
import time
from datetime import datetime, timezone
from pathlib import Path

EVENTS = ["instructions", "branches", "branch-misses", "L1-dcache-loads", "L1-dcache-load-misses", "page-faults"]
"""What to count, where this machine can; 'perf-assets measure --script' puts the counter catalogue's here."""
EVENTS_PER_PASS = 4
ALWAYS = ["duration_time"]
SOFTWARE = ["task-clock", "page-faults", "context-switches"]


class MeasureError(Exception):
    """Something that a person can mend: one line."""


def main(arguments: list[str] | None = None) -> int:
    """Run the command line; the exit code."""
    given = parser().parse_args(arguments)
    try:
        if given.slurm or given.flux:
            sys.stdout.write(job_script(given, list(sys.argv if arguments is None else ["measure.py", *arguments])))
        elif given.rajaperf:
            measure_rajaperf(given)
        else:
            measure(given)
    except (MeasureError, OSError) as error:
        sys.stderr.write(f"measure: {error}\n")
        return 2
    return 0


def parser() -> argparse.ArgumentParser:
    """Build the options."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--machine", required=True, help="id of the machine, as perf-assets knows it")
    options.add_argument("--out", required=True, type=Path, help="folder for the bundle")
    options.add_argument("--app", help="application; the program's name if absent")
    options.add_argument("--ranks", type=int, default=int(os.environ.get("SLURM_NTASKS", "1")))
    options.add_argument("--threads", type=int, default=int(os.environ.get("OMP_NUM_THREADS", "1")))
    options.add_argument("--nodes", type=int, default=int(os.environ.get("SLURM_NNODES", "1")))
    options.add_argument("--repeats", type=int, default=1, help="how often each set of counters is measured")
    options.add_argument("--tool", choices=["perf", "cachegrind", "time"], help="the first that works if absent")
    options.add_argument("--rajaperf", help="RAJAPerf's program: run it with sizes and threads that fit this node")
    options.add_argument("--slurm", type=int, metavar="NODES", help="print a job script of Slurm instead")
    options.add_argument("--flux", type=int, metavar="NODES", help="print a job script of Flux instead")
    options.add_argument("command", nargs=argparse.REMAINDER, help="the program with its arguments, after --")
    return options


def measure(given: argparse.Namespace) -> None:
    """Run the command as often as its counters need, and write the bundle."""
    command = given.command[1:] if given.command[:1] == ["--"] else given.command
    if not command:
        raise MeasureError("no command to measure: put it after --")
    if not re.fullmatch(r"[a-z0-9][a-z0-9_-]{0,63}", given.machine):
        raise MeasureError(f"machine id {given.machine!r} is not allowed: use a-z 0-9 _ -")
    if given.ranks < 1 or given.threads < 1 or given.nodes < 1 or given.repeats < 1:
        raise MeasureError("--ranks, --threads, --nodes and --repeats must be 1 or more")
    app = given.app or Path(command[0]).name
    facts: dict[str, object] = {"machine": given.machine, "kind": "profile", "app": app, "args": " ".join(command[1:])}
    facts.update(ranks=given.ranks, threads=given.threads, nodes=given.nodes, tags=environment())
    stamp = datetime.now(timezone.utc)
    folder = given.out / f"{re.sub('[^A-Za-z0-9]+', '_', app)[:60]}-{stamp:%Y%m%dT%H%M%S}-{os.getpid()}"
    folder.mkdir(parents=True)
    try:
        tool = given.tool or first_tool()
        facts.update(
            {"perf": with_perf, "cachegrind": with_cachegrind, "time": with_time}[tool](given, command, folder)
        )
        facts["collected_at"] = f"{stamp:%Y-%m-%dT%H:%M:%SZ}"
        write_manifest(folder, facts)
    except BaseException:
        shutil.rmtree(str(folder), ignore_errors=True)
        raise
    sys.stdout.write(f"{folder}\n")


def first_tool() -> str:
    """The best tool that works here."""
    if shutil.which("perf") and supported(["task-clock"]):
        return "perf"
    return "cachegrind" if shutil.which("valgrind") else "time"


def supported(events: list[str]) -> list[str]:
    """Events of a list that perf can count on this machine."""
    found = []
    for event in events:
        done = subprocess.run(
            ["perf", "stat", "-x,", "-e", event, "true"], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, check=False
        )
        told = done.stderr.decode(errors="replace")
        if done.returncode == 0 and event in told and "<not" not in told:
            found.append(event)
    return found


def with_perf(given: argparse.Namespace, command: list[str], folder: Path) -> dict[str, object]:
    """Count with perf stat, a few events at a time; every pass has the run time."""
    events = supported([event for event in EVENTS if event not in SOFTWARE])
    sets = [events[start : start + EVENTS_PER_PASS] for start in range(0, len(events), EVENTS_PER_PASS)] or [[]]
    sets[0] = sets[0] + supported(SOFTWARE)
    for repeat in range(given.repeats):
        for number, chosen in enumerate(sets):
            place = folder / f"set{number + 1}-{repeat + 1}"
            place.mkdir()
            counted = ",".join(ALWAYS + chosen)
            run(["perf", "stat", "-x,", "-o", str(place / "perf.csv"), "-e", counted, "--", *command])
    return {}


def with_cachegrind(given: argparse.Namespace, command: list[str], folder: Path) -> dict[str, object]:
    """Simulate with Cachegrind, and take the time of the program alone."""
    seconds = min(timed(command) for _ in range(given.repeats))
    output = folder / "cachegrind.out"
    simulator = ["valgrind", "--tool=cachegrind", "--cache-sim=yes", "--branch-sim=yes", "-q"]
    run([*simulator, f"--cachegrind-out-file={output}", *command])
    return {"wall_seconds": seconds}


def with_time(given: argparse.Namespace, command: list[str], folder: Path) -> dict[str, object]:
    """Write a table of run times."""
    rows = ["ranks,threads,nodes,wall_seconds"]
    rows += [f"{given.ranks},{given.threads},{given.nodes},{timed(command)!r}" for _ in range(given.repeats)]
    (folder / "times.csv").write_text("\n".join(rows) + "\n")
    return {"kind": "samples", "target": "wall_seconds"}


def timed(command: list[str]) -> float:
    """Seconds that a command takes."""
    start = time.perf_counter()
    run(command)
    return time.perf_counter() - start


def run(command: list[str]) -> None:
    """Run a command; one that fails has not been measured."""
    try:
        code = subprocess.run(command, check=False, stdout=sys.stderr).returncode
    except FileNotFoundError:
        raise MeasureError(f"{command[0]} is not there") from None
    if code != 0:
        raise MeasureError(f"{shlex.join(command)[:300]} ended with code {code}: nothing was kept")


def environment() -> dict[str, str]:
    """What the run was made with; no user and no host."""
    tags = {"kernel": platform.release(), "processor": platform.machine(), "measured_by": "perf-assets measure"}
    for name in ("LOADEDMODULES", "OMP_PROC_BIND", "OMP_PLACES", "CC", "CXX", "CFLAGS", "CXXFLAGS"):
        value = os.environ.get(name, "")
        if value and value.isprintable() and "/home" not in value:
            tags[name.lower()] = value[:200]
    return tags


def write_manifest(folder: Path, facts: dict[str, object]) -> None:
    """Describe the files; the manifest appears last, and whole."""
    files = []
    for path in sorted(path for path in folder.rglob("*") if path.is_file()):
        data = path.read_bytes()
        digest = hashlib.sha256(data).hexdigest()
        files.append({"path": path.relative_to(folder).as_posix(), "size": len(data), "sha256": digest})
    temporary = folder / ".manifest.tmp"
    temporary.write_text(json.dumps({"version": 1, **facts, "files": files}, indent=1) + "\n")
    temporary.replace(folder / "manifest.json")


def measure_rajaperf(given: argparse.Namespace) -> None:
    """Run RAJAPerf well below and well above the last cache, with one thread, half of the cores, and all."""
    cores = len(os.sched_getaffinity(0))
    folder = given.out / f"rajaperf-{datetime.now(timezone.utc):%Y%m%dT%H%M%S}-{os.getpid()}"
    try:
        for threads in sorted({1, max(cores // 2, 1), cores}):
            for size in sizes():
                place = folder / f"t{threads}_s{size}"
                place.mkdir(parents=True)
                variants = ["Base_Seq", "RAJA_Seq"] if threads == 1 else ["Base_OpenMP", "RAJA_OpenMP"]
                options = ["--variants", *variants, "--size", str(size), "--npasses", "3", "--outdir", str(place)]
                os.environ["OMP_NUM_THREADS"] = str(threads)
                run([given.rajaperf, *options])
                (place / "cmd.txt").write_text(
                    f"OMP_NUM_THREADS={threads} {shlex.join(['raja-perf', *options[:-2]])}\n"
                )
        facts: dict[str, object] = {"machine": given.machine, "kind": "rajaperf", "tags": environment()}
        facts["collected_at"] = f"{datetime.now(timezone.utc):%Y-%m-%dT%H:%M:%SZ}"
        write_manifest(folder, facts)
    except BaseException:
        shutil.rmtree(str(folder), ignore_errors=True)
        raise
    sys.stdout.write(f"{folder}\n")


def sizes() -> list[int]:
    """Elements of double precision, by the largest cache: an eighth of it, and four times it, in three arrays."""
    largest = 32 * 2**20
    for place in Path("/sys/devices/system/cpu/cpu0/cache").glob("index*/size"):
        match = re.match(r"(\d+)([KM])", place.read_text())
        if match:
            largest = max(largest, int(match.group(1)) * (2**10 if match.group(2) == "K" else 2**20))
    return [int(float(f"{largest / 24 * share:.1g}")) for share in (1 / 8, 4)]


def job_script(given: argparse.Namespace, arguments: list[str]) -> str:
    """Text of a batch job that does the same."""
    head = arguments[0]
    kept: list[str] = []
    skip = False
    for word in arguments[1:]:
        if skip or word in ("--slurm", "--flux"):
            skip = not skip
            continue
        kept.append(word)
    nodes = given.slurm or given.flux
    mark = "#SBATCH" if given.slurm else "# flux:"
    lines = ["#!/bin/sh", f"{mark} --nodes={nodes}", f"{mark} --exclusive"]
    if given.slurm:
        lines.append(f"{mark} --job-name=perf-assets-measure")
    return "\n".join([*lines, "exec python3 " + shlex.join([head, *kept]), ""])


if __name__ == "__main__":
    sys.exit(main())
