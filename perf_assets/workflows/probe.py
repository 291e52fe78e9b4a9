"""A machine's data sheet by looking: what the operating system and its tools say of this node."""

import csv
import io
import re
import shutil
import subprocess
import time
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from perf_assets.core.errors import BadInputError
from perf_assets.core.machines import MachineSpec, check_machine_id
from perf_assets.core.yaml_text import parse_yaml

_TOOL_SECONDS = 20.0
_SIMD = (("avx512f", 512), ("avx2", 256), ("avx", 256), ("sve", 512), ("asimd", 128), ("sse2", 128))
_ARCHSPEC = {"skylake_avx512": "skylake", "power9le": "power9"}
"""Micro-architectures that the counter catalogue calls otherwise."""
_ZEN = {23: "zen2", 26: "zen5"}
_ZEN4_MODELS = (*range(0x10, 0x20), *range(0x60, 0x80), *range(0xA0, 0xB0))
_UNITS = {"K": 2**10, "M": 2**20, "G": 2**30}
_TYPICAL = ("l1_bytes_per_cycle", "l2_bytes_per_cycle", "l3_bytes_per_cycle")
_TEST_BYTES = 2**26
_TEST_SECONDS = 1.0


@dataclass
class Sheet:
    """A data sheet as far as it was found."""

    machine: str
    fields: dict[str, Any] = field(default_factory=dict)
    """By path, as in `cpu.sockets`."""
    sources: list[str] = field(default_factory=list)

    def put(self, path: str, value: Any) -> None:
        """Keep a figure that was found; what is known stays."""
        if value is not None:
            self.fields.setdefault(path, value)

    @property
    def missing(self) -> list[str]:
        """What a data sheet needs and nobody found."""
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
    found = ["name", "microarchitecture"]
    for part in parts:
        annotation = MachineSpec.model_fields[part].annotation
        model = next(
            kind for kind in (annotation, *getattr(annotation, "__args__", ())) if hasattr(kind, "model_fields")
        )
        found += [f"{part}.{name}" for name in model.model_fields]
    return found


def probe(machine: str, typical: Sequence[MachineSpec], *, root: Path = Path("/"), with_tests: bool = False) -> Sheet:
    """Look at this node; figures that no node tells are those of a known machine of the same kind."""
    try:
        check_machine_id(machine)
    except ValueError as error:
        raise BadInputError(str(error)) from None
    sheet = Sheet(machine)
    _processor(sheet, root / "proc" / "cpuinfo")
    _caches(sheet, root / "sys/devices/system/cpu/cpu0")
    _memory(sheet, root)
    _nvidia(sheet)
    _amd(sheet)
    if with_tests:
        _tests(sheet)
    _take_typical(sheet, typical)
    return sheet


def read_benchpark(sheet: Sheet, file: Path) -> None:
    """Add what Benchpark's `hardware_description.yaml` says; it wins over what was found."""
    document = parse_yaml(str(file), file.read_text(errors="replace"))
    system = document.get("system_definition") if isinstance(document, dict) else None
    processor = system.get("processor") if isinstance(system, dict) else None
    if not isinstance(system, dict) or not isinstance(processor, dict):
        raise BadInputError(
            f"{file} is no hardware_description.yaml of Benchpark: it has no system_definition.processor"
        )
    name = " ".join(str(processor[key]) for key in ("vendor", "name") if processor.get(key))
    told = {
        "name": system.get("name"),
        "microarchitecture": str(processor["uArch"]).replace("_", "") if processor.get("uArch") else None,
        "cpu.model": name or None,
    }
    sheet.fields |= {path: value for path, value in told.items() if value}
    sheet.sources.append(f"Benchpark: {file.name}")


