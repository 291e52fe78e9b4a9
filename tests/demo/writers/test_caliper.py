from pathlib import Path

from perf_assets.demo.writers.caliper import write_caliper
from tests.demo.writers.conftest import benchmark_run, contents, kernel_run
from tests.peers import CaliperFile, caliper_files

RUN = benchmark_run(
    (
        kernel_run("Basic_DAXPY", "Base_CUDA", "block_256", bytes_per_rep=40000016),
        kernel_run("Basic_INIT3", "Base_CUDA", "block_256", pass_seconds=(0.5,)),
        kernel_run("Stream_TRIAD", "Base_CUDA", "block_256", pass_seconds=(0.25,)),
        kernel_run("Stream_TRIAD", "Base_Seq", "default", pass_seconds=(3.0,)),
    ),
    ranks=4,
)


def test_one_file_per_variant_and_tuning(tmp_path: Path) -> None:
    write_caliper(tmp_path, RUN)
    assert sorted(contents(tmp_path)) == ["Base_CUDA-block_256.cali", "Base_Seq-default.cali"]


def test_caliper_reads_the_kernels(tmp_path: Path) -> None:
    write_caliper(tmp_path, RUN)
    (theirs,) = caliper_files(tmp_path / "Base_CUDA-block_256.cali")
    by_path = {tuple(record.get("path", ())): record for record in theirs.records}
    assert set(by_path) == {
        (),
        ("RAJAPerf",),
        ("RAJAPerf", "Basic"),
        ("RAJAPerf", "Basic", "Basic_DAXPY"),
        ("RAJAPerf", "Basic", "Basic_INIT3"),
        ("RAJAPerf", "Stream"),
        ("RAJAPerf", "Stream", "Stream_TRIAD"),
    }
    kernel = by_path[("RAJAPerf", "Basic", "Basic_DAXPY")]
    times = {kind: float(kernel[f"{kind}#inclusive#sum#time.duration"]) for kind in ("min", "max", "avg", "sum")}
    assert times == {"min": 0.002508, "max": 0.002508, "avg": 0.002508, "sum": 0.010032}
    facts = {name.rpartition("#")[2]: float(value) for name, value in kernel.items() if name.startswith("any#")}
    assert facts == {
        "BlockSize": 256,
        "Bytes/Rep": 40000016,
        "Flops/Rep": 200000,
        "Iterations/Rep": 100000,
        "Kernels/Rep": 1,
        "ProblemSize": 100000,
        "Reps": 50,
    }
    group = by_path[("RAJAPerf", "Basic")]
    assert float(group["avg#inclusive#sum#time.duration"]) == 0.502508


def test_caliper_reads_the_run(tmp_path: Path) -> None:
    write_caliper(tmp_path, RUN)
    found = caliper_files(tmp_path / "Base_Seq-default.cali")[0].globals
    expected = {
        "cluster": "quartz",
        "variant": "Base_Seq",
        "tuning": "default",
        "omp_max_threads": "2",
        "launchdate": "1790000000",
        "ProblemSizeRunParam": "100000.000000",
        "compiler": "c++-12.2.0",
        "compiler_version": "12.2.0",
    }
    assert {name: found[name] for name in expected} == expected
    assert found["cmdline"].startswith("[/opt/rajaperf/bin/raja-perf.exe,--outdir,")
    assert "--size,100000,--repfact,0.1]" in found["cmdline"]


def test_several_passes_add_up_and_the_command_tells(tmp_path: Path) -> None:
    write_caliper(tmp_path, benchmark_run((kernel_run("Basic_DAXPY", pass_seconds=(1.0, 2.0)),), passes=2))
    (theirs,) = caliper_files(tmp_path / "Base_Seq-default.cali")
    assert float(theirs.records[-1]["avg#inclusive#sum#time.duration"]) == 3.0
    assert "--npasses,2," in theirs.globals["cmdline"]


def test_same_run_same_bytes(tmp_path: Path) -> None:
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        write_caliper(tmp_path / name, RUN)
    assert contents(tmp_path / "one") == contents(tmp_path / "two")


def test_attributes_are_those_of_the_real_file(tmp_path: Path, shared_data: Path) -> None:
    def attributes(file: CaliperFile) -> dict[str, dict[str, object]]:
        return {name: values for name, values in file.attributes.items() if not name.startswith("cali.attribute")}

    write_caliper(tmp_path, RUN)
    real = shared_data / "rajaperf/lassen_cali/1048576/Base_CUDA-block_1024.cali"
    ours, theirs = map(attributes, caliper_files(tmp_path / "Base_CUDA-block_256.cali", real))
    assert {name: theirs[name] for name in ours} == ours
    only_there = {
        "machine_build",
        "systype_build",
        "gpu_targets_block_sizes",
        "cuda_compiler_version",
        "Compiler_path_version",
        "cmake_exe_linker_flags",
        "rajaperf_compiler_options",
        "libraries",
    }
    assert theirs.keys() - ours.keys() == only_there


def test_records_have_the_real_columns(tmp_path: Path, shared_data: Path) -> None:
    write_caliper(tmp_path, RUN)
    real = shared_data / "rajaperf/lassen_cali/1048576/Base_CUDA-block_1024.cali"
    ours, theirs = (
        {tuple(sorted(record)) for record in file.records}
        for file in caliper_files(tmp_path / "Base_CUDA-block_256.cali", real)
    )
    assert ours == theirs
