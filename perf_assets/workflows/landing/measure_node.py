#!/usr/bin/env python3
"""Measure a command on this node and leave a bundle that 'perf-assets land' takes as it is.

One file without dependencies (Python 3.8 or later): copy it to where the program runs.

    python3 measure.py --machine newbox --out bundles -- ./app -n 100           whichever tool is there
    python3 measure.py --machine newbox --out bundles --launcher 'srun -n 8' -- ./app
    python3 measure.py --machine newbox --out bundles --rajaperf ./raja-perf.exe
    python3 measure.py --machine newbox --out bundles --slurm 2 --ranks 8 -- ./app > job.sh
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
import tempfile
import time
from collections.abc import Callable
from datetime import datetime, timezone
from functools import lru_cache
from pathlib import Path

EVENTS: dict[str, dict[str, list[list[str]]]] = {
    "perf": {"instructions": [["instructions"]], "branches": [["branches"]], "loads": [["L1-dcache-loads"]]},
    "papi": {"instructions": [["PAPI_TOT_INS"]], "branches": [["PAPI_BR_INS"]], "loads": [["PAPI_LD_INS"]]},
    "likwid": {"instructions": [["INSTR_RETIRED_ANY"], ["RETIRED_INSTRUCTIONS"]]},
}
"""What to count, by tool and quantity: the events of each way to get it, the preferred one first.

'perf-assets measure --script' puts the counter catalogue's here.
"""
EVENTS_PER_PASS = 4
MOST_CHARACTERS = 10_000
SOFTWARE = ["task-clock", "page-faults", "context-switches"]
LAUNCHERS = ("srun", "mpirun", "mpiexec", "jsrun", "lrun", "aprun", "flux", "prun")
PROCESSES_OF_RANKS = ("perf", "papi", "hpcrun", "caliper", "time")
"""Tools that measure all ranks of a program that a launcher starts."""
SIZES = [10_000, 100_000, 1_000_000, 4_000_000, 16_000_000, 64_000_000, 256_000_000]
"""Elements of RAJAPerf's arrays to choose from: machines are compared by kernels of equal size."""
COMMON_SIZES = SIZES[1:4]
BYTES_PER_ELEMENT = 24
COMPILERS = re.compile(
    rb"(?:(?:clang|Intel\(R\) oneAPI DPC\+\+/C\+\+ Compiler|AMD clang) (?:version )?|GCC: \([^)\0]{0,80}\) )"
    rb"(\d+(?:\.\d+)+)"
)
PER_RANK = 'rank=$1; shift; exec perf stat -x, -o "$rank/$(uname -n)-$$.csv" "$@"'
"""Shell: perf for one process of many, with a file of its own."""


class MeasureError(Exception):
    """Something that a person can mend: one line."""


