"""Target models of machines whose runs pair with those of no other machine: ModelX on counters of the machine itself.

They answer how long a run takes from counters that were measured on the machine. They have no prior: a source model
speaks of runs that were measured elsewhere.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pandas as pd

from perf_assets.core.errors import BadInputError
from perf_assets.core.manifest import digest_of
from perf_assets.core.tables.models import TRANSFER_SCORES
from perf_assets.models.transfer.adapted import AdaptedTransfer, TransferSettings
from perf_assets.models.transfer.evaluation import ZERO_SHOT, UniformShotsError, evaluate_transfer
from perf_assets.models.transfer.model import LEAST_SHOTS
from perf_assets.models.transfer.task import TransferTask
from perf_assets.registry.target import INPUTS
from perf_assets.workflows.fleet import Fleet
from perf_assets.workflows.models.datasets import UnpairedTables, unpaired_tables

Say = Callable[[str], None]


@dataclass(frozen=True, eq=False)
class UnpairedInputs:
    """Runs of a machine and of the others, each with the counters that it has, under their own names."""

    machine: str
    seed: int
    why: str
    """Why the machine's runs pair with nothing."""
    tables: UnpairedTables
    code: str

    @cached_property
    def digest(self) -> str:
        """Changes when and only when a model made of this may become another."""
        named = [self.tables.target.table, *self.tables.sources]
        parts = [
            (table.name, table.counter_names, digest_of(table.counters.tobytes() + table.target.tobytes()))
            for table in named
        ]
        return digest_of(repr((self.code, parts, self.seed)).encode())

    def adapt(self, say: Say, settings: TransferSettings | None = None) -> AdaptedTransfer:
        """Fit the target model."""
        sources = ", ".join(table.name for table in self.tables.sources)
        say(f"{self.machine}: {self.why}; adapted from counters of {sources}")
        return self.tables.adapt(settings=settings, seed=self.seed)

    def tags(self, own: Mapping[str, str]) -> dict[str, str]:
        """Tags of a version; `own` are those of what landed for the machine."""
        return {
            INPUTS: self.digest,
            "seed": str(self.seed),
            "machine": self.machine,
            "why_unpaired": self.why,
            **{name: own[name] for name in ("manifests_count", "manifests_digest", "is_simulated")},
        }

    def learning_curve(self, seeds: int, counts: Sequence[int], say: Say) -> pd.DataFrame:
        """Rows of `eval_transfer__scores`: errors over the number of runs, half of which are test rows."""
        tables = self.tables
        task = TransferTask.of(tables.sources, tables.target.table, tables.catalogue, TransferSettings().source)
        most = len(task.target) // 2
        rows = []
        for count in (count for count in counts if LEAST_SHOTS <= count <= most):
            try:
                evaluated = evaluate_transfer(task, count, seeds, methods=ZERO_SHOT, progress=say)
            except UniformShotsError as error:
                say(str(error))
                continue
            rows += [
                {
                    "shots": count,
                    "seed": seed,
                    "method": method,
                    "mape_ratio": scores["mape"][place],
                    "log_rmse": float(np.sqrt(scores["log_mse"][place])),
                    "coverage_90_ratio": evaluated.coverage[place] if method == "product" else np.nan,
                }
                for method, scores in evaluated.scores.items()
                for place, seed in enumerate(evaluated.seeds)
            ]
        if not rows:
            raise BadInputError(f"{self.machine} has too few runs to hold half of them out")
        named = {"machine": self.machine, "target": self.machine}
        sources = " + ".join(table.name for table in tables.sources)
        return pd.DataFrame(rows).assign(**named, source=sources, is_simulated=False)[TRANSFER_SCORES.column_names()]


def unpaired_inputs(fleet: Fleet, machine: str, why: str, seed: int, code: str) -> UnpairedInputs:
    """What a machine's target model is made of without a reference machine; refuses where that is too little."""
    others = [name for name in fleet.machines_with_counters() if name != machine]
    tables = unpaired_tables(
        machine,
        fleet.runs_with_counters(machine),
        {name: fleet.runs_with_counters(name) for name in others},
        fleet.catalogue,
    )
    return UnpairedInputs(machine=machine, seed=seed, why=why, tables=tables, code=code)
