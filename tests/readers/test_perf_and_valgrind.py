"""perf stat in both forms, Cachegrind, Callgrind, and results of the cross-modelling scripts."""

import json
from pathlib import Path

import pytest

from perf_assets.core.errors import UnreadableFileError
from perf_assets.core.measurements import Profile
from perf_assets.readers.read import read


def only(path: Path) -> Profile:
    (profile,) = read(path).profiles
    return profile


def text(folder: Path, content: str) -> Path:
    file = folder / "some.file"
    file.write_text(content)
    return file


def test_real_perf_output(own_data: Path) -> None:
    profile = only(own_data / "papi" / "perf_stat.csv")
    total = profile.metrics["task-clock"]
    assert (total.sum, total.unit, total.running_ratio) == (3.92, "msec", 1.0)
    assert profile.metrics.keys() == {"task-clock"}
    assert profile.labels["not_counted"] == "instructions"


PERF = """# started on Mon Nov 16 00:50:28 2026

1083,,page-faults,6113629,100.00,177.145,K/sec
2000,,instructions:u,6113629,49.50,,
<not counted>,,branches,0,0.00,,
1500000000,ns,duration_time,1500000000,100.00,,
"""


def test_perf_csv(tmp_path: Path) -> None:
    profile = only(text(tmp_path, PERF))
    assert read(tmp_path).format == "perf-stat-csv"
    assert {name: total.sum for name, total in profile.metrics.items()} == {
        "page-faults": 1083,
        "instructions:u": 2000,
        "duration_time": 1.5e9,
    }
    assert profile.metrics["instructions:u"].running_ratio == pytest.approx(0.495)
    assert profile.wall_seconds == 1.5


def test_perf_csv_of_repeated_runs_has_a_column_more(tmp_path: Path) -> None:
    lines = (
        "1083,,page-faults,0.94%,6113629,80.00,177.145,K/sec\n3.92,msec,task-clock,1.00%,3920466,100.00,0.452,CPUs\n"
    )
    profile = only(text(tmp_path, lines))
    assert profile.metrics["page-faults"].running_ratio == 0.8
    assert profile.metrics["task-clock"].unit == "msec"


def test_perf_event_that_holds_a_comma(tmp_path: Path) -> None:
    lines = "5,,cpu/event=0x3c,umask=0x0/,6113629,50.00,,\n7,,cpu/event=0x3d,umask=0x1/,0.94%,6113629,80.00,,\n"
    metrics = only(text(tmp_path, "# started on x\n\n" + lines)).metrics
    assert {name: (total.sum, total.running_ratio) for name, total in metrics.items()} == {
        "cpu/event=0x3c,umask=0x0/": (5, 0.5),
        "cpu/event=0x3d,umask=0x1/": (7, 0.8),
    }


def test_perf_json_lines(tmp_path: Path) -> None:
    lines = [
        '{"counter-value" : "1084.000000", "unit" : "", "event" : "page-faults", "event-runtime" : 5078659, '
        '"pcnt-running" : 75.00, "metric-value" : 213.442170, "metric-unit" : "K/sec"}',
        '{"counter-value" : "<not supported>", "unit" : "", "event" : "cycles", "pcnt-running" : 100.00}',
        '{"metric-value" : 1.0, "metric-unit" : "insn per cycle"}',
    ]
    profile = only(text(tmp_path, "\n".join(lines)))
    assert read(tmp_path).format == "perf-stat-json"
    assert profile.metrics["page-faults"].sum == 1084
    assert profile.metrics["page-faults"].running_ratio == 0.75
    assert profile.labels["not_counted"] == "cycles"


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("# started on x\n\n<not supported>,,cycles,0,100.00,,\n", "counted nothing"),
        ("# started on x\n\n1.000123,1083,,page-faults,6113629,100.00,,\n", "without an event"),
        ("# started on x\n\nCPU0,1083,,page-faults,6113629,100.00,,\n", "instead of a finite number"),
        ("# started on x\n\nSegmentation fault\n", "perf stat does not write"),
        ("# started on x\n\n1,,cycles,5,500.00,,\n", "running share"),
        ("# started on x\n\ninf,,cycles,5,100,,\n", "finite"),
        ('{"counter-value" : "1", "event" : "x"}\n{"counter-value" : ', "JSON"),
    ],
)
def test_bad_perf_output_is_refused(tmp_path: Path, content: str, message: str) -> None:
    with pytest.raises(UnreadableFileError, match=message):
        read(text(tmp_path, content))


def test_two_files_in_one_directory_are_runs_by_name(tmp_path: Path) -> None:
    (tmp_path / "a").write_text(PERF)
    (tmp_path / "b").write_text(PERF)
    assert [profile.run for profile in read(tmp_path).profiles] == ["a", "b"]


