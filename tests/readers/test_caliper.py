"""RAJAPerf's Caliper profiles: real ones of three Caliper versions, and the defects they have."""

import json
import shutil
import time
from pathlib import Path

import pytest

from perf_assets.core.errors import UnreadableFileError
from perf_assets.core.measurements import KernelTiming
from perf_assets.readers.caliper_profile import PERSONAL
from perf_assets.readers.read import read
from tests.peers import caliper_files

EXPECTED = {
    "cali_quartz_O3_01": (
        "quartz_cali/gcc_O3/GCC_1031_BaseSeq_O3_8388608_01.cali",
        ("inclusive#sum#time.duration.ns", 1e-9),
        "any#",
    ),
    "cali_lassen_b128": (
        "lassen_cali/1048576/Base_CUDA-block_128.cali",
        ("avg#inclusive#sum#time.duration", 1.0),
        "any#any#max#",
    ),
}


def by_kernel(path: Path) -> dict[str, KernelTiming]:
    timings = read(path).timings
    found = {timing.kernel: timing for timing in timings}
    assert len(found) == len(timings)
    return found


@pytest.mark.parametrize("name", EXPECTED)
def test_real_file_equals_the_expected_values(shared_data: Path, name: str) -> None:
    file, (time_name, factor), prefix = EXPECTED[name]
    expected = json.loads((shared_data / "rajaperf" / "expected" / f"{name}.json").read_text())
    reading = read(shared_data / "rajaperf" / file)
    assert reading.format == "caliper"
    timings = {timing.kernel: timing for timing in reading.timings}
    assert timings.keys() == expected["leaf"].keys()
    for kernel, leaf in expected["leaf"].items():
        timing, reps = timings[kernel], leaf[f"{prefix}Reps"]
        assert timing.problem_size == leaf[f"{prefix}ProblemSize"]
        assert timing.reps == reps
        assert timing.bytes_per_rep == leaf[f"{prefix}Bytes/Rep"]
        assert timing.flops_per_rep == leaf[f"{prefix}Flops/Rep"]
        assert timing.seconds_per_rep == pytest.approx(leaf[time_name] * factor / reps, rel=1e-9)
        assert timing.is_valid
        assert timing.variant == expected["globals"]["variant"]
        if "quartz" in name:
            assert timing.counters["Retiring"] == leaf["any#topdown.retiring"]
            assert timing.counters["L1 bound"] == leaf["any#topdown.l1_bound"]
            assert len(timing.counters) == 14
    for key, value in expected["globals"].items():
        if PERSONAL.search(key):
            assert key not in reading.metadata
        elif len(value) <= 2000:
            assert reading.metadata[key] == value


def test_threads_are_those_the_variant_used(shared_data: Path) -> None:
    folder = shared_data / "rajaperf"
    assert {t.threads for t in read(folder / "quartz_cali" / "gcc_O0").timings} == {1}
    assert {t.threads for t in read(folder / "lassen_cali" / "1048576").timings} == {None}
    openmp = folder / "epyc-vm_2024" / "t2_s100000_quiet" / "RAJA_OpenMP-default.cali"
    assert {t.threads for t in read(openmp).timings} == {2}


def test_every_real_file_is_read_and_runs_are_apart(shared_data: Path) -> None:
    for folder, count in (("quartz_cali", 15), ("lassen_cali", 16)):
        timings = read(shared_data / "rajaperf" / folder).timings
        assert len({timing.run for timing in timings}) == count
        assert all(timing.is_valid for timing in timings)
        assert len({(t.run, t.kernel, t.variant, t.tuning) for t in timings}) == len(timings)


