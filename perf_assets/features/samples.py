"""Samples of several machines, aligned: which configuration ran where, with which counters and in which time."""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Indices = NDArray[np.intp]
Mask = NDArray[np.bool_]

HOST = " (host)"
"""Ends the name of a machine with GPUs where programs run that do not use them: for those it is another machine."""


def physical(machine: str) -> str:
    """Name of the physical machine, whichever way programs see it."""
    return machine.removesuffix(HOST)


@dataclass(frozen=True)
class Examples:
    """Questions "how long on `target`, relative to `source`?", one per position: indices into `PairedSamples`."""

    source: Indices
    target: Indices
    row: Indices

    def __len__(self) -> int:
        return len(self.row)

    def where(self, chosen: Mask | Indices) -> "Examples":
        """Examples that are chosen."""
        return Examples(self.source[chosen], self.target[chosen], self.row[chosen])

    def at_most(self, count: int, seed: int) -> "Examples":
        """All, or a random `count` of them: one run on many pairs of machines says almost the same many times."""
        return self if len(self) <= count else self.where(np.random.default_rng(seed).permutation(len(self))[:count])


@dataclass(frozen=True, eq=False)
class PairedSamples:
    """Configurations x machines. What was not measured, or is hidden from a model, is NaN."""

    machines: tuple[str, ...]
    counter_names: tuple[str, ...]
    configurations: tuple[str, ...]
    apps: NDArray[np.str_]
    """Application of each configuration."""
    is_benchmark: Mask
    """Configurations that describe the machine; they ran on every machine."""
    counters: Floats
    """Machines x configurations x counters, as measured."""
    log_seconds: Floats
    """Machines x configurations: logarithm of the run time (of its unit, if that is not seconds)."""
    specification: Floats | None = None
    """Machines x properties, where a table of specifications was given."""
    benchmark_settings: NDArray[np.str_] | None = None
    """Per benchmark configuration, how it was run, where the benchmark is a suite whose kernels are the benchmark
    applications: kernels of one setting form one row of the suite's results. Such kernels have no counters that
    applications have."""
    benchmark_only: Mask | None = None
    """Machines that are known by their benchmark and never ran an application."""
    notes: tuple[str, ...] = ()
    """Notes on how the tables were read."""
    specification_names: tuple[str, ...] = ()
    """Properties of `specification`, where they have names."""
    amms: Mapping[str, Floats] | None = None
    """Machines x width by option of Algorithm 1, as the machines' stored descriptions hold them."""

    @cached_property
    def digest(self) -> str:
        """Identity of what can be seen here: equal data are learned from once."""
        names = (self.machines, self.counter_names, self.configurations, self.apps.tolist(), self.is_benchmark.tolist())
        seen = hashlib.sha256(repr(names).encode())
        amms = self.amms or {}
        for values in (self.log_seconds, self.counters, self.specification, *(amms[name] for name in sorted(amms))):
            seen.update(b"" if values is None else np.ascontiguousarray(values).tobytes())
        return seen.hexdigest()

    @property
    def application_names(self) -> list[str]:
        """Applications that are not benchmarks, sorted."""
        return sorted(set(self.apps[~self.is_benchmark].tolist()))

    @cached_property
    def physical_machines(self) -> NDArray[np.str_]:
        """Physical machine of each machine as programs see it."""
        return np.array([physical(machine) for machine in self.machines])

    @cached_property
    def training_machines(self) -> Indices:
        """Machines on which application runs can be seen."""
        return np.flatnonzero(np.isfinite(self.log_seconds[:, ~self.is_benchmark]).any(axis=1))

    @cached_property
    def encoder_machines(self) -> Indices:
        """Machines whose benchmark an encoder may learn from: not those that are new when it is used."""
        known = np.zeros(len(self.machines), bool) if self.benchmark_only is None else self.benchmark_only.copy()
        known[self.training_machines] = True
        return np.flatnonzero(known)

    @cached_property
    def has_counters(self) -> bool:
        """Whether anything was measured beside the time: arguments and ranks are the same on all machines."""
        largest, smallest = np.fmax.reduce(self.counters, axis=0), np.fmin.reduce(self.counters, axis=0)
        return bool((largest > smallest).any())

    @cached_property
    def learns_from_benchmark(self) -> bool:
        """Whether benchmark rows have counters of the applications, so that they are training runs as well."""
        of_benchmark, of_runs = (
            np.isfinite(self.counters[:, rows]).any(axis=(0, 1)) for rows in (self.is_benchmark, ~self.is_benchmark)
        )
        return bool(np.any(of_benchmark & of_runs))

    def hide_application(self, app: str) -> "PairedSamples":
        """Samples without the runs of an application."""
        return self._hide(np.ones((len(self.machines), 1), bool) & (self.apps == app)[None])

    def hide_machine(self, machine: int) -> "PairedSamples":
        """Samples without the application runs on a machine, with GPUs or without; its benchmark stays."""
        hidden = self.physical_machines == physical(self.machines[machine])
        shown = self if self.benchmark_only is None else replace(self, benchmark_only=self.benchmark_only & ~hidden)
        return shown._hide(hidden[:, None] & ~self.is_benchmark[None])

    def examples(self, *, with_benchmark: bool = False) -> Examples:
        """All ordered pairs of machines whose application runs can be seen, with every configuration that ran on both.

        A machine of which only the benchmark can be seen is in no pair, not even with its benchmark rows.
        """
        seen = np.isfinite(self.log_seconds) & (with_benchmark | ~self.is_benchmark)[None]
        by_source = [
            (source, target, np.flatnonzero(seen[source] & seen[target]))
            for source in self.training_machines
            for target in self.training_machines
            if source != target
        ]
        counts = [len(rows) for *_, rows in by_source]
        return Examples(
            np.repeat(np.array([source for source, *_ in by_source], np.intp), counts),
            np.repeat(np.array([target for _, target, _ in by_source], np.intp), counts),
            np.concatenate([np.empty(0, np.intp), *(rows for *_, rows in by_source)]),
        )

    def log_relative_time(self, examples: Examples) -> Floats:
        """Logarithm of time on the target / time on the source: above 0 the target is slower."""
        return self.log_seconds[examples.target, examples.row] - self.log_seconds[examples.source, examples.row]

    def benchmark_rows(self, per_application: int | None = None) -> Indices:
        """Benchmark configurations, at most `most` of each application, spread evenly over their order."""
        chosen: list[int] = []
        for app in sorted(set(self.apps[self.is_benchmark].tolist())):
            rows = np.flatnonzero(self.is_benchmark & (self.apps == app))
            limit = per_application or len(rows)
            chosen += rows[:: max(1, len(rows) // limit)][:limit].tolist()
        return np.array(chosen, np.intp)

    def benchmark_log_ratios(self, rows: Indices) -> Floats:
        """Source x target x benchmark row: log(time on target / time on source)."""
        times = self.log_seconds[:, rows]
        ratios: Floats = times[None, :, :] - times[:, None, :]
        return ratios

    def _hide(self, cells: Mask) -> "PairedSamples":
        return replace(
            self,
            counters=np.where(cells[:, :, None], np.nan, self.counters),
            log_seconds=np.where(cells, np.nan, self.log_seconds),
        )


def balanced_weights(samples: PairedSamples, examples: Examples) -> Floats:
    """Weights of mean 1 under which every application counts the same, however many configurations it has."""
    names, of_example = np.unique(samples.apps[examples.row], return_inverse=True)
    counts = np.bincount(of_example, minlength=len(names))
    weights: Floats = len(examples) / (len(names) * counts[of_example])
    return weights
