"""Bundles as rows of the record."""

import json
import tracemalloc
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from perf_assets.core.errors import BadInputError, UnreadableFileError
from perf_assets.core.manifest import FileEntry, Manifest
from perf_assets.core.tables.landing import COUNTERS, RECORD_TABLES, RUNS, SPECS, TIMINGS
from perf_assets.readers.bundle import BundleRows, read_bundle
from tests.readers.databases import write_metric_dbs, write_v4
from tests.readers.test_rajaperf_csv import KERNELS, TIMING
from tests.readers.test_samples import TABLE

METRICS = ("REALTIME (sec)", "PAPI_TOT_INS")
VALUES = {(0, 0): (4.0, 100.0), (0, 1): (3.0, 50.0), (1, 0): (5.0, 90.0)}
SPEC = """machine: quartz
name: Quartz
microarchitecture: broadwell
cpu: {model: Xeon, sockets: 2, cores_per_socket: 18, clock_hertz: 2.1e9, simd_bits: 256, fma_units: 2}
caches: {l1_bytes: 32768, l2_bytes: 262144, l3_bytes: 47185920,
         l1_bytes_per_cycle: 64, l2_bytes_per_cycle: 32, l3_bytes_per_cycle: 8}
memory: {capacity_bytes: 1.37e11, bandwidth_bytes_per_second: 1.5e11, latency_seconds: 9.0e-8}
sources: [here]
"""


@dataclass(frozen=True)
class Content:
    """A bundle whose rows have all been made."""

    format: str
    rows: dict[str, list[dict[str, Any]]]


ReadLazily = Callable[..., BundleRows]
Read = Callable[..., Content]


@pytest.fixture
def lazy_bundle(tmp_path: Path) -> ReadLazily:
    """Reads what is in `tmp_path` as a bundle with these facts."""

    def read(**facts: Any) -> BundleRows:
        files = sorted(path for path in tmp_path.rglob("*") if path.is_file())
        entries = [
            FileEntry(path=path.relative_to(tmp_path).as_posix(), size=path.stat().st_size, sha256="0" * 64)
            for path in files
        ]
        given = {"machine": "quartz", "kind": "profile", "app": "Kripke", "files": entries}
        given |= {"collected_at": datetime(2026, 11, 1, 13, tzinfo=UTC)} | facts
        return read_bundle(tmp_path, Manifest.model_validate(given), "f" * 64, "bundle-1")

    return read


@pytest.fixture
def bundle(lazy_bundle: ReadLazily) -> Read:
    """The same, with all rows made."""

    def read(**facts: Any) -> Content:
        content = lazy_bundle(**facts)
        return Content(content.format, {name: list(rows) for name, rows in content.rows.items()})

    return read


def check_columns(content: Content) -> None:
    columns = {table.name: table.column_names() for table in RECORD_TABLES}
    for name, rows in content.rows.items():
        for row in rows:
            assert sorted(row) == sorted(columns[name])
            assert (row["machine"], row["bundle"], row["bundle_digest"]) == ("quartz", "bundle-1", "f" * 64)


def test_profile(tmp_path: Path, bundle: Read) -> None:
    write_v4(tmp_path, METRICS, VALUES)
    content = bundle(args="--zones 8", tags={"simulated": "true"})
    check_columns(content)
    assert content.format == "hpctoolkit-v4"
    (run,) = content.rows[RUNS.name]
    assert run["run"] == "."
    assert (run["app"], run["args"], run["ranks"], run["threads"], run["nodes"]) == ("Kripke", "--zones 8", 2, 2, 2)
    assert (run["wall_seconds"], run["gpus"], run["is_simulated"]) == (5.0, None, True)
    assert run["collected_at"] == datetime(2026, 11, 1, 13)  # noqa: DTZ001
    assert json.loads(run["labels"]) == {"program": "prog", "database_version": "4.0"}
    counters = {row["counter"]: row for row in content.rows[COUNTERS.name]}
    assert counters.keys() == set(METRICS)
    assert counters["PAPI_TOT_INS"]["value_sum"] == 240
    assert counters["PAPI_TOT_INS"]["value_mean_over_ranks"] == 120