def main(arguments: list[str] | None = None, source: str | None = None) -> int:
    """Run the command line; the exit code. `source` is the text of this script, where it is not its file."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    given = parser().parse_args(words)
    try:
        check(given)
        if given.slurm or given.flux:
            sys.stdout.write(job_script(given, words, source or Path(__file__).read_text()))
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
    options = argparse.ArgumentParser(
        prog="measure", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    options.add_argument("--machine", required=True, help="id of the machine, as perf-assets knows it")
    options.add_argument("--out", required=True, type=Path, help="folder for the bundle")
    options.add_argument("--app", help="application; the program's name if absent")
    options.add_argument("--launcher", default="", help="what starts the ranks, as 'srun -n 8'")
    options.add_argument("--ranks", type=int, help="MPI ranks; those of the launcher if absent")
    options.add_argument(
        "--threads", type=int, help="OMP_NUM_THREADS of a rank; that of the environment if absent, or 1"
    )
    options.add_argument("--nodes", type=int, default=whole("SLURM_NNODES"))
    options.add_argument("--gpus", type=int, help="GPUs used in all")
    options.add_argument("--repeats", type=int, default=1, help="how often each set of counters is measured")
    options.add_argument("--tool", choices=sorted(TOOLS), help="the first that works if absent")
    options.add_argument("--environment", help="software, as in 'gcc 12.1; openmpi 4.1'; what can be seen if absent")
    options.add_argument("--tag", action="append", default=[], metavar="KEY=VALUE", help="anything worth keeping")
    options.add_argument("--rajaperf", help="RAJAPerf's program: run it with sizes and threads that fit this node")
    options.add_argument("--slurm", type=int, metavar="NODES", help="print a job script of Slurm instead")
    options.add_argument("--flux", type=int, metavar="NODES", help="print a job script of Flux instead")
    options.add_argument("command", nargs=argparse.REMAINDER, help="the program with its arguments, after --")
    return options


def whole(name: str) -> int:
    """A number of the environment, as OMP_NUM_THREADS=4,2; 1 where there is none."""
    first = os.environ.get(name, "").partition(",")[0].strip()
    return int(first) if first.isdigit() and int(first) > 0 else 1


def check(given: argparse.Namespace) -> None:
    """Refuse what cannot be measured, and complete what the rest implies."""
    given.command = given.command[1:] if given.command[:1] == ["--"] else given.command
    try:
        given.launcher = shlex.split(given.launcher)
    except ValueError as error:
        raise MeasureError(f"--launcher {given.launcher!r}: {error}") from None
    if not given.command and not given.rajaperf:
        raise MeasureError("no command to measure: put it after --")
    if not re.fullmatch(r"[a-z0-9][a-z0-9_-]{0,63}", given.machine):
        raise MeasureError(f"machine id {given.machine!r} is not allowed: use a-z 0-9 _ -")
    if given.ranks is None:
        given.ranks = ranks_of(given.launcher)
    if given.threads is None:
        given.threads = whole("OMP_NUM_THREADS")
    counts = [given.ranks, given.threads, given.nodes, given.repeats]
    counts += [nodes for nodes in (given.slurm, given.flux) if nodes is not None]
    if min(counts) < 1:
        raise MeasureError("--ranks, --threads, --nodes, --repeats, --slurm and --flux must be 1 or more")
    if any("=" not in tag for tag in given.tag):
        raise MeasureError("--tag is KEY=VALUE")
    # What is noted is what runs: without it, OpenMP takes all cores.
    if whole("OMP_NUM_THREADS") != given.threads or "OMP_NUM_THREADS" not in os.environ:
        os.environ["OMP_NUM_THREADS"] = str(given.threads)


def ranks_of(launcher: list[str]) -> int:
    """Ranks that a launcher starts: its -n, or those of the job."""
    match = re.search(r" (?:-n|-np|--ntasks|--np)[ =]?(\d+)(?= |$)", " " + " ".join(launcher))
    if match:
        return int(match.group(1))
    return whole("SLURM_NTASKS") if launcher else 1


def measure(given: argparse.Namespace) -> None:
    """Run the command as often as its counters need, and write the bundle."""
    command = given.command
    tool = given.tool or first_tool(command[0], bool(given.launcher))
    if given.launcher and tool not in PROCESSES_OF_RANKS:
        raise MeasureError(f"--launcher does not go with {tool}: use --tool {', '.join(PROCESSES_OF_RANKS)}")
    if not given.launcher and tool != "time" and Path(command[0]).name in LAUNCHERS:
        raise MeasureError(f"{tool} would measure {command[0]} itself: give it as --launcher, and the program after --")
    app = given.app or Path(command[0]).name
    facts: dict[str, object] = {"machine": given.machine, "kind": "profile", "app": app}
    facts.update(args=" ".join(map(without_folder, command[1:])), ranks=given.ranks, threads=given.threads)
    facts.update(nodes=given.nodes, tags=tags(given, command[0]))
    if given.gpus is not None:
        facts["gpus"] = given.gpus
    if not str(facts["args"]).isprintable() or len(str(facts["args"])) > MOST_CHARACTERS:
        raise MeasureError(f"arguments must be printable, and {MOST_CHARACTERS} characters at most: use a file")
    stamp = datetime.now(timezone.utc)
    folder = given.out / f"{re.sub('[^A-Za-z0-9]+', '_', app)[:60]}-{stamp:%Y%m%dT%H%M%S}-{os.getpid()}"
    folder.mkdir(parents=True)
    try:
        facts.update(TOOLS[tool](given, command, folder))
        facts["collected_at"] = f"{stamp:%Y-%m-%dT%H:%M:%SZ}"
        write_manifest(folder, facts)
    except BaseException:
        shutil.rmtree(str(folder), ignore_errors=True)
        raise
    sys.stdout.write(f"{folder}\n")


def without_folder(word: str) -> str:
    """An argument without the folder of the file that it names, which is of one host and one user."""
    option, equals, value = word.partition("=") if word.startswith("-") else ("", "", word)
    return option + equals + (value.rpartition("/")[2] if value.startswith(("/", "~")) else value)


def first_tool(program: str, has_launcher: bool) -> str:
    """The best tool that works here: one that counts in hardware, then what the program is made for."""
    has_perf = shutil.which("perf") is not None
    if has_perf and is_counted_by_perf("instructions"):
        return "perf"
    if not has_launcher and chosen_events("likwid", is_counted_by_likwid()):
        return "likwid"
    if shutil.which("hpcrun") and shutil.which("hpcprof"):
        return "hpcrun"
    if b"libcaliper.so" in program_bytes(program):
        return "caliper"
    if has_perf and is_counted_by_perf(SOFTWARE[0]):
        return "perf"
    return "cachegrind" if shutil.which("valgrind") and not has_launcher else "time"


def program_bytes(program: str) -> bytes:
    """Content of a program's file; nothing where it is not there, or larger than any program."""
    place = shutil.which(program)
    return Path(place).read_bytes() if place and Path(place).stat().st_size <= 2**30 else b""


