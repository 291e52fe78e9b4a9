"""Arguments of programs as numbers by flag or position, and words as levels."""

import csv
import math
import re
from pathlib import Path

import numpy as np
import pytest

from perf_assets.features.arguments import GIVEN, ArgumentColumns, Arguments, parse_arguments
from perf_assets.readers.read import read


@pytest.mark.parametrize(
    ("args", "numbers", "words"),
    [
        ("", {}, {}),
        ("50 192 384", {"#0": 50, "#1": 192, "#2": 384}, {}),
        ("-n 64 64 32 -v", {"n.0": 64, "n.1": 64, "n.2": 32}, {"v": GIVEN}),
        ("--zones 64,32,16 --method bj", {"zones.0": 64, "zones.1": 32, "zones.2": 16}, {"method": "bj"}),
        ("--x=3 y=4 --kind=fast", {"x": 3, "y": 4}, {"kind": "fast"}),
        ("-i -5 --max-iter 2e-3", {"i": -5, "max-iter": 0.002}, {}),
        ("-t 4M -b 1k", {"t": 4 * 2**20, "b": 1024}, {}),
        ("-d 3 -d 4", {"d": 3, "d(2)": 4}, {}),
        ("tests/loh1/LOH.1-h125.in", {"#0~0": 1, "#0~1": 125}, {"#0": "LOH.#-h#.in"}),
        ("-p1-dim2-rs2-tf3.5-pa", {"p": 1, "dim": 2, "rs": 2, "tf": 3.5}, {"pa": GIVEN}),
        (
            "--niter10--pmethodbj--procs4,4,2",
            {"niter": 10, "procs.0": 4, "procs.1": 4, "procs.2": 2},
            {"pmethodbj": GIVEN},
        ),
        ("-n " + "9" * 400, {}, {"n": "#"}),
    ],
)
def test_numbers_and_words(args: str, numbers: dict[str, float], words: dict[str, str]) -> None:
    assert parse_arguments(args) == Arguments(numbers, words)


def test_workloads_that_differ_have_different_columns(shared_data: Path) -> None:
    """All 519 workloads of LLNL are told apart by application, ranks and what the parser finds."""
    table = shared_data / "llnl_relative" / "relative_speed.csv"
    if not table.is_file():
        pytest.skip(f"no workloads at {table}")
    with table.open(newline="") as stream:
        rows = list(csv.DictReader(stream))
    apps, args = [row["app"] for row in rows], [row["args"] for row in rows]
    columns = ArgumentColumns.of(apps, args)
    found = columns.table(apps, args)
    described = {
        (row["app"], row["ranks"], *np.nan_to_num(values, nan=-1.0)) for row, values in zip(rows, found, strict=True)
    }
    assert len(described) == len(rows) == 519
    # Every digit that was written is in some number.
    for text in args:
        digits = re.sub(r"\D", "", text)
        known = parse_arguments(text).numbers.values()
        assert sum(len(re.sub(r"\D", "", f"{value:.10g}")) for value in known) == len(digits)


def test_parameters_of_real_profiles_are_numbers(shared_data: Path) -> None:
    folder = shared_data / "caliper" / "lulesh_opal"
    if not folder.is_dir():
        pytest.skip(f"no profiles at {folder}")
    for profile in read(folder).profiles:
        found = parse_arguments(profile.labels["args"])
        assert (found.numbers["problem_size"], found.numbers["iterations"], found.words) == (30, 800, {})


def test_columns_are_those_in_which_workloads_of_an_application_differ() -> None:
    apps, args = ["a", "a", "a b"], ["-n 1 -m 5 fast", "-n 3 -m 5 slow", "-n 3 -v"]
    columns = ArgumentColumns.of(apps, args)
    assert columns.names == ("a #0=fast", "a #0=slow", "a n")
    np.testing.assert_allclose(
        columns.table(["a", "a b"], ["-n 7 fast", "-n 7"]), [[1, 0, math.log(8)], [0, 0, math.nan]]
    )
    assert ArgumentColumns.of([], []).table(["a"], ["-n 1"]).shape == (1, 0)


def test_a_command_line_of_any_length_is_parsed_in_bounded_time() -> None:
    """As long as landed arguments may be, and longer."""
    assert parse_arguments("-a1" * 100_000).numbers["a(3000)"] == 1
    assert len(parse_arguments("x " * 100_000).words) == 5000
