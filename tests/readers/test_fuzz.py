"""Damaged files: a clear error or a result, never anything else, never a hang, never much memory.

`PERF_ASSETS_FUZZ_EXAMPLES` sets the number of mutated inputs (a few hundred by default).
"""

import math
import os
import random
import time
import tracemalloc
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from perf_assets.core.errors import UnreadableFileError
from perf_assets.core.measurements import Reading
from perf_assets.readers.read import read
from tests.readers import test_device_profilers as devices
from tests.readers import test_job_records as jobs
from tests.readers import test_likwid as likwid
from tests.readers.databases import meta_db, profile_db, write_metric_dbs, write_v4
from tests.readers.test_caliper import STREAM
from tests.readers.test_papi import document
from tests.readers.test_perf_and_valgrind import PERF
from tests.readers.test_rajaperf_csv import KERNELS, TIMING
from tests.readers.test_samples import TABLE

EXAMPLES = int(os.environ.get("PERF_ASSETS_FUZZ_EXAMPLES", "400"))
METRICS = ("REALTIME (sec)", "PAPI_TOT_INS", "IO Bytes Read")
VALUES = {(rank, thread): (1.0 + rank, 100.0 * thread, 7.0) for rank in range(3) for thread in range(2)}
MAX_SECONDS = 5.0
FREE_BYTES = 100 * 2**20


def check(reading: Reading) -> None:
    """A result must be one that the tables can hold."""
    for profile in reading.profiles:
        assert profile.ranks >= 1
        assert profile.threads_per_rank >= 1
        assert profile.wall_seconds is None or 0 < profile.wall_seconds < math.inf
        for total in profile.metrics.values():
            assert all(map(math.isfinite, (total.sum, total.mean_over_ranks, total.min, total.max)))
    for timing in reading.timings:
        assert timing.is_valid == (timing.invalid_reason is None)
        for value in (timing.seconds_per_rep, timing.bytes_per_rep, timing.flops_per_rep):
            assert value is None or 0 <= value < math.inf
        assert timing.problem_size is None or 0 <= timing.problem_size < 2**63


def attempt(path: Path) -> None:
    # Processor time: how long it takes beside other work says nothing of the reader.
    started = time.process_time()
    message = ""
    try:
        check(read(path))
    except UnreadableFileError as error:
        message = str(error)
    assert "\n" not in message
    assert message.encode().decode() == message
    assert time.process_time() - started < MAX_SECONDS


def mutated(data: bytes, seed: random.Random) -> bytes:
    """The file with some bytes changed, cut out, repeated or replaced by telling numbers."""
    result = bytearray(data)
    for _ in range(seed.choice((1, 1, 2, 5, 20))):
        if not result:
            break
        at = seed.randrange(len(result))
        action = seed.randrange(7)
        if action == 0:
            result[at] = seed.randrange(256)
        elif action == 1:
            result[at] ^= 1 << seed.randrange(8)
        elif action == 2:
            del result[at:]
        elif action == 3:
            del result[at : at + seed.choice((1, 2, 8, 100))]
        elif action == 4:
            result[at:at] = result[at : at + seed.choice((1, 8, 48, 500))]
        elif action == 5:
            width = seed.choice((1, 2, 4, 8))
            value = seed.choice((0, 1, 2 ** (8 * width) - 1, 2 ** (8 * width - 1), len(result), len(result) - 1))
            result[at : at + width] = (value % 2 ** (8 * width)).to_bytes(width, seed.choice(("little", "big")))
        else:
            result[at : at + 5] = seed.choice((b"nan", b"1e999", b"-1", b"\xff\xfe", b"", b"[[[[[", b'"', b"\n", b","))
    return bytes(result)


def made_databases(folder: Path) -> Iterator[tuple[Path, str]]:
    """Directories with a file in each to be damaged."""
    yield write_v4(folder / "v4p", METRICS, VALUES, [(1.0, 2.0, 3.0)]), "profile.db"
    yield write_v4(folder / "v4m", METRICS, VALUES), "meta.db"
    xml = write_metric_dbs(folder / "xml", METRICS, VALUES)
    yield xml, "experiment.xml"
    database = write_metric_dbs(folder / "db", METRICS, VALUES)
    yield database, next(iter(sorted(database.glob("*.metric-db")))).name


def real_databases(shared: Path, folder: Path) -> Iterator[tuple[Path, str]]:
    for name, damaged in (
        ("v4_pingpong", ("profile.db", "meta.db")),
        ("cpi", ("experiment.xml", "1.cpi-000000-000-a8c00270-160443-0.metric-db")),
        ("xml_only_flash4", ("experiment.xml",)),
    ):
        for file in damaged:
            copy = folder / f"{name}-{file}"
            copy.mkdir()
            for source in (shared / "hpctoolkit" / name).iterdir():
                if source.is_file() and source.name not in ("trace.db", "cct.db"):
                    (copy / source.name).write_bytes(source.read_bytes()[:300_000])
            yield copy, file


