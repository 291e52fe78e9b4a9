"""Data sheets by looking: this node, and one that is made of files."""

import stat
from pathlib import Path

import pytest
import yaml
from click.testing import CliRunner

from perf_assets.cli.main import cli
from perf_assets.core.errors import BadInputError
from perf_assets.core.machines import parse_machine_spec
from perf_assets.demo.fleet_machines import load_machines
from perf_assets.workflows.probe import Sheet, probe, read_benchpark

CPU = "processor : {number}\nvendor_id : AuthenticAMD\ncpu family : 25\nmodel : 1\nmodel name : AMD EPYC 7763\n"
CPU += "cpu MHz : 2445.0\nphysical id : {socket}\ncore id : {core}\nflags : sse2 avx avx2\n\n"


@pytest.fixture
def node(tmp_path: Path) -> Path:
    """Two sockets of four cores with two hardware threads each."""
    (tmp_path / "proc").mkdir()
    blocks = [CPU.format(number=n, socket=n // 4 % 2, core=n % 4) for n in range(16)]
    (tmp_path / "proc" / "cpuinfo").write_text("".join(blocks))
    (tmp_path / "proc" / "meminfo").write_text("MemTotal:       1048576 kB\nMemFree: 1 kB\n")
    for index, (level, kind, size) in enumerate(
        [("1", "Data", "32K"), ("1", "Instruction", "32K"), ("2", "Unified", "512K"), ("3", "Unified", "32M")]
    ):
        folder = tmp_path / f"sys/devices/system/cpu/cpu0/cache/index{index}"
        folder.mkdir(parents=True)
        for name, text in (("level", level), ("type", kind), ("size", size)):
            (folder / name).write_text(f"{text}\n")
    return tmp_path


def test_a_node_is_described_and_what_is_missing_is_said(node: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(node))
    sheet = probe("newbox", list(load_machines().values()), root=node)
    assert (sheet.fields["cpu.sockets"], sheet.fields["cpu.cores_per_socket"]) == (2, 4)
    assert (sheet.fields["microarchitecture"], sheet.fields["cpu.simd_bits"]) == ("zen3", 256)
    assert sheet.fields["caches.l1_bytes"] == 32 * 1024
    assert sheet.fields["memory.capacity_bytes"] == 2**30
    assert sheet.missing == ["memory.bandwidth_bytes_per_second"]
    assert "# Not found, fill it in: memory.bandwidth_bytes_per_second" in sheet.to_yaml()
    with pytest.raises(BadInputError, match="bandwidth"):
        parse_machine_spec(sheet.to_yaml())
    sheet.put("memory.bandwidth_bytes_per_second", 2e11)
    assert parse_machine_spec(sheet.to_yaml()).cpu.cores == 8


def test_gpus_are_found_by_their_tool(node: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tool = node / "nvidia-smi"
    tool.write_text("#!/bin/sh\nprintf 'NVIDIA H100 80GB HBM3, 81559\\nNVIDIA H100 80GB HBM3, 81559\\n'\n")
    tool.chmod(tool.stat().st_mode | stat.S_IXUSR)
    monkeypatch.setenv("PATH", str(node))
    sheet = probe("newbox", list(load_machines().values()), root=node)
    assert (sheet.fields["gpu.model"], sheet.fields["gpu.count"]) == ("NVIDIA H100 80GB HBM3", 2)
    assert sheet.fields["gpu.capacity_bytes"] == 81559 * 2**20
    assert sheet.fields["gpu.l2_bytes"] > 0, "as the known machine with the same GPU"
    tool.write_text("#!/bin/sh\nexit 9\n")
    assert "gpu.model" not in probe("newbox", [], root=node).fields


def test_a_node_that_tells_nothing_is_no_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    sheet = probe("newbox", [], root=tmp_path)
    assert sheet.fields == {}
    assert "cpu.model" in sheet.missing
    with pytest.raises(BadInputError, match="machine id 'New Box' is not allowed"):
        probe("New Box", [])


def test_a_description_of_benchpark_is_added(tmp_path: Path) -> None:
    file = tmp_path / "hardware_description.yaml"
    file.write_text(
        "system_definition:\n  name: Penguin-icelake-OmniPath\n"
        "  processor: {vendor: Intel, name: XeonPlatinum924248C, ISA: x86_64, uArch: cascadelake}\n"
    )
    sheet = Sheet("magma", {"microarchitecture": "zen3"})
    read_benchpark(sheet, file)
    assert sheet.fields["microarchitecture"] == "cascadelake"
    assert sheet.fields["cpu.model"] == "Intel XeonPlatinum924248C"
    file.write_text("other: 1\n")
    with pytest.raises(BadInputError, match=r"no hardware_description\.yaml"):
        read_benchpark(sheet, file)


def test_this_node_with_its_tests_gives_a_sheet_that_lands(tmp_path: Path) -> None:
    out = tmp_path / "machine.yaml"
    done = CliRunner().invoke(cli, ["probe", "here", "--measure", "--out", str(out)])
    assert done.exit_code == 0, done.output
    document = yaml.safe_load(out.read_text())
    assert document["memory"]["bandwidth_bytes_per_second"] > 1e8
    missing = [line for line in out.read_text().splitlines() if line.startswith("# Not found")]
    if not missing:
        assert parse_machine_spec(out.read_text()).machine == "here"
    assert [line.removeprefix("# Not found, fill it in: ") for line in missing] == [
        line.removeprefix("not found: ") for line in done.stderr.splitlines()
    ]
