"""The source model: how long a run, measured on one machine of the fleet, takes on another.

With a benchmark of both machines it answers with a blend of machine models (`with_amm`); without one, from the run's
counters alone (`without_amm`), and says so.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from perf_assets.features.fleet.descriptions import Descriptions, with_described
from perf_assets.features.folds import Unseen
from perf_assets.features.samples import Examples, Floats, Mask, PairedSamples
from perf_assets.models.common.archive import Stored
from perf_assets.models.common.contract import NINETY_PERCENT, Predicted
from perf_assets.models.common.questions import Questions, only_benchmark, with_questions
from perf_assets.models.source.blend import Blend, distance
from perf_assets.models.source.error_size import ErrorSize
from perf_assets.models.source.plain import PLAIN
from perf_assets.models.source.stored import StoredPredictor


@dataclass(frozen=True)
class Machines:
    """Descriptions of the fleet's machines: their benchmark, and their data sheets where all have one."""

    samples: PairedSamples
    """Benchmark rows only; counters are those of kernels."""
    applications: tuple[str, ...]
    """Applications that were in training."""
    trained: tuple[str, ...]
    """Machines whose application runs were in training."""

    @classmethod
    def of(cls, samples: PairedSamples) -> "Machines":
        """The machines of training data."""
        trained = tuple(samples.machines[machine] for machine in samples.training_machines)
        return cls(only_benchmark(samples), tuple(samples.application_names), trained)


@dataclass(frozen=True, eq=False, kw_only=True)
class SourcePredicted(Predicted):
    """Answers of the source model, in log seconds on the target machine."""

    log_relative_time: Floats
    """Logarithm of the time on the target over the time on the source."""
    with_amm: Mask
    """Whether the machines' benchmarks were used."""
    log_error: Floats
    """Root mean square log error where as much was held out in training; NaN where nothing could be."""
    unseen: list[str]
    """Held out for that: an application or a machine."""


@dataclass(frozen=True)
class SourceModel(Stored):
    """Both source models with the machines they know."""

    machines: Machines
    without_amm: StoredPredictor
    with_amm: Mapping[Unseen, Blend] | None
    """The blend for a machine that was in training, and for one of which only the benchmark is known."""
    errors: Mapping[str, Mapping[Unseen, ErrorSize]]
    """Log error on held-out folds, of answers `with` and `without` AMMs."""
    encoder_version: str
    """Identity of the encoder whose descriptions of machines it takes."""

    def knowing(self, descriptions: Descriptions) -> "SourceModel":
        """The model with machines that were described after its training, or anew; others stay as they were."""
        described = with_described(self.machines.samples, descriptions)
        return replace(self, machines=replace(self.machines, samples=described))

    def predict(self, questions: Questions) -> SourcePredicted:
        """Predict times on the targets. Runs from or to a machine without an AMM are answered without AMMs.

        Intervals are as wide as the error on what was held out in training, between machines as far apart.
        """
        known = set(self.machines.samples.machines)
        has_amm = np.array(
            [s in known and t in known for s, t in zip(questions.sources, questions.targets, strict=True)], bool
        )
        log_relative_time = np.empty(len(has_amm))
        used = has_amm & (self.with_amm is not None)
        if used.any():
            log_relative_time[used] = self._with_amm(questions.where(used))
        if (~used).any():
            log_relative_time[~used] = self._without_amm(questions.where(~used))
        asked = list(zip(questions.apps, questions.sources, questions.targets, used.tolist(), strict=True))
        far = self._distances(questions, used)
        errors = [
            self._error(app, target, apart, with_amm=is_used)
            for (app, _, target, is_used), apart in zip(asked, far, strict=True)
        ]
        log_error = np.array([error for error, _ in errors])
        log_time, half_width = questions.log_seconds + log_relative_time, NINETY_PERCENT * log_error
        return SourcePredicted(
            log_time=log_time,
            lower=log_time - half_width,
            upper=log_time + half_width,
            reasons=[self._reason(source, target, with_amm=is_used) for _, source, target, is_used in asked],
            log_relative_time=log_relative_time,
            with_amm=used,
            log_error=log_error,
            unseen=[what for _, what in errors],
        )

    def _reason(self, source: str, target: str, *, with_amm: bool) -> str:
        """Remark on an answer: what it was made without, and whether a plain answer took its place."""
        if with_amm:
            benchmark_only = [] if target in self.machines.trained else [f"{target} is known by its benchmark alone"]
            plain = self._plain_answer(target)
            better = "" if plain is None else PLAIN[plain]
            instead = f"answered by {better}, which the blend did no better than on what was held out"
            return "; ".join([*benchmark_only, *([instead] if better else [])])
        unknown = [machine for machine in (source, target) if machine not in self.machines.samples.machines]
        lacking = f"no AMM of {' and '.join(unknown)} in this model (ingest its RAJAPerf runs, give its description)"
        why = lacking if unknown else "this model has no AMMs"
        return f"{why}: answered from the counters alone, for an average pair of machines"

    def _plain_answer(self, target: str) -> str | None:
        """The plain answer that the model steps aside for on a target, as it was better on what was held out."""
        blend = (self.with_amm or {}).get("application" if target in self.machines.trained else "machine")
        names = [] if blend is None else list(blend.weights)
        return names[0] if len(names) == 1 and names[0] in PLAIN else None

    def _distances(self, questions: Questions, used: Mask) -> list[float]:
        """Distance between the two machines of each question; 0 where their benchmarks are not used."""
        samples = self.machines.samples
        place = {name: position for position, name in enumerate(samples.machines)}
        sources, targets = (
            np.array([place[name] for name, is_used in zip(names, used, strict=True) if is_used], np.intp)
            for names in (questions.sources, questions.targets)
        )
        far = np.zeros(len(used))
        far[used] = distance(samples, Examples(sources, targets, np.flatnonzero(used)))
        return [float(one) for one in far]

    def _error(self, app: str, target: str, apart: float, *, with_amm: bool) -> tuple[float, str]:
        """Log error where as much was new, and what that was: the larger one where application and machine are.

        Where neither is, more is known than where one was: the smaller one.
        """
        errors = self.errors.get("with" if with_amm else "without", {})
        every: list[tuple[float, str]] = [(error.at(apart), what) for what, error in errors.items()]
        new = [
            what
            for what, known, name in (
                ("machine", self.machines.trained, target),
                ("application", self.machines.applications, app),
            )
            if name not in known
        ]
        if not new:
            return min(every, default=(np.nan, ""))
        return max([entry for entry in every if entry[1] in new] or every, default=(np.nan, ""))

    def _with_amm(self, questions: Questions) -> Floats:
        assert self.with_amm is not None
        samples, examples = with_questions(self.machines.samples, questions)
        is_new = np.array([target not in self.machines.trained for target in questions.targets])
        log_ratios = np.empty(len(examples))
        for unseen, chosen in (("application", ~is_new), ("machine", is_new)):
            if chosen.any():
                log_ratios[chosen] = self.with_amm[unseen].predict(samples, examples.where(chosen))  # type: ignore[index]
        return log_ratios

    def _without_amm(self, questions: Questions) -> Floats:
        """Counters alone: which machines they are does not matter, so any stands for one that is not known."""
        names = self.machines.samples.machines
        first, second = names[0], names[min(1, len(names) - 1)]
        anywhere = replace(questions, sources=[first] * len(questions.apps), targets=[second] * len(questions.apps))
        samples, examples = with_questions(self.machines.samples, anywhere)
        return self.without_amm.predict(samples, examples)
