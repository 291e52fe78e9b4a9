"""RAJAPerf CSV reports: real runs of both generations, and everything that can be odd about them."""

import csv
import shutil
from pathlib import Path

import pytest

from perf_assets.core.errors import UnreadableFileError
from perf_assets.core.measurements import KernelTiming, Reading
from perf_assets.readers.read import read

RUNS_2024 = (
    "heavy_t1_s100000",
    "heavy_t2_s100000",
    "subset_t2_sizefact",
    "t1_s100000",
    "t1_s1000000",
    "t1_s4000000",
    "t2_s1000000",
    "t2_s100000_quiet",
    "t2_s4000000",
)
OWN_RUNS = ("heavy_t2_s100000", "subset_t2_sizefact")
"""Runs that the repository has."""
TIMER_SECONDS = 1e-6
"""Resolution of the timing reports."""


def by_key(reading: Reading) -> dict[tuple[str, str, str], KernelTiming]:
    found = {(timing.kernel, timing.variant, timing.tuning): timing for timing in reading.timings}
    assert len(found) == len(reading.timings)
    return found


def about(cell: str, tolerance: float) -> object:
    return pytest.approx(float(cell), rel=tolerance) if cell else None


def assert_equals_expected(reading: Reading, expected: Path, tolerance: float) -> None:
    timings = by_key(reading)
    with expected.open() as stream:
        rows = list(csv.DictReader(stream))
    assert {(row["kernel"], row["variant"], row["tuning"]) for row in rows} == timings.keys()
    for row in rows:
        timing = timings[(row["kernel"], row["variant"], row["tuning"])]
        reps = int(row["reps"])
        assert timing.problem_size == int(row["problem_size"])
        assert timing.reps == reps
        assert timing.ranks == int(row["mpi_ranks"])
        assert timing.bytes_per_rep == int(row["bytes_per_rep"])
        assert timing.flops_per_rep == int(row["flops_per_rep"])
        assert timing.is_valid == (row["valid"] == "1")
        assert (timing.invalid_reason is None) == timing.is_valid
        assert timing.seconds_per_rep == about(row["time_per_rep_s"], tolerance)
        for seconds, total in (
            (timing.seconds_per_rep_min, row["time_min_s"]),
            (timing.seconds_per_rep_max, row["time_max_s"]),
        ):
            assert seconds == (pytest.approx(float(total) / reps, rel=1e-9) if total and reps else None)


@pytest.mark.parametrize("run", OWN_RUNS)
def test_own_2024_run_equals_the_expected_values(own_data: Path, run: str) -> None:
    assert_run_equals_expected(own_data / "rajaperf", run)


@pytest.mark.parametrize("run", [run for run in RUNS_2024 if run not in OWN_RUNS])
def test_real_2024_run_equals_the_expected_values(shared_data: Path, run: str) -> None:
    assert_run_equals_expected(shared_data / "rajaperf", run)


def assert_run_equals_expected(folder: Path, run: str) -> None:
    reading = read(folder / "epyc-vm_2024" / run)
    assert reading.format == "rajaperf-csv-2024"
    assert_equals_expected(reading, folder / "expected" / f"rajaperf_{run}.csv", 1e-9)
    threads = 2 if "t2" in run else 1
    for timing in reading.timings:
        assert timing.threads == (threads if "OpenMP" in timing.variant else 1)
    assert reading.metadata["compiler"] == "c++-12.2.0"
    assert reading.metadata["command"].startswith(f"OMP_NUM_THREADS={threads} ")


def test_custom_prefix_names_the_run(own_data: Path) -> None:
    reading = read(own_data / "rajaperf" / "epyc-vm_2024" / "subset_t2_sizefact")
    assert {timing.run for timing in reading.timings} == {"myprefix"}


def test_tree_of_runs_keeps_them_apart(shared_data: Path) -> None:
    reading = read(shared_data / "rajaperf" / "epyc-vm_2024")
    runs = {timing.run for timing in reading.timings}
    assert runs == {f"{run}/{'myprefix' if 'subset' in run else 'RAJAPerf'}" for run in RUNS_2024}
    assert reading.metadata["compiler"] == "c++-12.2.0"
    assert "command" not in reading.metadata


def test_real_2026_run_equals_the_expected_values(shared_data: Path, tmp_path: Path) -> None:
    folder = shared_data / "rajaperf"
    for file in (folder / "h100_csv_2026").glob("VOL3D_factor_64-*"):
        shutil.copy(file, tmp_path)
    reading = read(tmp_path)
    assert reading.format == "rajaperf-csv-2026"
    assert_equals_expected(reading, folder / "expected" / "rajaperf2026_H100_VOL3D_factor_64.csv", 1e-6)
    base = by_key(reading)[("Apps_VOL3D", "Base_CUDA", "block_256")]
    assert base.threads is None
    assert base.run == "VOL3D_factor_64"
    for file in tmp_path.glob("*-timing-*"):
        file.unlink()
    assert by_key(read(tmp_path))[("Apps_VOL3D", "Base_CUDA", "block_256")].seconds_per_rep == 3.76826e-06


