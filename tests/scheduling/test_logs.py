"""Logs of Slurm, CSM and Flux are known by their content; times, states and limits are read by the same rules."""

import gzip
import json
from pathlib import Path

import numpy as np
import pytest

from perf_assets.core.errors import BadInputError, UnreadableFileError
from perf_assets.scheduling.traces.read import read_trace
from perf_assets.scheduling.traces.trace import Trace

SACCT = "JobID|User|JobName|Submit|Start|End|Elapsed|Timelimit|NNodes|State"
CSM = (
    "allocation_id,primary_job_id,num_nodes,hashed_user_id,begin_time,end_time,exit_status,"
    "job_submit_time,queue,time_limit"
)


def written(tmp_path: Path, *lines: str) -> Path:
    file = tmp_path / "jobs.log"
    file.write_text("\n".join(lines) + "\n")
    return file


def sacct(tmp_path: Path, *lines: str, zone: str | None = "America/Denver") -> Trace:
    return read_trace(written(tmp_path, SACCT, *lines), zone)


def test_sacct_counts_jobs_and_not_steps(tmp_path: Path) -> None:
    trace = sacct(
        tmp_path,
        "7|ann|cg|2024-01-08T10:00:00|2024-01-08T10:00:05|2024-01-09T11:00:05|1-01:00:00|2-00:00:00|4|COMPLETED",
        "7.batch|||2024-01-08T10:00:00|2024-01-08T10:00:05|2024-01-09T11:00:05|1-01:00:00||4|COMPLETED",
        "7.0||cg|2024-01-08T10:00:00|2024-01-08T10:00:05|2024-01-09T11:00:05|1-01:00:00||4|COMPLETED",
        "8_3|bob|ft|2024-01-08T09:00:00|2024-01-08T10:00:00|2024-01-08T10:30:00|30:00|UNLIMITED|2|CANCELLED by 12",
        "9|bob|ft|2024-01-08T11:00:00|Unknown|2024-01-08T11:30:00|00:00:00|01:00:00|2|CANCELLED by 12",
        "10|bob|ft|2024-01-08T11:00:00|2024-01-08T11:00:00|2024-01-08T11:00:00|00:00:00|01:00:00|2|FAILED",
        "11|bob|ft|2024-01-08T11:00:00|2024-01-08T11:00:00|2024-01-08T11:00:00|00:00:00|01:00:00|2|COMPLETED",
        "12|bob|ft|2024-01-08T11:00:00|2024-01-08T11:00:00|Unknown|00:10:00|01:00:00|2|RUNNING",
        "13|bob|ft|2024-01-08T11:00:00|2024-01-08T11:00:00|2024-01-08T12:00:03|01:00:03|01:00:00|2|TIMEOUT",
        "14|bob|a|b|2024-01-08T11:00:00|2024-01-08T11:00:00|2024-01-08T12:00:03|01:00:03|01:00:00|2|TIMEOUT",
    )
    assert trace.number.tolist() == [8, 7, 11, 13]
    assert trace.submit.tolist() == [0, 3600, 7200, 7200]
    assert trace.run.tolist() == [1800, 90_000, 1, 3603]
    assert trace.nodes.tolist() == [2, 4, 2, 2]
    assert trace.request[1:].tolist() == [172_800, 3600, 3600]
    assert np.isnan(trace.request[0])
    assert trace.user[0] == trace.user[2] != trace.user[1]
    assert trace.skipped == {
        "lines that are no row of Slurm (sacct -P)": 1,
        "jobs that still run or wait": 1,
        "jobs that were cancelled or failed before they ran": 2,
    }
    assert [note.split()[0] for note in trace.notes] == ["1", "1", "1", "1", "1"]
    local = trace.local_times()
    assert local is not None
    assert str(local[0]) == "2024-01-08 09:00:00"


