"""Machine ids and data sheets."""

import pytest

from perf_assets.core.errors import BadInputError
from perf_assets.core.machines import check_machine_id, parse_machine_spec

SHEET = """
machine: box
name: Box
microarchitecture: zen3
cpu: {model: X, sockets: 2, cores_per_socket: 4, clock_hertz: 2.0e+9, simd_bits: 256, fma_units: 2}
caches: {l1_bytes: 32768, l2_bytes: 524288, l3_bytes: 1048576,
         l1_bytes_per_cycle: 64, l2_bytes_per_cycle: 32, l3_bytes_per_cycle: 10}
memory: {capacity_bytes: 1.0e+11, bandwidth_bytes_per_second: 1.0e+11, latency_seconds: 1.0e-7}
sources: [a data sheet]
"""


@pytest.mark.parametrize("machine", ["quartz", "epyc-vm", "0", "a" * 64, "a_b-c"])
def test_legal_ids(machine: str) -> None:
    assert check_machine_id(machine) == machine


@pytest.mark.parametrize("machine", ["", "Quartz", "-a", "_a", "a" * 65, "a/b", "..", "a\n", "é", "a b"])
def test_illegal_ids(machine: str) -> None:
    with pytest.raises(ValueError, match="is not allowed"):
        check_machine_id(machine)


def test_a_data_sheet_becomes_a_flat_row() -> None:
    spec = parse_machine_spec(SHEET)
    assert spec.cpu.cores == 8
    row = spec.to_row()
    assert (row["cpu_sockets"], row["l1_bytes"], row["memory_latency_seconds"]) == (2, 32768, 1e-7)
    assert "gpu_model" not in row


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("sockets: 2", "sockets: 0", "cpu.sockets"),
        ("machine: box", "machine: BOX", "machine: machine id"),
        ("sources: [a data sheet]", "sources: []", "sources"),
        ("name: Box", "nom: Box", "name"),
        ("cpu: {", "cpu: {{", "not YAML"),
    ],
)
def test_a_wrong_figure_is_named_in_one_line(old: str, new: str, message: str) -> None:
    with pytest.raises(BadInputError, match=message) as caught:
        parse_machine_spec(SHEET.replace(old, new))
    assert "\n" not in str(caught.value)
