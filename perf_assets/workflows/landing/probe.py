"""A machine's data sheet by looking: what the operating system and its tools say of this node."""

import csv
import io
import re
import shutil
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from perf_assets.core.errors import BadInputError
from perf_assets.core.machines import MachineSpec, check_machine_id
from perf_assets.core.yaml_text import parse_yaml

_TOOL_SECONDS = 20.0
_SIMD = (("avx512f", 512), ("avx2", 256), ("avx", 256), ("asimd", 128), ("sse2", 128))
_ARCHSPEC = {"skylake_avx512": "skylake", "power9le": "power9", "neoverse_v2": "neoverse-v2"}
"""Micro-architectures that the counter catalogue calls otherwise."""
_ZEN = {23: "zen2", 26: "zen5"}
_ZEN4_MODELS = (*range(0x10, 0x20), *range(0x60, 0x80), *range(0xA0, 0xB0))
_UNITS = {"K": 2**10, "M": 2**20, "G": 2**30}
_TYPICAL = ("l1_bytes_per_cycle", "l2_bytes_per_cycle", "l3_bytes_per_cycle")
_AMD = "0x1002"
_TEST_BYTES = 2**26
_TEST_ROUNDS = 12


@dataclass
class Sheet:
    """A data sheet as far as it was found."""

    machine: str
    fields: dict[str, Any] = field(default_factory=dict)
    """Values by path, as in `cpu.sockets`."""
    sources: list[str] = field(default_factory=list)

    def put(self, path: str, value: Any) -> None:
        """Keep a figure that was found; what is known stays."""
        if value is not None:
            self.fields.setdefault(path, value)

    @property
    def missing(self) -> list[str]:
        """Facts that a data sheet needs and that were not found."""
        return [path for path in _needed(with_gpu="gpu.model" in self.fields) if path not in self.fields]

    def to_yaml(self) -> str:
        """Text of a `machine.yaml`, with a line for each thing that is missing."""
        import yaml

        document: dict[str, Any] = {"machine": self.machine}
        for path, value in self.fields.items():
            part, _, name = path.rpartition(".")
            (document.setdefault(part, {}) if part else document)[name] = value
        document["sources"] = self.sources
        absent = "".join(f"# Not found, fill it in: {path}\n" for path in self.missing)
        return absent + yaml.safe_dump(document, sort_keys=False, allow_unicode=True)


def _needed(*, with_gpu: bool) -> list[str]:
    """Paths of all figures that a data sheet must have."""
    parts = ["cpu", "caches", "memory", *(["gpu"] if with_gpu else [])]
    paths = ["name", "microarchitecture"]
    for part in parts:
        annotation = MachineSpec.model_fields[part].annotation
        model = next(
            kind for kind in (annotation, *getattr(annotation, "__args__", ())) if hasattr(kind, "model_fields")
        )
        paths += [f"{part}.{name}" for name in model.model_fields]
    return paths


def probe(
    machine: str,
    typical: Sequence[MachineSpec],
    *,
    root: Path = Path("/"),
    with_tests: bool = False,
    benchpark: Path | None = None,
) -> Sheet:
    """Look at this node; figures that cannot be read on a node are those of a known machine of the same kind.

    `benchpark` is a `hardware_description.yaml`: what it says wins over what the node says.
    """
    try:
        check_machine_id(machine)
    except ValueError as error:
        raise BadInputError(str(error)) from None
    sheet = Sheet(machine)
    if benchpark is not None:
        read_benchpark(sheet, benchpark)
    _processor(sheet, root)
    _caches(sheet, root / "sys/devices/system/cpu")
    _memory(sheet, root)
    _nvidia(sheet, root)
    _amd(sheet, root)
    if with_tests:
        _tests(sheet)
    _take_typical(sheet, typical)
    return sheet