def _processor(sheet: Sheet, cpuinfo: Path) -> None:
    if not cpuinfo.is_file():
        return
    blocks = [_pairs(block) for block in cpuinfo.read_text(errors="replace").split("\n\n") if block.strip()]
    if not blocks:
        return
    first = blocks[0]
    sheet.sources.append("/proc/cpuinfo")
    sheet.put("name", first.get("model name"))
    sheet.put("microarchitecture", _microarchitecture(sheet, first))
    sheet.put("cpu.model", first.get("model name"))
    sockets = {block.get("physical id", "0") for block in blocks}
    cores = {(block.get("physical id", "0"), block.get("core id", str(index))) for index, block in enumerate(blocks)}
    sheet.put("cpu.sockets", len(sockets))
    sheet.put("cpu.cores_per_socket", max(len(cores) // len(sockets), 1))
    megahertz = _figure(first.get("cpu MHz"))
    sheet.put("cpu.clock_hertz", megahertz * 1e6 if megahertz else None)
    flags = set((first.get("flags") or first.get("Features") or "").split())
    sheet.put("cpu.simd_bits", next((bits for flag, bits in _SIMD if flag in flags), None))


def _pairs(block: str) -> dict[str, str]:
    pairs = (line.partition(":") for line in block.splitlines())
    return {key.strip(): value.strip() for key, colon, value in pairs if colon}


def _microarchitecture(sheet: Sheet, processor: Mapping[str, str]) -> str | None:
    """As the counter catalogue names it. archspec goes by flags, which virtual machines hide: AMD's family counts."""
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
    name = str(archspec.cpu.host().name)
    return _ARCHSPEC.get(name, name.replace("_", ""))


def _caches(sheet: Sheet, cpu: Path) -> None:
    for index in sorted((cpu / "cache").glob("index*")):
        told = {name: _text(index / name) for name in ("level", "type", "size")}
        size = _size(told["size"])
        if told["type"] != "Instruction" and told["level"] in ("1", "2", "3") and size:
            sheet.put(f"caches.l{told['level']}_bytes", size)
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


def _nvidia(sheet: Sheet) -> None:
    text = _tool("nvidia-smi", "--query-gpu=name,memory.total", "--format=csv,noheader,nounits")
    rows = [row for row in csv.reader(io.StringIO(text)) if len(row) == 2]
    if rows:
        _put_gpus(sheet, rows[0][0].strip(), len(rows), (_figure(rows[0][1].strip()) or 0) * 2**20, "nvidia-smi")


def _amd(sheet: Sheet) -> None:
    text = _tool("rocm-smi", "--showproductname", "--showmeminfo", "vram", "--csv")
    rows = [row for row in csv.DictReader(io.StringIO(text)) if (row.get("device") or "").startswith("card")]
    if rows:
        memory = next((_figure(value) for key, value in rows[0].items() if key and "Total Memory" in key), None)
        name = rows[0].get("Card Series") or rows[0].get("Card series") or "AMD GPU"
        _put_gpus(sheet, name.strip(), len(rows), memory or 0, "rocm-smi")


def _put_gpus(sheet: Sheet, model: str, count: int, memory: float, tool: str) -> None:
    sheet.put("gpu.model", model)
    sheet.put("gpu.count", count)
    sheet.put("gpu.capacity_bytes", memory or None)
    sheet.sources.append(tool)


def _tool(name: str, *arguments: str) -> str:
    """What a tool prints; nothing where it is not there or fails."""
    place = shutil.which(name)
    if place is None:
        return ""
    try:
        done = subprocess.run([place, *arguments], capture_output=True, text=True, timeout=_TOOL_SECONDS, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout if done.returncode == 0 else ""


def _tests(sheet: Sheet) -> None:
    """Short tests in numpy: how many bytes a copy moves on all cores, and how many operations a product does."""
    import numpy as np

    cores = int(sheet.fields.get("cpu.sockets", 1)) * int(sheet.fields.get("cpu.cores_per_socket", 1))
    arrays = [(np.ones(_TEST_BYTES // 8), np.zeros(_TEST_BYTES // 8)) for _ in range(cores)]

    def copies(pair: tuple[Any, Any]) -> float:
        end, moved = time.perf_counter() + _TEST_SECONDS, 0.0
        while time.perf_counter() < end:
            np.copyto(pair[1], pair[0])
            moved += 2.0 * _TEST_BYTES
        return moved

    with ThreadPoolExecutor(cores) as pool:
        start = time.perf_counter()
        moved = sum(pool.map(copies, arrays))
        bandwidth = moved / (time.perf_counter() - start)
    matrix = np.ones((1024, 1024))
    start, products = time.perf_counter(), 0
    while time.perf_counter() - start < _TEST_SECONDS:
        matrix @ matrix
        products += 1
    flops = products * 2.0 * 1024**3 / (time.perf_counter() - start)
    sheet.put("memory.bandwidth_bytes_per_second", float(f"{bandwidth:.3g}"))
    sheet.sources.append(
        f"measured with numpy on {cores} cores: copies {bandwidth / 1e9:.3g} GB/s (sustained, not the peak of the data "
        f"sheet), matrix product {flops / 1e9:.3g} GFLOP/s"
    )


def _take_typical(sheet: Sheet, typical: Iterable[MachineSpec]) -> None:
    """Figures of a known machine with the same processor cores, and with the same GPU."""
    for spec in typical:
        if spec.microarchitecture == sheet.fields.get("microarchitecture") and "cpu.fma_units" not in sheet.fields:
            sheet.put("cpu.fma_units", spec.cpu.fma_units)
            for name in _TYPICAL:
                sheet.put(f"caches.{name}", getattr(spec.caches, name))
            sheet.put("memory.latency_seconds", spec.memory.latency_seconds)
            sheet.sources.append(f"as {spec.machine}, which has {spec.microarchitecture} cores too: what no node tells")
        words = re.findall(r"\b[A-Z]{1,3}\d{2,4}[A-Z]?\b", str(sheet.fields.get("gpu.model", "")))
        if spec.gpu and "gpu.l2_bytes" not in sheet.fields and any(word in spec.gpu.model for word in words):
            for name, value in spec.gpu.model_dump().items():
                sheet.put(f"gpu.{name}", value)
            sheet.sources.append(f"as {spec.machine}, which has {spec.gpu.model} too: figures of the GPU")


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
