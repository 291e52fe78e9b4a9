"""Samples of relative-performance vectors: what is known of one run on one machine, and its time on all machines."""

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from perf_assets.core.errors import BadInputError
from perf_assets.features.samples import Examples, Floats, Indices, Mask, PairedSamples
from perf_assets.features.standardise import signed_log
from perf_assets.features.tables.paired import Roles, key_text, pair_tables

SLOWEST, FASTEST = "max", "min"
"""Reference of a vector: the machine with the largest or the smallest time; else a machine by its name."""
_TEST_SHARE = 0.2
_LEAST_CONFIGURATIONS = 10


@dataclass(frozen=True, eq=False)
class VectorSamples:
    """Configurations x machines, and samples: a configuration measured on one machine."""

    machines: tuple[str, ...]
    feature_names: tuple[str, ...]
    configurations: tuple[str, ...]
    apps: NDArray[np.str_]
    """Application of each configuration."""
    log_seconds: Floats
    """Configurations x machines: logarithm of the run time, NaN where it did not run."""
    source: Indices
    """Machine that each sample was measured on."""
    row: Indices
    """Configuration of each sample."""
    features: Floats
    """Samples x features as measured, NaN where missing; the run's own time among them."""
    is_cpu: Mask
    """Per sample, whether it ran on CPUs; all of them where that is not known."""
    paired: PairedSamples
    """Runs of the samples, with the benchmark where there is one, for models of pairs of machines."""
    views: Indices
    """Configurations x machines: which machine of `paired` that is for the program (a host, without its GPUs)."""

    def __len__(self) -> int:
        return len(self.row)

    @property
    def targets(self) -> Floats:
        """Samples x machines: logarithm of the times of the sample's configuration."""
        return self.log_seconds[self.row]

    @property
    def names(self) -> list[str]:
        """Configuration and machine of each sample."""
        pairs = zip(self.row, self.source, strict=True)
        return [f"{self.configurations[row]} on {self.machines[source]}" for row, source in pairs]

    @property
    def counters(self) -> Floats:
        """Samples x counters of the models of pairs."""
        position = self._paired_rows()
        return np.asarray(self.paired.counters[self.views[self.row, self.source], position[self.row]])

    def at(self, configurations: Mask) -> "VectorSamples":
        """Samples of some configurations; all others cannot be seen, not even by models of pairs."""
        kept = configurations[self.row]
        hidden = np.isin(np.array(self.paired.configurations), np.array(self.configurations)[~configurations])
        hidden &= ~self.paired.is_benchmark
        cells = np.broadcast_to(hidden[None], self.paired.log_seconds.shape)
        paired = replace(
            self.paired,
            counters=np.where(cells[:, :, None], np.nan, self.paired.counters),
            log_seconds=np.where(cells, np.nan, self.paired.log_seconds),
        )
        return replace(
            self,
            configurations=tuple(np.array(self.configurations)[configurations].tolist()),
            apps=self.apps[configurations],
            log_seconds=self.log_seconds[configurations],
            source=self.source[kept],
            row=np.cumsum(configurations)[self.row[kept]] - 1,
            features=self.features[kept],
            is_cpu=self.is_cpu[kept],
            paired=paired,
            views=self.views[configurations],
        )

    def at_most(self, count: int, seed: int) -> "VectorSamples":
        """All samples, or a random `count` of them."""
        if len(self) <= count:
            return self
        return self.where(np.sort(np.random.default_rng(seed).permutation(len(self))[:count]))

    def where(self, kept: Mask | Indices) -> "VectorSamples":
        """Some of the samples; all configurations stay."""
        return replace(
            self,
            source=self.source[kept],
            row=self.row[kept],
            features=self.features[kept],
            is_cpu=self.is_cpu[kept],
        )

    def without_machine(self, machine: int) -> "VectorSamples":
        """Samples as if a machine had never run an application: no samples on it, no times on it."""
        seconds = self.log_seconds.copy()
        seconds[:, machine] = np.nan
        paired = self.paired.hide_machine(int(self.views[0, machine]))
        return replace(self.where(self.source != machine), log_seconds=seconds, paired=paired)

    def among(self, machines: Collection[str]) -> "VectorSamples":
        """Samples as if there were no other machines than these; configurations that ran on two of them stay."""
        kept = np.array([name in machines for name in self.machines])
        samples = self.at(np.isfinite(self.log_seconds[:, kept]).sum(axis=1) > 1)
        samples = samples.where(kept[samples.source])
        paired = samples.paired
        for view in np.setdiff1d(samples.views[:, ~kept], samples.views[:, kept]):
            paired = paired.hide_machine(int(view))
        return replace(
            samples,
            machines=tuple(name for name in self.machines if name in machines),
            log_seconds=samples.log_seconds[:, kept],
            source=np.cumsum(kept)[samples.source] - 1,
            views=samples.views[:, kept],
            paired=paired,
        )

    def pair_examples(self) -> Examples:
        """Every sample for every machine, as questions to models of pairs, sample by sample."""
        rows = self._paired_rows()
        count = len(self.machines)
        return Examples(
            np.repeat(self.views[self.row, self.source], count),
            self.views[self.row].reshape(-1),
            np.repeat(rows[self.row], count),
        )

    def _paired_rows(self) -> Indices:
        """Place of each configuration in `paired`."""
        position = {name: row for row, name in enumerate(self.paired.configurations)}
        return np.array([position[name] for name in self.configurations], np.intp)


