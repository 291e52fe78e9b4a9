"""A target model of one machine of the fleet: predictions from runs on a reference machine, corrected by its own runs.

A machine with GPUs is seen in two ways, by programs that use them and by those that do not; each has its model.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pandas as pd
from pydantic import BaseModel, Field

from perf_assets.core.errors import BadInputError
from perf_assets.core.tables.canonical import XAMM_FEATURES
from perf_assets.features.samples import Floats, Indices, PairedSamples, physical
from perf_assets.models.common.archive import Stored
from perf_assets.models.common.contract import NINETY_PERCENT, Predicted
from perf_assets.models.common.questions import Questions
from perf_assets.models.common.threads import keep_blas_to_one_thread
from perf_assets.models.target.compiled import QuickPaired
from perf_assets.models.target.evaluation import shuffled_runs
from perf_assets.models.target.prior import PriorOf, reference_machine
from perf_assets.models.target.view import AdaptedView, adapt_view
from perf_assets.models.target.widths import ScaledApplication, moved_questions

PRIOR_COMPONENTS = ("bilinear", "mixture")
"""Attention and trees are left out: they take nine tenths of the time."""
_ROWS_AT_ONCE = 512
"""Runs that are predicted at once: their distances to all shots stay in the processor's cache."""


class TargetSettings(BaseModel, frozen=True, extra="forbid"):
    """Settings for training target models."""

    most_shots: int = Field(
        default=200,
        ge=1,
        description="Runs on a machine that its model is fitted to; further ones hardly change it and cost their cube",
    )


@dataclass(frozen=True, eq=False)
class AdaptedTarget(Stored):
    """Target models of one machine."""

    machine: str
    samples: PairedSamples
    views: Mapping[str, AdaptedView]

    def predict(self, questions: Questions) -> Predicted:
        """Predict log seconds on the machine. The questions' targets are views of it."""
        keep_blas_to_one_thread()
        if questions.ranks:
            return self._on_other_ranks(questions)
        mean, width = np.empty((2, len(questions.sources)))
        for name in set(questions.targets):
            chosen = np.array([target == name for target in questions.targets])
            asked = questions if chosen.all() else questions.where(chosen)
            view = self._view(name)
            wrong = sorted({physical(source) for source in set(asked.sources)} - {physical(view.source)})
            if wrong:
                raise BadInputError(f"the model of {name} starts from runs on {view.source}, not on {wrong[0]}")
            quick = self._quick[name]
            blocks = [_distribution(view, quick, block) for block in asked.blocks(_ROWS_AT_ONCE)]
            mean[chosen], width[chosen] = np.hstack(blocks)
        return Predicted(mean, mean - width, mean + width, self._reasons(questions.counters))

    def _on_other_ranks(self, questions: Questions) -> Predicted:
        """Answers about other numbers of ranks than those of the runs."""
        for name in set(questions.targets):
            self._view(name)
        moved = moved_questions(questions, self.views, self.samples, self._scaled)
        answers = self.predict(moved.questions)
        mean = answers.log_time + moved.shift
        width = np.hypot(answers.log_time - answers.lower, moved.half_width)
        reasons = ["; ".join(filter(None, both)) for both in zip(moved.notes, answers.reasons, strict=True)]
        return Predicted(mean, mean - width, mean + width, reasons)

    @cached_property
    def usual_features(self) -> Indices:
        """Positions of the canonical features that most runs on the reference machines have."""
        samples = self.samples
        runs = np.isfinite(samples.log_seconds) & ~samples.is_benchmark
        sources = {samples.machines.index(view.source) for view in self.views.values()}
        measured = np.isfinite(np.concatenate([samples.counters[source, runs[source]] for source in sources]))
        names = {feature.name for feature in XAMM_FEATURES}
        is_feature = np.array([name in names for name in samples.counter_names])
        return np.flatnonzero(is_feature & (measured.mean(axis=0) > 0.5))

    def _reasons(self, counters: Floats) -> list[str]:
        """For each question, the usual features that it lacks."""
        is_missing = np.isnan(counters[:, self.usual_features])
        if not is_missing.any():
            return [""] * len(counters)
        names = np.array([self.samples.counter_names[position] for position in self.usual_features])
        patterns, of_question = np.unique(is_missing, axis=0, return_inverse=True)
        texts = [
            f"counters missing for {', '.join(names[pattern])}: taken as unknown" if pattern.any() else ""
            for pattern in patterns
        ]
        return [texts[position] for position in of_question.ravel()]

    @cached_property
    def _scaled(self) -> dict[tuple[str, str], ScaledApplication]:
        """Models of scaling that were needed so far, by view and application."""
        return {}

    @cached_property
    def _quick(self) -> dict[str, QuickPaired]:
        return {name: QuickPaired.of(view.model, self.samples) for name, view in self.views.items()}

    def _view(self, name: str) -> AdaptedView:
        if name not in self.views:
            raise BadInputError(f"this is the model of {', '.join(self.views)}, not of {name}")
        return self.views[name]


