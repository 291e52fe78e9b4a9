"""The source model: how long a run, measured on one machine of the fleet, takes on another.

With a benchmark of both machines it answers with a blend of machine models (`with_amm`); without one, from the run's
counters alone (`without_amm`), and says so.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import cast

import numpy as np

from perf_assets.features.folds import Unseen
from perf_assets.features.paired import Examples, Floats, Mask, PairedSamples
from perf_assets.models import archive
from perf_assets.models.blend import Blend
from perf_assets.models.predictors import StoredPredictor, load_predictor, save_predictor

_BLENDS = "blends.json"
_MACHINES = "machines.npz"


@dataclass(frozen=True)
class Machines:
    """How the machines of the fleet are described: their benchmark, and their data sheets where all have one."""

    samples: PairedSamples
    """Benchmark rows only; counters are those of kernels."""
    applications: tuple[str, ...]
    """That were in training."""
    trained: tuple[str, ...]
    """Machines whose application runs were in training."""

    @classmethod
    def of(cls, samples: PairedSamples) -> "Machines":
        """The machines of training data."""
        keep = samples.is_benchmark
        settings = samples.benchmark_settings
        benchmark = replace(
            samples,
            configurations=tuple(np.array(samples.configurations)[keep].tolist()),
            apps=samples.apps[keep],
            is_benchmark=keep[keep],
            counters=samples.counters[:, keep],
            log_seconds=samples.log_seconds[:, keep],
            benchmark_settings=None if settings is None else settings[keep],
            notes=(),
        )
        trained = tuple(samples.machines[machine] for machine in samples.training_machines)
        return cls(benchmark, tuple(samples.application_names), trained)

    def with_runs(self, questions: "Questions") -> tuple[PairedSamples, Examples]:
        """The benchmark and the runs that are asked about, and the questions as examples."""
        known = self.samples
        count, width = len(questions.sources), len(known.counter_names)
        position = {name: index for index, name in enumerate(known.machines)}
        sources = np.array([position[name] for name in questions.sources], np.intp)
        targets = np.array([position[name] for name in questions.targets], np.intp)
        counters = np.full((len(known.machines), count, width), np.nan)
        counters[sources, np.arange(count)] = questions.counters
        seconds = np.full((len(known.machines), count), np.nan)
        seconds[sources, np.arange(count)] = questions.log_seconds
        settings = known.benchmark_settings
        samples = replace(
            known,
            configurations=(*questions.configurations, *known.configurations),
            apps=np.concatenate([np.array(questions.apps, np.str_), known.apps]),
            is_benchmark=np.concatenate([np.zeros(count, bool), known.is_benchmark]),
            counters=np.concatenate([counters, known.counters], axis=1),
            log_seconds=np.concatenate([seconds, known.log_seconds], axis=1),
            benchmark_settings=None if settings is None else np.concatenate([np.full(count, ""), settings]),
        )
        return samples, Examples(sources, targets, np.arange(count))

    def save(self, path: Path) -> None:
        """Store without pickle."""
        known = self.samples
        arrays = {"apps": known.apps, "counters": known.counters, "log_seconds": known.log_seconds}
        optional = {
            "specification": known.specification,
            "benchmark_settings": known.benchmark_settings,
            "benchmark_only": known.benchmark_only,
        }
        description = {
            "machines": known.machines,
            "counter_names": known.counter_names,
            "configurations": known.configurations,
            "applications": self.applications,
            "trained": self.trained,
        }
        archive.save(path, description, arrays | {name: a for name, a in optional.items() if a is not None})

    @classmethod
    def load(cls, path: Path) -> "Machines":
        """Saved ones."""
        description, arrays = archive.load(path)
        samples = PairedSamples(
            tuple(description["machines"]),
            tuple(description["counter_names"]),
            tuple(description["configurations"]),
            arrays["apps"],
            np.ones(len(arrays["apps"]), bool),
            arrays["counters"],
            arrays["log_seconds"],
            arrays.get("specification"),
            arrays.get("benchmark_settings"),
            arrays.get("benchmark_only"),
        )
        return cls(samples, tuple(description["applications"]), tuple(description["trained"]))


@dataclass(frozen=True)
class Questions:
    """Runs on a source machine, each asked about for one target machine."""

    sources: Sequence[str]
    targets: Sequence[str]
    apps: Sequence[str]
    configurations: Sequence[str]
    counters: Floats
    """Questions x counters of the model, NaN where not measured."""
    log_seconds: Floats
    """Logarithm of the time on the source."""

    def where(self, chosen: Mask) -> "Questions":
        """Some of them."""

        def some(texts: Sequence[str]) -> list[str]:
            return [text for text, is_chosen in zip(texts, chosen, strict=True) if is_chosen]

        return Questions(
            some(self.sources),
            some(self.targets),
            some(self.apps),
            some(self.configurations),
            self.counters[chosen],
            self.log_seconds[chosen],
        )


@dataclass(frozen=True)
class Answers:
    """One a question."""

    log_relative_time: Floats
    with_amm: Mask
    """Whether the machines' benchmarks were used."""


