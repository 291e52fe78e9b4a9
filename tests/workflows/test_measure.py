"""The script that measures on a node, run for real: perf, Cachegrind and time, with the oldest Python it promises."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from perf_assets.cli.main import cli
from perf_assets.core.catalogue import load_catalogue
from perf_assets.core.environment import environment_of
from perf_assets.core.manifest import parse_manifest
from perf_assets.readers.bundle import read_bundle
from perf_assets.storage.lake import LandedBundle
from perf_assets.storage.landing import verified_manifest
from perf_assets.workflows.landing.event_sets import event_sets, measure_script
from perf_assets.workflows.landing.measure_node import job_head, last_caches, passes, ranks_of
from tests.infra.slurm import missing_programs, slurm
from tests.readers.databases import write_v4
from tests.readers.test_caliper_profile import _ONE_REGION, stream

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


def test_time_alone_is_enough(script: Path, tmp_path: Path) -> None:
    done = run(script, "--machine", "newbox", "--out", tmp_path, "--tool", "time", "--repeats", "3", "--", "true")
    runs, _ = landed(done.stdout)
    assert len(runs) == 3
    assert all(isinstance(row["wall_seconds"], float) for row in runs)
    assert {(row["app"], row["args"]) for row in runs} == {("true", "")}, "one configuration, as elsewhere"


def test_rajaperf_runs_below_and_above_the_caches_with_several_threads(script: Path, tmp_path: Path) -> None:
    program = tmp_path / "raja-perf.exe"
    program.write_text(
        '#!/bin/sh\n[ "$1" = --print-variants ] && echo Base_Seq RAJA_OpenMP Base_HIP && exit\n'
        'echo "$OMP_NUM_THREADS $*" >> ran\n'
    )
    program.chmod(0o755)
    done = run(script, "--machine", "newbox", "--out", tmp_path / "out", "--rajaperf", program)
    assert done.returncode == 0, done.stderr
    folder = Path(done.stdout.strip())
    assert parse_manifest((folder / "manifest.json").read_bytes()).kind == "rajaperf"
    commands = [file.read_text() for file in folder.glob("*/cmd.txt")]
    sizes = {int(command.partition("--size ")[2].split()[0]) for command in commands}
    assert {100_000, 1_000_000, 4_000_000} <= sizes, "those that other machines have"
    cores = len(os.sched_getaffinity(0))
    assert len(commands) == len(sizes) * len({1, max(cores // 2, 1), cores})
    assert str(tmp_path) not in "".join(commands)
    ran = (tmp_path / "ran").read_text().splitlines()
    alone = [line for line in ran if line.startswith("1 ")]
    assert len(alone) == len(sizes)
    assert all("--variants Base_Seq Base_HIP --size" in line for line in alone)
    assert all("--variants RAJA_OpenMP --size" in line for line in ran if line not in alone)


def test_last_caches_of_a_node_are_counted_once_each(tmp_path: Path) -> None:
    for cpu, (last, shared) in enumerate([("32M", "0-1"), ("32M", "0-1"), ("32768K", "2-3"), ("32768K", "2-3")]):
        for index, (level, size, cpus) in enumerate([("2", "1M", str(cpu)), ("3", last, shared)]):
            folder = tmp_path / f"cpu{cpu}" / "cache" / f"index{index}"
            folder.mkdir(parents=True)
            for name, text in (("level", level), ("size", size), ("shared_cpu_list", cpus)):
                (folder / name).write_text(f"{text}\n")
    assert last_caches(tmp_path) == 64 * 2**20
    assert last_caches(tmp_path / "nowhere") == 0


def test_what_is_noted_is_what_runs(script: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    options = ["--machine", "newbox", "--out", tmp_path / "out", "--tool", "time"]
    program = ["sh", "-c", 'echo "threads: $OMP_NUM_THREADS"']
    for given, threads in (([], 1), (["--threads", "3", "--gpus", "2"], 3)):
        done = run(script, *options, *given, "--", *program)
        assert f"threads: {threads}\n" in done.stderr
        manifest = parse_manifest((Path(done.stdout.strip()) / "manifest.json").read_bytes())
        assert (manifest.threads, manifest.gpus) == (threads, 2 if given else None)
    monkeypatch.setenv("OMP_NUM_THREADS", "4,2")
    assert "threads: 4,2\n" in run(script, *options, "--", *program).stderr
    assert "must be printable" in run(script, *options, "--", "true", "a\nb").stderr


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


def test_a_job_script_does_the_same_and_needs_nothing_else(tmp_path: Path) -> None:
    options = ["--machine", "newbox", "--out", str(tmp_path / "out"), "--tool", "time", "--slurm", "1"]
    # argparse ends the process: its output is that of the command.
    done = subprocess.run(
        [str(Path(sys.executable).parent / "perf-assets"), "measure", *options, "--", *PROGRAM, "--slurm"],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "--nodes=1" in done.stdout
    job = tmp_path / "job.sh"
    job.write_text(done.stdout)
    ran = subprocess.run(["sh", str(job)], capture_output=True, text=True, check=False, cwd=tmp_path)
    assert ran.returncode == 0, ran.stderr
    manifest = parse_manifest((Path(ran.stdout.strip()) / "manifest.json").read_bytes())
    assert (manifest.machine, manifest.args.split()[-1]) == ("newbox", "--slurm"), "the program's own option"


def test_a_job_script_starts_the_ranks(script: Path, tmp_path: Path) -> None:
    options = ["--machine", "newbox", "--out", tmp_path / "out", "--ranks", "8"]
    slurm_job = run(script, *options, "--slurm", "2", "--", "./app").stdout
    assert "#SBATCH --nodes=2\n#SBATCH --ntasks=8\n" in slurm_job
    assert slurm_job.splitlines()[-1].endswith("--launcher 'srun -N 2 -n 8' --nodes 2 -- ./app")
    flux_job = run(script, *options, "--threads", "4", "--flux=2", "--", "./app").stdout
    assert "# flux: --nslots=8" in flux_job
    assert "--launcher 'flux run -N 2 -n 8 -c 4'" in flux_job.splitlines()[-1]
    assert "--flux" not in flux_job.splitlines()[-1]
    assert job_head("slurm", 4, 1)[3] == "#SBATCH --ntasks=4\n"


def test_ranks_are_those_of_the_launcher(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SLURM_NTASKS", "6")
    assert [ranks_of(text.split()) for text in ("srun -N 2 -n 8", "mpirun -np 4", "srun --ntasks=3", "srun -n8")] == [
        8, 4, 3, 8,
    ]  # fmt: skip
    assert (ranks_of(["srun"]), ranks_of([])) == (6, 1)


@pytest.mark.skipif(shutil.which("perf") is None, reason="perf is not installed")
def test_counts_of_ranks_are_added_up(script: Path, tmp_path: Path) -> None:
    """A launcher that starts the program twice, as mpirun does."""
    launcher = tmp_path / "launch"
    launcher.write_text('#!/bin/sh\n"$@" & "$@"\nwait\n')
    launcher.chmod(0o755)
    options = ["--machine", "newbox", "--out", tmp_path / "out", "--tool", "perf", "--launcher", str(launcher)]
    done = run(script, *options, "--ranks", "2", "--", *PROGRAM)
    assert done.returncode == 0, done.stderr
    runs, counters = landed(done.stdout)
    assert [row["ranks"] for row in runs] == [2]
    clock = next(row for row in counters if row["counter"] == "task-clock")
    assert clock["value_sum"] == pytest.approx(2 * float(str(clock["value_mean_over_ranks"])))
    done = run(script, *options, "--ranks", "3", "--", *PROGRAM)
    assert "2 processes were measured, not 3" in done.stderr
    assert len(list((tmp_path / "out").iterdir())) == 1
    done = run(script, *options[:-1], "srun '", "--", "./app")
    assert "No closing quotation" in done.stderr
    assert len(done.stderr.splitlines()) == 1
    done = run(script, *options[:-2], "--", "srun", "./app")
    assert "perf would measure srun itself: give it as --launcher" in done.stderr
    done = run(script, *options[:4], "--tool", "cachegrind", *options[6:], "--", "./app")
    assert "--launcher does not go with cachegrind" in done.stderr


@pytest.mark.integration
@pytest.mark.skipif(bool(missing_programs()), reason=f"not installed (slurm-wlm, munge): {missing_programs()}")
@pytest.mark.skipif(shutil.which("perf") is None, reason="perf is not installed")
def test_a_job_of_slurm_leaves_a_bundle_of_its_ranks(script: Path, tmp_path: Path) -> None:
    (tmp_path / "slurm").mkdir()
    options = ["--machine", "newbox", "--out", tmp_path / "out", "--tool", "perf", "--slurm", "1", "--ranks", "2"]
    job = tmp_path / "job.sh"
    job.write_text(run(script, *options, "--", *PROGRAM).stdout)
    with slurm(tmp_path / "slurm") as environment:
        done = subprocess.run(
            ["sbatch", "--wait", "--output", str(tmp_path / "job.out"), str(job)],
            env={**os.environ, **environment}, capture_output=True, text=True, check=False, cwd=tmp_path,
        )  # fmt: skip
    assert done.returncode == 0, (tmp_path / "job.out").read_text()
    (folder,) = (tmp_path / "out").iterdir()
    runs, counters = landed(str(folder))
    assert [(row["ranks"], row["nodes"], row["wall_seconds"] is not None) for row in runs] == [(2, 1, True)]
    assert {"task-clock", "page-faults"} <= {str(row["counter"]) for row in counters}


def test_nobodys_folders_are_in_a_bundle(script: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CXXFLAGS", "-O3 -I/home/ted/include")
    monkeypatch.setenv("LOADEDMODULES", "gcc/12.1:openmpi/4.1:/g/ted/own")
    deck = tmp_path / "deck.in"
    options = ["--machine", "newbox", "--out", tmp_path / "out", "--tool", "time", "--app", "a", "--tag", "code=7"]
    done = run(script, *options, "--", sys.executable, "-c", "0", deck, f"--in={deck}")
    assert done.returncode == 0, done.stderr
    text = (Path(done.stdout.strip()) / "manifest.json").read_text()
    assert "/ted" not in text
    assert str(tmp_path) not in text
    manifest = parse_manifest(text.encode())
    assert manifest.args == "-c 0 deck.in --in=deck.in"
    assert manifest.tags["loadedmodules"] == "gcc/12.1 openmpi/4.1"
    assert environment_of(manifest.tags) == (
        f"{manifest.tags['compiler']}; -O3; modules gcc/12.1 openmpi/4.1" if "compiler" in manifest.tags else None
    )


@pytest.mark.parametrize("tool", ["papi", "caliper", "likwid", "hpcrun"])
def test_tools_that_are_not_there_are_said(script: Path, tmp_path: Path, tool: str) -> None:
    options = ["--machine", "newbox", "--out", tmp_path / "out", "--tool", tool]
    done = run(script, *options, "--", sys.executable, "-c", "0")
    assert done.returncode == 2
    assert len(done.stderr.splitlines()) == 1
    assert list((tmp_path / "out").iterdir()) == []


def write_tool(folder: Path, name: str, lines: str) -> None:
    """A program that does what a tool does with its files; the machine here cannot count."""
    (folder / name).write_text(f"#!/bin/sh\n{lines}\n")
    (folder / name).chmod(0o755)


def test_each_tool_leaves_what_its_reader_takes(script: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tools, papi = tmp_path / "tools", Path(__file__).parents[1] / "data" / "papi" / "papi_hl_output"
    tools.mkdir()
    monkeypatch.setenv("PATH", f"{tools}:{os.environ['PATH']}")
    write_tool(
        tools,
        "with-papi",
        f'echo "$PAPI_EVENTS" >> {tmp_path}/events; mkdir "$PAPI_OUTPUT_DIRECTORY/papi_hl_output"\n'
        f'cp {next(papi.glob("*.json"))} "$PAPI_OUTPUT_DIRECTORY/papi_hl_output/rank_0.json"',
    )
    stream(tmp_path, _ONE_REGION, "cluster=opal jobsize=1")
    write_tool(tools, "with-caliper", f'o=${{CALI_CONFIG#*=}}; cp {tmp_path}/a.cali "${{o%)}}"')
    write_tool(
        tools, "likwid-perfctr",
        '[ "$1" = -e ] && printf "INSTR_RETIRED_ANY, 0x0, 0x0, FIXC0\\nL1D_REPLACEMENT, 0x51, 0x1, PMC\\n" && exit\n'
        '[ "$4" = INSTR_RETIRED_ANY:FIXC0,L1D_REPLACEMENT:PMC1 ] || exit 9\n'
        'printf "TABLE,Group 1 Raw,Custom,3,\\nEvent,Counter,HWThread 0,\\nRuntime (RDTSC) [s],TSC,2.5,\\n'
        'INSTR_RETIRED_ANY,FIXC0,1000,\\nL1D_REPLACEMENT,PMC1,7,\\n" > "$6"',
    )  # fmt: skip
    database = write_v4(tmp_path / "database", ("REALTIME (sec)", "PAPI_TOT_INS"), {(0, 0): (2.5, 1000.0)})
    write_tool(tools, "hpcrun", 'case "$4" in PAPI_FP_INS) exit 1;; esac\nmkdir "$2"; echo "$*" >> "$2/asked"')
    write_tool(tools, "hpcprof", f'cp -r {database} "$2"; cat "$3/asked" >> {tmp_path}/asked')
    expected = {
        "papi": ("with-papi", None),
        "caliper": ("with-caliper", 2.5),
        "likwid": ("any", 2.5),
        "hpcrun": ("any", 2.5),
    }
    for tool, (program, seconds) in expected.items():
        done = run(script, "--machine", "newbox", "--out", tmp_path / tool, "--tool", tool, "--", program)
        assert done.returncode == 0, done.stderr
        runs, counters = landed(done.stdout)
        assert counters
        assert seconds is None or {row["wall_seconds"] for row in runs} == {seconds}
        assert "Runtime (RDTSC) [s]" not in {row["counter"] for row in counters}
    asked = [line.split(",") for line in (tmp_path / "events").read_text().splitlines()]
    assert len(asked) > 2
    by_hpcrun = (tmp_path / "asked").read_text()
    assert "-e REALTIME -e PAPI_TOT_INS -e " in by_hpcrun
    assert "PAPI_FP_INS" not in by_hpcrun, "which it cannot count"
    assert all(events[0] == "PAPI_TOT_INS" and len(events) <= 4 for events in asked)


def test_every_pass_counts_instructions() -> None:
    assert passes(["i", "a", "b", "c", "d"]) == [["i", "a", "b", "c"], ["i", "d"]]
    assert (passes(["i"]), passes([])) == ([["i"]], [[]])


@pytest.mark.parametrize("machine", ["zen3", "sapphirerapids", "power9"])
def test_events_are_those_of_the_catalogue(machine: str) -> None:
    catalogue = load_catalogue()
    sets = event_sets(catalogue, machine)
    for tool, needed in (("perf", 9), ("papi", 9), ("likwid", 8)):
        ways = sets[tool]
        assert len(ways) >= needed
        for quantity, alternatives in ways.items():
            for events in alternatives:
                assert quantity in {formula.quantity for formula in catalogue.resolve(events, machine)}
    natives = {event for ways in sets["perf"].values() for way in ways for event in way}
    assert ("ex_ret_instr" in natives) == (machine == "zen3")
    assert not [event for event in natives if event.isupper() or "__" in event]
    assert compile(measure_script(sets), "measure.py", "exec")


@pytest.mark.skipif(shutil.which("perf") is None, reason="perf is not installed")
def test_perf_knows_the_names_that_every_machine_has() -> None:
    ways = event_sets(load_catalogue(), "none")["perf"]
    generic = {
        event for way in ways.values() for events in way for event in events if "." not in event and "_" not in event
    }
    assert {"instructions", "L1-dcache-loads", "L1-dcache-load-misses", "stalled-cycles-backend"} <= generic
    for event in sorted(generic):
        done = subprocess.run(["perf", "stat", "-e", event, "true"], capture_output=True, text=True, check=False)
        assert "syntax error" not in done.stderr, event