def test_own_runs_agree_with_the_reports_beside_them(shared_data: Path, tmp_path: Path) -> None:
    """Also with two passes, where the later pass carries the facts of another kernel."""
    for run in ("t1_s100000", "t1_s4000000", "t2_s1000000"):
        folder = shared_data / "rajaperf" / "epyc-vm_2024" / run
        reports = {(t.kernel, t.variant, t.tuning): t for t in read(folder).timings}
        alone = tmp_path / run
        alone.mkdir()
        for file in folder.glob("*.cali"):
            shutil.copy(file, alone)
        reading = read(alone)
        assert reading.format == "caliper"
        assert len(reading.timings) >= 4 * 60
        ratios = []
        for timing in reading.timings:
            report = reports[(timing.kernel, timing.variant, timing.tuning)]
            assert timing.problem_size == pytest.approx(report.problem_size, rel=1e-5)
            assert timing.reps == report.reps
            assert timing.bytes_per_rep == pytest.approx(report.bytes_per_rep, rel=1e-5)
            assert timing.flops_per_rep == pytest.approx(report.flops_per_rep, rel=1e-5)
            assert timing.is_valid == report.is_valid
            if timing.seconds_per_rep and report.seconds_per_rep:
                ratios.append(timing.seconds_per_rep / report.seconds_per_rep)
        ratios.sort()
        # RAJAPerf's timer includes the annotation, microseconds that weigh only in short kernels.
        assert ratios[len(ratios) // 2] == pytest.approx(1, abs=0.02)
        assert ratios[0] > 0.85
        assert ratios[-1] <= 1


def test_copies_are_read_once(shared_data: Path, tmp_path: Path) -> None:
    file = shared_data / "rajaperf" / EXPECTED["cali_lassen_b128"][0]
    shutil.copy(file, tmp_path / "a.cali")
    shutil.copy(file, tmp_path / "b.cali")
    assert {timing.run for timing in read(tmp_path).timings} == {"a.cali"}


@pytest.mark.slow
def test_same_records_as_caliper_reader(shared_data: Path) -> None:
    files = sorted((shared_data / "rajaperf" / "quartz_cali").rglob("*.cali"))
    for file, theirs in zip(files, caliper_files(*files), strict=True):
        timings = by_kernel(file)
        leaves = [r for r in theirs.records if isinstance(r.get("region"), list) and len(r["region"]) == 3]
        assert len(leaves) == len(timings)
        for leaf in leaves:
            timing = timings[leaf["region"][2]]
            seconds = float(leaf["inclusive#sum#time.duration.ns"]) * 1e-9 / float(leaf["any#Reps"])
            assert timing.seconds_per_rep == pytest.approx(seconds, rel=1e-12)
        metadata = read(file).metadata
        for key, value in theirs.globals.items():
            assert metadata.get(key, value) == value


STREAM = """__rec=node,id=12,attr=10,data=64,parent=3
__rec=node,id=13,attr=8,data=attribute.alias,parent=12
__rec=node,id=14,attr=8,data=attribute.unit,parent=12
__rec=node,id=20,attr=10,data=276,parent=3
__rec=node,id=21,attr=8,data=region,parent=20
__rec=node,id=30,attr=13,data=Avg time/rank,parent=5
__rec=node,id=31,attr=14,data=sec,parent=30
__rec=node,id=32,attr=8,data=avg#scale#time.duration.ns,parent=31
__rec=node,id=33,attr=13,data=Reps,parent=5
__rec=node,id=34,attr=8,data=any#Reps,parent=33
__rec=node,id=40,attr=21,data=RAJAPerf
__rec=node,id=41,attr=21,data=Basic,parent=40
__rec=node,id=42,attr=21,data=Basic_\\,ODD\\=\\\\NAME,parent=41
__rec=ctx,ref=42,attr=32=34,data=1.5=3
__rec=node,id=50,attr=8,data=variant,parent=12
__rec=node,id=51,attr=8,data=cali.channel,parent=12
__rec=node,id=52,attr=50,data=Base_OpenMP
__rec=node,id=53,attr=51,data=spot,parent=52
__rec=globals,ref=53
"""


def test_escapes_and_a_unit_that_contradicts_the_name(tmp_path: Path) -> None:
    file = tmp_path / "x"
    file.write_text(STREAM)
    (timing,) = read(file).timings
    assert timing.kernel == "Basic_,ODD=\\NAME"
    assert timing.seconds_per_rep == 0.5
    assert timing.threads is None
    assert timing.tuning == "default"


def test_long_chains_and_escapes_take_no_time(tmp_path: Path) -> None:
    chain = "".join(f"__rec=node,id={n},attr=8,data=a,parent={n - 1}\n" for n in range(1000, 60_000))
    many = "__rec=globals,ref=" + "=".join(str(n) for n in range(1000, 60_000)) + "\n"
    escaped = "__rec=node,id=999,attr=50,data=" + "x\\," * 300_000 + "\n"
    file = tmp_path / "x.cali"
    file.write_text(chain + STREAM + escaped + many)
    started = time.process_time()
    read(file)
    assert time.process_time() - started < 5


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (("=1.5=3", "=1.5"), "1 values for 2"),
        (("=1.5=3", "=fast=3"), "bad number"),
        (("ref=42,", "ref=99,"), "bad record"),
        (("attr=32=34", "attr=32=99"), "bad record"),
        (("id=41,", "id=40,"), "defined twice"),
        (("__rec=globals,ref=53\n", ""), "cut off"),
        (("ref=53\n", "ref=53"), "cut off"),
        (("__rec=node,id=52", "hello"), "not a Caliper record"),
        (("data=276", "data=x"), "bad record"),
    ],
)
def test_damaged_file_is_refused(tmp_path: Path, change: tuple[str, str], message: str) -> None:
    file = tmp_path / "x.cali"
    file.write_text(STREAM.replace(*change))
    with pytest.raises(UnreadableFileError, match=message):
        read(file)


