"""A paired model made ready for many questions: one row in a fraction of a millisecond.

Says what `PairedModel` says. Of a run, only its counters, its time on the source and its configuration are looked at;
everything else (times on known machines, mixtures, weights of the processes) becomes a few numbers for each
configuration when it is made ready.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from perf_assets.features.samples import Floats, Indices, Mask, PairedSamples
from perf_assets.features.standardise import signed_log
from perf_assets.models.common.questions import Questions
from perf_assets.models.source.bilinear import BilinearModel
from perf_assets.models.source.mixture import MachineMixture
from perf_assets.models.source.precomputed import RadialSums, RunTerms
from perf_assets.models.target.correction import PairedModel
from perf_assets.models.target.prior import Prior


@dataclass(frozen=True, eq=False)
class QuickPaired:
    """A paired model and what was computed beforehand; the last of all rows stands for unknown configurations."""

    model: PairedModel
    rows: dict[str, int]
    """Row of each configuration."""
    times: Floats
    """Configurations x machines: log seconds, NaN on the target."""
    is_known: Mask
    """Per configuration, whether a machine that is neither source nor target ran them."""
    prior: tuple[RunTerms, ...]
    profile: tuple[Floats, Floats]
    """Contribution of a configuration's profile: a constant, and a slope on the log seconds on the source."""
    by_app: dict[str, float]
    correction: RadialSums

    @classmethod
    def of(cls, model: PairedModel, samples: PairedSamples) -> "QuickPaired":
        """Compile a model on the samples that it was fitted on."""
        times = np.vstack([samples.log_seconds.T, np.full(len(samples.machines), np.nan)])
        times[:, model.target] = np.nan
        elsewhere = np.delete(times, [model.source, model.target], axis=1)
        names = [*samples.configurations, ""]
        rows = {name: row for row, name in enumerate(samples.configurations)}
        prior = _prior_terms(model.prior, samples, model.source, model.target, names) if model.prior else ()
        is_known = np.isfinite(elsewhere).any(axis=1)
        return cls(
            model=model,
            rows=rows,
            times=times,
            is_known=is_known,
            prior=prior,
            profile=_profile(model, times),
            by_app=_by_app(model),
            correction=_correction(model, samples),
        )

    def rows_of(self, configurations: Sequence[str]) -> Indices:
        """Row of each configuration."""
        unknown = len(self.times) - 1
        return np.array([self.rows.get(name, unknown) for name in configurations], np.intp)

    def predict(self, asked: Questions, rows: Indices) -> Floats:
        """Log seconds on the target."""
        logs, base = signed_log(asked.counters), asked.log_seconds
        log_seconds = base + self.profile[0][rows] + self.profile[1][rows] * base + self.correction.of(logs)[:, 0]
        if self.model.has_prior.any():
            log_seconds += float(self.model.shares[self.model.has_prior].sum()) * self._prior(logs, rows, base)
        return np.asarray(log_seconds + [self.by_app.get(app, 0.0) for app in asked.apps])

    def distribution(self, asked: Questions, rows: Indices) -> tuple[Floats, Floats]:
        """Log seconds on the target and their standard deviation, noise of a run included."""
        view, base, logs = self.model.view, asked.log_seconds, signed_log(asked.counters)
        runs = view.inputs(logs, self.times[rows][:, view.others] - base[:, None], np.array(asked.apps, np.str_))
        return self.model.combine(runs, base, self._prior(logs, rows, base))

    def _prior(self, logs: Floats, rows: Indices, base: Floats) -> Floats:
        log_ratios = np.zeros(len(rows))
        for terms in self.prior:
            log_ratios += terms.constant[rows] + terms.slope[rows] * base
            log_ratios += np.einsum("ij,ij->i", terms.along[rows], terms.sums.of(logs))
        return log_ratios


def _prior_terms(
    prior: Prior, samples: PairedSamples, source: int, target: int, names: Sequence[str]
) -> tuple[RunTerms, ...]:
    """Weighted terms of the components; those that look at runs in the same way are made one."""
    every: list[RunTerms] = []
    for name, weight in prior.weights.items():
        component = prior.components[name]
        assert isinstance(component, BilinearModel | MachineMixture), f"{name} is no component of a stored target model"
        terms = component.terms(samples, source, target, names)
        terms = RunTerms(weight * terms.constant, weight * terms.slope, weight * terms.along, terms.sums)
        same = next((i for i, one in enumerate(every) if _is_same(one.sums, terms.sums)), None)
        if same is None:
            every.append(terms)
        else:
            every[same] = _together(every[same], terms)
    return tuple(every)


def _is_same(first: RadialSums, second: RadialSums) -> bool:
    pairs = (
        (first.centres, second.centres),
        (first.scaler.mean, second.scaler.mean),
        (first.scaler.spread, second.scaler.spread),
    )
    return first.lengths == second.lengths and all(np.array_equal(one, other) for one, other in pairs)


def _together(first: RunTerms, second: RunTerms) -> RunTerms:
    one, other = first.sums, second.sums
    weights = np.concatenate([one.weights, other.weights], axis=2)
    sums = RadialSums(one.scaler, one.centres, one.lengths, weights, np.concatenate([one.constants, other.constants]))
    along = np.hstack([first.along, second.along])
    return RunTerms(first.constant + second.constant, first.slope + second.slope, along, sums)


def _profile(model: PairedModel, times: Floats) -> tuple[Floats, Floats]:
    weights = np.zeros(len(model.view.others))
    for share, process in zip(model.shares, model.processes, strict=True):
        weights += share * process.profile_weights()
    known = times[:, model.view.others] - model.view.centre
    seen = np.isfinite(known)
    return np.where(seen, known, 0.0) @ weights / model.view.scale, -(seen @ weights) / model.view.scale


def _by_app(model: PairedModel) -> dict[str, float]:
    by_app: dict[str, float] = {}
    for share, process in zip(model.shares, model.processes, strict=True):
        for app, value in process.app_weights().items():
            by_app[app] = by_app.get(app, 0.0) + float(share) * value
    return by_app


def _correction(model: PairedModel, samples: PairedSamples) -> RadialSums:
    """The processes' causes that look at counters, and their offsets."""
    lengths = tuple(sorted({process.length for process in model.processes}))
    runs = model.processes[0].runs
    weights, constant = np.zeros((len(lengths), len(runs), 1)), 0.0
    for share, process in zip(model.shares, model.processes, strict=True):
        weights[lengths.index(process.length), :, 0] += share * process.counter_weights()
        constant += share * process.offset()
    return RadialSums(model.view.scaler, runs.counters, lengths, weights, np.array([constant]))
