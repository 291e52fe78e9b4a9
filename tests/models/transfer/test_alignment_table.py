"""Counters that an alignment proposes for the catalogue."""

from pathlib import Path

import numpy as np
import pytest

from perf_assets.core.catalogue import load_catalogue
from perf_assets.models.transfer.alignment_table import AlignmentTable, Correspondence, catalogue_proposal

PROPOSALS = [
    ("PAPI_SR_INS", "own_st_all", 0.9, 1.0, True),
    ("PAPI_SR_INS", "own_st_all", -0.99, 1.0, False),
    ("PAPI_SR_INS", "own_st_all", 0.7, 1.0, False),
    ("PAPI_SR_INS", "own_st_all", 0.9, 0.6, False),
    ("PAPI_SR_INS", "own-dcache-loads", 0.9, 1.0, False),
    ("FP_ARITH:SCALAR_DOUBLE", "own_memcpy_ns", 0.99, 1.0, False),
    ("FP_ARITH:SCALAR_DOUBLE", "own_fp64_inst", 0.99, 1.0, True),
    ("PAPI_L1_STM", "own_branch_misses", 0.9, 1.0, False),
    ("PAPI_L1_STM", "own_l1_write_miss", 0.9, 1.0, True),
    ("IO Bytes Written", "page-faults", 0.9, 1.0, False),
    ("EPT", "sys_enter_openat", 0.9, 1.0, False),
    ("PAPI_L1_STM", "PAPI_LD_INS", 0.9, 1.0, False),
]


def proposal(theirs: str, ours: str, weight: float, stability: float) -> str:
    row = Correspondence("s", theirs, ours, weight, 1.0, stability, False)
    found = AlignmentTable("s", (row,), np.array([[weight]]), (theirs,), (ours,))
    return catalogue_proposal([found], load_catalogue(), "t")


@pytest.mark.parametrize(("theirs", "ours", "weight", "stability", "is_proposed"), PROPOSALS)
def test_only_strong_and_stable_counters_of_the_same_kind_are_proposed(
    theirs: str, ours: str, weight: float, stability: float, is_proposed: bool
) -> None:
    assert bool(proposal(theirs, ours, weight, stability)) is is_proposed


def test_a_proposal_is_a_catalogue_file(tmp_path: Path) -> None:
    (tmp_path / "site.yaml").write_text(proposal("PAPI_SR_INS", "own_st_all", 0.9, 1.0))
    catalogue = load_catalogue([tmp_path / "site.yaml"])
    assert [one.quantity for one in catalogue.resolve(["own_st_all"], None)] == ["stores"]