def test_every_2026_run_of_a_crowded_directory_is_read(shared_data: Path) -> None:
    folder = shared_data / "rajaperf" / "h100_csv_2026"
    prefixes = {file.name.removesuffix("-kernel-run-data.csv") for file in folder.glob("*-kernel-run-data.csv")}
    reading = read(folder)
    assert {timing.run for timing in reading.timings} == prefixes
    for timing in reading.timings:
        assert timing.is_valid
        assert timing.ranks == 4
        assert timing.seconds_per_rep is not None
        assert timing.reps is not None
        if timing.seconds_per_rep_min is not None:
            assert abs(timing.seconds_per_rep_min - timing.seconds_per_rep) <= TIMER_SECONDS / timing.reps


KERNELS = """Kernels run without MPI
Kernels     ,    Problem size ,    Reps ,    Iterations/rep , Kernels/rep ,    Bytes/rep ,    FLOPS/rep
Basic_DAXPY ,            1000 ,      50 ,              1000 ,           1 ,        24000 ,         2000
Stream_DOT  ,            1000 ,       0 ,              1000 ,           1 ,        16000 ,         2000
"""
TIMING = """Mean Runtime Report (sec.)  ,  ,  ,
Kernel      , Base_Seq , Base_Seq , RAJA_Seq
Kernel      , default  , library  , default
Basic_DAXPY , 0.005000 ,  Not run , 0.000000
Stream_DOT  , 0.000023 ,  Not run ,  Not run
"""
DETAILS_2026 = """Kernels run on 4 MPI ranks
Kernel      ,    Problem size ,    Reps ,    Iterations/rep ,    Kernels/rep ,    BytesMoved/rep ,    FLOPS/rep
Basic_DAXPY ,            1000 ,      50 ,              1000 ,              1 ,             24000 ,         2000
"""
RUN_DATA = """Kernels run on 4 MPI ranks
Kernel      , Variant  , Tuning  , Problem size , Checksum , Mean time per rep (sec.) , Mean Bandwidth (GiB per sec.)
Basic_DAXPY , Base_Seq , default ,         1000 , PASSED   ,              0.000100000 , 1.0
Basic_DAXPY , RAJA_Seq , default ,         1000 , FAILED   ,              0.000200000 , 1.0
"""


def write(folder: Path, **files: str) -> Path:
    for name, text in files.items():
        file = folder / (name.replace("__", "-") + (".txt" if "checksum" in name else ".csv"))
        file.write_text(text)
    return folder


def test_what_was_not_run_is_absent_and_reps_0_is_invalid(tmp_path: Path) -> None:
    timings = by_key(read(write(tmp_path, P__kernels=KERNELS, P__timing__Average=TIMING)))
    assert timings.keys() == {("Basic_DAXPY", "Base_Seq", "default"), ("Stream_DOT", "Base_Seq", "default")}
    assert timings[("Basic_DAXPY", "Base_Seq", "default")].seconds_per_rep == 0.0001
    no_reps = timings[("Stream_DOT", "Base_Seq", "default")]
    assert no_reps.seconds_per_rep is None
    assert not no_reps.is_valid
    assert no_reps.invalid_reason == "no repetition was run (Reps 0)"


def test_zero_time_of_what_the_checksums_know_is_too_short(tmp_path: Path) -> None:
    checksum = "===\nChecksum Report \n===\nKernel\n.....\nVariants Checksum Diff\n----\nBasic_DAXPY\n....\n"
    checksum += "Base_Seq-default  10.0  0.0\nBase_Seq-library  Not Run  Not Run\nRAJA_Seq-default 10.0 0.0\n"
    folder = write(tmp_path, P__kernels=KERNELS, P__timing__Average=TIMING, P__checksum=checksum)
    timing = by_key(read(folder))[("Basic_DAXPY", "RAJA_Seq", "default")]
    assert not timing.is_valid
    assert timing.invalid_reason == "time below the resolution of the report"


def test_wrong_2024_checksum_is_invalid(tmp_path: Path) -> None:
    checksum = "===\nChecksum Report \n===\nBasic_DAXPY\n....\nBase_Seq-default  10.0  0.5\n"
    folder = write(tmp_path, P__kernels=KERNELS, P__timing__Average=TIMING, P__checksum=checksum)
    assert by_key(read(folder))[("Basic_DAXPY", "Base_Seq", "default")].invalid_reason == "checksum FAILED"


def test_failed_2026_checksum_is_invalid(tmp_path: Path) -> None:
    folder = write(tmp_path, P__kernel__details=DETAILS_2026, P__kernel__run__data=RUN_DATA)
    timings = by_key(read(folder))
    assert timings[("Basic_DAXPY", "Base_Seq", "default")].is_valid
    failed = timings[("Basic_DAXPY", "RAJA_Seq", "default")]
    assert failed.invalid_reason == "checksum FAILED"
    assert failed.seconds_per_rep == 0.0002