def _distribution(view: AdaptedView, quick: QuickPaired, asked: Questions) -> tuple[Floats, Floats]:
    """Log seconds and half width of their interval: what the view says, of runs that need not be among its samples."""
    rows = quick.rows_of(asked.configurations)
    if view.interval is None or view.interval_alone is None:
        mean, spread = quick.distribution(asked, rows)
        return mean, NINETY_PERCENT * spread
    mean = view.shots_only.predict(asked.counters) if view.shots_only else quick.predict(asked, rows)
    return mean, np.where(quick.is_known[rows], view.interval.half_width, view.interval_alone.half_width)


def adapt(
    samples: PairedSamples,
    machine: str,
    prior_of: PriorOf,
    seed: int,
    progress: Callable[[str], None],
    settings: TargetSettings | None = None,
) -> AdaptedTarget:
    """Fit the models of a machine: what `prior_of` expects of it, corrected by the runs on it in `samples`."""
    names = [name for name in samples.machines if physical(name) == machine]
    if not names:
        raise BadInputError(f"nothing describes {machine}: land its RAJAPerf runs")
    keep_blas_to_one_thread()
    most_shots = (settings or TargetSettings()).most_shots
    views = {}
    for name in names:
        target = samples.machines.index(name)
        source = reference_machine(samples, target)
        if source is None:
            continue
        shots = shuffled_runs(samples, source, target, seed)[:most_shots]
        try:
            prior = prior_of(name, samples.machines[source])
        except BadInputError as error:
            progress(f"{name}: no prior, {error}")
            prior = None
        else:
            if prior is None and not len(shots):
                continue
        views[name] = adapt_view(samples, source, target, shots, seed, prior)
        view = views[name]
        progress(f"{name}: {view.shots} shots, from {view.source}, {view.chosen}")
    if not views:
        raise BadInputError(f"{machine}: no other two machines ran the same configurations to learn from")
    return AdaptedTarget(machine, samples, views)


def held_out_predictions(adapted: AdaptedTarget) -> pd.DataFrame:
    """Application runs that were no shots: measured and predicted seconds, and the upper end of the 90% interval."""
    samples = adapted.samples
    of_views = []
    for view in adapted.views.values():
        source, target = view.model.source, view.model.target
        names = np.array(samples.configurations)
        ran = np.isfinite(samples.log_seconds[[source, target]]).all(axis=0) & ~samples.is_benchmark
        rows = np.flatnonzero(ran & ~np.isin(names, view.model.shots))
        if len(rows):
            mean, width = view.distribution(samples, rows)
            of_views.append(
                pd.DataFrame(
                    {
                        "machine": adapted.machine,
                        "configuration": names[rows],
                        "seconds": np.exp(samples.log_seconds[target, rows]),
                        "predicted_seconds": np.exp(mean),
                        "upper_seconds": np.exp(mean + width),
                    }
                )
            )
    columns = ["machine", "configuration", "seconds", "predicted_seconds", "upper_seconds"]
    return pd.concat(of_views, ignore_index=True) if of_views else pd.DataFrame(columns=columns)