def test_real_cachegrind_output(own_data: Path) -> None:
    profile = only(own_data / "papi" / "cachegrind.out")
    values = {name: total.sum for name, total in profile.metrics.items()}
    assert values == {
        "Ir": 13761981, "I1mr": 1355, "ILmr": 1335, "Dr": 2126926, "D1mr": 263479, "DLmr": 1009, "Dw": 1583921,
        "D1mw": 65959, "DLmw": 65888, "Bc": 2384981, "Bcm": 3404, "Bi": 309, "Bim": 164,
    }  # fmt: skip
    assert read(own_data / "papi" / "cachegrind.out").format == "cachegrind"
    assert profile.labels["counters"] == "simulated"
    assert profile.labels["program"] == "work"
    assert profile.labels["simulated_LL"] == "268435456 B, 64 B, direct-mapped"


def test_real_callgrind_output_has_another_order_of_events(own_data: Path) -> None:
    reading = read(own_data / "papi" / "callgrind.out")
    values = {name: total.sum for name, total in reading.profiles[0].metrics.items()}
    assert reading.format == "callgrind"
    assert reading.metadata["counters"] == "simulated"
    assert (values["Ir"], values["Dr"], values["Dw"], values["Bim"]) == (13760834, 2125446, 1585403, 165)


def test_parts_of_callgrind_are_added(tmp_path: Path) -> None:
    part = "version: 1\ncreator: callgrind-3.19.0\nthread: {}\nevents: Ir Dr\nfn=(1) f\n1 2\n\ntotals: 5 1\n"
    profile = only(text(tmp_path, "# callgrind format\n" + part.format(1) + part.format(2).replace("5 1", "7")))
    assert profile.metrics["Ir"].sum == 12
    assert profile.metrics["Dr"].sum == 1
    assert profile.threads_per_rank == 2


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("desc: I1 cache: x\ncmd: ./a\nevents: Ir Dr\nfl=a\n1 2\n", "cut off"),
        ("desc: I1 cache: x\ncmd: ./a\nevents: Ir Dr\nfl=a\n1 2\nsummary: 1 x\n", "finite"),
        ("desc: I1 cache: x\ncmd: ./a\nevents: Ir Dr\nfl=a\n1 2\nsummary: 1 -5\n", "negative"),
        ("# callgrind format\nversion: 1\ntotals: 5\n", "no events"),
        ("# callgrind format\nevents: Ir\n" + "x" * 2_000_000, "too long"),
    ],
)
def test_bad_valgrind_output_is_refused(tmp_path: Path, content: str, message: str) -> None:
    with pytest.raises(UnreadableFileError, match=message):
        read(text(tmp_path, content))


RESULTS = {
    "machine": "ruby", "app": "Laghos", "exec": "laghos", "args": "-m x", "ranks": "36", "events": "a b", "path": "/p",
    "modules": [], "duration": "1.5", "PAPI_TOT_INS (I)": 1e9, "EPT ": -1, "clx::ARITH": "-1",
    "REALTIME (sec) (I)": 80.5, "IO Bytes Read": 4096.0,
}  # fmt: skip


def test_cross_modelling_results(tmp_path: Path) -> None:
    (tmp_path / "run1").mkdir()
    (tmp_path / "run1" / "results.json").write_text(json.dumps(RESULTS))
    profile = only(tmp_path)
    assert read(tmp_path).format == "cross-modelling"
    assert (profile.run, profile.ranks, profile.wall_seconds) == ("run1", 36, 80.5)
    assert {name: (t.sum, t.unit) for name, t in profile.metrics.items()} == {
        "PAPI_TOT_INS": (1e9, "count"),
        "REALTIME (sec)": (80.5, "sec"),
        "IO Bytes Read": (4096.0, "bytes"),
    }
    assert profile.labels["app"] == "Laghos"
    assert profile.labels["args"] == "-m x"


def test_list_of_cross_modelling_results(tmp_path: Path) -> None:
    file = text(tmp_path, json.dumps([RESULTS, RESULTS]))
    assert [profile.run for profile in read(file).profiles] == ["some.file#0", "some.file#1"]


@pytest.mark.parametrize(
    "change", [{"ranks": "many"}, {"ranks": 0}, {"ranks": 1.5}, {"PAPI_TOT_INS (I)": "lots"}, {"ranks": None}]
)
def test_bad_cross_modelling_results_are_refused(tmp_path: Path, change: dict[str, object]) -> None:
    with pytest.raises(UnreadableFileError):
        read(text(tmp_path, json.dumps(RESULTS | change)))
