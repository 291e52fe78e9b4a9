"""Kernel times of a machine that has none: a machine that runs alike lends its own."""

import numpy as np
import pandas as pd
import pytest

from perf_assets.core.errors import BadInputError
from perf_assets.features.fleet.descriptions import lent_kernels

FACTORS = {"slow": 4.0, "alike": 1.2, "gpu": 1.0}


def runs(machine: str, factor: float, count: int, gpus: int = 0) -> pd.DataFrame:
    base = {"machine": machine, "app": "Kripke", "args": [f"--zones {size}" for size in range(count)]}
    return pd.DataFrame(base).assign(ranks=1, threads=1, gpus=gpus, wall_seconds=factor * np.arange(1.0, count + 1))


def kernels() -> pd.DataFrame:
    rows = [
        (machine, "DAXPY", 1000, placement, factor)
        for machine, factor in FACTORS.items()
        for placement in ("core", "busy_core", *(["device"] if machine == "gpu" else []))
    ]
    return pd.DataFrame(rows, columns=["machine", "kernel", "problem_size", "placement", "seconds_per_rep"])


def test_the_machine_with_most_runs_in_common_that_takes_as_long_lends() -> None:
    others = pd.concat([runs("slow", 4.0, 10), runs("alike", 1.2, 10), runs("gpu", 1.0, 3)])
    lent = lent_kernels("new", runs("new", 1.0, 10), others, kernels())
    assert set(lent["machine"]) == {"new"}
    # It is moved by how far its runs are off: exactly as long as the runs themselves say.
    assert lent["seconds_per_rep"].to_numpy() == pytest.approx([1.0, 1.0])
    assert set(lent["placement"]) == {"core", "busy_core"}


def test_runs_on_gpus_are_compared_with_runs_on_gpus() -> None:
    others = pd.concat([runs("alike", 1.2, 10), runs("gpu", 2.0, 5, gpus=1)])
    lent = lent_kernels("new", runs("new", 1.0, 10, gpus=1), others, kernels())
    assert set(lent["placement"]) == {"core", "busy_core", "device"}
    assert lent["seconds_per_rep"].to_numpy() == pytest.approx([0.5, 0.5, 0.5])


def test_without_a_run_in_common_nobody_lends() -> None:
    with pytest.raises(BadInputError, match="none of the 4 configurations of new ran on another machine"):
        lent_kernels("new", runs("new", 1.0, 4), runs("alike", 1.0, 4).assign(app="Laghos"), kernels())