def resident_bytes(field: str) -> int:
    """Memory of this process as Linux sees it: VmRSS now, VmHWM at its peak."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith(f"{field}:"))


def fuzz(cases: list[tuple[Path, str]], examples: int, seed: int) -> None:
    generator = random.Random(seed)
    originals = [(folder, folder / name, (folder / name).read_bytes()) for folder, name in cases]
    attempt(originals[0][0])
    before = resident_bytes("VmRSS")
    Path("/proc/self/clear_refs").write_text("5")
    for number in range(examples):
        folder, file, data = originals[number % len(originals)]
        file.write_bytes(mutated(data, generator))
        attempt(folder)
        file.write_bytes(data)
    largest = max(len(data) for *_, data in originals)
    assert resident_bytes("VmHWM") - before < 4 * largest + FREE_BYTES


def test_mutated_made_databases(tmp_path: Path) -> None:
    fuzz(list(made_databases(tmp_path)), EXAMPLES, seed=1)


def test_mutated_real_databases(shared_data: Path, tmp_path: Path) -> None:
    fuzz(list(real_databases(shared_data, tmp_path)), EXAMPLES, seed=2)


def test_mutated_texts(tmp_path: Path) -> None:
    import json

    texts = {
        "cali": STREAM, "papi": json.dumps(document({"X": "5"}, threads=2)), "perf": PERF, "table": TABLE,
        "likwid": likwid.TEXT, "likwid-csv": likwid.CSV, "ncu": devices.LONG, "ncu-raw": devices.WIDE,
        "rocprof": devices.COUNTERS, "rocprof-trace": devices.COPIES, "sacct": jobs.SACCT,
        "accounting": 'job_id,name,state,run_time,nodes_req\n1,a,COMPLETED,3.5,2\n1,"b,c",COMPLETED,9,4\n',
        "flux": json.dumps(jobs.FLUX), "cali-application": STREAM.replace("RAJAPerf", "main"),
        "cachegrind": "desc: I1 cache: x\ncmd: ./a\nevents: Ir Dr\nfl=a\n1 2\nsummary: 12 34\n",
    }  # fmt: skip
    cases = []
    for name, text in texts.items():
        (tmp_path / name).mkdir()
        (tmp_path / name / "file").write_text(text)
        cases.append((tmp_path / name, "file"))
    reports = tmp_path / "reports"
    reports.mkdir()
    (reports / "P-kernels.csv").write_text(KERNELS)
    (reports / "P-timing-Average.csv").write_text(TIMING)
    fuzz([*cases, (reports, "P-kernels.csv"), (reports, "P-timing-Average.csv")], EXAMPLES, seed=3)


def test_mutated_parquet(tmp_path: Path) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    pq.write_table(pa.table({"x": [1.0, 2.0], "y": [3, None], "app": ["a", "b"]}), tmp_path / "t.parquet")
    fuzz([(tmp_path, "t.parquet")], EXAMPLES // 2, seed=4)


@settings(max_examples=max(50, EXAMPLES // 4), deadline=None, suppress_health_check=list(HealthCheck))
@given(data=st.binary(max_size=400), magic=st.sampled_from((b"HPCTOOLKITprof\x04\x00", b"HPCTOOLKITmeta\x04\x00")))
def test_arbitrary_bytes_behind_a_v4_magic(tmp_path_factory: pytest.TempPathFactory, data: bytes, magic: bytes) -> None:
    folder = tmp_path_factory.mktemp("v4")
    is_profile = b"prof" in magic
    (folder / "meta.db").write_bytes(meta_db(METRICS) if is_profile else magic + data + b"_meta.db")
    (folder / "profile.db").write_bytes(magic + data + b"_prof.db" if is_profile else profile_db(VALUES))
    attempt(folder)


@settings(max_examples=max(50, EXAMPLES // 4), deadline=None, suppress_health_check=list(HealthCheck))
@given(values=st.lists(st.tuples(*[st.floats(0, 1e18)] * 3), min_size=1, max_size=8))
def test_what_is_written_is_read_back(
    tmp_path_factory: pytest.TempPathFactory, values: list[tuple[float, ...]]
) -> None:
    folder = tmp_path_factory.mktemp("both")
    totals = {(number // 2, number % 2): value for number, value in enumerate(values)}
    for profile in (
        *read(write_v4(folder / "v4", METRICS, totals)).profiles,
        *read(write_metric_dbs(folder / "xml", METRICS, totals)).profiles,
    ):
        assert profile.ranks == (len(values) + 1) // 2
        for index, name in enumerate(METRICS):
            column = [value[index] for value in values]
            total = profile.metrics[name]
            assert total.sum == pytest.approx(math.fsum(column), rel=1e-12)
            assert (total.min, total.max) == (min(column), max(column))


def memory_of(action: Callable[[], object]) -> int:
    """Peak of what Python allocates."""
    tracemalloc.start()
    try:
        action()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


@pytest.mark.slow
def test_large_v4_database_stays_on_disk(tmp_path: Path) -> None:
    values = {(rank, thread): (1.0, 2.0, 3.0) for rank in range(200) for thread in range(100)}
    folder = write_v4(tmp_path, METRICS, values)
    peak = memory_of(lambda: attempt(folder))
    assert peak < FREE_BYTES / 4


@pytest.mark.slow
def test_large_table_stays_small(tmp_path: Path) -> None:
    file = tmp_path / "t.csv"
    rows = "\n".join(",".join(str(row * column % 10) for column in range(50)) for row in range(20_000))
    file.write_text(",".join(f"c{column}" for column in range(50)) + "\n" + rows + "\n")
    assert memory_of(lambda: read(file)) < 4 * file.stat().st_size + FREE_BYTES / 4
