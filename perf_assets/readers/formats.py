"""Kind of a file, from its first bytes and never from its name."""

import re
from enum import Enum


class FileKind(Enum):
    """Files that are understood; the value is what a person calls them."""

    RAJAPERF_TIMING = "RAJAPerf timing report"
    RAJAPERF_DETAILS = "RAJAPerf kernel details"
    RAJAPERF_RUN_DATA = "RAJAPerf kernel run data"
    RAJAPERF_CHECKSUM = "RAJAPerf checksum report"
    RAJAPERF_OTHER = "RAJAPerf report without data of its own"
    RAJAPERF_LOG = "RAJAPerf standard output"
    COMMAND = "command line of a run"
    CALIPER = "Caliper profile of RAJAPerf"
    CALIPER_APPLICATION = "Caliper profile of an application"
    HPCTOOLKIT_XML = "HPCToolkit experiment.xml"
    HPCTOOLKIT_METRIC_DB = "HPCToolkit metric-db"
    HPCTOOLKIT_V4_META = "HPCToolkit v4 meta.db"
    HPCTOOLKIT_V4_PROFILE = "HPCToolkit v4 profile.db"
    HPCTOOLKIT_V4_OTHER = "HPCToolkit v4 file"
    HPCTOOLKIT_SPARSE = "HPCToolkit pre-v4 sparse database"
    PAPI = "PAPI high-level output"
    PERF_CSV = "perf stat CSV"
    PERF_JSON = "perf stat JSON lines"
    VALGRIND = "Cachegrind or Callgrind output"
    CROSS_MODELLING = "cross-modelling results.json"
    LIKWID = "LIKWID output"
    NSIGHT_COMPUTE = "Nsight Compute CSV"
    ROCPROF_COUNTERS = "rocprofv3 counters"
    ROCPROF_TRACE = "rocprofv3 trace"
    SACCT = "job records of Slurm"
    SLURM_CSV = "job records of Slurm in CSV"
    FLUX_JOBS = "job records of Flux"
    PARQUET = "Parquet table"
    TABLE = "text table"

    __hash__ = object.__hash__
    """Every member is one object, and the hash that `Enum` has is slow."""


UNDERSTOOD = (
    "RAJAPerf reports, Caliper .cali files, HPCToolkit databases (experiment.xml, v4), PAPI high-level JSON, "
    "perf stat -x or -j, LIKWID, Nsight Compute and rocprofv3 CSV, Cachegrind, Callgrind, "
    "cross-modelling results.json, job records (sacct -P, CSV of Slurm's accounting, flux jobs --json), and tables in "
    "CSV or Parquet"
)

_LOOK_BYTES = 4096
_MAGIC = (
    (b"HPCPROF-metricdb__", FileKind.HPCTOOLKIT_METRIC_DB),
    (b"HPCTOOLKITmeta", FileKind.HPCTOOLKIT_V4_META),
    (b"HPCTOOLKITprof", FileKind.HPCTOOLKIT_V4_PROFILE),
    (b"HPCTOOLKIT", FileKind.HPCTOOLKIT_V4_OTHER),
    (b"HPCPROF-", FileKind.HPCTOOLKIT_SPARSE),
    (b"__rec=", FileKind.CALIPER),
    (b"PAR1", FileKind.PARQUET),
    (b"# callgrind format", FileKind.VALGRIND),
    (b"# started on ", FileKind.PERF_CSV),
    (b"FOM Report", FileKind.RAJAPERF_OTHER),
)
_REPORT_TITLE = re.compile(rb"^(?:Kernels run (?:without MPI|on \d+ MPI)|(?:Mean|Min|Max) (?:Runtime|Speedup) Report)")
_NEXT_REPORT = re.compile(rb"\n[ \t]*\n(?:Kernels run |(?:Mean|Min|Max) (?:Runtime|Speedup) Report|=====)")
_CHECKSUM = re.compile(rb"^=+\s+Checksum Report")
_LOG = re.compile(rb"^[ \t]*(?:Reading command line input|RAJA performance suite|Running kernels? )", re.MULTILINE)
_LOG_WORDS = (b"Reading command line input", b"RAJA performance suite", b"Running kernel")
"""One of them is in what `_LOG` finds; looking for words is cheap, for beginnings of lines it is not."""
_COMMAND = re.compile(rb"^[^\n]{0,400}\bOMP_NUM_THREADS=\d+(?=\s|$)")
_VALGRIND = re.compile(rb"^(?:version: \d|creator: |desc: |cmd: |mtime: )[^\n]*\n(?s:.*?)^events: ", re.MULTILINE)
_PERF_VALUE = rb"(?:[\d.]+|<not supported>|<not counted>)"
_PERF_CSV = re.compile(
    rb"\A(?:#[^\n]*\n|[ \t\r]*\n)*"
    + _PERF_VALUE
    + rb"([,;\t])[\w/%-]*\1[A-Za-z][\w.:/,=-]*\1(?:[\d.]+%\1)?\d+\1[\d.]+(?:\1|\s)"
)
_LIKWID = re.compile(
    rb"^(?:TABLE,(?:Region [^,\n]*,)?Group \d+ Raw,|STRUCT,Info,|CPU name:[\t,][^\n]*\nCPU type:|"
    rb"\|[ ]+Event[ ]+\|[ ]+Counter[ ]+\|)",
    re.MULTILINE,
)
_NSIGHT_COMPUTE = re.compile(rb'^"ID","Process ID"[^\n]*"Kernel Name"', re.MULTILINE)
_SACCT = re.compile(rb"\A(?=[^\n]*\bState\b)(?=[^\n]*\bElapsed(?:Raw)?\b)(?:[A-Za-z]+\|)*JobID\|")
_SLURM_CSV = re.compile(rb"\A(?:\xef\xbb\xbf)?(?=[^\n]*\brun_time\b)(?=[^\n]*\bstate\b)(?:\w+,)*job_id,")
_XML = re.compile(rb"^(?:\xef\xbb\xbf)?\s*<(?:\?xml|!DOCTYPE|HPCToolkitExperiment)")