def read_benchpark(sheet: Sheet, file: Path) -> None:
    """Add what Benchpark's `hardware_description.yaml` says; how many GPUs a node has it does not."""
    document = parse_yaml(str(file), file.read_text(errors="replace"))
    system = document.get("system_definition") if isinstance(document, dict) else None
    processor = system.get("processor") if isinstance(system, dict) else None
    if not isinstance(system, dict) or not isinstance(processor, dict):
        raise BadInputError(
            f"{file} is no hardware_description.yaml of Benchpark: it has no system_definition.processor"
        )
    sheet.put("name", system.get("name") or None)
    sheet.put("microarchitecture", _catalogue_name(str(processor["uArch"])) if processor.get("uArch") else None)
    sheet.put("cpu.model", _vendor_and_name(processor))
    accelerator = system.get("accelerator")
    sheet.put("gpu.model", _vendor_and_name(accelerator) if isinstance(accelerator, dict) else None)
    sheet.sources.append(f"Benchpark: {file.name}")


def _vendor_and_name(part: Mapping[str, Any]) -> str | None:
    return " ".join(str(part[key]) for key in ("vendor", "name") if part.get(key)) or None


def _processor(sheet: Sheet, root: Path) -> None:
    cpuinfo = root / "proc" / "cpuinfo"
    if not cpuinfo.is_file():
        return
    blocks = [_pairs(block) for block in cpuinfo.read_text(errors="replace").split("\n\n") if block.strip()]
    if not blocks:
        return
    first = blocks[0]
    sheet.sources.append("/proc/cpuinfo")
    # Processors other than x86 do not say their name there.
    model = first.get("model name") or _pairs(_tool("lscpu")).get("Model name")
    sheet.put("name", model)
    if "microarchitecture" not in sheet.fields:
        sheet.put("microarchitecture", _microarchitecture(sheet, first))
    sheet.put("cpu.model", model)
    cores = _cores(root / "sys/devices/system/cpu") or {
        (block.get("physical id", "0"), block.get("core id", str(index))) for index, block in enumerate(blocks)
    }
    sockets = {socket for socket, _ in cores}
    sheet.put("cpu.sockets", len(sockets))
    sheet.put("cpu.cores_per_socket", max(len(cores) // len(sockets), 1))
    megahertz = _figure(first.get("cpu MHz"))
    sheet.put("cpu.clock_hertz", megahertz * 1e6 if megahertz else None)
    flags = set((first.get("flags") or first.get("Features") or "").split())
    scalable = _figure(_text(root / "proc/sys/abi/sve_default_vector_length"))
    sheet.put("cpu.simd_bits", int(8 * scalable) if scalable and "sve" in flags else None)
    sheet.put("cpu.simd_bits", next((bits for flag, bits in _SIMD if flag in flags), None))


def _cores(processors: Path) -> set[tuple[str, str]]:
    """Socket and number of each core, whatever its hardware threads."""
    topologies = processors.glob("cpu[0-9]*/topology")
    cores = {(_text(place / "physical_package_id"), _text(place / "core_id")) for place in topologies}
    return {(socket, core) for socket, core in cores if socket and core}


def _pairs(block: str) -> dict[str, str]:
    pairs = (line.partition(":") for line in block.splitlines())
    return {key.strip(): value.strip() for key, colon, value in pairs if colon}


def _microarchitecture(sheet: Sheet, processor: Mapping[str, str]) -> str | None:
    """Micro-architecture as the counter catalogue names it.

    archspec goes by flags, which virtual machines hide: AMD's family counts.
    """
    family, model = _figure(processor.get("cpu family")), _figure(processor.get("model"))
    if processor.get("vendor_id") == "AuthenticAMD" and family is not None:
        zen = "zen4" if family == 25 and model in _ZEN4_MODELS else "zen3" if family == 25 else _ZEN.get(int(family))
        if zen:
            sheet.sources.append(f"CPU family {family:.0f}, model {model or 0:.0f}")
            return zen
    try:
        import archspec.cpu
    except ImportError:
        return None
    sheet.sources.append("archspec")
    return _catalogue_name(str(archspec.cpu.host().name))


def _catalogue_name(name: str) -> str:
    """A micro-architecture of archspec, as the counter catalogue names it."""
    return _ARCHSPEC.get(name, name.replace("_", ""))


def _caches(sheet: Sheet, processors: Path) -> None:
    """Caches of one core, and those of the last level of a whole socket, of which there may be several."""
    last: dict[str, int] = {}
    for index in sorted(processors.glob("cpu[0-9]*/cache/index*")):
        cache_facts = {name: _text(index / name) for name in ("level", "type", "size", "shared_cpu_list")}
        size = _size(cache_facts["size"])
        if cache_facts["type"] == "Instruction" or not size:
            continue
        if cache_facts["level"] == "3":
            last[cache_facts["shared_cpu_list"]] = size
        elif cache_facts["level"] in ("1", "2"):
            sheet.put(f"caches.l{cache_facts['level']}_bytes", size)
    if last:
        sheet.put("caches.l3_bytes", sum(last.values()) // int(sheet.fields.get("cpu.sockets", 1)))
    cpu = processors / "cpu0"
    if any(path.startswith("caches.") for path in sheet.fields):
        sheet.sources.append("sysfs: caches")
        sheet.put("caches.l3_bytes", 0)
    fastest = _figure(_text(cpu / "cpufreq" / "base_frequency")) or _figure(_text(cpu / "cpufreq" / "cpuinfo_max_freq"))
    if fastest:
        sheet.fields["cpu.clock_hertz"] = fastest * 1e3
        sheet.sources.append("sysfs: cpufreq")


def _memory(sheet: Sheet, root: Path) -> None:
    total = re.search(r"^MemTotal:\s+(\d+) kB", _text(root / "proc" / "meminfo"), re.MULTILINE)
    if total:
        sheet.put("memory.capacity_bytes", float(total[1]) * 1024)
        nodes = len(list((root / "sys/devices/system/node").glob("node[0-9]*")))
        sheet.sources.append(f"/proc/meminfo, {nodes} NUMA nodes")


def _nvidia(sheet: Sheet, root: Path) -> None:
    text = _tool("nvidia-smi", "--query-gpu=name,memory.total", "--format=csv,noheader,nounits")
    rows = [row for row in csv.reader(io.StringIO(text)) if len(row) == 2]
    if rows:
        _put_gpus(sheet, rows[0][0].strip(), len(rows), (_figure(rows[0][1].strip()) or 0) * 2**20, "nvidia-smi")
        return
    devices = [_pairs(_text(file)) for file in sorted((root / "proc/driver/nvidia/gpus").glob("*/information"))]
    if devices and devices[0].get("Model"):
        _put_gpus(sheet, devices[0]["Model"], len(devices), 0, "/proc/driver/nvidia")


def _amd(sheet: Sheet, root: Path) -> None:
    text = _tool("rocm-smi", "--showproductname", "--showmeminfo", "vram", "--csv")
    rows = [row for row in csv.DictReader(io.StringIO(text)) if (row.get("device") or "").startswith("card")]
    if rows:
        memory = next((_figure(value) for key, value in rows[0].items() if key and "Total Memory" in key), None)
        name = rows[0].get("Card Series") or rows[0].get("Card series") or "AMD GPU"
        _put_gpus(sheet, name.strip(), len(rows), memory or 0, "rocm-smi")
        return
    devices = [card for card in sorted((root / "sys/class/drm").glob("card*/device")) if _text(card / "vendor") == _AMD]
    # A graphics output of the board has little memory, and is no accelerator.
    sizes = {card: _figure(_text(card / "mem_info_vram_total")) or 0.0 for card in devices}
    large = [card for card, size in sizes.items() if size >= 2**33]
    if large:
        _put_gpus(sheet, _text(large[0] / "product_name") or "AMD GPU", len(large), sizes[large[0]], "sysfs: drm")


def _put_gpus(sheet: Sheet, model: str, count: int, memory: float, tool: str) -> None:
    sheet.put("gpu.model", model)
    sheet.put("gpu.count", count)
    sheet.put("gpu.capacity_bytes", memory or None)
    sheet.sources.append(tool)


def _tool(name: str, *arguments: str) -> str:
    """Output of a tool; empty where it is not installed or fails."""
    place = shutil.which(name)
    if place is None:
        return ""
    try:
        done = subprocess.run([place, *arguments], capture_output=True, text=True, timeout=_TOOL_SECONDS, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout if done.returncode == 0 else ""


def _tests(sheet: Sheet) -> None:
    """Short tests in numpy, the best of some rounds: bytes that copies on all cores move, operations of products."""
    import numpy as np

    cores = int(sheet.fields.get("cpu.sockets", 1)) * int(sheet.fields.get("cpu.cores_per_socket", 1))
    arrays = [(np.ones(_TEST_BYTES // 8), np.ones(_TEST_BYTES // 8)) for _ in range(cores)]
    matrices = [(np.ones((512, 512)), np.ones((512, 512))) for _ in range(cores)]
    with ThreadPoolExecutor(cores) as pool:
        bandwidth = 2.0 * _TEST_BYTES * cores / _best_seconds(pool, lambda pair: np.copyto(pair[1], pair[0]), arrays)
        flops = 2.0 * 512**3 * cores / _best_seconds(pool, lambda pair: pair[0] @ pair[1], matrices)
    sheet.put("memory.bandwidth_bytes_per_second", float(f"{bandwidth:.3g}"))
    sheet.sources.append(
        f"measured with numpy on {cores} cores: copies {bandwidth / 1e9:.3g} GB/s (sustained, not the peak of the data "
        f"sheet), matrix products {flops / 1e9:.3g} GFLOP/s"
    )


def _best_seconds(pool: ThreadPoolExecutor, work: Callable[[Any], object], parts: Sequence[Any]) -> float:
    """Least time of a round in which every core does its part; the first rounds warm up."""
    seconds = []
    for _ in range(_TEST_ROUNDS):
        start = time.perf_counter()
        list(pool.map(work, parts))
        seconds.append(time.perf_counter() - start)
    return min(seconds)


def _take_typical(sheet: Sheet, typical: Sequence[MachineSpec]) -> None:
    """Figures of a known machine with the same processor cores or their ancestor, and with the same GPU."""
    own = sheet.fields.get("microarchitecture")
    kinds = [own, *_ancestors(str(own))] if own else []
    alike = [spec for kind in kinds for spec in typical if spec.microarchitecture == kind]
    for spec in alike[:1]:
        sheet.put("cpu.fma_units", spec.cpu.fma_units)
        for name in _TYPICAL:
            sheet.put(f"caches.{name}", getattr(spec.caches, name))
        sheet.put("memory.latency_seconds", spec.memory.latency_seconds)
        how = "" if spec.microarchitecture == own else f", an ancestor of {own}: check them"
        sheet.sources.append(f"what no node tells is as on {spec.machine}, with cores of {spec.microarchitecture}{how}")
    words = re.findall(r"\b[A-Z]{1,3}\d{2,4}[A-Z]?\b", str(sheet.fields.get("gpu.model", "")))
    for spec in typical:
        if spec.gpu and "gpu.l2_bytes" not in sheet.fields and any(word in spec.gpu.model for word in words):
            for name, value in spec.gpu.model_dump(exclude={"count"}).items():
                sheet.put(f"gpu.{name}", value)
            sheet.sources.append(f"figures of the GPU are as on {spec.machine}, which has {spec.gpu.model}")


def _ancestors(microarchitecture: str) -> list[str]:
    """Micro-architectures that archspec derives one from, the nearest first."""
    try:
        from archspec.cpu import TARGETS
    except ImportError:
        return []
    for name, target in TARGETS.items():
        if _catalogue_name(name) == microarchitecture:
            return [_catalogue_name(str(ancestor.name)) for ancestor in target.ancestors]
    return []


def _text(file: Path) -> str:
    try:
        return file.read_text(errors="replace").strip()
    except OSError:
        return ""


def _size(text: str) -> int | None:
    match = re.fullmatch(r"(\d+)([KMG])", text)
    return int(match[1]) * _UNITS[match[2]] if match else None


def _figure(text: str | None) -> float | None:
    try:
        return float(text) if text else None
    except ValueError:
        return None