def chosen_events(tool: str, is_counted: Callable[[str], bool]) -> list[str]:
    """Events for all quantities: those of the first way that can be counted here, instructions first."""
    ways = EVENTS[tool]
    events: dict[str, None] = {}
    for quantity in sorted(ways, key=lambda name: name != "instructions"):
        counted = (way for way in ways[quantity] if all(map(is_counted, way)))
        events.update(dict.fromkeys(next(counted, [])))
    return list(events)


def passes(events: list[str], per_pass: int = EVENTS_PER_PASS) -> list[list[str]]:
    """Sets of events for one run each. Instructions are in all: other counts are compared by their share of them."""
    first, others = events[:1], events[1:]
    step = per_pass - 1
    return [first + others[start : start + step] for start in range(0, len(others), step)] or [first]


def places(folder: Path, repeats: int, sets: list[list[str]]) -> list[tuple[Path, list[str]]]:
    """A folder for each pass, with what it counts."""
    made = []
    for repeat in range(repeats):
        for number, chosen in enumerate(sets):
            place = folder / f"set{number + 1}-{repeat + 1}"
            place.mkdir()
            made.append((place, chosen))
    return made


@lru_cache(maxsize=1000)
def is_counted_by_perf(event: str) -> bool:
    """Whether perf can count an event on this machine."""
    trial = ["perf", "stat", "-x,", "-e", event, "true"]
    done = subprocess.run(trial, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, check=False)
    printed = done.stderr.decode(errors="replace")
    return done.returncode == 0 and event in printed and "<not" not in printed


def with_perf(given: argparse.Namespace, command: list[str], folder: Path) -> dict[str, object]:
    """Count with perf stat, a few events at a time; every pass has the run time."""
    if shutil.which("perf") is None:
        raise MeasureError("perf is not there")
    # Where instructions cannot be counted, as in most virtual machines, nothing else of the hardware can.
    events = chosen_events("perf", is_counted_by_perf) if is_counted_by_perf("instructions") else []
    sets = passes([event for event in events if event not in SOFTWARE])
    sets[0] = sets[0] + list(filter(is_counted_by_perf, SOFTWARE))
    for place, chosen in places(folder, given.repeats, sets):
        counted = ["-e", ",".join(["duration_time", *chosen]), "--", *command]
        if not given.launcher:
            run(["perf", "stat", "-x,", "-o", str(place / "perf.csv"), *counted])
            continue
        run([*given.launcher, "sh", "-c", PER_RANK, "sh", str(place.resolve()), *counted])
        add_ranks(place, given.ranks)
    return {}


