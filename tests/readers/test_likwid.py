"""LIKWID's text and CSV, in the forms of one thread, several, ranks, marked regions and several groups."""

from pathlib import Path

import pytest

from perf_assets.core.catalogue import load_catalogue
from perf_assets.core.errors import UnreadableFileError
from perf_assets.core.measurements import Profile
from perf_assets.readers.read import read

TEXT = """\
--------------------------------------------------------------------------------
CPU name:	Intel(R) Xeon(R) Platinum 8360Y CPU @ 2.40GHz
CPU type:	Intel Icelake SP processor
CPU clock:	2.39 GHz
--------------------------------------------------------------------------------
the program says | something
--------------------------------------------------------------------------------
Group 1: MEM_DP
+------------------------------------------+---------+---------------+-------------+
|                   Event                  | Counter |   HWThread 0  |  HWThread 1 |
+------------------------------------------+---------+---------------+-------------+
|             INSTR_RETIRED_ANY            |  FIXC0  |          1000 |        3000 |
| FP_ARITH_INST_RETIRED_SCALAR_DOUBLE      |   PMC0  |            10 |          30 |
|              CAS_COUNT_RD                | MBOX0C0 |             7 |           0 |
|              CAS_COUNT_RD                | MBOX1C0 |             5 |           - |
|             PWR_PKG_ENERGY               |   PWR0  |         25.50 |           0 |
+------------------------------------------+---------+---------------+-------------+

+------------------------------------------+---------+---------+--------+--------+--------+
|                   Event                  | Counter |   Sum   |   Min  |   Max  |   Avg  |
+------------------------------------------+---------+---------+--------+--------+--------+
|          INSTR_RETIRED_ANY STAT          |  FIXC0  |   4000  |  1000  |  3000  |  2000  |
+------------------------------------------+---------+---------+--------+--------+--------+

+-----------------------------------+------------+------------+
|               Metric              | HWThread 0 | HWThread 1 |
+-----------------------------------+------------+------------+
|        Runtime (RDTSC) [s]        |    2.5000  |    2.4000  |
|                CPI                |    1.5000  |    1.4000  |
| L3|MEM bandwidth [MBytes/s]       |   17792.4  |   1        |
+-----------------------------------+------------+------------+
"""
CSV = """\
STRUCT,Info,3,,
CPU name:,Intel(R) Xeon(R) Platinum 8360Y CPU @ 2.40GHz,,,
CPU type:,Intel Icelake SP processor,,,
CPU clock:,2.39 GHz,,,
TABLE,Group 1 Raw,MEM_DP,5,
Event,Counter,HWThread 0,HWThread 1,
INSTR_RETIRED_ANY,FIXC0,1000,3000,
FP_ARITH_INST_RETIRED_SCALAR_DOUBLE,PMC0,10,30,
CAS_COUNT_RD,MBOX0C0,7,0,
CAS_COUNT_RD,MBOX1C0,5,-,
PWR_PKG_ENERGY,PWR0,25.50,0,
TABLE,Group 1 Raw STAT,MEM_DP,1,
Event,Counter,Sum,Min,Max,Avg
INSTR_RETIRED_ANY STAT,FIXC0,4000,1000,3000,2000
TABLE,Group 1 Metric,MEM_DP,2,
Metric,HWThread 0,HWThread 1,,
Runtime (RDTSC) [s],2.5000,2.4000,,
CPI,1.5,1.4,,
"""


def profiles(folder: Path, text: str) -> list[Profile]:
    file = folder / "likwid.out"
    file.write_text(text)
    reading = read(file)
    assert reading.format == "likwid"
    return list(reading.profiles)


@pytest.mark.parametrize("text", [TEXT, CSV], ids=["text", "csv"])
def test_counts_are_added_over_threads_and_memory_channels(tmp_path: Path, text: str) -> None:
    (profile,) = profiles(tmp_path, text)
    assert (profile.ranks, profile.threads_per_rank, profile.wall_seconds) == (1, 2, 2.5)
    sums = {name: total.sum for name, total in profile.metrics.items()}
    assert sums == {
        "INSTR_RETIRED_ANY": 4000,
        "FP_ARITH_INST_RETIRED_SCALAR_DOUBLE": 40,
        "CAS_COUNT_RD": 12,
        "PWR_PKG_ENERGY": 25.5,
    }
    assert profile.metrics["INSTR_RETIRED_ANY"].max == 3000
    assert profile.metrics["INSTR_RETIRED_ANY"].running_ratio is None
    assert profile.metrics["PWR_PKG_ENERGY"].unit == "J"
    assert profile.labels["cpu_type"] == "Intel Icelake SP processor"