@dataclass(frozen=True)
class SourceModel:
    """Both source models with the machines they know."""

    machines: Machines
    without_amm: StoredPredictor
    with_amm: Mapping[Unseen, Blend] | None
    """The blend for a machine that was in training, and for one of which only the benchmark is known."""

    def answer(self, questions: Questions) -> Answers:
        """Relative times. A machine without an AMM gets the answer without AMMs."""
        known = set(self.machines.samples.machines)
        has_amm = np.array(
            [s in known and t in known for s, t in zip(questions.sources, questions.targets, strict=True)]
        )
        found = np.empty(len(has_amm))
        used = has_amm & (self.with_amm is not None)
        if used.any():
            found[used] = self._with_amm(questions.where(used))
        if (~used).any():
            found[~used] = self._without_amm(questions.where(~used))
        return Answers(found, used)

    def save(self, folder: Path) -> None:
        """Store into a folder; components that blends share are stored once."""
        folder.mkdir(parents=True, exist_ok=True)
        self.machines.save(folder / _MACHINES)
        save_predictor(self.without_amm, folder / "without_amm")
        blends = self.with_amm or {}
        for blend in blends.values():
            for name, component in blend.components.items():
                save_predictor(cast(StoredPredictor, component), folder / "components" / name)
        listed = {u: {"weights": blend.weights, "caution": blend.caution} for u, blend in blends.items()}
        (folder / _BLENDS).write_text(json.dumps(listed))

    @classmethod
    def load(cls, folder: Path) -> "SourceModel":
        """A saved one."""
        listed = json.loads((folder / _BLENDS).read_text())
        names = sorted({name for blend in listed.values() for name in blend["weights"]})
        components = {name: load_predictor(folder / "components" / name) for name in names}
        blends: dict[Unseen, Blend] = {
            unseen: Blend({n: components[n] for n in blend["weights"]}, blend["weights"], blend["caution"])
            for unseen, blend in listed.items()
        }
        return cls(Machines.load(folder / _MACHINES), load_predictor(folder / "without_amm"), blends or None)

    def _with_amm(self, questions: Questions) -> Floats:
        assert self.with_amm is not None
        samples, examples = self.machines.with_runs(questions)
        is_new = np.array([target not in self.machines.trained for target in questions.targets])
        found = np.empty(len(examples))
        for unseen, chosen in (("application", ~is_new), ("machine", is_new)):
            if chosen.any():
                found[chosen] = self.with_amm[unseen].predict(samples, examples.where(chosen))  # type: ignore[index]
        return found

    def _without_amm(self, questions: Questions) -> Floats:
        """Counters alone: which machines they are does not matter, so any stands for one that is not known."""
        names = self.machines.samples.machines
        first, second = names[0], names[min(1, len(names) - 1)]
        anywhere = replace(questions, sources=[first] * len(questions.apps), targets=[second] * len(questions.apps))
        samples, examples = self.machines.with_runs(anywhere)
        return self.without_amm.predict(samples, examples)
