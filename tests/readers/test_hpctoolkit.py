"""HPCToolkit databases of all generations: real ones, made ones, and damaged ones."""

import json
import struct
import time
from pathlib import Path

import pytest

from perf_assets.core.errors import UnreadableFileError
from perf_assets.core.measurements import Profile
from perf_assets.readers.hpctoolkit.formula import FormulaError, evaluate
from perf_assets.readers.read import read
from tests.peers import hatchet_rows
from tests.readers.databases import XML, meta_db, profile_db, write_metric_dbs, write_v4

METRICS = ("REALTIME (usec)", "PAPI_TOT_INS")
VALUES = {(0, 0): (4e6, 100.0), (0, 1): (3e6, 50.0), (1, 0): (5e6, 90.0)}


def only(path: Path) -> Profile:
    (profile,) = read(path).profiles
    return profile


@pytest.mark.parametrize("name", ["cpi", "osu_allgather", "kripke"])
def test_real_metric_dbs_equal_the_expected_values(shared_data: Path, name: str) -> None:
    folder = shared_data / "hpctoolkit"
    expected = json.loads((folder / "expected" / f"{name}.json").read_text())
    profile = only(folder / name)
    assert read(folder / name).format == "hpctoolkit-xml-metricdb"
    assert profile.ranks == expected["num_ranks"]
    assert profile.threads_per_rank == expected["threads_per_rank"]
    assert profile.hosts == expected["num_hosts"]
    assert profile.wall_seconds is None
    root = expected["root"]["CPUTIME (usec) (I)"]
    assert profile.metrics.keys() == {"CPUTIME (usec)"}
    total = profile.metrics["CPUTIME (usec)"]
    assert (total.sum, total.min, total.max, total.unit) == (root["sum"], root["min"], root["max"], "usec")
    assert total.mean_over_ranks == pytest.approx(root["mean_over_ranks"], rel=1e-12)


def test_real_xml_alone_equals_the_expected_values(shared_data: Path) -> None:
    folder = shared_data / "hpctoolkit"
    expected = json.loads((folder / "expected" / "xml_only_flash4.json").read_text())["metrics"]
    profile = only(folder / "xml_only_flash4")
    assert read(folder / "xml_only_flash4" / "experiment.xml").format == "hpctoolkit-xml"
    total = profile.metrics["CPUTIME (usec)"]
    assert total.sum == expected["CPUTIME (usec):Sum (I)"]["value"]
    assert total.mean_over_ranks == expected["CPUTIME (usec):Mean (I)"]["value"]
    assert total.min == expected["CPUTIME (usec):Min (I)"]["value"]
    assert total.max == expected["CPUTIME (usec):Max (I)"]["value"]
    assert profile.ranks == 1


def test_real_v4_equals_the_expected_values(shared_data: Path) -> None:
    folder = shared_data / "hpctoolkit"
    expected = json.loads((folder / "expected" / "v4_pingpong.json").read_text())
    profile = only(folder / "v4_pingpong")
    values = [next(iter(p["values"]["global"].values())) for p in expected["profiles"]]
    total = profile.metrics["CPUTIME (sec)"]
    assert total.sum == pytest.approx(values[0], rel=1e-12)
    assert (total.min, total.max) == (min(values[1:]), max(values[1:]))
    assert total.mean_over_ranks == pytest.approx(values[0] / 2, rel=1e-12)
    assert (profile.ranks, profile.threads_per_rank, profile.hosts, profile.wall_seconds) == (2, 1, 1, None)
    assert profile.labels["program"] == expected["title"]


@pytest.mark.slow
def test_hatchet_reads_the_same_where_it_is_right(shared_data: Path) -> None:
    frame = hatchet_rows(shared_data / "hpctoolkit" / "cpi")
    root = frame[frame["name"] == "<program root>"]["time (inc)"]
    total = only(shared_data / "hpctoolkit" / "cpi").metrics["CPUTIME (usec)"]
    assert (total.sum, total.min, total.max) == (root.sum(), root.min(), root.max())


