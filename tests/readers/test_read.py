"""What is read is chosen by content; nothing outside is touched; every refusal is one clear line."""

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from perf_assets.cli.commands.landing.read import to_json
from perf_assets.core.errors import BadInputError, UnreadableFileError
from perf_assets.readers.formats import FileKind
from perf_assets.readers.read import _SINGLE_FILES, PROFILE_KINDS, read
from tests.readers.databases import write_metric_dbs, write_v4
from tests.readers.test_rajaperf_csv import KERNELS, TIMING

METRICS = ("CPUTIME (usec)",)
VALUES = {(0, 0): (4.0,)}


def test_unknown_content_says_what_was_looked_at_and_what_is_understood(tmp_path: Path) -> None:
    (tmp_path / "experiment.xml").write_text("<html/>")
    (tmp_path / "meta.db").write_bytes(bytes(range(256)))
    with pytest.raises(UnreadableFileError) as caught:
        read(tmp_path)
    message = str(caught.value)
    assert "experiment.xml, meta.db" in message
    assert "RAJAPerf" in message
    assert "\n" not in message


def test_empty_directory_and_missing_path(tmp_path: Path) -> None:
    with pytest.raises(UnreadableFileError, match="empty directory"):
        read(tmp_path)
    with pytest.raises(UnreadableFileError, match="does not exist"):
        read(tmp_path / "nowhere")


@pytest.mark.parametrize(
    "content", [b"", b"\n", b"{}", b"[]", b"{", b"<", b"\0" * 5000, b"PAR1", b"__rec=", b"HPCTOOLKIT"]
)
def test_tiny_files_are_refused(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "file").write_bytes(content)
    with pytest.raises(UnreadableFileError):
        read(tmp_path / "file")


@pytest.mark.parametrize(
    "unit", ["\n", " ", "\t", "=", "#\n", "\n \n", "1,", "a,\n", ",", "Kernels run without MPI\n\n", "(", "desc: \n"]
)
def test_repetitive_files_take_no_time(tmp_path: Path, unit: str) -> None:
    (tmp_path / "file").write_text(unit * (200_000 // len(unit)))
    started = time.process_time()
    with pytest.raises(UnreadableFileError):
        read(tmp_path)
    assert time.process_time() - started < 1


def test_kind_restricts(tmp_path: Path) -> None:
    write_v4(tmp_path, METRICS, VALUES)
    (tmp_path / "P-kernels.csv").write_text(KERNELS)
    (tmp_path / "P-timing-Average.csv").write_text(TIMING)
    with pytest.raises(UnreadableFileError, match="both RAJAPerf results and profiles"):
        read(tmp_path)
    assert read(tmp_path, "rajaperf").format == "rajaperf-csv-2024"
    assert read(tmp_path, "profile").format == "hpctoolkit-v4"
    with pytest.raises(UnreadableFileError, match="nothing of kind samples"):
        read(tmp_path, "samples")
    with pytest.raises(BadInputError, match="kind 'x'"):
        read(tmp_path, "x")


def test_table_beside_a_profile_is_left_alone(tmp_path: Path) -> None:
    write_v4(tmp_path, METRICS, VALUES)
    (tmp_path / "notes.csv").write_text("x,y\n1,2\n")
    assert read(tmp_path).format == "hpctoolkit-v4"
    assert read(tmp_path, "samples").format == "samples-csv"


def test_links_are_not_followed(tmp_path: Path) -> None:
    outside = write_v4(tmp_path / "outside", METRICS, VALUES)
    inside = tmp_path / "inside"
    inside.mkdir()
    (inside / "database").symlink_to(outside, target_is_directory=True)
    (inside / "meta.db").symlink_to(outside / "meta.db")
    (inside / "profile.db").symlink_to(outside / "profile.db")
    with pytest.raises(UnreadableFileError, match="empty directory"):
        read(inside)


def test_pipe_does_not_hang(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(UnreadableFileError):
        read(tmp_path)
    with pytest.raises(UnreadableFileError, match="not a regular file"):
        read(tmp_path / "pipe")


def test_loop_of_directories_ends(tmp_path: Path) -> None:
    folder = tmp_path
    for _ in range(40):
        folder = folder / "d"
    folder.mkdir(parents=True)
    (folder / "file").write_text("x")
    with pytest.raises(UnreadableFileError, match="deep"):
        read(tmp_path)


def test_undecodable_name_is_printable(tmp_path: Path) -> None:
    with open(os.fsencode(tmp_path) + b"/x\xff.csv", "w") as stream:  # noqa: PTH123
        stream.write("x,y\n1,2,3\n1,2\n")
    with pytest.raises(UnreadableFileError) as caught:
        read(tmp_path)
    str(caught.value).encode()


def test_unreadable_file_is_an_error_of_its_own(tmp_path: Path) -> None:
    file = write_v4(tmp_path, METRICS, VALUES) / "meta.db"
    file.chmod(0)
    if os.access(file, os.R_OK):
        pytest.skip("the superuser can read everything")
    with pytest.raises(UnreadableFileError, match="cannot be opened"):
        read(tmp_path)


def test_documents_have_the_stable_fields(tmp_path: Path) -> None:
    document = to_json(read(write_metric_dbs(tmp_path / "p", METRICS, VALUES)))
    assert json.loads(json.dumps(document, allow_nan=False)) == document
    assert document["format"] == "hpctoolkit-xml-metricdb"
    (profile,) = document["profiles"]
    assert (profile["ranks"], profile["threads_per_rank"]) == (1, 1)
    metric = profile["metrics"]["CPUTIME (usec)"]
    assert {key: metric[key] for key in ("sum", "mean_over_ranks", "min", "max", "unit")} == {
        "sum": 4.0, "mean_over_ranks": 4.0, "min": 4.0, "max": 4.0, "unit": "usec",
    }  # fmt: skip
    (tmp_path / "r").mkdir()
    (tmp_path / "r" / "P-kernels.csv").write_text(KERNELS)
    (tmp_path / "r" / "P-timing-Average.csv").write_text(TIMING)
    document = to_json(read(tmp_path / "r"))
    assert json.loads(json.dumps(document, allow_nan=False)) == document
    assert {
        "kernel", "variant", "tuning", "problem_size", "reps", "ranks", "threads", "seconds_per_rep",
        "seconds_per_rep_min", "seconds_per_rep_max", "bytes_per_rep", "flops_per_rep", "valid", "invalid_reason",
    } <= document["timings"][0].keys()  # fmt: skip


def test_reading_imports_no_heavy_library() -> None:
    code = (
        "import sys; from perf_assets.readers import bundle, read; "
        "print([m for m in ('numpy', 'pandas', 'pyarrow', 'duckdb', 'dagster') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_every_kind_of_profile_has_a_reader_and_a_line_in_the_documentation() -> None:
    of_several_files = {kind for kind in FileKind if kind.name.startswith(("HPCTOOLKIT_", "PAPI", "ROCPROF_"))}
    assert set(PROFILE_KINDS) == set(_SINGLE_FILES) | of_several_files, "a kind without a reader is read by nobody"
    page = (Path(__file__).resolve().parents[2] / "docs" / "formats.md").read_text()
    assert [name for name, _ in _SINGLE_FILES.values() if f"`{name}`" not in page] == []
