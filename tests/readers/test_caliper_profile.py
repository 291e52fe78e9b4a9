"""Caliper profiles of applications: LULESH of a real machine beside other people's readers, and bad ones."""

import math
from pathlib import Path
from typing import Any

import pytest

from perf_assets.core.errors import UnreadableFileError
from perf_assets.core.measurements import Profile
from perf_assets.readers.caliper_profile import read_application
from perf_assets.readers.files import load
from perf_assets.readers.read import read
from tests.peers import caliper_files, thicket_regions

SECONDS = {27: 47.231215, 64: 55.109814, 125: 56.218986}
_TIME = "inclusive#sum#time.duration"
HEAD = """\
__rec=node,id=12,attr=10,data=64,parent=3
__rec=node,id=14,attr=8,data=attribute.unit,parent=12
__rec=node,id=20,attr=10,data=268,parent=3
__rec=node,id=21,attr=8,data=region,parent=20
__rec=node,id=22,attr=8,data=mpi.rank,parent=1
__rec=node,id=30,attr=10,data=65,parent=5
"""


@pytest.fixture
def lulesh(shared_data: Path) -> Path:
    folder = shared_data / "caliper" / "lulesh_opal"
    if not folder.is_dir():
        pytest.skip(f"no profiles at {folder}")
    return folder


def stream(folder: Path, records: str, metadata: str = "cluster=opal", name: str = "a.cali") -> Path:
    """A file with some records and metadata like `name=value name=value`."""
    lines, last = [HEAD + records], ""
    for number, pair in enumerate(metadata.split(), 900):
        key, _, value = pair.partition("=")
        value = value.replace("\\", "\\\\").replace(",", "\\,").replace("=", "\\=")
        lines.append(f"__rec=node,id={number},attr=8,data={key},parent=3\n")
        lines.append(f"__rec=node,id={number + 90},attr={number},data={value}{last}\n")
        last = f",parent={number + 90}"
    reference = last.rpartition("=")[2]
    path = folder / name
    path.write_text("".join(lines) + (f"__rec=globals,ref={reference}\n" if reference else ""))
    return path


def one(path: Path) -> Profile:
    (profile,) = read(path).profiles
    return profile


def test_every_region_of_lulesh_equals_that_of_caliper_reader(lulesh: Path) -> None:
    files = sorted(lulesh.glob("*.cali"))
    for file, theirs in zip(files, caliper_files(*files), strict=True):
        regions = {region.path: region for region in one(file).regions}
        records = {tuple(record["path"]): record for record in theirs.records if "path" in record}
        assert regions.keys() == records.keys()
        assert len(regions) == 45
        for path, record in records.items():
            time = regions[path].time
            assert time.sum == pytest.approx(float(record[f"sum#{_TIME}"]), rel=1e-12)
            assert time.max == float(record[f"max#{_TIME}"])
            assert time.min in (0.0, float(record[f"min#{_TIME}"]))
            assert regions[path].is_communication == ("mpi.function" in record)


@pytest.mark.slow
def test_times_of_all_files_of_a_folder_equal_those_of_thicket(lulesh: Path) -> None:
    files = sorted(lulesh.glob("*.cali"))
    theirs = thicket_regions(*files)
    ours = {
        (str(lulesh / profile.run), region.path): region
        for profile in read(lulesh).profiles
        for region in profile.regions
    }
    assert ours.keys() == {key for key in theirs if not math.isnan(theirs[key]["Total time"])}
    for key, region in ours.items():
        assert region.time.sum == pytest.approx(theirs[key]["Total time"], rel=1e-12)
        assert region.time.max == theirs[key]["Max time/rank"]