def add_ranks(place: Path, ranks: int) -> None:
    """Make one file of those of all ranks: counts are added up, the slowest rank is the run time."""
    files = sorted(place.glob("*.csv"))
    if len(files) != ranks:
        raise MeasureError(f"{len(files)} processes were measured, not {ranks}: say --ranks; nothing was kept")
    rows: dict[str, list[list[str]]] = {}
    for file in files:
        for line in file.read_text().splitlines():
            cells = line.split(",")
            if len(cells) > 4 and not line.startswith("#"):
                rows.setdefault(cells[2], []).append(cells)
        file.unlink()
    lines = []
    for event, cells_of_ranks in rows.items():
        if len(cells_of_ranks) == ranks and not any(cells[0].startswith("<") for cells in cells_of_ranks):
            values = [float(cells[0]) for cells in cells_of_ranks]
            value = max(values) if event == "duration_time" else sum(values)
            running, share = cells_of_ranks[0][3], min(float(cells[4]) for cells in cells_of_ranks)
            lines.append(f"{value:.15g},{cells_of_ranks[0][1]},{event},{running},{share:.2f},,\n")
    (place / "perf.csv").write_text("".join(lines))


def with_papi(given: argparse.Namespace, command: list[str], folder: Path) -> dict[str, object]:
    """Count with PAPI's high-level interface, which must be in the program."""
    for place, chosen in places(folder, given.repeats, passes(chosen_events("papi", lambda event: True))):
        run([*given.launcher, *command], PAPI_EVENTS=",".join(chosen), PAPI_OUTPUT_DIRECTORY=str(place.resolve()))
        if not any(place.rglob("*.json")):
            raise MeasureError(
                f"{command[0]} wrote nothing of PAPI: it has no PAPI_hl_region_begin, or nothing can be counted"
            )
    return {}


def with_likwid(given: argparse.Namespace, command: list[str], folder: Path) -> dict[str, object]:
    """Count with likwid-perfctr on the first hardware threads of the node."""
    events = chosen_events("likwid", is_counted_by_likwid())
    if not events:
        raise MeasureError("likwid-perfctr is not there, or knows no event of the counter catalogue here")
    for place, chosen in places(folder, given.repeats, passes(events)):
        names = [f"{event}:{'FIXC0' if event == 'INSTR_RETIRED_ANY' else f'PMC{n}'}" for n, event in enumerate(chosen)]
        threads = f"N:0-{given.threads - 1}"
        run(["likwid-perfctr", "-C", threads, "-g", ",".join(names), "-o", str(place / "likwid.csv"), *command])
    return {}


