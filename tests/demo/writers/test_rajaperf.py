"""RAJAPerf's reports of both generations: real reports are read cell by cell, written again and compared."""

from collections.abc import Callable
from pathlib import Path

import pytest

from perf_assets.demo.simulated import BenchmarkRun
from perf_assets.demo.writers.rajaperf_2024 import write_rajaperf_2024
from perf_assets.demo.writers.rajaperf_2026 import write_rajaperf_2026
from tests.demo.writers.conftest import benchmark_run, contents, kernel_run

Writer = Callable[[Path, BenchmarkRun], None]
WRITERS: list[Writer] = [write_rajaperf_2024, write_rajaperf_2026]
FIELDS = {
    "Problem size": "problem_size",
    "Reps": "reps",
    "Iterations/rep": "iterations_per_rep",
    "Kernels/rep": "kernels_per_rep",
    "Bytes/rep": "bytes_per_rep",
    "BytesMoved/rep": "bytes_per_rep",
    "FLOPS/rep": "flops_per_rep",
    "BytesRead/rep": "bytes_read_per_rep",
    "BytesWritten/rep": "bytes_written_per_rep",
    "BytesAtomicModifyWritten/rep": "bytes_atomic_per_rep",
}


def cells_of(path: Path) -> list[list[str]]:
    return [[cell.strip() for cell in line.split(",")] for line in path.read_text().splitlines()]


def real_run(directory: Path, prefix: str, details: str, combiners: tuple[str, ...]) -> BenchmarkRun:
    """A run from its real reports; two passes if there are minima and maxima."""
    (title,), head, *rows = cells_of(directory / f"{prefix}-{details}.csv")
    seconds: dict[tuple[str, str, str], list[float]] = {}
    for combiner in combiners:
        _, variants, tunings, *lines = cells_of(directory / f"{prefix}-timing-{combiner}.csv")
        for kernel, *times in lines:
            for variant, tuning, time in zip(variants[1:], tunings[1:], times, strict=True):
                if time != "Not run":
                    seconds.setdefault((kernel, variant, tuning), []).append(float(time))
    columns = list(zip(variants[1:], tunings[1:], strict=True))
    kernels = []
    for kernel, *cells in rows:
        facts = {FIELDS[name]: int(cell) for name, cell in zip(head[1:], cells, strict=True) if name in FIELDS}
        kernels += [
            kernel_run(kernel, *column, **facts, pass_seconds=tuple(seconds[(kernel, *column)]))
            for column in columns
            if (kernel, *column) in seconds
        ]
    ranks = int(title.split()[3]) if " on " in title else 0
    # The order of columns is that of the suite, not that of the first kernel that has them.
    kernels.sort(key=lambda run: columns.index((run.variant, run.tuning)))
    order = [row[0] for row in rows]
    kernels.sort(key=lambda run: order.index(run.kernel))
    return benchmark_run(tuple(kernels), ranks=ranks, passes=len(combiners))


@pytest.mark.parametrize(
    ("directory", "prefix", "combiners", "same"),
    [
        (
            "epyc-vm_2024/subset_t2_sizefact",
            "myprefix",
            ("Average",),
            ("timing-Average.csv", "speedup-Average.csv", "fom.csv", "kernels.csv"),
        ),
        ("epyc-vm_2024/t2_s4000000", "RAJAPerf", ("Average",), ("timing-Average.csv", "kernels.csv")),
        (
            "epyc-vm_2024/t1_s100000",
            "RAJAPerf",
            ("Minimum", "Maximum"),
            ("timing-Minimum.csv", "timing-Maximum.csv", "kernels.csv"),
        ),
    ],
)
def test_real_2024_reports_come_out_again(
    tmp_path: Path, shared_data: Path, directory: str, prefix: str, combiners: tuple[str, ...], same: tuple[str, ...]
) -> None:
    real = shared_data / "rajaperf" / directory
    write_rajaperf_2024(tmp_path, real_run(real, prefix, "kernels", combiners))
    for report in same:
        assert (tmp_path / f"RAJAPerf-{report}").read_text() == (real / f"{prefix}-{report}").read_text()
    written = {path.name.removeprefix("RAJAPerf-") for path in tmp_path.iterdir()}
    present = {path.name.removeprefix(f"{prefix}-") for path in real.iterdir() if path.suffix != ".cali"}
    assert written == present


@pytest.mark.parametrize("prefix", ["MASS3DEA_factor_128", "INTSC_HEXRECT_factor_16", "MASS3DPA_ATOMIC_factor_1"])
def test_real_2026_reports_come_out_again(tmp_path: Path, shared_data: Path, prefix: str) -> None:
    real = shared_data / "rajaperf/h100_csv_2026"
    write_rajaperf_2026(tmp_path, real_run(real, prefix, "kernel-details", ("Average",)))
    timing = "timing-Average.csv"
    assert (tmp_path / f"RAJAPerf-{timing}").read_text() == (real / f"{prefix}-{timing}").read_text()
    for report in ("kernel-details.csv", "kernel-run-data.csv", "fom.csv", "speedup-Average.csv"):
        ours, theirs = (tmp_path / f"RAJAPerf-{report}").read_text(), (real / f"{prefix}-{report}").read_text()
        assert outline(ours) == outline(theirs)


def outline(text: str) -> list[list[int]]:
    """Where the commas stand in each line: the widths of all columns."""
    return [[place for place, letter in enumerate(line) if letter == ","] for line in text.splitlines()]