@pytest.mark.parametrize(
    ("total", "per_rep", "seconds"),
    [("0.005007", "0.000100000", 1e-4), ("0.000099", "0.000100000", 1e-4), ("0.005007", "0.000000000", 0.00010014)],
)
def test_2026_time_is_of_the_run_data_where_they_have_one(
    tmp_path: Path, total: str, per_rep: str, seconds: float
) -> None:
    timing = f"Mean Runtime Report (sec.)  ,\nVariant     , Base_Seq\nTuning      , default\nBasic_DAXPY , {total}\n"
    run_data = RUN_DATA.replace("0.000100000", per_rep)
    folder = write(tmp_path, P__kernel__details=DETAILS_2026, P__kernel__run__data=run_data, P__timing__Average=timing)
    assert by_key(read(folder))[("Basic_DAXPY", "Base_Seq", "default")].seconds_per_rep == pytest.approx(seconds)


def test_names_of_files_do_not_matter(tmp_path: Path) -> None:
    (tmp_path / "a").write_text(KERNELS)
    (tmp_path / "b.dat").write_text(TIMING)
    assert {timing.run for timing in read(tmp_path).timings} == {"."}


def test_threads_of_the_command_file_are_those_of_openmp(tmp_path: Path) -> None:
    write(tmp_path, P__kernels=KERNELS, P__timing__Average=TIMING.replace("RAJA_Seq", "RAJA_OpenMP"))
    (tmp_path / "P-timing-Average.csv").write_text(TIMING.replace("RAJA_Seq", "Base_OpenMP").replace("0.000000", "0.1"))
    (tmp_path / "how.txt").write_text("OMP_NUM_THREADS=36 ./raja-perf.exe\n")
    timings = by_key(read(tmp_path))
    assert timings[("Basic_DAXPY", "Base_OpenMP", "default")].threads == 36
    assert timings[("Basic_DAXPY", "Base_Seq", "default")].threads == 1


def test_aborted_run_beside_finished_ones_is_named(tmp_path: Path) -> None:
    write(tmp_path, A__kernels=KERNELS, A__timing__Average=TIMING)
    (tmp_path / "later").mkdir()
    write(tmp_path / "later", B__kernels=KERNELS)
    reading = read(tmp_path)
    assert {timing.run for timing in reading.timings} == {"A"}
    assert reading.metadata["aborted_runs"] == "later/B"


@pytest.mark.parametrize(
    ("files", "message"),
    [
        ({"P__kernels": KERNELS}, "aborted"),
        ({"P__timing__Average": TIMING}, "needs the kernels.csv"),
        ({"P__kernels": KERNELS, "P__timing__Average": TIMING[:-40]}, "cut off"),
        ({"P__kernels": KERNELS, "P__timing__Average": TIMING[:-1]}, "cut off"),
        ({"P__kernels": KERNELS, "P__timing__Average": TIMING.rpartition("Stream_DOT")[0]}, "lacks the kernel"),
        ({"P__kernels": KERNELS[:-1], "P__timing__Average": TIMING}, "cut off"),
        ({"P__kernels": KERNELS.rpartition("Stream_DOT")[0], "P__timing__Average": TIMING}, "no details"),
        ({"P__kernels": KERNELS, "P__timing__Average": TIMING.replace("0.005000", "-0.00500")}, "negative"),
        ({"P__kernels": KERNELS, "P__timing__Average": TIMING.replace("0.005000", "nan     ")}, "not finite"),
        ({"P__kernels": KERNELS, "P__timing__Average": TIMING.replace("0.005000", "fast    ")}, "'fast'"),
        ({"P__kernels": KERNELS.replace("  50 ", "1e30 "), "P__timing__Average": TIMING}, "whole number"),
        ({"P__kernels": KERNELS.replace("    Reps ,", ""), "P__timing__Average": TIMING}, "'Reps'"),
        ({"P__kernels": KERNELS, "P__timing__Average": TIMING.replace("library", "default")}, "twice"),
        ({"P__kernels": KERNELS, "P__timing__Average": TIMING, "P__timing__Mean": TIMING}, "second Mean"),
        ({"P__kernels": KERNELS + "Stream_DOT,1,1,1,1,1,1\n", "P__timing__Average": TIMING}, "twice"),
    ],
)
def test_damaged_reports_are_refused(tmp_path: Path, files: dict[str, str], message: str) -> None:
    with pytest.raises(UnreadableFileError, match=message):
        read(write(tmp_path, **files))


def test_reports_without_any_run_are_refused(tmp_path: Path) -> None:
    timing = TIMING.replace("0.005000", "Not run ").replace("0.000023", "Not Run ")
    with pytest.raises(UnreadableFileError, match="no kernel that was run"):
        read(write(tmp_path, P__kernels=KERNELS, P__timing__Average=timing))


def test_log_alone_is_an_aborted_run(tmp_path: Path) -> None:
    (tmp_path / "stdout.log").write_text("\n\nReading command line input...\nCompiler: g++\n")
    with pytest.raises(UnreadableFileError, match="aborted"):
        read(tmp_path)
