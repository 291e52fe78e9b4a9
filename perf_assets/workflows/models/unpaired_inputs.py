"""Target models of machines whose runs pair with those of no other machine: ModelX on counters of the machine itself.

They answer how long a run takes from counters that were measured on the machine. They have no prior: a source model
speaks of runs that were measured elsewhere.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import pandas as pd

from perf_assets.core.catalogue import Catalogue
from perf_assets.core.errors import BadInputError
from perf_assets.core.manifest import digest_of
from perf_assets.core.tables.models import TRANSFER_SCORES
from perf_assets.features.tables.unpaired import TransferTable, transfer_table
from perf_assets.models.transfer.adapted import AdaptedTransfer, NamedTable, TransferSettings, adapt_transfer
from perf_assets.models.transfer.model import LEAST_SHOTS
from perf_assets.models.transfer.task import TransferTask
from perf_assets.registry.versions import INPUTS
from perf_assets.workflows.fleet import Fleet
from perf_assets.workflows.models.datasets import curve_rows, named_table

Say = Callable[[str], None]
_TIME = "wall_seconds"
_NOT_FEATURES = (
    r"^(ranks|threads|nodes|gpus|is_simulated|target_value|runs_count|missing_mask|wall_seconds_(min|max))$",
    r"(?i)time|task-clock|_cyc|cycles",
)
"""Columns of runs that are configuration, or counters that hold the run time itself."""


@dataclass(frozen=True, eq=False)
class UnpairedInputs:
    """Runs of a machine and of the others as tables ready for transfer, counters under their own names."""

    machine: str
    seed: int
    why: str
    """Reason why the machine's runs pair with nothing."""
    target: NamedTable
    sources: tuple[TransferTable, ...]
    catalogue: Catalogue
    code: str

    @classmethod
    def of(
        cls,
        machine: str,
        own: pd.DataFrame,
        others: Mapping[str, pd.DataFrame],
        catalogue: Catalogue,
        *,
        why: str = "",
        seed: int = 0,
        code: str = "",
    ) -> "UnpairedInputs":
        """Runs per machine: counters under its own names and `wall_seconds`, as `core_runs__counters_wide` has them.

        Machines whose runs cannot be learned from are left out; refuses where none is left, or the machine has too few
        runs.
        """
        target = named_table(machine, _timed(own), _TIME, _NOT_FEATURES)
        if len(target.table) < LEAST_SHOTS:
            raise BadInputError(f"{machine} has {len(target.table)} timed runs: land at least {LEAST_SHOTS}")
        sources, problems = [], []
        for name, frame in others.items():
            try:
                sources.append(transfer_table(name, _timed(frame), _TIME, drop=_NOT_FEATURES))
            except BadInputError as error:
                problems.append(str(error))
        if not sources:
            problems_text = f": {'; '.join(problems)}" if problems else ""
            raise BadInputError(f"no other machine has runs that {machine} could be adapted from{problems_text}")
        return cls(
            machine=machine, seed=seed, why=why, target=target, sources=tuple(sources), catalogue=catalogue, code=code
        )

    @property
    def source_names(self) -> list[str]:
        """Machines that it can be adapted from."""
        return [table.name for table in self.sources]

    @cached_property
    def digest(self) -> str:
        """Changes when and only when a model made of this may become another."""
        parts = [
            (table.name, table.counter_names, digest_of(table.counters.tobytes() + table.target.tobytes()))
            for table in (self.target.table, *self.sources)
        ]
        return digest_of(repr((self.code, parts, self.seed)).encode())

    def adapt(self, say: Say, settings: TransferSettings | None = None) -> AdaptedTransfer:
        """Fit the target model; it predicts seconds from counters that were measured on the machine itself."""
        say(f"{self.machine}: {self.why}; adapted from counters of {', '.join(self.source_names)}")
        return adapt_transfer(self.target, self.sources, catalogue=self.catalogue, settings=settings, seed=self.seed)

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
        task = TransferTask.of(self.sources, self.target.table, self.catalogue, TransferSettings().source)
        rows = pd.DataFrame(curve_rows(task, counts, seeds, say))
        if rows.empty:
            raise BadInputError(f"{self.machine} has too few runs to hold half of them out")
        named = {"machine": self.machine, "target": self.machine, "source": " + ".join(self.source_names)}
        return rows.assign(**named, is_simulated=False)[TRANSFER_SCORES.column_names()]


def unpaired_inputs(fleet: Fleet, machine: str, why: str, seed: int, code: str) -> UnpairedInputs:
    """Inputs of a machine's target model without a reference machine; refuses where they are too few."""
    own = fleet.runs_with_counters(machine)
    others = {name: fleet.runs_with_counters(name) for name in fleet.machines_with_counters() if name != machine}
    return UnpairedInputs.of(machine, own, others, fleet.catalogue, why=why, seed=seed, code=code)


def _timed(frame: pd.DataFrame) -> pd.DataFrame:
    if _TIME not in frame.columns:
        raise BadInputError(f"runs have no column {_TIME}")
    return frame.drop(columns=[name for name in ("app", "args", "runs", "labels", "machine") if name in frame.columns])
