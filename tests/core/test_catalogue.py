"""The counter catalogue: comparing names, preferring formulas, a site's own file."""

import re
from pathlib import Path

import pytest

from perf_assets.core.catalogue import load_catalogue, plain_name
from perf_assets.core.errors import BadInputError
from perf_assets.core.tables.canonical import VECTOR_FEATURES, XAMM_FEATURES


@pytest.mark.parametrize(
    ("written", "compared"),
    [
        ("PAPI_TOT_INS", "papi_tot_ins"),
        ("clx::ARITH ", "arith"),
        ("amd64_fam17h_zen2::LS_DISPATCH:LD_DISPATCH", "ls_dispatch:ld_dispatch"),
        ("perf::BRANCH-INSTRUCTIONS", "branch-instructions"),
        ("io:::rchar", "rchar"),
        ("IO Bytes Read (I)", "io bytes read"),
        ("syscalls:sys_enter_openat", "syscalls:sys_enter_openat"),
        ("instructions:u", "instructions"),
        ("GKER:COUNT", "gker:count"),
    ],
)
def test_names_are_compared_without_what_a_machine_adds(written: str, compared: str) -> None:
    assert plain_name(written) == compared


def resolved(counters: list[str], microarchitecture: str | None) -> dict[str, str]:
    """First formula of each quantity."""
    found: dict[str, str] = {}
    for formula in load_catalogue().resolve(counters, microarchitecture):
        found.setdefault(formula.quantity, formula.text())
    return found


def test_the_published_machines_resolve_as_in_the_paper() -> None:
    intel = ["PAPI_TOT_INS", "PAPI_BR_INS", "PAPI_MEM_WCY", "bdw_ep::FP_ARITH:SCALAR_DOUBLE", "bdw_ep::ARITH"]
    found = resolved(intel, "broadwell")
    assert found["double_fp"] == "bdw_ep::FP_ARITH:SCALAR_DOUBLE"
    assert found["integer_arithmetic"] == "bdw_ep::ARITH"
    zen = ["perf::INSTRUCTIONS", "perf::L1-DCACHE-LOAD-MISSES", "perf::L1-ICACHE-LOAD-MISSES"]
    assert resolved(zen, "zen2")["l1_load_misses"] == "perf::L1-DCACHE-LOAD-MISSES + perf::L1-ICACHE-LOAD-MISSES"
    assert resolved(zen, "zen3")["l1_load_misses"] == "perf::L1-DCACHE-LOAD-MISSES"
    power = ["perf::STALLED-CYCLES-FRONTEND", "perf::STALLED-CYCLES-BACKEND", "PAPI_FP_INS"]
    found = resolved(power, "power9")
    assert found["memory_stall"] == "perf::STALLED-CYCLES-FRONTEND + perf::STALLED-CYCLES-BACKEND"
    assert found["double_fp"] == "PAPI_FP_INS"
    assert "double_fp" not in resolved(power, "zen2")


def test_prefixes_tell_the_architecture_where_no_data_sheet_does() -> None:
    assert resolved(["clx::ARITH", "PAPI_TOT_INS"], None)["integer_arithmetic"] == "clx::ARITH"
    assert "integer_arithmetic" not in resolved(["ARITH", "PAPI_TOT_INS"], None)


def test_half_of_a_sum_is_nothing() -> None:
    assert "memory_stall" not in resolved(["perf::STALLED-CYCLES-FRONTEND"], None)


def test_every_feature_is_made_of_described_quantities() -> None:
    names = set(load_catalogue().quantities)
    known = names | {f"{name}_per_instruction" for name in names} | {"threads", "nullif", "greatest", "coalesce"}
    for feature in (*XAMM_FEATURES, *VECTOR_FEATURES):
        words = set(re.findall(r"[a-z_][a-z0-9_]*", feature.expression))
        assert words <= known, feature.name
    assert len(XAMM_FEATURES) == 14


def test_a_sites_file_comes_first_and_may_add_quantities(tmp_path: Path) -> None:
    own = tmp_path / "own.yaml"
    own.write_text(
        "version: 1\n"
        "quantities: {joules: {unit: joules, description: Energy}}\n"
        "formulas:\n"
        "  - {quantity: joules, counters: {RAPL: 0.5}, meaning: package}\n"
        "  - {quantity: instructions, counters: {MY_INS: 2}, meaning: counted in pairs}\n"
    )
    catalogue = load_catalogue([own])
    texts = [formula.text() for formula in catalogue.resolve(["RAPL", "MY_INS", "PAPI_TOT_INS"], None)]
    assert texts == ["0.5 RAPL", "2 MY_INS", "PAPI_TOT_INS"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("version: 2", "own.yaml: version"),
        ("version: 1\nformulas: [{quantity: x, counters: {A: 1}, meaning: m}]", "quantity 'x' is not described"),
        ("version: 1\nformulas: [{quantity: loads, counters: {}, meaning: m}]", "formulas.0.counters"),
        ("version: 1\nbackend_arguments: ['(']", "pattern '\\('"),
        ("version: 1\nbackend_arguments: ['(?<=x)foo']", "which DuckDB cannot"),
        ("{", "not YAML"),
    ],
)
def test_a_wrong_file_is_one_line(tmp_path: Path, text: str, message: str) -> None:
    own = tmp_path / "own.yaml"
    own.write_text(text)
    with pytest.raises(BadInputError, match=message) as caught:
        load_catalogue([own])
    assert "\n" not in str(caught.value)