def test_epoch_and_raw_columns_of_sacct_need_no_zone(tmp_path: Path) -> None:
    head = "JobIDRaw|Submit|Start|End|ElapsedRaw|TimelimitRaw|AllocNodes|State"
    trace = read_trace(written(tmp_path, head, "5|1700000000|1700000060|1700000100|40|30|3|COMPLETED"))
    assert (trace.run[0], trace.request[0], trace.nodes[0], trace.epoch) == (40, 1800, 3, 1_700_000_000)
    assert trace.notes == ()


def test_differences_over_a_change_of_clocks_are_right(tmp_path: Path) -> None:
    """In Denver clocks went forward on 10 March and back on 3 November 2024, at 2 o'clock."""
    head = SACCT.replace("|Elapsed", "")
    spring = "1|a|x|2024-03-10T01:00:00|2024-03-10T01:30:00|2024-03-10T03:30:00|02:00:00|1|COMPLETED"
    autumn = "2|a|x|2024-11-03T00:00:00|2024-11-03T00:30:00|2024-11-03T02:30:00|09:00:00|1|COMPLETED"
    file = written(tmp_path, head, spring, autumn)
    assert read_trace(file, "America/Denver").run.tolist() == [3600, 3 * 3600]
    assert read_trace(file, "UTC").run.tolist() == [7200, 7200]
    as_they_stand = read_trace(file)
    assert as_they_stand.run.tolist() == [7200, 7200]
    assert "without a zone" in as_they_stand.notes[-1]


def test_the_repeated_hour_is_told_by_the_run_time(tmp_path: Path) -> None:
    day = "2024-11-03T"
    trace = sacct(
        tmp_path,
        f"1|a|x|{day}00:10:00|{day}00:20:00|{day}01:30:00|02:10:00|09:00:00|1|COMPLETED",
        f"2|a|x|{day}00:10:00|{day}01:30:00|{day}02:30:00|01:00:00|09:00:00|1|COMPLETED",
        f"3|a|x|{day}00:10:00|{day}01:40:00|{day}01:20:00|00:40:00|09:00:00|1|COMPLETED",
    )
    assert trace.run.tolist() == [7800, 3600, 2400]
    assert trace.skipped == {}
    assert not any("not as far apart" in note for note in trace.notes)


def test_a_local_time_that_never_was_is_counted(tmp_path: Path) -> None:
    good = "1|a|x|2024-03-10T01:00:00|2024-03-10T01:30:00|2024-03-10T03:30:00|01:00:00|02:00:00|1|COMPLETED"
    trace = sacct(tmp_path, good, good.replace("01:30:00", "02:30:00"))
    assert trace.skipped == {"jobs at a local time that is skipped in spring: another time zone?": 1}
    with pytest.raises(BadInputError, match="no time zone 'Mars/Base'"):
        sacct(tmp_path, good, zone="Mars/Base")


def test_clock_jumps_are_counted(tmp_path: Path) -> None:
    times = "2024-01-08T10:00:00|2024-01-08T10:10:00|2024-01-08T10:20:00"
    trace = sacct(
        tmp_path,
        f"1|a|x|{times}|00:10:00|01:00:00|1|COMPLETED",
        f"2|a|x|{times}|03:10:00|04:00:00|1|COMPLETED",
        "3|a|x|2024-01-08T10:00:00|2024-01-08T09:00:00|2024-01-08T10:20:00|01:20:00|02:00:00|1|COMPLETED",
        "4|a|x|2024-01-08T10:00:00|2024-01-08T11:00:00|2024-01-08T10:20:00|00:20:00|02:00:00|1|COMPLETED",
        "5|a|x|None|2024-01-08T11:00:00|2024-01-08T11:20:00|00:20:00|02:00:00|1|COMPLETED",
        "6|a|x|2024-01-08T10:00:00|2024-01-08T11:00:00|2024-01-08T11:20:00|00:20:00|02:00:00|0|COMPLETED",
    )
    assert trace.number.tolist() == [1, 2]
    assert trace.skipped == {
        "jobs that start before they are submitted": 1,
        "jobs that end before they start": 1,
        "jobs without a time of submission": 1,
        "jobs without nodes": 1,
    }
    assert trace.notes[0].startswith("1 jobs whose start and end are not as far apart")


