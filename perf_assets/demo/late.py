"""Machines that arrive late: which of their runs land first, which land later, and which are kept aside for good."""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import zip_longest
from math import ceil

import pandas as pd

from perf_assets.core.machines import MachineSpec
from perf_assets.demo.execution import Execution
from perf_assets.demo.fleet import (
    APPLICATIONS,
    LATER_MACHINES,
    SOURCE_MACHINES,
    benchmark_bundles,
    executions,
    measured_seconds,
    run_bundles,
)
from perf_assets.demo.simulated import SimulatedBundle
from perf_assets.demo.tools.observation import generator

BENCHMARK_ONLY = (
    "cascadelake-8275cl",
    "cloud-skylake-96",
    "epyc-7742",
    "epyc-7r13",
    "icelake-8375c",
    "skylake-8160",
)
"""Known machines that ran RAJAPerf and no application."""
KNOWN_MACHINES = (*SOURCE_MACHINES, *BENCHMARK_ONLY)
LATE_MACHINES = LATER_MACHINES
RUNS_AT_A_TIME = 10


@dataclass(frozen=True)
class LateMachine:
    """A machine with the order in which its runs land; half of the runs of each application never do."""

    spec: MachineSpec
    scale: float
    seed: int
    landing: tuple[Execution, ...]
    kept_aside: tuple[Execution, ...]

    @classmethod
    def of(cls, spec: MachineSpec, scale: float, seed: int) -> "LateMachine":
        """Runs in random order, one application after the other: the first ten are two of each application."""
        landing, kept = [], []
        for application in APPLICATIONS:
            every = [execution for _, execution in executions(spec, application, scale)]
            order = generator(seed, ("late", spec.machine, application.name)).permutation(len(every))
            shuffled = [every[place] for place in order]
            kept += shuffled[: ceil(len(every) / 2)]
            landing.append(shuffled[ceil(len(every) / 2) :])
        turns = [execution for turn in zip_longest(*landing) for execution in turn if execution is not None]
        return cls(spec, scale, seed, tuple(turns), tuple(kept))

    def benchmark(self) -> Iterator[SimulatedBundle]:
        """RAJAPerf in full, which describes the machine."""
        return benchmark_bundles(self.spec, 1.0, self.seed)

    def batch(self, number: int) -> list[SimulatedBundle]:
        """Runs that land together, ten of them; none where all have landed."""
        chosen = self.landing[RUNS_AT_A_TIME * number : RUNS_AT_A_TIME * (number + 1)]
        keys = {execution.configuration.key for execution in chosen}
        return list(run_bundles(self.spec, self.scale, self.seed, keys, f"-{number + 1}")) if keys else []

    def truth(self) -> pd.DataFrame:
        """The runs that are kept aside, with their times."""
        rows = [
            {
                "app": execution.configuration.app,
                "args": execution.configuration.args,
                "ranks": execution.configuration.ranks,
                "threads": execution.configuration.threads,
                "gpus": execution.placement.gpus,
                "wall_seconds": measured_seconds(execution, self.seed),
            }
            for execution in self.kept_aside
        ]
        return pd.DataFrame(rows)