def test_several_databases_are_runs_by_directory(shared_data: Path) -> None:
    reading = read(shared_data / "hpctoolkit")
    names = {"cpi", "kripke", "osu_allgather", "v4_pingpong", "xml_only_flash4"}
    assert {profile.run for profile in reading.profiles} == names


def check_made(profile: Profile, unit_seconds: float) -> None:
    assert (profile.ranks, profile.threads_per_rank, profile.hosts) == (2, 2, 2)
    assert profile.wall_seconds == pytest.approx(5e6 * unit_seconds)
    instructions = profile.metrics["PAPI_TOT_INS"]
    assert (instructions.sum, instructions.mean_over_ranks, instructions.min, instructions.max) == (240, 120, 50, 100)
    assert instructions.unit == "count"


def test_made_metric_dbs(tmp_path: Path) -> None:
    check_made(only(write_metric_dbs(tmp_path, METRICS, VALUES)), 1e-6)


def test_made_v4(tmp_path: Path) -> None:
    check_made(only(write_v4(tmp_path, ("REALTIME (sec)", "PAPI_TOT_INS"), VALUES)), 1)


def test_sets_beside_each_other_are_runs(tmp_path: Path) -> None:
    write_v4(tmp_path / "set1", METRICS, VALUES)
    write_metric_dbs(tmp_path / "set2", METRICS, VALUES)
    (tmp_path / "manifest.json").write_text("{}")
    (tmp_path / "machine.yaml").write_text("{}")
    assert {profile.run for profile in read(tmp_path).profiles} == {"set1", "set2"}


def test_gpu_streams_count_but_are_no_threads(tmp_path: Path) -> None:
    v4 = only(write_v4(tmp_path / "v4", METRICS, VALUES, streams=[(0.0, 1000.0)] * 3))
    xml = only(write_metric_dbs(tmp_path / "xml", METRICS, VALUES | {(0, 500 + n): (0.0, 1000.0) for n in range(3)}))
    for profile in (v4, xml):
        assert (profile.ranks, profile.threads_per_rank) == (2, 2)
        assert profile.metrics["PAPI_TOT_INS"].sum == 3240
        assert profile.metrics["PAPI_TOT_INS"].max == 1000
        assert profile.metrics["REALTIME (usec)"].min == 0


def test_profile_without_samples_is_a_thread_with_zeros(tmp_path: Path) -> None:
    profile = only(write_v4(tmp_path, METRICS, VALUES | {(1, 1): (0.0, 0.0), (1, 2): (0.0, 0.0)}))
    assert profile.threads_per_rank == 3
    assert profile.metrics["PAPI_TOT_INS"].min == 0
    assert profile.metrics["PAPI_TOT_INS"].sum == 240


def xml_only(folder: Path, statistics: dict[str, tuple[str, float]], name: str = "PAPI_MEM_WCY") -> Path:
    metrics = values = ""
    for number, (statistic, (formula, value)) in enumerate(statistics.items(), start=2):
        metrics += f'<Metric i="{number}" n="{name}:{statistic} (I)" t="inclusive" show="1">'
        metrics += f'<MetricFormula t="finalize" frm="{formula}"/></Metric>'
        values += f'<M n="{number}" v="{value}"/>'
    (folder / "experiment.xml").write_text(XML.format(metrics=metrics, db_metrics="", values=values))
    return folder


def test_xml_values_need_their_formula(tmp_path: Path) -> None:
    """As in a real profile of three processes, one of which never stalled."""
    statistics = {
        "Sum": ("$2", 3.4535e9),
        "Mean": ("$3 / $4", 3.4535e9),
        "Mean:num-src": ("$4", 3),
        "Min": ("$5", 2.22507e-308),
        "Max": ("$6", 1.30343e9),
        "StdDev": ("sqrt(-1)", 1.0),
    }
    profile = only(xml_only(tmp_path, statistics))
    total = profile.metrics["PAPI_MEM_WCY"]
    assert profile.ranks == 3
    assert (total.sum, total.min, total.max) == (3.4535e9, 0, 1.30343e9)
    assert total.mean_over_ranks == pytest.approx(1.151167e9, rel=1e-6)


