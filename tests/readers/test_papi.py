"""PAPI high-level output: real files, ranks, mixed runs, and bad files."""

import json
from pathlib import Path
from typing import Any

import pytest

from perf_assets.core.errors import UnreadableFileError
from perf_assets.readers.read import read


def document(values: dict[str, Any], threads: int = 1) -> dict[str, Any]:
    region = {"name": "main", "parent_region_id": "-1", "cycles": "10", "real_time_nsec": "2000000000", **values}
    inner = region | {"name": "inner", "parent_region_id": "0"}
    regions = {"0": region, "1": inner, "2": region}
    return {"papi_version": "7.0.0.0", "threads": {str(number): {"regions": regions} for number in range(threads)}}


def write(folder: Path, number: int, content: Any) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"rank_{number}.json").write_text(content if isinstance(content, str) else json.dumps(content))
    return folder


def test_real_file_with_reads_counts_top_level_regions_once(own_data: Path) -> None:
    (profile,) = read(own_data / "papi" / "papi_hl_sample_with_reads.json").profiles
    assert (profile.ranks, profile.threads_per_rank) == (1, 1)
    assert profile.metrics["perf::TASK-CLOCK"].sum == 40100080 + 4360459 + 3869081
    assert profile.metrics["perf::PAGE-FAULTS"].sum == 2
    assert profile.metrics["cycles"].sum == 138337657 + 12661453 + 9561321
    assert profile.wall_seconds == pytest.approx((56538647 + 5177461 + 3908113) / 1e9, rel=1e-12)
    assert profile.metrics["real_time_nsec"].unit == "nsec"


def test_real_file_with_two_threads(own_data: Path) -> None:
    (profile,) = read(own_data / "papi" / "papi_hl_sample_2threads.json").profiles
    assert (profile.ranks, profile.threads_per_rank) == (1, 2)
    total = profile.metrics["perf::TASK-CLOCK"]
    assert (total.sum, total.min, total.max) == (3128028 + 3147463, 3128028, 3147463)
    assert profile.wall_seconds == pytest.approx(7109758 / 1e9, rel=1e-12)


def test_real_files_with_random_ranks_are_runs_of_their_own(own_data: Path) -> None:
    reading = read(own_data / "papi" / "papi_hl_output")
    assert reading.format == "papi-hl-json"
    assert [profile.run for profile in reading.profiles] == [f"rank_{n}.json" for n in (543019, 698700, 935427)]
    assert [profile.ranks for profile in reading.profiles] == [1, 1, 1]
    assert reading.profiles[0].labels["rank_file"] == "rank_543019.json"


def test_ranks_from_0_are_one_run(tmp_path: Path) -> None:
    for rank in range(3):
        write(tmp_path / "papi_hl_output", rank, document({"PAPI_TOT_INS": str(10 + rank)}, threads=2))
    (profile,) = read(tmp_path).profiles
    assert (profile.run, profile.ranks, profile.threads_per_rank) == (".", 3, 2)
    total = profile.metrics["PAPI_TOT_INS"]
    assert (total.sum, total.mean_over_ranks, total.min, total.max) == (132, 44, 20, 24)
    assert profile.wall_seconds == 4


def test_sets_beside_each_other_are_runs(tmp_path: Path) -> None:
    for name in ("set1", "set2"):
        for rank in range(2):
            write(tmp_path / name / "papi_hl_output", rank, document({"PAPI_TOT_INS": "5"}))
    assert [profile.run for profile in read(tmp_path).profiles] == ["set1", "set2"]


def test_stray_process_beside_ranks_is_apart(tmp_path: Path) -> None:
    for rank in (0, 1, 543019):
        write(tmp_path, rank, document({"PAPI_TOT_INS": "5"}))
    assert [(p.run, p.ranks) for p in read(tmp_path).profiles] == [(".", 2), ("rank_543019.json", 1)]


def test_missing_rank_is_noticed(tmp_path: Path) -> None:
    for rank in (0, 1, 3):
        write(tmp_path, rank, document({}))
    with pytest.raises(UnreadableFileError, match="rank 2 is missing"):
        read(tmp_path)


def test_instant_event_is_not_added(tmp_path: Path) -> None:
    content = document({"temperature": "60"}) | {"event_definitions": {"temperature": {"type": "instant"}}}
    assert read(write(tmp_path, 0, content)).profiles[0].metrics["temperature"].sum == 60


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ('{"papi_version": "7", "threads": ', "not valid JSON"),
        ('{"papi_version": "7", "threads": ' + '{"a":' * 100_000, "JSON|nested"),
        ('{"papi_version": "7", "threads": ' + "[" * 100_000 + "]" * 100_000 + "}", "nested|object"),
        ({"papi_version": "7"}, "no 'threads'"),
        ({"papi_version": "7", "threads": {}}, "no threads"),
        ({"papi_version": "7", "threads": {"0": 5}}, "no '0'"),
        ({"papi_version": "7", "threads": {"0": {"regions": {"0": 5}}}}, "region that is no object"),
        (document({"X": "many"}), "'many'"),
        (document({"X": {"read_1": "5"}}), "X is 'None'"),
        (document({"X": "9" * 400}), "finite"),
        (document({"X": [1]}), "finite"),
        (json.dumps(document({})).replace('"10"', "NaN"), "not finite"),
        (json.dumps(document({})).replace('"10"', "1" * 5000), "JSON|finite"),
        (b"\xff\xfe".decode("latin-1") + "{}", "no known format|UTF-8"),
    ],
)
def test_bad_file_is_refused(tmp_path: Path, content: Any, message: str) -> None:
    with pytest.raises(UnreadableFileError, match=message) as caught:
        read(write(tmp_path, 0, content))
    assert "\n" not in str(caught.value)