def test_manifest_wins_over_the_files(tmp_path: Path, bundle: Read) -> None:
    write_metric_dbs(tmp_path, METRICS, VALUES)
    content = bundle(ranks=4, threads=8, nodes=1, gpus=2, wall_seconds=7.5)
    (run,) = content.rows[RUNS.name]
    assert [run[name] for name in ("ranks", "threads", "nodes", "gpus", "wall_seconds")] == [4, 8, 1, 2, 7.5]
    assert {row["value_mean_over_ranks"] for row in content.rows[COUNTERS.name]} == {3.0, 60.0}


def test_sets_of_counters_are_runs(tmp_path: Path, bundle: Read) -> None:
    write_v4(tmp_path / "set1", METRICS, VALUES)
    write_v4(tmp_path / "set2", METRICS, VALUES)
    assert [row["run"] for row in bundle().rows[RUNS.name]] == ["set1", "set2"]


def test_only_listed_files_are_read(tmp_path: Path, bundle: Read) -> None:
    write_v4(tmp_path / "set1", METRICS, VALUES)
    entries = [FileEntry(path=f"set1/{name}", size=1, sha256="0" * 64) for name in ("meta.db", "profile.db")]
    write_v4(tmp_path / "set2", METRICS, VALUES)
    assert [row["run"] for row in bundle(files=entries).rows[RUNS.name]] == ["set1"]
    missing = [*entries, FileEntry(path="set1/cct.db", size=1, sha256="0" * 64)]
    with pytest.raises(UnreadableFileError, match=r"set1/cct\.db: is listed"):
        bundle(files=missing)


def test_link_out_of_the_bundle_is_not_followed(tmp_path: Path, bundle: Read, tmp_path_factory: Any) -> None:
    outside = write_v4(tmp_path_factory.mktemp("outside"), METRICS, VALUES)
    for name in ("meta.db", "profile.db"):
        (tmp_path / name).symlink_to(outside / name)
    with pytest.raises(UnreadableFileError, match="not a file there"):
        bundle()


def test_rajaperf(tmp_path: Path, bundle: Read) -> None:
    (tmp_path / "P-kernels.csv").write_text(KERNELS)
    (tmp_path / "P-timing-Average.csv").write_text(TIMING.replace("RAJA_Seq", "Base_OpenMP").replace("0.000000", "0.1"))
    content = bundle(kind="rajaperf", app=None, threads=36, ranks=1)
    check_columns(content)
    assert content.format == "rajaperf-csv-2024"
    rows = {(row["kernel"], row["variant"]): row for row in content.rows[TIMINGS.name]}
    assert rows[("Basic_DAXPY", "Base_OpenMP")]["threads"] == 36
    assert rows[("Basic_DAXPY", "Base_Seq")]["threads"] == 1
    assert rows[("Basic_DAXPY", "Base_Seq")]["ranks"] == 0
    assert not rows[("Stream_DOT", "Base_Seq")]["is_valid"]


def test_samples(tmp_path: Path, bundle: Read) -> None:
    (tmp_path / "t.csv").write_text(TABLE)
    content = bundle(kind="samples", app="Kripke", target="PAPI_TOT_INS", gpus=1, threads=9, args="none")
    check_columns(content)
    first, second = content.rows[RUNS.name]
    assert (first["run"], first["app"], first["args"], first["ranks"]) == ("t.csv#0", "Laghos", "-m 1", 4)
    assert (first["threads"], first["nodes"], first["gpus"], first["wall_seconds"]) == (2, 1, 0, 1.5)
    assert (first["target_column"], first["target_value"]) == ("PAPI_TOT_INS", 1000)
    assert (second["target_column"], second["target_value"]) == ("PAPI_TOT_INS", None)
    assert json.loads(first["labels"]) == {"note": "first"}
    counters = [row for row in content.rows[COUNTERS.name] if row["run"] == "t.csv#0"]
    assert {row["counter"]: row["value_mean_over_ranks"] for row in counters} == {
        "Occupancy": 3, "io_bytes": 10, "Speed (MB/s)": 7.5,
    }  # fmt: skip