def test_ranks_of_likwid_mpirun_are_told_from_threads(tmp_path: Path) -> None:
    table = TEXT[TEXT.index("Group 1") :].replace("  HWThread 0", "n1:0:0").replace(" HWThread 1", "n2:1:0")
    (profile,) = profiles(tmp_path, table)
    assert (profile.ranks, profile.hosts, profile.threads_per_rank) == (2, 2, 1)
    assert profile.metrics["INSTR_RETIRED_ANY"].mean_over_ranks == 2000
    assert "n1" not in repr(profile.labels)


def test_two_groups_in_turn_are_scaled_to_the_whole_run(tmp_path: Path) -> None:
    second = TEXT[TEXT.index("Group 1") :].replace("Group 1: MEM_DP", "Group 2: L2").replace("2.5000", "7.5000")
    second = second.replace("FP_ARITH_INST_RETIRED_SCALAR_DOUBLE", "L1D_REPLACEMENT                    ")
    (profile,) = profiles(tmp_path, TEXT + second)
    assert profile.wall_seconds == 10
    always, part = profile.metrics["INSTR_RETIRED_ANY"], profile.metrics["L1D_REPLACEMENT"]
    assert (always.sum, always.running_ratio) == (8000, 1.0)
    assert (part.sum, part.running_ratio) == (pytest.approx(40 / 0.75), 0.75)
    assert profile.metrics["FP_ARITH_INST_RETIRED_SCALAR_DOUBLE"].running_ratio == 0.25


def test_outputs_of_two_runs_in_one_file_are_two_runs(tmp_path: Path) -> None:
    found = profiles(tmp_path, TEXT + TEXT.replace("1000", "2000"))
    assert [profile.run for profile in found] == ["likwid.out#0", "likwid.out#1"]
    assert [profile.metrics["INSTR_RETIRED_ANY"].sum for profile in found] == [4000, 5000]


def test_marked_regions_are_added_and_are_not_the_run(tmp_path: Path) -> None:
    first = TEXT.replace("Group 1: MEM_DP", "Region compute, Group 1: MEM_DP")
    second = TEXT[TEXT.index("Group 1") :].replace("Group 1: MEM_DP", "Region write, Group 1: MEM_DP")
    (profile,) = profiles(tmp_path, first + second)
    assert profile.labels["regions"] == "compute, write"
    assert profile.metrics["INSTR_RETIRED_ANY"].sum == 8000
    assert profile.wall_seconds is None


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (TEXT[: TEXT.index("|   ")], "no table of events"),
        (CSV[: CSV.index(",3000")], "1 values for 'INSTR_RETIRED_ANY' instead of 2"),
        (TEXT.replace("          1000 |        3000 |", "  1000 |"), "1 values for 'INSTR_RETIRED_ANY' instead of 2"),
        (TEXT.replace("          1000", "          many"), "instead of a finite number"),
    ],
)
def test_what_is_cut_off_or_damaged_is_refused(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(UnreadableFileError, match=message):
        profiles(tmp_path, text)


def test_its_events_stand_for_quantities(tmp_path: Path, shared_data: Path) -> None:
    header = (shared_data / "spechpc" / "icelake-8360y.csv").read_text().partition("\n")[0].split(",")
    resolved = {formula.quantity for formula in load_catalogue().resolve(header, "icelake")}
    assert resolved == {"instructions", "l1_load_misses", "l2_load_misses", "double_fp", "any_fp"}
    (profile,) = profiles(tmp_path, TEXT)
    own = {formula.quantity for formula in load_catalogue().resolve(profile.metrics, None)}
    assert own == {"instructions", "double_fp"}


def test_the_run_time_among_events_of_a_group_of_ones_own_is_no_counter(tmp_path: Path) -> None:
    text = "STRUCT,Info,3,,\nTABLE,Group 1 Raw,Custom,3,\nEvent,Counter,HWThread 0,HWThread 1,\n"
    text += "Runtime (RDTSC) [s],TSC,2.5,2.4,\nINSTR_RETIRED_ANY,FIXC0,1000,3000,\nL1D_REPLACEMENT,PMC1,7,0,\n"
    (profile,) = profiles(tmp_path, text)
    assert profile.wall_seconds == 2.5
    assert {name: total.sum for name, total in profile.metrics.items()} == {
        "INSTR_RETIRED_ANY": 4000,
        "L1D_REPLACEMENT": 7,
    }