def is_counted_by_likwid() -> Callable[[str], bool]:
    """Function that checks whether LIKWID has an event on this machine."""
    if shutil.which("likwid-perfctr") is None:
        return lambda event: False
    done = subprocess.run(["likwid-perfctr", "-e"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=False)
    there = {line.partition(",")[0].strip() for line in done.stdout.decode(errors="replace").splitlines()}
    return there.__contains__


def with_hpcrun(given: argparse.Namespace, command: list[str], folder: Path) -> dict[str, object]:
    """Count with hpcrun; hpcprof makes the databases."""
    for tool in ("hpcrun", "hpcprof"):
        if shutil.which(tool) is None:
            raise MeasureError(f"{tool} is not there")
    with tempfile.TemporaryDirectory(dir=str(given.out), prefix=".hpcrun-") as scratch:
        events = chosen_events("papi", lambda event: is_counted_by_hpcrun(event, Path(scratch) / event))
        for place, chosen in places(folder, given.repeats, passes(events)):
            measured = Path(scratch) / place.name
            options = [word for event in ("REALTIME", *chosen) for word in ("-e", event)]
            run([*given.launcher, "hpcrun", "-o", str(measured), *options, *command])
            place.rmdir()
            run(["hpcprof", "-o", str(place), str(measured)])
    return {}


def is_counted_by_hpcrun(event: str, output: Path) -> bool:
    """Whether hpcrun takes an event here."""
    trial = ["hpcrun", "-o", str(output), "-e", event, "true"]
    done = subprocess.run(trial, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False)
    return done.returncode == 0


def with_caliper(given: argparse.Namespace, command: list[str], folder: Path) -> dict[str, object]:
    """Take Caliper's profile of regions, which must be in the program."""
    for place, _ in places(folder, given.repeats, [[]]):
        output = place.resolve() / "profile.cali"
        run([*given.launcher, *command], CALI_CONFIG=f"spot(output={output})")
        if not output.is_file():
            raise MeasureError(f"{command[0]} wrote no profile: build it with Caliper; nothing was kept")
    return {}


def with_cachegrind(given: argparse.Namespace, command: list[str], folder: Path) -> dict[str, object]:
    """Simulate with Cachegrind, and take the time of the program alone."""
    seconds = min(timed(command) for _ in range(given.repeats))
    output = folder / "cachegrind.out"
    simulator = ["valgrind", "--tool=cachegrind", "--cache-sim=yes", "--branch-sim=yes", "-q"]
    run([*simulator, f"--cachegrind-out-file={output}", *command])
    # Folders are of one user and one host, and no count needs them.
    text = re.sub(r"^(f[lie]=)\S*/", r"\1", output.read_text(errors="replace"), flags=re.MULTILINE)
    shown = " ".join(map(without_folder, command))
    output.write_text(re.sub(r"^cmd: .*", lambda _: f"cmd: {shown}", text, flags=re.MULTILINE))
    return {"wall_seconds": seconds}


def with_time(given: argparse.Namespace, command: list[str], folder: Path) -> dict[str, object]:
    """Take the run time alone, written as perf stat writes it."""
    for place, _ in places(folder, given.repeats, [[]]):
        nanoseconds = round(1e9 * timed([*given.launcher, *command]))
        (place / "perf.csv").write_text(f"{nanoseconds},ns,duration_time,{nanoseconds},100.00,,\n")
    return {}


TOOLS = {
    "perf": with_perf,
    "papi": with_papi,
    "likwid": with_likwid,
    "hpcrun": with_hpcrun,
    "caliper": with_caliper,
    "cachegrind": with_cachegrind,
    "time": with_time,
}


def timed(command: list[str]) -> float:
    """Seconds that a command takes."""
    start = time.perf_counter()
    run(command)
    return time.perf_counter() - start


def run(command: list[str], **variables: str) -> None:
    """Run a command; one that fails has not been measured."""
    try:
        code = subprocess.run(command, check=False, stdout=sys.stderr, env={**os.environ, **variables}).returncode
    except FileNotFoundError:
        raise MeasureError(f"{command[0]} is not there") from None
    if code != 0:
        raise MeasureError(f"{shlex.join(command)[:300]} ended with code {code}: nothing was kept")


def tags(given: argparse.Namespace, program: str) -> dict[str, str]:
    """Tags of the software that the run was made with; no user and no host."""
    kept = {"kernel": platform.release(), "processor": platform.machine(), "measured_by": "perf-assets measure"}
    for name in ("LOADEDMODULES", "OMP_PROC_BIND", "OMP_PLACES", "CFLAGS", "CXXFLAGS", "CUDA_VERSION", "ROCM_VERSION"):
        words = re.split(r"[\s:]+", os.environ.get(name, ""))
        value = " ".join(word for word in words if word and word.isprintable() and not re.search("^(-[IL])?[/~]", word))
        if value:
            kept[name.lower()] = value[:200]
    compiler = compiler_of(program)
    if compiler:
        kept["compiler"] = compiler
    kept.update(tag.split("=", 1) for tag in given.tag)
    if given.environment:
        kept["environment"] = " ".join(given.environment.split())
    return kept


def compiler_of(program: str) -> str:
    """Compiler that left its name in a program; GCC's start files are in all programs, so others come before it."""
    names = {
        "clang" if b"lang" in match.group() else "icx" if b"Intel" in match.group() else "gcc": match.group(1).decode()
        for match in COMPILERS.finditer(program_bytes(program))
    }
    return next((f"{name} {names[name]}" for name in ("icx", "clang", "gcc") if name in names), "")


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
    """Run RAJAPerf below and above the last cache with one thread, half of the cores, and all; and on GPUs."""
    cores = len(os.sched_getaffinity(0))
    folder = given.out / f"rajaperf-{datetime.now(timezone.utc):%Y%m%dT%H%M%S}-{os.getpid()}"
    there = printed_variants(given.rajaperf)
    try:
        for threads in sorted({1, max(cores // 2, 1), cores}):
            kinds = ["Seq", "CUDA", "HIP"] if threads == 1 else ["OpenMP"]
            variants = [name for kind in kinds for name in (f"Base_{kind}", f"RAJA_{kind}") if name in there]
            for size in sizes() if variants else []:
                place = folder / f"t{threads}_s{size}"
                place.mkdir(parents=True)
                options = ["--variants", *variants, "--size", str(size), "--npasses", "3"]
                run([given.rajaperf, *options, "--outdir", str(place)], OMP_NUM_THREADS=str(threads))
                (place / "cmd.txt").write_text(f"OMP_NUM_THREADS={threads} {shlex.join(['raja-perf', *options])}\n")
        facts: dict[str, object] = {"machine": given.machine, "kind": "rajaperf", "tags": tags(given, given.rajaperf)}
        facts["collected_at"] = f"{datetime.now(timezone.utc):%Y-%m-%dT%H:%M:%SZ}"
        write_manifest(folder, facts)
    except BaseException:
        shutil.rmtree(str(folder), ignore_errors=True)
        raise
    sys.stdout.write(f"{folder}\n")


def printed_variants(program: str) -> set[str]:
    """Variants that RAJAPerf was built with; those of the host where it does not say."""
    try:
        done = subprocess.run(
            [program, "--print-variants"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=False
        )
    except OSError:
        raise MeasureError(f"{program} is not there, or no program") from None
    there = set(re.findall(r"\b(?:Base|RAJA)_\w+", done.stdout.decode(errors="replace")))
    return there or {"Base_Seq", "RAJA_Seq", "Base_OpenMP", "RAJA_OpenMP"}


def sizes() -> list[int]:
    """Elements per array: those that machines have in common, and well below and well above this node's caches."""
    caches = last_caches(Path("/sys/devices/system/cpu")) or 32 * 2**20
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    fitting = [size for size in SIZES if BYTES_PER_ELEMENT * size <= memory / 8]
    below = [size for size in SIZES if BYTES_PER_ELEMENT * size <= caches / 8][-1:]
    above = [size for size in fitting if BYTES_PER_ELEMENT * size >= caches * 4][:1] or fitting[-1:]
    return sorted({*COMMON_SIZES, *below, *above})


def last_caches(processors: Path) -> int:
    """Bytes of all caches of the last level of a node."""
    by_level: dict[int, dict[str, int]] = {}
    for index in processors.glob("cpu[0-9]*/cache/index*"):
        try:
            level, size, shared = [(index / name).read_text().strip() for name in ("level", "size", "shared_cpu_list")]
        except OSError:
            continue
        match = re.fullmatch(r"(\d+)([KM])", size)
        if match and level.isdigit():
            by_level.setdefault(int(level), {})[shared] = int(match.group(1)) * 2 ** {"K": 10, "M": 20}[match.group(2)]
    return sum(by_level[max(by_level)].values()) if by_level else 0


def job_script(given: argparse.Namespace, words: list[str], source: str) -> str:
    """Text of a batch job that does the same, and brings this script along."""
    end = words.index("--") if "--" in words else len(words)
    kept: list[str] = []
    for word in words[:end]:
        if kept and kept[-1] in ("--slurm", "--flux"):
            kept.pop()
        elif not word.startswith(("--slurm=", "--flux=")):
            kept.append(word)
    system, nodes = ("slurm", given.slurm) if given.slurm else ("flux", given.flux)
    if (given.ranks > 1 or nodes > 1) and not given.launcher and not given.rajaperf:
        start = "srun" if system == "slurm" else "flux run"
        per_rank = f" -c {given.threads}" if given.threads > 1 else ""
        kept += ["--launcher", f"{start} -N {nodes} -n {given.ranks}{per_rank}"]
    kept += ["--nodes", str(nodes)] if "--nodes" not in kept else []
    call = 'python3 "$measure" ' + shlex.join([*kept, *words[end:]])
    return "".join([*job_head(system, nodes, given.ranks), *carried(source), call, "\n"])


def job_head(system: str, nodes: int, ranks: int) -> list[str]:
    """First lines of a job script."""
    mark, tasks = ("#SBATCH", "--ntasks") if system == "slurm" else ("# flux:", "--nslots")
    options = ["--job-name=perf-assets-measure", f"--nodes={nodes}", f"{tasks}={max(ranks, nodes)}", "--exclusive"]
    return ["#!/bin/sh\n", *(f"{mark} {option}\n" for option in options)]


def carried(source: str) -> list[str]:
    """Lines that write this script to a file of the node, which goes with the job."""
    start = ["measure=$(mktemp)\n", "trap 'rm -f \"$measure\"' EXIT\n"]
    return [*start, "cat > \"$measure\" <<'END-OF-MEASURE'\n", source.rstrip("\n"), "\nEND-OF-MEASURE\n"]


if __name__ == "__main__":
    sys.exit(main())