def kind_of(head: bytes) -> FileKind | None:
    """Kind of the file that starts with `head`, unless it is a text table; None where it is unknown."""
    head = head[:_LOOK_BYTES]
    for magic, kind in _MAGIC:
        if head.startswith(magic):
            return kind
    if head[:1] in (b"{", b"["):
        return _json_kind(head)
    if _XML.match(head):
        return FileKind.HPCTOOLKIT_XML if b"HPCToolkitExperiment" in head else None
    return _rajaperf_kind(head) or _text_kind(head)


def _json_kind(head: bytes) -> FileKind | None:
    if b'"papi_version"' in head or (b'"threads"' in head and b'"regions"' in head):
        return FileKind.PAPI
    if b'"counter-value"' in head:
        return FileKind.PERF_JSON
    if b'"machine"' in head and b'"app"' in head and b'"ranks"' in head:
        return FileKind.CROSS_MODELLING
    return FileKind.FLUX_JOBS if b'"t_submit"' in head and b'"result"' in head else None


def _rajaperf_kind(head: bytes) -> FileKind | None:
    if _CHECKSUM.match(head):
        return FileKind.RAJAPERF_CHECKSUM
    title = _REPORT_TITLE.match(head)
    if title is None:
        return None
    if _NEXT_REPORT.search(head) or b"Speedup" in title[0]:
        return FileKind.RAJAPERF_OTHER
    if b"Runtime" in title[0]:
        return FileKind.RAJAPERF_TIMING
    second_line = head.partition(b"\n")[2].partition(b"\n")[0]
    return FileKind.RAJAPERF_RUN_DATA if b"Mean time per rep" in second_line else FileKind.RAJAPERF_DETAILS


def _text_kind(head: bytes) -> FileKind | None:
    if b"\0" in head:
        return None
    if kind := _profiler_kind(head):
        return kind
    if _PERF_CSV.match(head):
        return FileKind.PERF_CSV
    if _VALGRIND.match(head):
        return FileKind.VALGRIND
    if any(words in head for words in _LOG_WORDS) and _LOG.search(head):
        return FileKind.RAJAPERF_LOG
    return FileKind.COMMAND if _COMMAND.match(head) else None


def _profiler_kind(head: bytes) -> FileKind | None:
    """Tables of counters and jobs, recognised by their header."""
    first_line = head.partition(b"\n")[0]
    if b"Counter_Name" in first_line and b"Dispatch_Id" in first_line:
        return FileKind.ROCPROF_COUNTERS
    if b"Start_Timestamp" in first_line and (b"Kernel_Name" in first_line or b"Direction" in first_line):
        return FileKind.ROCPROF_TRACE
    if _SACCT.match(head):
        return FileKind.SACCT
    if b"job_id" in first_line and _SLURM_CSV.match(head):
        return FileKind.SLURM_CSV
    if b"Kernel Name" in head and _NSIGHT_COMPUTE.search(head):
        return FileKind.NSIGHT_COMPUTE
    is_likwid = any(word in head for word in (b"TABLE,", b"STRUCT,", b"CPU name:", b" Event ")) and _LIKWID.search(head)
    return FileKind.LIKWID if is_likwid else None
