"""Other numbers of ranks: predictions of a target model for a width that a run was not made on.

Where the reference machine ran the width, that run is asked about. Where nobody did, a model of scaling moves the
answer: it is fitted to all configurations of the application, each with its time on the target, measured or as the
target model predicts it. Half widths of the interval of the answer and of the model of scaling are added in quadrature;
those of the model of scaling are wider outside of what was run.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd

from perf_assets.core.errors import BadInputError
from perf_assets.features.fleet.samples import configuration_name, configuration_of
from perf_assets.features.samples import Floats, PairedSamples
from perf_assets.models.common.questions import Questions
from perf_assets.models.scaling.model import LEAST_RUNS, LEAST_WIDTHS, ScalingModel
from perf_assets.models.scaling.runs import RANKS, ScalingRuns
from perf_assets.models.target.view import AdaptedView


@dataclass(frozen=True, eq=False)
class ScaledApplication:
    """Times of an application on the target by its ranks."""

    target: str
    runs: ScalingRuns
    model: ScalingModel

    @classmethod
    def fit(cls, view: AdaptedView, samples: PairedSamples, app: str) -> "ScaledApplication":
        """Fit to the times on the target of all configurations that ran on it or on the reference machine."""
        here, source = view.model.target, view.model.source
        log_seconds = samples.log_seconds[here].copy()
        of_app = ~samples.is_benchmark & (samples.apps == app)
        asked = np.flatnonzero(of_app & np.isnan(log_seconds) & np.isfinite(samples.log_seconds[source]))
        if len(asked):
            log_seconds[asked] = view.distribution(samples, asked)[0]
        rows = np.flatnonzero(of_app & np.isfinite(log_seconds))
        keys = [configuration_of(samples.configurations[row], app) for row in rows]
        frame = pd.DataFrame(keys, columns=["args", RANKS, "threads"])
        machines = f"{samples.machines[here]} and {samples.machines[source]}"
        widths = sorted(frame[RANKS].unique().tolist())
        if len(frame) < LEAST_RUNS or len(widths) < LEAST_WIDTHS:
            raise BadInputError(
                f"target_ranks: {app} ran on {len(widths)} of the {LEAST_WIDTHS} numbers of ranks that a model of "
                f"scaling needs, in {len(frame)} configurations of {LEAST_RUNS}, on {machines}: leave target_ranks out"
            )
        runs = ScalingRuns.of(frame.assign(app=app, nodes=np.nan, wall_seconds=np.exp(log_seconds[rows])))
        return cls(samples.machines[here], runs, runs.fit())

    def moved(self, args: str, ranks: int, asked: int, threads: int) -> tuple[float, float, str]:
        """Log of the time on other ranks over that on the run's, half width of its interval, and what to know."""
        times = self.runs.predict(self.model, args, [np.nan] * 2, [ranks, asked], [threads] * 2)
        widths = self.runs.widths
        outside = "" if widths[0] <= asked <= widths[-1] else ", outside of them"
        note = (
            f"nobody ran {self.runs.app} like this on {asked} ranks: from the run on {ranks}, by a model of "
            f"scaling of {self.target} ({len(self.runs.seconds)} configurations on {widths[0]:g} to {widths[-1]:g} "
            f"ranks{outside}; error {self.model.left_out_error:.0%} at ranks that were left out)"
        )
        seconds, upper = np.log(times.seconds), np.log(times.upper)
        return float(seconds[1] - seconds[0]), float(upper[1] - seconds[1]), note


@dataclass(frozen=True, eq=False)
class MovedQuestions:
    """Questions as the model of one machine takes them, and how answers to them are moved to the ranks asked for."""

    questions: Questions
    shift: Floats
    """Added to log seconds."""
    half_width: Floats
    """Half width of the 90% interval of `shift`, in log seconds."""
    notes: Sequence[str]


def moved_questions(
    questions: Questions,
    views: Mapping[str, AdaptedView],
    samples: PairedSamples,
    scaled: dict[tuple[str, str], ScaledApplication],
) -> MovedQuestions:
    """Questions about other ranks: a run on the reference machine where it has one, else moved by a model of scaling.

    `scaled` keeps models of scaling by view and application: a model is made when it is first needed.
    """
    count = len(questions.sources)
    names, counters = list(questions.configurations), questions.counters.copy()
    log_seconds = questions.log_seconds.copy()
    shift, half_width, notes = np.zeros(count), np.zeros(count), [""] * count
    row_of = {name: row for row, name in enumerate(samples.configurations)}
    for place, asked in enumerate(questions.ranks):
        app = questions.apps[place]
        args, ranks, threads = configuration_of(names[place], app)
        if asked is None or asked == ranks:
            continue
        target = questions.targets[place]
        view, there = views[target], configuration_name((app, args, asked, threads))
        row = row_of.get(there)
        if row is not None and np.isfinite(samples.log_seconds[view.model.source, row]):
            names[place], counters[place] = there, samples.counters[view.model.source, row]
            log_seconds[place] = samples.log_seconds[view.model.source, row]
            notes[place] = f"from the run on {asked} ranks on {view.source}"
            continue
        if (target, app) not in scaled:
            scaled[target, app] = ScaledApplication.fit(view, samples, app)
        shift[place], half_width[place], notes[place] = scaled[target, app].moved(args, ranks, asked, threads)
    asked_now = replace(questions, configurations=names, counters=counters, log_seconds=log_seconds, ranks=())
    return MovedQuestions(asked_now, shift, half_width, notes)