def centred(log_seconds: Floats) -> Floats:
    """Less the level of each configuration, which no order or ratio depends on; what did not run stays NaN.

    The level is that of an additive model of configurations and machines: a plain mean would depend on which machines
    a configuration ran on.
    """
    machine = np.zeros(log_seconds.shape[1])
    known = np.isfinite(log_seconds)
    level = np.zeros((len(log_seconds), 1))
    for _ in range(50):
        level = np.nansum(log_seconds - machine, axis=1, keepdims=True) / known.sum(axis=1, keepdims=True)
        machine = np.nansum(log_seconds - level, axis=0) / np.maximum(known.sum(axis=0), 1)
    return np.asarray(log_seconds - level)


def levelled(logs: Floats) -> Floats:
    """Less the mean of each row over the machines that are known."""
    return np.asarray(logs - np.nanmean(logs, axis=1, keepdims=True))


def relative(log_seconds: Floats, reference: str, machines: tuple[str, ...]) -> Floats:
    """Times relative to the slowest (`max`), the fastest (`min`) or a named machine, among those that are not NaN."""
    if reference == SLOWEST:
        level = np.nanmax(log_seconds, axis=1)
    elif reference == FASTEST:
        level = np.nanmin(log_seconds, axis=1)
    else:
        level = log_seconds[:, machines.index(check_reference(reference, machines))]
    return np.asarray(np.exp(log_seconds - level[:, None]))


def check_reference(reference: str, machines: tuple[str, ...]) -> str:
    """Refuse what is neither `min` nor `max` nor a machine."""
    if reference not in (SLOWEST, FASTEST, *machines):
        known = ", ".join(machines)
        raise BadInputError(f"relative to {reference!r}: use min (fastest), max (slowest) or one of {known}")
    return reference


@dataclass(frozen=True)
class VectorFold:
    """Configurations to learn from, and configurations to predict: none is in both."""

    held_out: str
    train: Mask
    test: Mask


def by_sample(samples: VectorSamples, seed: int) -> Iterator[VectorFold]:
    """One random 80/20 split. A configuration goes with all its samples: they have the same vector."""
    count = len(samples.configurations)
    if count < _LEAST_CONFIGURATIONS:
        raise BadInputError(
            f"vectors need {_LEAST_CONFIGURATIONS} configurations that ran on two machines; there are {count}"
        )
    test = np.zeros(count, bool)
    test[np.random.default_rng(seed).permutation(count)[: max(1, round(_TEST_SHARE * count))]] = True
    yield VectorFold(f"{_TEST_SHARE:.0%} of the configurations", ~test, test)


def by_application(samples: VectorSamples) -> Iterator[VectorFold]:
    """Every application in turn."""
    names = sorted(set(samples.apps.tolist()))
    if len(names) < 2:
        raise BadInputError("holding out an application needs 2 of them")
    for name in names:
        yield VectorFold(name, samples.apps != name, samples.apps == name)


def vector_table(tables: Mapping[str, pd.DataFrame], roles: Roles) -> VectorSamples:
    """Samples from plain tables, one per machine. Numbers of the key are features as well: they say how it was run."""
    paired = pair_tables(tables, roles)
    keys = _numeric_keys(tables, roles, paired)
    source, row = np.nonzero(np.isfinite(paired.log_seconds))
    log_seconds = paired.log_seconds.T
    own = np.exp(log_seconds[row, source])[:, None]
    numbers = keys.to_numpy(float)[row]
    return VectorSamples(
        machines=paired.machines,
        feature_names=(*paired.counter_names, *map(str, keys.columns), roles.time),
        configurations=paired.configurations,
        apps=paired.apps,
        log_seconds=log_seconds,
        source=source,
        row=row,
        features=np.hstack([paired.counters[source, row], numbers, own]),
        is_cpu=np.ones(len(row), bool),
        paired=paired,
        views=np.tile(np.arange(len(paired.machines)), (len(log_seconds), 1)),
    )


def as_columns(features: Floats) -> Floats:
    """Inputs of trees: signed logarithms, and the same as rates (less that of the run's own time, the last)."""
    logs = signed_log(features[:, :-1])
    own = np.log(features[:, -1:])
    return np.hstack([logs, logs - own, own])


def _numeric_keys(tables: Mapping[str, pd.DataFrame], roles: Roles, paired: PairedSamples) -> pd.DataFrame:
    """Numeric columns of the key, a row per configuration."""
    parts = [table[list(roles.key)] for table in tables.values()]
    every = pd.concat(parts).dropna().drop_duplicates()
    every.index = pd.Index([" ".join(map(key_text, key)) for key in every.itertuples(index=False, name=None)])
    every = every[~every.index.duplicated()].reindex(list(paired.configurations))
    return every.select_dtypes("number").drop(columns=list(paired.counter_names), errors="ignore")