def test_samples_that_are_sums_over_ranks_say_so(tmp_path: Path, bundle: Read) -> None:
    (tmp_path / "t.csv").write_text("ranks,INS,y\n4,100,1\n,100,1\n")

    def means(**facts: Any) -> list[float]:
        rows = bundle(kind="samples", target="y", ranks=2, **facts).rows[COUNTERS.name]
        assert [row["value_sum"] for row in rows] == [100, 100]
        return [row["value_mean_over_ranks"] for row in rows]

    assert means() == [100, 100]
    assert means(tags={"aggregation": "mean"}) == [100, 100]
    assert means(tags={"aggregation": "sum"}) == [25, 50]


@pytest.mark.slow
def test_rows_are_made_one_at_a_time(tmp_path: Path, lazy_bundle: ReadLazily) -> None:
    names = [f"counter_{number}" for number in range(100)]
    line = ",".join(["1"] * 101) + "\n"
    (tmp_path / "t.csv").write_text(",".join([*names, "y"]) + "\n" + line * 1000)
    content = lazy_bundle(kind="samples", target="y")
    tracemalloc.start()
    try:
        counts = {name: sum(1 for _ in rows) for name, rows in content.rows.items()}
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert counts == {RUNS.name: 1000, COUNTERS.name: 100_000}
    assert peak < 2**20


def test_samples_fall_back_to_the_manifest(tmp_path: Path, bundle: Read) -> None:
    (tmp_path / "t.csv").write_text("x,Duration\n1,0.5\n")
    (run,) = bundle(kind="samples", app=None, target="Duration", ranks=3, nodes=2).rows[RUNS.name]
    assert (run["app"], run["ranks"], run["threads"], run["nodes"]) == ("bundle-1", 3, 1, 2)
    assert (run["target_value"], run["wall_seconds"]) == (0.5, None)


def test_run_time_as_target_is_no_counter(tmp_path: Path, bundle: Read) -> None:
    (tmp_path / "t.csv").write_text("x,wall_seconds\n1,0.5\n")
    content = bundle(kind="samples", target="wall_seconds")
    assert content.rows[RUNS.name][0]["target_value"] == 0.5
    assert [row["counter"] for row in content.rows[COUNTERS.name]] == ["x"]


@pytest.mark.parametrize("target", ["absent", "note", "app"])
def test_target_that_is_no_number_column_is_refused(tmp_path: Path, bundle: Read, target: str) -> None:
    (tmp_path / "t.csv").write_text(TABLE)
    with pytest.raises(BadInputError, match="target"):
        bundle(kind="samples", target=target)


def test_machine_sheet(tmp_path: Path, bundle: Read) -> None:
    write_v4(tmp_path, METRICS, VALUES)
    (tmp_path / "machine.yaml").write_text(SPEC)
    content = bundle()
    check_columns(content)
    (spec,) = content.rows[SPECS.name]
    assert (spec["run"], spec["name"], spec["cpu_sockets"], spec["gpu_model"]) == (".", "Quartz", 2, None)
    (tmp_path / "machine.yaml").write_text(SPEC.replace("machine: quartz", "machine: ruby"))
    with pytest.raises(BadInputError, match="machine ruby"):
        bundle()
    (tmp_path / "machine.yaml").write_bytes(b"\xff")
    with pytest.raises(BadInputError, match="UTF-8"):
        bundle()


def test_kind_must_fit(tmp_path: Path, bundle: Read) -> None:
    write_v4(tmp_path, METRICS, VALUES)
    with pytest.raises(UnreadableFileError, match="nothing of kind rajaperf"):
        bundle(kind="rajaperf")