def test_a_run_is_described_by_its_metadata(lulesh: Path) -> None:
    for ranks, seconds in SECONDS.items():
        profile = one(lulesh / f"{ranks}ranks.cali")
        assert (profile.ranks, profile.threads_per_rank, profile.hosts) == (ranks, 1, {27: 1, 64: 2, 125: 4}[ranks])
        assert profile.wall_seconds == seconds
        assert profile.labels["cluster"] == "opal"
        assert profile.labels["program"] == "lulesh2.0"
        assert profile.labels["args"].split() == [
            "iterations=800", "num_regions=11", "problem_size=30", "region_balance=1", "region_cost=1",
        ]  # fmt: skip
        assert profile.labels["launched_at"].startswith("2021-03-24T")
        time = profile.metrics["time"]
        assert (time.unit, time.mean_over_ranks) == ("sec", pytest.approx(seconds, rel=2e-3))
        share = profile.metrics["mpi share"]
        assert share.mean_over_ranks == pytest.approx({27: 0.3956, 64: 0.4601, 125: 0.4826}[ranks], abs=1e-4)


def test_users_hosts_and_paths_stay_out(lulesh: Path, tmp_path: Path) -> None:
    """The one of the file is called Ted, and its folders are those of legendre."""
    shown = repr(read(lulesh))
    assert "Ted" not in shown
    assert "legendre" not in shown
    assert "/usr" not in shown
    file = stream(
        tmp_path,
        _ONE_REGION,
        "cluster=opal user=ted hostname=opal12 cmdline=[/g/ted/app,--in=/g/ted/deck.in,-n,3] executable=app",
    )
    labels = one(file).labels
    assert labels == {"cluster": "opal", "program": "app", "args": "--in=deck.in -n 3"}


_ONE_REGION = (
    "__rec=node,id=40,attr=8,data=inclusive#sum#time.duration.ns,parent=30\n"
    "__rec=node,id=50,attr=21,data=main\n__rec=ctx,ref=50,attr=40,data=2500000000\n"
)


def test_processes_that_were_not_aggregated_are_added_up(tmp_path: Path) -> None:
    """Rows of ranks in nanoseconds, exclusive: the total is that of all regions."""
    records = "__rec=node,id=40,attr=8,data=sum#time.duration.ns,parent=30\n"
    records += "__rec=node,id=41,attr=8,data=sum#papi.PAPI_TOT_INS,parent=30\n"
    records += "__rec=node,id=50,attr=21,data=main\n__rec=node,id=51,attr=21,data=MPI_Wait,parent=50\n"
    for rank, (outside, inside) in enumerate([(1e9, 1e9), (2e9, 4e9)]):
        records += f"__rec=node,id={60 + rank},attr=22,data={rank}\n"
        records += f"__rec=ctx,ref=50={60 + rank},attr=40=41,data={outside}=100\n"
        records += f"__rec=ctx,ref=51={60 + rank},attr=40=41,data={inside}=10\n"
    profile = one(stream(tmp_path, records))
    assert profile.ranks == 2
    time, instructions = profile.metrics["time"], profile.metrics["PAPI_TOT_INS"]
    assert (time.sum, time.min, time.max) == (8.0, 2.0, 6.0)
    assert (instructions.sum, instructions.mean_over_ranks) == (220.0, 110.0)
    assert profile.metrics["mpi share"].mean_over_ranks == pytest.approx(5 / 8)


def test_without_a_time_of_its_own_the_top_region_is_the_run(tmp_path: Path) -> None:
    assert one(stream(tmp_path, _ONE_REGION)).wall_seconds == 2.5
    assert one(stream(tmp_path, _ONE_REGION, "elapsed_time=2.25")).wall_seconds == 2.25


def test_counts_over_time_are_left_to_the_profile_of_regions(tmp_path: Path) -> None:
    records = _ONE_REGION + "__rec=node,id=70,attr=8,data=spot.channel,parent=12\n"
    records += "__rec=node,id=71,attr=70,data=timeseries\n__rec=ctx,ref=50=71,attr=40,data=1000000000\n"
    assert one(stream(tmp_path, records)).metrics["time"].sum == 2.5


@pytest.mark.parametrize("cut", [0.5, 0.97])
def test_a_profile_cut_in_the_middle_is_refused(lulesh: Path, tmp_path: Path, cut: float) -> None:
    content = (lulesh / "27ranks.cali").read_bytes()
    half = tmp_path / "half.cali"
    half.write_bytes(content[: int(len(content) * cut)])
    with pytest.raises(UnreadableFileError, match=r"half.cali: .*cut off"):
        read(half)
    half.write_bytes(content[: content.index(b"\n", int(len(content) * cut)) + 1])
    with pytest.raises(UnreadableFileError, match=r"half.cali: .*cut off"):
        read(half)


