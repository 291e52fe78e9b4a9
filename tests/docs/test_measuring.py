"""What the documentation tells people to run on their machines: it counts what is known, and what it writes is read."""

import re
import shutil
import subprocess
from dataclasses import asdict
from pathlib import Path

import pandas as pd
import pytest

from perf_assets.core.catalogue import load_catalogue
from perf_assets.readers.read import read
from tests.docs.newbox import write_files
from tests.docs.pages import Command, commands, pages
from tests.docs.stand_ins import MEASURED, measure

WRITTEN = {
    "rajaperf_output": "rajaperf-csv-2026",
    "hpctoolkit-sw4lite-database": "hpctoolkit-v4",
    "papi_hl_output": "papi-hl-json",
    "perf.csv": "perf-stat-csv",
}
"""What the tools write there, and the format it is read as."""
_OUTPUT = re.compile(r"(?:\s-o |--outdir |\s> )([^\s/]+)")
_EVENTS = re.compile(r"(?:\s-e |PAPI_EVENTS=)(\S+)")
_BETWEEN = (".measurements", "measure.py")
"""What hpcrun writes for hpcprof, and the script, which tests/workflows/test_measure.py runs."""
_NO_COUNTERS = {"REALTIME", "duration_time", "IO"}
_PROGRAMS = {"./raja-perf.exe", "hpcrun", "hpcprof", "perf", "./TestDfft", "echo", "measure.py"}


def on_the_machine() -> list[Command]:
    return [command for page in pages() for command in commands(page) if command.info == "machine"]


def test_tools_are_those_that_are_checked_here() -> None:
    unknown = [command.place for command in on_the_machine() if not _PROGRAMS & set(command.words)]
    assert unknown == [], "say in WRITTEN what these write, and in newbox.py how to write it"


def test_what_they_write_is_read(tmp_path: Path) -> None:
    named = {name for command in on_the_machine() for name in _OUTPUT.findall(command.text)}
    named = {name for name in named if not name.endswith(_BETWEEN)} | {"papi_hl_output"}
    assert named == set(WRITTEN)
    write_files(tmp_path)
    for name, form in WRITTEN.items():
        found = read(tmp_path / name)
        assert found.format == form
        assert found.timings or found.profiles


def test_what_they_count_has_a_meaning() -> None:
    counted = {
        name for command in on_the_machine() for text in _EVENTS.findall(command.text) for name in text.split(",")
    }
    counted -= _NO_COUNTERS
    assert len(counted) > 8
    formulas = load_catalogue().resolve(sorted(counted), None)
    assert counted == {name for formula in formulas for name in formula.counters}


def test_perf_stat_writes_what_is_read(tmp_path: Path) -> None:
    perf = shutil.which("perf")
    if perf is None:
        pytest.skip("no perf: install Debian's package 'linux-perf' to run it")
    (command,) = (command for command in on_the_machine() if command.words[0] == "perf")
    program = command.words.index("./TestDfft")
    done = subprocess.run(
        [perf, *command.words[1:program], "true"], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    if done.returncode:
        pytest.skip(f"perf does not work here: {done.stderr.strip()[:200]}")
    (profile,) = read(tmp_path / "perf.csv").profiles
    assert profile.wall_seconds is not None
    assert profile.wall_seconds > 0


def test_every_line_for_the_machine_runs_and_leaves_what_is_read(tmp_path: Path) -> None:
    folder = tmp_path / "empty"
    folder.mkdir()
    measure(folder, tmp_path / "scratch")
    assert {path.name for path in folder.iterdir()} == {*MEASURED, "set1.measurements", "set2.measurements"}
    timings = pd.DataFrame([asdict(timing) for timing in read(folder / "rajaperf_output").timings])
    assert sorted(timings.groupby("kernel")["problem_size"].nunique().unique()) == [3]
    threads = timings.groupby("variant")["threads"].unique().map(list).to_dict()
    assert threads["RAJA_OpenMP"] == threads["Base_OpenMP"] == [112]
    for name in MEASURED[1:]:
        found = read(folder / name)
        assert found.profiles
        assert all(profile.wall_seconds for profile in found.profiles)
