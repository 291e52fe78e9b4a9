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
from perf_assets.workflows.landing.probe import probe

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


def test_every_slice_of_the_last_cache_counts_and_every_core_once(node: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two sockets of four cores with two threads; two cores share a slice of L3, as on EPYC."""
    monkeypatch.setenv("PATH", str(node))
    for number in range(16):
        core, socket = number % 4, number // 4 % 2
        facts = {
            "topology/physical_package_id": socket,
            "topology/core_id": core,
            "cache/index3/level": 3,
            "cache/index3/type": "Unified",
            "cache/index3/size": "32M",
            "cache/index3/shared_cpu_list": f"{socket}-{core // 2}",
        }
        for name, text in facts.items():
            file = node / f"sys/devices/system/cpu/cpu{number}" / name
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(f"{text}\n")
    sheet = probe("newbox", [], root=node)
    assert (sheet.fields["cpu.sockets"], sheet.fields["cpu.cores_per_socket"]) == (2, 4)
    assert sheet.fields["caches.l3_bytes"] == 2 * 32 * 2**20


def test_cores_that_nobody_knows_have_figures_of_their_ancestor(node: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(node))
    cpuinfo = node / "proc" / "cpuinfo"
    cpuinfo.write_text(cpuinfo.read_text().replace("model : 1\n", "model : 17\n"))
    known = load_machines()
    sheet = probe("newbox", list(known.values()), root=node)
    assert sheet.fields["microarchitecture"] == "zen4"
    assert sheet.fields["cpu.fma_units"] == known["tioga"].cpu.fma_units
    assert "cores of zen3, an ancestor of zen4: check them" in sheet.sources[-1]


def test_an_arm_node_says_how_wide_its_vectors_are(node: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(node))
    (node / "proc" / "cpuinfo").write_text("processor : 0\nFeatures : fp asimd sve sve2\n\n")
    (node / "proc/sys/abi").mkdir(parents=True)
    (node / "proc/sys/abi/sve_default_vector_length").write_text("16\n")
    tool = node / "lscpu"
    tool.write_text("#!/bin/sh\necho 'Model name:             Neoverse-V2'\n")
    tool.chmod(0o755)
    fields = probe("newbox", [], root=node).fields
    assert (fields["cpu.simd_bits"], fields["cpu.model"]) == (128, "Neoverse-V2")


def test_gpus_are_found_without_their_tools(node: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(node))
    for number, size in enumerate([64 * 2**30, 64 * 2**30, 2**24]):
        card = node / f"sys/class/drm/card{number}/device"
        card.mkdir(parents=True)
        for name, text in (
            ("vendor", "0x1002"),
            ("mem_info_vram_total", size),
            ("product_name", "AMD INSTINCT MI250X"),
        ):
            (card / name).write_text(f"{text}\n")
    fields = probe("newbox", list(load_machines().values()), root=node).fields
    assert (fields["gpu.model"], fields["gpu.count"]) == ("AMD INSTINCT MI250X", 2)
    for number in range(4):
        file = node / f"proc/driver/nvidia/gpus/{number}/information"
        file.parent.mkdir(parents=True)
        file.write_text("Model: \t\t NVIDIA H100 80GB HBM3\nIRQ: 1\n")
    fields = probe("newbox", [], root=node).fields
    assert (fields["gpu.model"], fields["gpu.count"]) == ("NVIDIA H100 80GB HBM3", 4)


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


def test_a_description_of_benchpark_is_added(node: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(node))
    file = node / "hardware_description.yaml"
    file.write_text(
        "system_definition:\n  name: HPECray-zen3-MI250X-Slingshot\n"
        "  processor: {vendor: AMD, name: EPYC-Zen3, ISA: x86_64, uArch: zen3}\n"
        "  accelerator: {vendor: AMD, name: MI250X, ISA: GCN, uArch: gfx90a}\n"
    )
    known = load_machines()
    sheet = probe("newbox", list(known.values()), root=node, benchpark=file)
    assert (sheet.fields["name"], sheet.fields["cpu.model"]) == ("HPECray-zen3-MI250X-Slingshot", "AMD EPYC-Zen3")
    assert (sheet.fields["microarchitecture"], sheet.fields["gpu.model"]) == ("zen3", "AMD MI250X")
    gpu = known["tioga"].gpu
    assert gpu is not None
    assert sheet.fields["gpu.peak_double_flops"] == gpu.peak_double_flops
    assert "gpu.count" in sheet.missing, "which another machine cannot tell"
    file.write_text("other: 1\n")
    with pytest.raises(BadInputError, match=r"no hardware_description\.yaml"):
        probe("newbox", [], root=node, benchpark=file)


@pytest.mark.slow
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
