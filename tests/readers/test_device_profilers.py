"""Nsight Compute's and rocprofv3's CSV."""

from pathlib import Path

import pytest

from perf_assets.core.catalogue import load_catalogue
from perf_assets.core.errors import UnreadableFileError
from perf_assets.readers.read import read

LONG = """\
==PROF== Connected to process 4711 (/home/ted/bin/app)
"ID","Process ID","Process Name","Host Name","Kernel Name","Metric Name","Metric Unit","Metric Value"
"0","4711","app","gpu12","axpy(double *, int)","smsp__inst_executed.sum","inst","1,234"
"0","4711","app","gpu12","axpy(double *, int)","gpu__time_duration.sum","usecond","2.5"
"0","4711","app","gpu12","axpy(double *, int)","sm__throughput.avg.pct_of_peak_sustained_elapsed","%","48.00"
"1","4711","app","gpu12","dot","smsp__inst_executed.sum","inst","766"
"1","4711","app","gpu12","dot","dram__bytes_read.sum","Kbyte","1.5"
==PROF== Disconnected from process 4711
"""
WIDE = """\
"ID","Process ID","Host Name","Kernel Name","smsp__inst_executed.sum","launch__grid_size","sm__cycles_elapsed.avg"
"","","","","inst","","cycle"
"0","1","gpu12","axpy","1000","32","9"
"1","2","gpu12","axpy","3000","64","9"
"""
COUNTERS = """\
"Correlation_Id","Dispatch_Id","Agent_Id","Queue_Id","Process_Id","Kernel_Name","Counter_Name","Counter_Value"
1,1,4,1,77,"axpy(double*, int)","SQ_WAVES",16.0
1,1,4,1,77,"axpy(double*, int)","SQ_INSTS_VMEM_RD",100.0
2,2,4,1,77,"dot","SQ_WAVES",8.0
2,2,4,1,77,"dot","SQ_INSTS_VMEM_RD",50.0
"""
KERNELS = """\
"Kind","Agent_Id","Kernel_Name","Correlation_Id","Start_Timestamp","End_Timestamp"
"KERNEL_DISPATCH",4,"axpy",1,1000,1500
"KERNEL_DISPATCH",4,"dot",2,2000,2100
"""
COPIES = """\
"Kind","Direction","Source_Agent_Id","Destination_Agent_Id","Correlation_Id","Start_Timestamp","End_Timestamp"
"MEMORY_COPY","MEMORY_COPY_HOST_TO_DEVICE",0,4,1,10,40
"MEMORY_COPY","DEVICE_TO_HOST",4,0,2,50,55
"""


def test_metrics_of_kernels_are_added_up_in_base_units(tmp_path: Path) -> None:
    file = tmp_path / "ncu.csv"
    file.write_text(LONG)
    reading = read(file)
    (profile,) = reading.profiles
    assert reading.format == "nsight-compute-csv"
    found = {name: (total.sum, total.unit) for name, total in profile.metrics.items()}
    assert found == {
        "smsp__inst_executed.sum": (2000, "count"),
        "gpu__time_duration.sum": (2500, "ns"),
        "dram__bytes_read.sum": (1500, "bytes"),
    }
    assert profile.labels == {"kernels": "2", "program": "app"}


def test_a_line_per_kernel_and_processes_as_ranks(tmp_path: Path) -> None:
    file = tmp_path / "ncu.csv"
    file.write_text(WIDE)
    (profile,) = read(file).profiles
    assert profile.ranks == 2
    assert profile.metrics["smsp__inst_executed.sum"].mean_over_ranks == 2000
    assert profile.metrics["launch__grid_size.sum"].sum == 96
    assert "sm__cycles_elapsed.avg" not in profile.metrics


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (LONG.replace('"766"', '"7,66"'), "LC_ALL=C"),
        (LONG.replace(".sum", ".avg"), "can be added up"),
        (WIDE[:-12], "cut off"),
    ],
)
def test_bad_reports_of_nsight_compute_are_refused(tmp_path: Path, text: str, message: str) -> None:
    file = tmp_path / "ncu.csv"
    file.write_text(text)
    with pytest.raises(UnreadableFileError, match=message):
        read(file)


def test_files_of_rocprof_in_one_folder_are_ranks_of_one_run(tmp_path: Path) -> None:
    for process in ("77", "78"):
        (tmp_path / f"{process}_counter_collection.csv").write_text(COUNTERS)
        (tmp_path / f"{process}_kernel_trace.csv").write_text(KERNELS)
        (tmp_path / f"{process}_memory_copy_trace.csv").write_text(COPIES)
    reading = read(tmp_path)
    (profile,) = reading.profiles
    assert (reading.format, profile.ranks) == ("rocprofv3-csv", 2)
    assert {name: total.mean_over_ranks for name, total in profile.metrics.items()} == {
        "SQ_WAVES": 24,
        "SQ_INSTS_VMEM_RD": 150,
        "kernels": 2,
        "kernel_ns": 600,
        "hip_memcpy_h2d_ns": 30,
        "hip_memcpy_d2h_ns": 5,
    }


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (COUNTERS[:-9], "cut off"),
        (COUNTERS.replace("8.0", "many"), "instead of a finite number"),
        (KERNELS.replace("2100", "1900"), "ends before it starts"),
        (COUNTERS.partition("\n")[0] + "\n", "holds no kernel"),
    ],
)
def test_bad_files_of_rocprof_are_refused(tmp_path: Path, text: str, message: str) -> None:
    file = tmp_path / "1_counter_collection.csv"
    file.write_text(text)
    with pytest.raises(UnreadableFileError, match=message):
        read(file)


def test_device_metrics_stand_for_quantities() -> None:
    catalogue = load_catalogue()
    nvidia = ["smsp__thread_inst_executed.sum", "smsp__inst_executed_op_global_ld.sum", "launch__grid_size.sum"]
    assert {f.quantity for f in catalogue.resolve(nvidia, None)} == {"instructions", "loads", "device_blocks"}
    amd = ["SQ_INSTS_BRANCH", "SQ_INSTS_VMEM_RD", "SQ_INSTS_VMEM_WR", "SQ_WAVES", "TCC_MISS_sum"]
    found = {f.quantity for f in catalogue.resolve(amd, None)}
    assert found == {"branches", "loads", "stores", "device_blocks", "l2_load_misses"}