def test_xml_without_sum_uses_mean_and_number(tmp_path: Path) -> None:
    total = only(xml_only(tmp_path, {"Mean": ("$2 / $3", 30.0), "Mean:num-src": ("$3", 3)})).metrics["PAPI_MEM_WCY"]
    assert (total.sum, total.mean_over_ranks) == (30, 10)


@pytest.mark.parametrize(
    ("formula", "value"),
    [
        ("$2", 8.0),
        ("$2 / $3 - 1", 3.0),
        ("sqrt(($2 / $3) - pow(1, 2)) * 2e0", 2 * 3**0.5),
        ("-(1 - 3) * max($2, 9, 4) / sum(1,1)", 9.0),
        ("min($9, 4)", 0.0),
    ],
)
def test_formula(formula: str, value: float) -> None:
    assert evaluate(formula, {2: 8.0, 3: 2.0}) == pytest.approx(value)


@pytest.mark.parametrize(
    "formula",
    ["", "$2 /", "1 / 0", "sqrt(-1)", "pow(1)", "__import__('os')", "2 3", "(" * 100 + "1" + ")" * 100, "open(1)",
     "pow(10, 999999)", "1+" * 2000 + "1", "-" * 200 + "1", "$", "sqrt 1"],
)  # fmt: skip
def test_bad_formula(formula: str) -> None:
    with pytest.raises(FormulaError):
        evaluate(formula, {2: 8.0})


def refused(path: Path, message: str) -> None:
    with pytest.raises(UnreadableFileError, match=message) as caught:
        read(path)
    assert "\n" not in str(caught.value)


def metric_db(folder: Path) -> Path:
    return next(iter(sorted(folder.glob("*.metric-db"))))


def test_damaged_metric_dbs_are_refused(tmp_path: Path) -> None:
    folder = write_metric_dbs(tmp_path, METRICS, VALUES)
    file = metric_db(folder)
    good = file.read_bytes()
    for data, message in (
        (good[:-8], "bytes instead of"),
        (good + b"x", "bytes instead of"),
        (good[:30], "cut off"),
        (good.replace(b"00.10b", b"00.10l"), "big endian"),
        (good[:24] + struct.pack(">ii", 2, 3) + good[32:], "metrics, but"),
        (good[:24] + struct.pack(">ii", -1, 4) + good[32:], "bytes instead of"),
        (good[:32] + struct.pack(">d", float("nan")) + good[40:], "not finite"),
    ):
        file.write_bytes(data)
        refused(folder, message)
    file.write_bytes(good)
    file.rename(folder / "renamed")
    refused(folder, "keep the name")


def test_database_with_a_part_missing_is_refused(tmp_path: Path) -> None:
    folder = write_metric_dbs(tmp_path / "a", METRICS, VALUES)
    (folder / "experiment.xml").unlink()
    refused(folder, "no experiment.xml")
    folder = write_v4(tmp_path / "b", METRICS, VALUES)
    (folder / "meta.db").unlink()
    refused(folder, "both meta.db and profile.db")
    (tmp_path / "c").mkdir()
    (tmp_path / "c" / "cct.db").write_bytes(b"HPCTOOLKITctxt\x04\x00")
    refused(tmp_path / "c", "copy all of it")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (("</HPCToolkitExperiment>", ""), "cut off|well-formed"),
        (("]>", '<!ENTITY a "aaaa">]>'), "entity"),
        (("]>", '<!ENTITY a SYSTEM "/etc/passwd">]>'), "entity"),
        (("<Header", "<Header <"), "well-formed"),
        (('db-num-metrics="4"', 'db-num-metrics="x"'), "bad <MetricDB>"),
        (('db-id="0"', ""), "bad <MetricDB>"),
        (('t="inclusive"', 't="exclusive"'), "names no metrics"),
    ],
)
def test_damaged_xml_is_refused(tmp_path: Path, change: tuple[str, str], message: str) -> None:
    file = write_metric_dbs(tmp_path, METRICS, VALUES) / "experiment.xml"
    file.write_text(file.read_text().replace(*change))
    refused(tmp_path, message)


