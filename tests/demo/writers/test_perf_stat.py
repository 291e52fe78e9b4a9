import csv
import re
from pathlib import Path

import numpy as np

from perf_assets.demo.writers.perf_stat import write_perf_stat
from tests.demo.writers.conftest import expected_totals, profiled_run

METRICS = ("CPUTIME (sec)", "instructions", "cycles", "branch-misses", "stalled-cycles-backend")


def rows_of(path: Path) -> dict[str, list[str]]:
    lines = path.read_text().splitlines()
    assert re.fullmatch(r"# started on [A-Z][a-z]{2} [A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d \d{4}", lines[0])
    assert lines[1] == ""
    rows = list(csv.reader(lines[2:]))
    assert {len(row) for row in rows} == {7}
    return {row[2]: row for row in rows}


def test_counts_are_those_of_all_threads(tmp_path: Path) -> None:
    run = profiled_run(metrics=METRICS)
    write_perf_stat(tmp_path / "perf.csv", run, {})
    rows = rows_of(tmp_path / "perf.csv")
    totals = expected_totals(run)
    assert list(rows) == ["task-clock", "duration_time", *METRICS[1:]]
    for event in METRICS[1:]:
        assert rows[event][0] == str(int(totals[event]))
    assert float(rows["task-clock"][0]) == round(totals["CPUTIME (sec)"] * 1000, 2)
    assert rows["task-clock"][1] == "msec"
    assert rows["duration_time"][:2] == ["12345678900", "ns"]
    assert rows["instructions"][6] == "insn per cycle"


def test_multiplexed_and_missing_events(tmp_path: Path) -> None:
    run = profiled_run(metrics=METRICS)
    run.values[:, :, 4] = np.nan
    write_perf_stat(tmp_path / "perf.csv", run, {"branch-misses": 0.625})
    rows = rows_of(tmp_path / "perf.csv")
    assert rows["stalled-cycles-backend"] == ["<not supported>", "", "stalled-cycles-backend", "0", "100.00", "", ""]
    assert rows["branch-misses"][4] == "62.50"
    assert int(rows["branch-misses"][3]) == round(0.625 * int(rows["task-clock"][3]))
    assert rows["instructions"][4] == "100.00"


def test_processor_time_is_that_of_busy_threads_where_none_was_measured(tmp_path: Path) -> None:
    write_perf_stat(tmp_path / "perf.csv", profiled_run(ranks=2, threads=2, metrics=("cycles", "x")), {})
    assert rows_of(tmp_path / "perf.csv")["task-clock"][0] == f"{4 * 12.3456789e3:.2f}"


def test_lines_are_like_the_real_ones(tmp_path: Path, shared_data: Path) -> None:
    run = profiled_run(metrics=("CPUTIME (sec)", "instructions"))
    run.values[:, :, 1] = np.nan
    write_perf_stat(tmp_path / "perf.csv", run, {})
    ours, theirs = rows_of(tmp_path / "perf.csv"), rows_of(shared_data / "papi/perf_stat.csv")
    assert ours["instructions"] == theirs["instructions"]
    assert [ours["task-clock"][field] for field in (1, 4, 6)] == [theirs["task-clock"][field] for field in (1, 4, 6)]


def test_same_run_same_bytes(tmp_path: Path) -> None:
    for name in ("one", "two"):
        write_perf_stat(tmp_path / name, profiled_run(), {})
    assert (tmp_path / "one").read_bytes() == (tmp_path / "two").read_bytes()