@pytest.mark.parametrize(
    ("writer", "sample", "kernel", "columns", "ranks"),
    [
        (
            write_rajaperf_2024,
            "epyc-vm_2024/heavy_t2_s100000/RAJAPerf",
            "Polybench_FLOYD_WARSHALL",
            [(f"{kind}_{model}", "default") for model in ("Seq", "OpenMP") for kind in ("Base", "RAJA")],
            0,
        ),
        (
            write_rajaperf_2026,
            "h100_csv_2026/VOL3D_factor_16",
            "Apps_VOL3D",
            [("Base_CUDA", "block_256"), ("RAJA_CUDA", "block_256")],
            4,
        ),
    ],
)
def test_checksum_report_is_like_the_real_one(
    tmp_path: Path,
    shared_data: Path,
    writer: Writer,
    sample: str,
    kernel: str,
    columns: list[tuple[str, str]],
    ranks: int,
) -> None:
    writer(tmp_path, benchmark_run(tuple(kernel_run(kernel, *column) for column in columns), ranks=ranks))
    real = Path(f"{shared_data / 'rajaperf' / sample}-checksum.txt").read_text()
    ours = (tmp_path / "RAJAPerf-checksum.txt").read_text()
    start = real.index(f"\n{kernel} ")
    block = real[start : real.index("\n---", start) + 57]
    assert shape(ours) == shape(real[: real.index("-\n") + 1] + block)


def shape(text: str) -> list[str]:
    """Lines with every number as one letter per digit."""
    return ["".join("0" if letter.isdigit() else letter for letter in line) for line in mask_checksums(text)]


def mask_checksums(text: str) -> list[str]:
    """Lines with checksums, which are as long as their first digits make them, cut to the decimal point."""
    words = [line.split(" ") for line in text.splitlines()]
    return [
        " ".join(
            "0." if word.strip("-.") and "." in word and word.lstrip("-")[0].isdigit() else word
            for word in line
            if word
        )
        for line in words
    ]


@pytest.mark.parametrize("writer", WRITERS)
def test_passes_are_combined(tmp_path: Path, writer: Writer) -> None:
    runs = (
        kernel_run("Basic_DAXPY", "Base_Seq", pass_seconds=(0.1, 0.3)),
        kernel_run("Basic_DAXPY", "RAJA_Seq", pass_seconds=(0.2, 0.2)),
        kernel_run("Stream_TRIAD", "Base_Seq", pass_seconds=(1.0, 12.0)),
    )
    writer(tmp_path, benchmark_run(runs, passes=2))
    found = {c: cells_of(tmp_path / f"RAJAPerf-timing-{c}.csv")[3:] for c in ("Average", "Minimum", "Maximum")}
    assert found["Average"] == [["Basic_DAXPY", "0.200000", "0.200000"], ["Stream_TRIAD", "6.500000", "Not run"]]
    assert found["Minimum"] == [["Basic_DAXPY", "0.100000", "0.200000"], ["Stream_TRIAD", "1.000000", "Not run"]]
    assert found["Maximum"] == [["Basic_DAXPY", "0.300000", "0.200000"], ["Stream_TRIAD", "12.000000", "Not run"]]


@pytest.mark.parametrize("writer", WRITERS)
def test_one_pass_has_an_average_only_and_no_base_no_figure_of_merit(tmp_path: Path, writer: Writer) -> None:
    writer(tmp_path, benchmark_run((kernel_run("Basic_DAXPY", "RAJA_Seq"),), ranks=36))
    names = {path.name for path in tmp_path.iterdir()}
    assert not {name for name in names if "Minimum" in name or "Maximum" in name or "fom" in name}
    details = "kernels" if writer is write_rajaperf_2024 else "kernel-details"
    assert (tmp_path / f"RAJAPerf-{details}.csv").read_text().startswith("Kernels run on 36 MPI ranks\n")
    assert (tmp_path / "cmd.txt").read_text().startswith("OMP_NUM_THREADS=2 srun -n 36 ")


@pytest.mark.parametrize("writer", WRITERS)
def test_kernels_without_repetitions_and_wrong_results_are_reported(tmp_path: Path, writer: Writer) -> None:
    runs = (
        kernel_run("Basic_DAXPY", reps=0, pass_seconds=(0.000023,)),
        kernel_run("Stream_TRIAD"),
        kernel_run("Stream_TRIAD", "RAJA_Seq", is_checksum_ok=False),
    )
    writer(tmp_path, benchmark_run(runs))
    lines = (tmp_path / "RAJAPerf-checksum.txt").read_text().splitlines()
    wrong = [line.split() for line in lines if line.startswith("RAJA_Seq-default")][-1]
    if writer is write_rajaperf_2026:
        assert wrong[1] == "FAILED"
        rows = cells_of(tmp_path / "RAJAPerf-kernel-run-data.csv")
        assert [row[4] for row in rows[2:]] == ["PASSED", "PASSED", "FAILED"]
        assert rows[2][5] == "inf"
    else:
        assert float(wrong[2]) > 0.01 * float(wrong[1])


@pytest.mark.parametrize("writer", WRITERS)
def test_same_run_same_bytes(tmp_path: Path, writer: Writer) -> None:
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        writer(tmp_path / name, benchmark_run((kernel_run("Basic_DAXPY"),)))
    assert contents(tmp_path / "one") == contents(tmp_path / "two")
