"""Basis of target models: the fleet that a source model learned from, and members that never saw a machine.

A target model's prior must not know the target's own runs. A machine that was in training is therefore predicted by
members that were fitted without its runs; one that came later, by members that were fitted on everything. What else a
prior needs (weights, how far it is off) comes from the fleet as it was in training, the machine's runs hidden, and from
the machine's description. So a prior depends on the source model's version and that description, and on nothing else.
"""

from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

import pandas as pd

from perf_assets.features.fleet.descriptions import Descriptions, completed_kernels, lent_kernels, with_described
from perf_assets.features.fleet.samples import FleetTables, fleet_samples
from perf_assets.features.samples import PairedSamples, physical
from perf_assets.models.common import archive
from perf_assets.models.source.settings import SourceSettings
from perf_assets.models.target.prior import (
    Component,
    Prior,
    PriorTerms,
    fit_component,
    prior_terms,
    reference_machine,
)

_FILE, _RUNS, _DESCRIPTIONS = "basis.npz", "runs.parquet", "descriptions.parquet"
MemberKey = tuple[str, tuple[str, ...], tuple[str, ...]]
"""Component, machines whose runs it saw, machines whose benchmark it saw."""


@dataclass(eq=False)
class PriorBasis:
    """Runs and descriptions of the fleet at training, and what was fitted to parts of it."""

    runs: pd.DataFrame
    """Rows of `RUNS_QUERY`."""
    descriptions: Descriptions
    components: tuple[str, ...]
    seed: int
    members: dict[MemberKey, Component] = field(default_factory=dict)
    terms: dict[tuple[str, str], PriorTerms] = field(default_factory=dict)
    """Terms by target and source as programs see them: what known machines that played the target taught."""

    @cached_property
    def samples(self) -> PairedSamples:
        """The fleet as it was in training."""
        return fleet_samples(self.descriptions.tables(self.runs))

    @classmethod
    def fit(cls, runs: pd.DataFrame, descriptions: Descriptions, settings: SourceSettings) -> "PriorBasis":
        """Fit the members on everything and without each machine, and let known machines play each target."""
        basis = cls(runs, descriptions, settings.prior_components, settings.seed)
        samples = basis.samples
        for name in basis.components:
            basis.fit_component(name, samples)
        for target in samples.training_machines:
            hidden = samples.hide_machine(int(target))
            source = reference_machine(samples, int(target))
            if source is None or not len(hidden.examples()):
                continue
            for name in basis.components:
                basis.fit_component(name, hidden)
            key = (samples.machines[target], samples.machines[source])
            basis.terms[key] = prior_terms(hidden, int(target), basis.fit_component, basis.components, source)
        basis._forget_pairs(samples)
        return basis

    def with_machine(self, machine: str, runs: pd.DataFrame, described: Descriptions | None) -> PairedSamples:
        """The machine as it is now among the others as they were in training.

        Where nothing describes it, the machine that shares most runs with it, and takes most nearly as long for them,
        lends it its kernel times, so that the same machine is its reference.
        """
        others = self.runs[self.runs["machine"] != machine]
        kernels, sheets = self.descriptions.kernels, self.descriptions.sheets
        kernels = kernels[kernels["machine"] != machine]
        if described is None:
            own_kernels = lent_kernels(machine, runs, others, kernels)
        else:
            own = described.of_machines([machine])
            sheets = self.descriptions.updated(own).sheets
            own_kernels = completed_kernels(self.samples, own)
        kernels = pd.concat([kernels, own_kernels])
        present = pd.concat([others, runs], ignore_index=True) if len(runs) else others
        tables = FleetTables(present, kernels.reset_index(drop=True), sheets)
        return fleet_samples(tables, counter_names=self.samples.counter_names)

    def prior(self, target: str, source: str, described: Descriptions) -> Prior:
        """Expected times of runs on a machine, as programs see it, before one of its runs is known."""
        own = described.of_machines([physical(target)])
        samples = with_described(self.samples, own)
        hidden = samples.hide_machine(samples.machines.index(target))
        terms = self.terms.get((target, source)) if self._is_as_in_training(own) else None
        if terms is None:
            place = hidden.machines.index
            terms = prior_terms(hidden, place(target), self.fit_component, self.components, place(source))
        return terms.with_components({name: self.fit_component(name, hidden) for name in terms.weights})

    def fit_component(self, name: str, samples: PairedSamples) -> Component:
        """A component that saw what can be seen in `samples`, which are those of training with some of it hidden."""
        machines = samples.machines
        seen = (samples.training_machines, samples.encoder_machines)
        with_runs, with_benchmark = (tuple(sorted(machines[m] for m in part)) for part in seen)
        key = (name, with_runs, with_benchmark)
        if key not in self.members:
            self.members[key] = fit_component(name, samples, self.seed, self.fit_component)
        return self.members[key]

    def save(self, folder: Path) -> None:
        """Store into a folder, without pickle."""
        facts = _BasisFacts(
            encoder_version=self.descriptions.encoder_version,
            components=self.components,
            seed=self.seed,
            members=tuple((*key, member) for key, member in self.members.items()),
            terms=tuple((*pair, terms) for pair, terms in self.terms.items()),
        )
        archive.write(folder / _FILE, facts)
        self.runs.to_parquet(folder / _RUNS, index=False)
        self.descriptions.rows.to_parquet(folder / _DESCRIPTIONS, index=False)

    @classmethod
    def load(cls, folder: Path) -> "PriorBasis":
        """Read what `save` wrote."""
        facts: _BasisFacts = archive.read(folder / _FILE, _BasisFacts)
        return cls(
            runs=pd.read_parquet(folder / _RUNS),
            descriptions=Descriptions(facts.encoder_version, pd.read_parquet(folder / _DESCRIPTIONS)),
            components=facts.components,
            seed=facts.seed,
            members={(name, runs, known): member for name, runs, known, member in facts.members},
            terms={(target, source): terms for target, source, terms in facts.terms},
        )

    def _is_as_in_training(self, own: Descriptions) -> bool:
        """Whether a machine is described as it was when its terms were learned."""
        before = self.descriptions.of_machines(own.machines).rows
        columns = ["part", "seen_as", "option", "item", "problem_size", "value"]
        return _sorted(before[columns]).equals(_sorted(own.rows[columns]))

    def _forget_pairs(self, samples: PairedSamples) -> None:
        """Keep members that saw all machines but one: those of trials have done their work."""
        most = len({physical(samples.machines[m]) for m in samples.training_machines})
        self.members = {k: m for k, m in self.members.items() if len({physical(name) for name in k[1]}) >= most - 1}


@dataclass(frozen=True, eq=False)
class _BasisFacts:
    """All of a basis but its tables, as it is stored."""

    encoder_version: str
    components: tuple[str, ...]
    seed: int
    members: tuple[tuple[str, tuple[str, ...], tuple[str, ...], Component], ...]
    """Keys and what was fitted."""
    terms: tuple[tuple[str, str, PriorTerms], ...]
    """Target, source, and what known machines taught about that pair."""


def _sorted(rows: pd.DataFrame) -> pd.DataFrame:
    return rows.sort_values(list(rows.columns)).reset_index(drop=True)
