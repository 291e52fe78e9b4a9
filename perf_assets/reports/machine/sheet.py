"""A machine's data sheet in the words of a person."""

from collections.abc import Mapping
from typing import Any


def sheet_rows(row: Mapping[str, Any]) -> dict[str, str]:
    """Rows of a page from a row of `core_machines__specs`; what the sheet does not say is left out."""
    known = {name: value for name, value in row.items() if value is not None and value == value}
    shown = {
        "machine": _text(known, "{name}"),
        "processor": _text(known, "{cpu_sockets:.0f} x {cpu_model}, {cpu_cores_per_socket:.0f} cores each"),
        "clock": _scaled(known, "cpu_clock_hertz", 1e9, "GHz"),
        "vector width": _text(known, "{cpu_simd_bits:.0f} bits, {cpu_fma_units:.0f} units"),
        "L2 of a core": _scaled(known, "l2_bytes", 2**20, "MiB"),
        "L3 of a socket": _scaled(known, "l3_bytes", 2**20, "MiB"),
        "memory": _scaled(known, "memory_capacity_bytes", 1e9, "GB"),
        "memory bandwidth": _scaled(known, "memory_bandwidth_bytes_per_second", 1e9, "GB/s"),
        "GPUs": _text(known, "{gpu_count:.0f} x {gpu_model}"),
        "GPU peak, double precision": _scaled(known, "gpu_peak_double_flops", 1e12, "Tflop/s"),
        "GPU memory bandwidth": _scaled(known, "gpu_bandwidth_bytes_per_second", 1e9, "GB/s"),
        "network": _scaled(known, "network_bandwidth_bytes_per_second", 1e9, "GB/s"),
    }
    return {name: text for name, text in shown.items() if text}


def _text(known: Mapping[str, Any], words: str) -> str:
    try:
        return words.format(**known)
    except KeyError:
        return ""


def _scaled(known: Mapping[str, Any], name: str, unit: float, words: str) -> str:
    return f"{known[name] / unit:,.4g} {words}" if name in known else ""