def test_bad_profiles_are_refused_in_one_line(tmp_path: Path) -> None:
    with pytest.raises(UnreadableFileError, match="no run metadata"):
        read(stream(tmp_path, _ONE_REGION, ""))
    with pytest.raises(UnreadableFileError, match=r"27 \(jobsize\) and 64 \(mpi.world.size\)"):
        read(stream(tmp_path, _ONE_REGION, "jobsize=27 mpi.world.size=64"))
    with pytest.raises(UnreadableFileError, match="no time and no counter"):
        read(stream(tmp_path, "__rec=node,id=50,attr=21,data=main\n"))
    deep = "".join(f"__rec=node,id={n},attr=21,data=r{n},parent={n - 1}\n" for n in range(1001, 1200))
    first = "__rec=node,id=1000,attr=21,data=main\n"
    column = "__rec=node,id=40,attr=8,data=inclusive#sum#time.duration.ns,parent=30\n"
    with pytest.raises(UnreadableFileError, match="nested more than"):
        read(stream(tmp_path, column + first + deep + "__rec=ctx,ref=1199,attr=40,data=1\n"))
    binary = stream(tmp_path, _ONE_REGION, "env=PATH")
    binary.write_bytes(binary.read_bytes().replace(b"PATH", b"\xff\xfe\x00"))
    with pytest.raises(UnreadableFileError, match="not UTF-8"):
        read(binary)


def test_a_command_line_of_a_megabyte_is_read(tmp_path: Path) -> None:
    command = "[app," + "x" * 2**20 + "]"
    assert len(one(stream(tmp_path, _ONE_REGION, f"cmdline={command}")).labels["args"]) == 2**20


def test_rajaperf_and_an_application_in_one_folder_are_told_apart(
    lulesh: Path, shared_data: Path, tmp_path: Path
) -> None:
    rajaperf = next((shared_data / "rajaperf" / "lassen_cali").rglob("*.cali"))
    for file in (rajaperf, lulesh / "27ranks.cali"):
        (tmp_path / file.name).write_bytes(file.read_bytes())
    with pytest.raises(UnreadableFileError, match="both RAJAPerf results and profiles"):
        read(tmp_path)
    assert len(read(tmp_path, "profile").profiles) == 1
    assert {timing.run for timing in read(tmp_path, "rajaperf").timings} == {rajaperf.name}


@pytest.mark.slow
def test_all_regions_of_other_profiles_equal_those_of_caliper_reader(shared_data: Path) -> None:
    """RAJAPerf's own files, of three versions of Caliper, read as those of any application."""
    folder = shared_data / "rajaperf"
    files = [*sorted((folder / "lassen_cali" / "1048576").glob("*.cali")), *sorted(folder.glob("llnl_fleet/*.cali"))]
    files += [*sorted((folder / "epyc-vm_2024" / "t2_s100000_quiet").glob("*.cali")), *_quartz(folder)]
    for file, theirs in zip(files, caliper_files(*files), strict=True):
        regions = {region.path: region.time.sum for region in read_application(".", load(str(file), file.name)).regions}
        expected: dict[tuple[str, ...], float] = {}
        for record in theirs.records:
            if seconds := _seconds_in(record):
                path = record["path"] if isinstance(record["path"], list) else [record["path"]]
                expected[tuple(path)] = expected.get(tuple(path), 0.0) + seconds
        assert {path: seconds for path, seconds in regions.items() if seconds} == pytest.approx(expected, rel=1e-9)


def _quartz(folder: Path) -> list[Path]:
    return sorted((folder / "quartz_cali" / "gcc_O3").glob("*.cali"))


def _seconds_in(record: dict[str, Any]) -> float | None:
    """Inclusive time over all ranks, where a record has one and a path."""
    if "path" not in record:
        return None
    if f"sum#{_TIME}" in record:
        return float(record[f"sum#{_TIME}"])
    return float(record[f"{_TIME}.ns"]) / 1e9 if f"{_TIME}.ns" in record else None