def test_the_history_of_csm_is_read_in_the_order_of_starts(tmp_path: Path) -> None:
    """The step back from 01:50 to 01:05 shows where the repeated hour begins."""
    day = "2020-11-01 "
    trace = read_trace(
        written(
            tmp_path,
            CSM,
            f"1,11,4,ab,{day}00:59:00.5,{day}01:10:00.5,0,{day}00:50:00.5,pbatch,7200",
            f"2,12,8,ab,{day}01:50:00.5,{day}01:05:00.5,1,{day}01:40:00.5,pbatch,3600",
            f"3,13,2,cd,{day}01:05:00.5,{day}01:55:00.5,0,{day}01:01:00.5,pbatch,3600",
            f"4,14,2,cd,{day}01:06:00.5,{day}02:06:00.5,0,{day}00:50:00.5,pdebug,3600",
        )
    )
    assert trace.zone == "America/Los_Angeles"
    assert trace.number.tolist() == [11, 12, 13]
    assert trace.run.tolist() == [660, 900, 3000]
    assert trace.submit.tolist() == [0, 3000, 4260]
    assert trace.request.tolist() == [7200, 3600, 3600]
    assert trace.skipped == {"jobs of other queues than pbatch": 1}
    assert trace.notes[0] == "1 jobs failed while they ran: kept, as long as they ran"
    assert "autumn" in trace.notes[1]


def test_flux_is_read_as_a_table_and_as_json_lines(tmp_path: Path) -> None:
    names = ("id", "t_submit", "t_run", "t_cleanup", "nnodes", "duration", "result")
    rows = [
        ("f1", 100.5, 110.0, 150.0, 4, 60.0, "COMPLETED"),
        ("f2", 90.5, 0.0, 150.0, 4, 0.0, "CANCELED"),
        ("f3", 120.5, 130.0, 140.0, 1, 0.0, "FAILED"),
    ]
    jobs = [dict(zip(names, row, strict=True)) for row in rows]
    as_lines = read_trace(written(tmp_path, *map(json.dumps, jobs), "[1, 2]"))
    as_table = read_trace(written(tmp_path, ",".join(names), *(",".join(map(str, row)) for row in rows)))
    for trace in (as_lines, as_table):
        assert trace.submit.tolist() == [0, 20]
        assert trace.run.tolist() == [40, 10]
        assert trace.request[0] == 60
        assert np.isnan(trace.request[1])
        assert trace.epoch == 100.5
        assert trace.skipped["jobs that were cancelled or failed before they ran"] == 1
    assert as_lines.skipped["lines that are no row of Flux"] == 1


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"job_id,submit_time,start_time,nodes_req\n", "no job that can be scheduled: it is empty"),
        (b"JobID|Submit|Start|NNodes\n1|2\n", "is no log of Slurm"),
        (b'{"jobs": []}\n', "a line per job"),
        (b"when,who\n1,2\n", "is no trace in Standard Workload Format"),
        (gzip.compress(b"JobID|Submit|Start|NNodes\n" * 500)[:40], "damaged gzip"),
        (b'job_id,submit_time,start_time,nodes_req\n"' + b"x\n" * 200_000, "is no log of Slurm"),
    ],
    ids=["empty", "too few columns", "one document", "another table", "cut gzip", "endless quote"],
)
def test_what_is_no_log_is_refused_in_a_line(tmp_path: Path, content: bytes, message: str) -> None:
    file = tmp_path / "wrong"
    file.write_bytes(content)
    with pytest.raises(UnreadableFileError, match=message) as raised:
        read_trace(file)
    assert "\n" not in str(raised.value)


def test_a_real_export_is_read_whole(shared_data: Path) -> None:
    trace = read_trace(shared_data / "jobs" / "eagle_1000_jobs.csv", "America/Denver")
    assert (len(trace), trace.skipped) == (1000, {})
    assert trace.has_requests()
    assert trace.notes[0].startswith("15 jobs were killed at their limit")
    local = trace.local_times()
    assert local is not None
    assert str(local[0]) == "2019-01-01 08:55:55"