def test_a_profile_of_another_application_is_none_of_rajaperf(tmp_path: Path) -> None:
    file = tmp_path / "x.cali"
    file.write_text(STREAM.replace("RAJAPerf", "OtherApp"))
    with pytest.raises(UnreadableFileError, match="nothing of kind rajaperf, but: Caliper profile of an application"):
        read(file, "rajaperf")
    file.write_text(STREAM.replace("ref=42", "ref=41"))
    with pytest.raises(UnreadableFileError, match="no kernel of RAJAPerf"):
        read(file)


@pytest.mark.parametrize(
    ("seconds", "reps", "reason"), [("0", "3", "below"), ("1", "0", "Reps 0"), ("nan", "3", "no mean")]
)
def test_unusable_times_are_kept_as_invalid(tmp_path: Path, seconds: str, reps: str, reason: str) -> None:
    file = tmp_path / "x.cali"
    file.write_text(STREAM.replace("=1.5=3", f"={seconds}={reps}"))
    (timing,) = read(file).timings
    assert not timing.is_valid
    assert timing.seconds_per_rep is None
    assert timing.invalid_reason is not None
    assert reason in timing.invalid_reason


def test_extremes_over_ranks_are_kept(tmp_path: Path, shared_data: Path) -> None:
    file = shared_data / "rajaperf" / EXPECTED["cali_lassen_b128"][0]
    (theirs,) = caliper_files(file)
    kernels = {record["path"][2]: record for record in theirs.records if len(record.get("path", ())) == 3}
    for timing in read(file).timings:
        record, reps = kernels[timing.kernel], timing.reps or 0
        for extreme, seconds in (("min", timing.seconds_per_rep_min), ("max", timing.seconds_per_rep_max)):
            expected = float(record[f"{extreme}#inclusive#sum#time.duration"]) / reps
            assert seconds == pytest.approx(expected, rel=1e-9)
    quartz = shared_data / "rajaperf" / EXPECTED["cali_quartz_O3_01"][0]
    assert {timing.seconds_per_rep_min for timing in read(quartz).timings} == {None}


def test_sizes_of_six_digits_get_their_digits_from_the_metadata(tmp_path: Path) -> None:
    file = tmp_path / "x.cali"
    text = STREAM.replace("attr=32=34,data=1.5=3", "attr=32=34=36,data=1.5=3=1.04858e+06").replace(
        "__rec=node,id=40,",
        "__rec=node,id=35,attr=13,data=ProblemSize,parent=5\n__rec=node,id=36,attr=8,data=any#ProblemSize,parent=35\n"
        "__rec=node,id=40,",
    )
    file.write_text(text)
    assert read(file).timings[0].problem_size == 1048580
    asked = "__rec=node,id=60,attr=8,data=ProblemSizeRunParam,parent=12\n__rec=node,id=61,attr=60,data={},parent=53\n"
    for size, restored in (("1048576", 1048576), ("1048576.000000", 1048576), ("2000000", 1048580), ("0", 1048580)):
        told = text.replace("__rec=globals,ref=53", asked.format(size) + "__rec=globals,ref=61")
        file.write_text(told)
        assert read(file).timings[0].problem_size == restored