def test_xml_that_is_cheap_to_write_is_cheap_to_refuse(tmp_path: Path) -> None:
    """An element that never ends, and default values that would be copied into every element."""
    text = write_metric_dbs(tmp_path, METRICS, VALUES).joinpath("experiment.xml").read_text()
    started = time.process_time()
    for change, message in (
        (("<Header", '<Header n="' + "x" * 20_000_000), "longer than any"),
        (("]>", '<!ATTLIST M x CDATA "' + "x" * 100_000 + '">]>'), "default values"),
        (("]>", "<!ATTLIST M " + " ".join(f'x{number} CDATA "x"' for number in range(1000)) + ">]>"), "default values"),
    ):
        (tmp_path / "experiment.xml").write_text(text.replace(*change))
        refused(tmp_path, message)
    assert time.process_time() - started < 5


def test_xml_without_values_is_refused(tmp_path: Path) -> None:
    (tmp_path / "experiment.xml").write_text(XML.format(metrics="", db_metrics="", values=""))
    refused(tmp_path, "no inclusive metric")
    refused(xml_only(tmp_path, {"Sum": ("$2 / 0", 1.0)}), "has no value")
    refused(xml_only(tmp_path, {"Mean:num-src": ("$2 * 1e300", 1e10)}), "profiles|finite")


def test_pre_v4_sparse_database_is_refused_by_name(tmp_path: Path) -> None:
    (tmp_path / "profile.db").write_bytes(b"HPCPROF-profdb__\x01\x00" + bytes(100))
    (tmp_path / "experiment.xml").write_text(XML.format(metrics="", db_metrics="", values=""))
    refused(tmp_path, "pre-v4 sparse generation")


def test_damaged_v4_is_refused(tmp_path: Path) -> None:
    folder = write_v4(tmp_path, METRICS, VALUES)
    meta, profile = meta_db(METRICS), profile_db(VALUES)
    for name, data, message in (
        ("meta.db", meta[:-1], "cut off"),
        ("profile.db", profile[:200], "cut off"),
        ("meta.db", meta[:14] + b"\x05" + meta[15:], "version 5"),
        ("profile.db", profile[:24] + struct.pack("<Q", 2**60) + profile[32:], "outside"),
        ("meta.db", meta[:16] + struct.pack("<QQ", 1, 2**63) + meta[32:], "outside"),
        ("meta.db", meta.replace(b"execution", b"something"), "no inclusive metric"),
        ("meta.db", meta.replace(b"PAPI_TOT_INS", b"\xff\xffPI_TOT_INS"), "UTF-8"),
    ):
        folder = write_v4(tmp_path, METRICS, VALUES)
        (folder / name).write_bytes(data)
        refused(folder, message)


def test_v4_profiles_that_share_values_do_not_hang(tmp_path: Path) -> None:
    """A small file that claims far more than it holds is refused at once."""
    file = bytearray(b"HPCTOOLKITprof\x04\x00" + bytes(32))
    values_at = len(file)
    file += b"".join(struct.pack("<Hd", number, 1.0) for number in range(60_000))
    contexts_at = len(file)
    file += struct.pack("<IQ", 0, 0)
    infos_at = len(file)
    file += struct.pack("<QQI4xQQI4x", 60_000, values_at, 1, contexts_at, 0, 0) * 10_000
    struct.pack_into("<QQ", file, 16, 16, len(file))
    file += struct.pack("<QIB3x", infos_at, 10_000, 48)
    folder = write_v4(tmp_path, METRICS, VALUES)
    (folder / "profile.db").write_bytes(bytes(file) + b"_prof.db")
    refused(folder, "share their values")
