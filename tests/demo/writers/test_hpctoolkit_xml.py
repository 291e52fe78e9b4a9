import re
import struct
import xml.etree.ElementTree as ET
from pathlib import Path

import numpy as np
import pytest

from perf_assets.demo.simulated import ProfiledRun
from perf_assets.demo.writers.hpctoolkit_xml import DOCTYPE, write_xml_database
from tests.demo.writers.conftest import contents, expected_totals, profiled_run
from tests.peers import hatchet_rows

RUNS = [profiled_run(), profiled_run(ranks=1, threads=1, hosts=1), profiled_run(ranks=3, threads=2, hosts=1, streams=3)]


def rows_of(path: Path) -> np.ndarray:
    """Rows of a metric-db; the file says how many it has."""
    data = path.read_bytes()
    assert data[:24] == b"HPCPROF-metricdb__00.10b"
    nodes, metrics = struct.unpack(">ii", data[24:32])
    assert len(data) == 32 + 8 * nodes * metrics
    return np.frombuffer(data, ">f8", offset=32).reshape(nodes, metrics)


@pytest.mark.slow
@pytest.mark.parametrize("run", RUNS)
def test_hatchet_reads_the_totals(tmp_path: Path, run: ProfiledRun) -> None:
    write_xml_database(tmp_path, run)
    rows = hatchet_rows(tmp_path)
    for metric, total in expected_totals(run).items():
        assert rows.loc[rows["is_root"], f"{metric} (I)"].sum() == pytest.approx(total, rel=1e-14)


@pytest.mark.parametrize("run", RUNS)
def test_values_add_up_along_the_tree(tmp_path: Path, run: ProfiledRun) -> None:
    write_xml_database(tmp_path, run)
    data = ET.parse(tmp_path / "experiment.xml").getroot().find(".//SecCallPathProfileData")
    assert data is not None
    for path in tmp_path.glob("*.metric-db"):
        rows = rows_of(path)
        tops = [int(top.attrib["i"]) - 1 for top in data.findall("PF")]
        assert np.array_equal(rows[0, 0::2], rows[tops, 0::2].sum(axis=0))
        assert not rows[0, 1::2].any()
        for node in data.iter():
            children = [int(child.attrib["i"]) - 1 for child in node if child.tag != "M"]
            if node is not data and children:
                assert (rows[int(node.attrib["i"]) - 1, 0::2] >= rows[children, 0::2].sum(axis=0)).all()
        assert len(rows) == 1 + sum(node.tag != "M" for node in data.iter() if node is not data)


def test_files_say_whose_they_are(tmp_path: Path) -> None:
    write_xml_database(tmp_path, profiled_run(ranks=4, threads=2, hosts=2, streams=4))
    found = [
        re.fullmatch(r"1\.kripke-(\d{6})-(\d{3})-([0-9a-f]{8})-(\d+)-0\.metric-db", path.name)
        for path in sorted(tmp_path.glob("*.metric-db"))
    ]
    names = [match.groups() for match in found if match]
    assert [(int(rank), int(thread)) for rank, thread, _, _ in names] == [
        (rank, thread) for rank in range(4) for thread in (0, 1, 500)
    ]
    assert len({host for _, _, host, _ in names}) == 2
    assert len({(host, process) for _, _, host, process in names}) == 4


def test_summaries_are_the_sums_with_six_digits(tmp_path: Path) -> None:
    run = profiled_run()
    write_xml_database(tmp_path, run)
    data = ET.parse(tmp_path / "experiment.xml").getroot().find(".//SecCallPathProfileData")
    assert data is not None
    found = {int(value.attrib["n"]): value.attrib["v"] for value in data.findall("M")}
    count = len(run.metrics)
    expected = {2 * count + 2 * n: f"{total:g}" for n, total in enumerate(expected_totals(run).values()) if total}
    assert found == expected


def test_names_are_escaped(tmp_path: Path) -> None:
    write_xml_database(tmp_path, profiled_run(metrics=('A<B & "C"', "PAPI_TOT_INS")))
    names = [metric.attrib["n"] for metric in ET.parse(tmp_path / "experiment.xml").getroot().iter("MetricDB")]
    assert names[0] == 'A<B & "C" (I)'


def test_same_run_same_bytes(tmp_path: Path) -> None:
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        write_xml_database(tmp_path / name, profiled_run(streams=2))
    assert contents(tmp_path / "one") == contents(tmp_path / "two")


def declarations(text: str) -> dict[str, set[str]]:
    """Elements of a DTD with what they may hold, and attributes with their types; comments do not count."""
    text = re.sub(r"<!--.*?-->", "", text, flags=re.DOTALL)
    found = {
        name: {" ".join(content.split())}
        for name, content in re.findall(r"<!ELEMENT\s+(\S+)\s+(.*?)>", text, re.DOTALL)
    }
    for name, content in re.findall(r"<!ATTLIST\s+(\S+)\s+(.*?)>", text, re.DOTALL):
        found[name] |= {" ".join(part) for part in re.findall(r"(\S+)\s+(CDATA|\([^)]*\))\s+(\"\S*\"|#\w+)", content)}
    return found


def test_document_type_is_the_real_one(shared_data: Path) -> None:
    real = declarations((shared_data / "hpctoolkit/kripke/experiment.xml").read_text().partition("]>")[0])
    ours = declarations(DOCTYPE)
    assert {name: real[name] for name in ours} == ours


@pytest.mark.parametrize("sample", ["kripke", "osu_allgather"])
def test_header_is_like_the_real_one(tmp_path: Path, shared_data: Path, sample: str) -> None:
    def outline(path: Path) -> list[tuple[str, tuple[str, ...]]]:
        root = ET.parse(path).getroot()
        tables = [root, *root.iter("Header"), *root.iter("SecCallPathProfile"), *root.iter("SecHeader")]
        tables += [*root.iter("Metric"), *root.iter("MetricFormula"), *root.iter("MetricDB")]
        return [(element.tag, tuple(element.attrib)) for element in tables]

    write_xml_database(tmp_path, profiled_run(metrics=("CPUTIME (usec)",)))
    real = shared_data / "hpctoolkit" / sample / "experiment.xml"
    assert outline(tmp_path / "experiment.xml") == outline(real)
    stored = [dict(e.attrib) for e in ET.parse(tmp_path / "experiment.xml").getroot().iter("MetricDB")]
    assert stored == [dict(e.attrib) for e in ET.parse(real).getroot().iter("MetricDB")]
