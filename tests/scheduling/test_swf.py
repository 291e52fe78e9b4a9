"""Traces are read as they are; what cannot be scheduled is counted, and what is no trace is refused in one line."""

import gzip
from pathlib import Path

import numpy as np
import pytest

from perf_assets.core.errors import UnreadableFileError
from perf_assets.scheduling.traces.swf import read_swf
from tests.scheduling.traces import line, write


def test_jobs_come_in_the_order_of_submission(tmp_path: Path) -> None:
    trace = read_swf(write(tmp_path / "a.swf", line(1, 50, 7, 2, 60), line(2, 20, 0, 1, user=5), line(3, 20, 9, 8)))
    assert trace.number.tolist() == [2, 3, 1]
    assert trace.submit.tolist() == [0, 0, 30]
    assert trace.run.tolist() == [1, 9, 7]
    assert trace.nodes.tolist() == [1, 8, 2]
    assert trace.user.tolist() == [5, 1, 1]
    assert np.isnan(trace.request[:2]).all()
    assert trace.request[2] == 60
    assert trace.most_nodes == 8
    assert trace.skipped == {}
    assert len(trace.notes) == 2


def test_gzip_is_found_by_content(tmp_path: Path) -> None:
    plain = write(tmp_path / "a.swf", line(1, 0, 7, 2))
    packed = tmp_path / "b.swf"
    packed.write_bytes(gzip.compress(plain.read_bytes()))
    assert read_swf(packed).run.tolist() == [7]


def test_what_cannot_be_scheduled_is_counted(tmp_path: Path) -> None:
    lines = [line(1, 0, 7, 2), "1 2 3", line(2, -5, 7, 2), line(3, 5, -1, 2), line(4, 5, 7, -1), "x " * 18]
    lines += [line(5, 6, 7, -1, asked_nodes=3), line(6, 7, 7, 2).replace("7", "nan", 1), *[line(7, 9, 1, 1)] * 3]
    trace = read_swf(write(tmp_path / "a.swf", *lines))
    assert trace.number.tolist() == [1, 5, 7, 7, 7]
    assert trace.nodes.tolist() == [2, 3, 1, 1, 1]
    assert trace.skipped == {
        "lines that are not 18 numbers (first: line 6)": 3,
        "jobs with a negative submission time": 1,
        "jobs with a negative or unknown run time": 1,
        "jobs without nodes": 1,
    }


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"", "holds no job"),
        (b"; only\n; comments\n", "holds no job"),
        (b"app,args,seconds\na,b,1\n", "is no trace"),
        (bytes(range(256)), "is no trace"),
        (gzip.compress(b"; a\n" * 1000, mtime=0)[:30], "damaged gzip"),
        ((line(1, 0, -1, 2) + "\n").encode(), "no job that can be scheduled"),
    ],
)
def test_what_is_no_trace_is_refused(tmp_path: Path, content: bytes, said: str) -> None:
    file = tmp_path / "wrong.swf"
    file.write_bytes(content)
    with pytest.raises(UnreadableFileError, match=said):
        read_swf(file)


def test_real_traces_are_read_whole(shared_data: Path) -> None:
    trace = read_swf(shared_data / "swf" / "KTH-SP2-1996-2.1-cln.swf.gz")
    assert (len(trace), trace.most_nodes, trace.skipped) == (27_992, 100, {})
    assert trace.has_requests()
    assert not read_swf(shared_data / "swf" / "NASA-iPSC-1993-3.1-cln.swf.gz").has_requests()
