"""Knowledge about a new machine from known ones: each of them plays the target once.

A known machine is predicted from another one that is about as unlike it, by the benchmark, as the real source is unlike
the real target; all that is known of the machine beside its benchmark is hidden meanwhile. From these trials come the
weights of a prior (and of "no change"), how large corrections are and what causes them, and how wide an interval must
be before a run on the target is seen. Nothing of the real target is looked at but its benchmark.

Not every known machine has another one that is about as unlike it: a fleet with two GPU machines tells little of a pair
of processors when one of them plays the target from a processor. A trial counts the less, the more the two machines in
it are nearer or farther than the real ones.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from scipy.special import ndtri

from perf_assets.core.metrics import mape_of_logs
from perf_assets.features.samples import Examples, Floats, Indices, PairedSamples
from perf_assets.models.common.contract import PairPredictor
from perf_assets.models.source.blend import HeldOutFold, choose_weights
from perf_assets.models.target.causes import (
    EVERY_CAUSE,
    FREEDOM,
    KINDS,
    Expectation,
    RunInputs,
    Spreads,
    evidence_weights,
    fit_processes,
)
from perf_assets.models.target.run_view import RunView

UNKNOWN = Spreads(offset=0.3, run=0.2)
"""Spreads where no machine can play the target: a third faster or slower, and single runs a fifth beside that."""
_FREEDOM_FACTOR = 2.0
"""Factor on `FREEDOM` for a trial's own amplitudes, of which less is assumed than of a target's."""
_LEAST_RUNS = 20
"""Fewest runs of a trial."""
_MOST_RUNS, _LEARNED_RUNS = 200, 60
"""Runs of a trial that are predicted, and those that amplitudes are fitted to: their cost grows as the cube."""
_MUCH_NEARER = 1.5
"""Machines that are by this factor nearer to a playing machine than any is to the target are hidden in its trial: a
machine without a relative is to be judged by trials without one."""
_LEVEL = 0.9


FitComponent = Callable[[str, PairedSamples], PairPredictor]


@dataclass(frozen=True, eq=False)
class Trial:
    """One known machine as the target of another one."""

    source: int
    target: int
    runs: RunInputs
    true: Floats
    """Log(time on the target / time on the source), one for each run."""
    predicted: Floats
    """Components x runs: their predictions."""
    predicted_alone: Floats
    """Components x runs: the same as if no other machine had run these configurations."""
    likeness: float
    """1 where source and target are as unlike, by the benchmark, as the real ones; 0.6 at a factor of two in that."""
    stretch: float
    """Factor on errors for the real pair: they grow as the root of the distance, as those of many small steps do."""


def play_trials(
    samples: PairedSamples, source: int, target: int, names: Sequence[str], fit: FitComponent
) -> list[Trial]:
    """One for each known machine with enough runs in common with another; none where fewer than two are known.

    `names` are components that `fit` fits to samples in which the playing machine is hidden; there may be none.
    """
    hidden = samples.hide_machine(target)
    nearest = _nearest(hidden, target)
    wanted = benchmark_distance(samples, source, target)
    trials = []
    for playing in hidden.training_machines:
        visible = _without_near_relatives(hidden, int(playing), nearest)
        other = _as_unlike(visible, source, target, int(playing))
        if other is None:
            continue
        before = visible.hide_machine(int(playing))
        if names and not len(before.examples()):
            continue
        rows = np.random.default_rng(0).permutation(_shared(hidden, other, int(playing)))[:_MOST_RUNS]
        asked = Examples(np.full(len(rows), other), np.full(len(rows), playing), rows)
        alone = as_run_on_source_only(hidden, other, rows)
        fitted = [fit(name, before) for name in names]
        distance = benchmark_distance(hidden, other, int(playing))
        trials.append(
            Trial(
                source=other,
                target=int(playing),
                runs=RunView.fit(hidden, other, int(playing)).of(hidden, other, rows),
                true=hidden.log_relative_time(asked),
                predicted=np.array([one.predict(hidden, asked) for one in fitted]).reshape(len(names), len(rows)),
                predicted_alone=np.array([one.predict(alone, asked) for one in fitted]).reshape(len(names), len(rows)),
                likeness=float(np.exp(-0.5 * (_log_factor(wanted, distance) / FREEDOM) ** 2)),
                stretch=float(np.exp(0.5 * _log_factor(wanted, distance))),
            )
        )
    return trials


def blend_weights(trials: Sequence[Trial], count: int) -> Floats:
    """Weight of each of `count` components, with a sum of at most 1; the rest is the weight of "no change".

    Those with the smallest mean relative error over the trials, each by its likeness. Without trials it is all "no
    change": a prior that no machine has tried is not trusted.
    """
    if not trials:
        return np.zeros(count)
    # Of the blend's caution nothing is wanted: the correction by shots estimates the offset itself.
    held_out = [
        HeldOutFold(np.vstack([trial.predicted, np.zeros(len(trial.true))]), trial.true, np.zeros(len(trial.true)))
        for trial in trials
    ]
    return choose_weights(held_out, count + 1, _likeness(trials))[0][:count]


def beats_no_change(trials: Sequence[Trial], weights: Floats) -> bool:
    """Whether a blend is better than "no change" over the trials by more than a standard error.

    By less, it is so by chance as well as not: the fewer machines are known that tell of the real pair, the more it
    takes.
    """
    if len(trials) < 2:
        return bool(trials)
    importance = _likeness(trials)
    unchanged = np.array([mape_of_logs(-trial.true) for trial in trials])
    gain = unchanged - [mape_of_logs(weights @ trial.predicted - trial.true) for trial in trials]
    mean = float(importance @ gain)
    # As many trials of the same weight would tell as much (Kish).
    count = 1 / float(importance @ importance)
    return bool(mean > np.sqrt(float(importance @ (gain - mean) ** 2) / max(count - 1, 1e-9)))


def learn_expectation(trials: Sequence[Trial], weights: Floats, unknown: Spreads = UNKNOWN) -> Expectation:
    """Size and causes of the corrections of a blend with these weights; with weights 0, of no change.

    Amplitudes are fitted to each trial; their geometric mean is expected of the target, and as much freedom as they
    differ by. `unknown` counts like one more trial: a new machine may be unlike all that are known, and the more so the
    fewer those are.
    """
    one_more = Expectation.of(unknown)
    start = replace(one_more, freedom=_FREEDOM_FACTOR * one_more.freedom)
    logs, lengths, kinds = [np.log(one_more.amplitudes)], [one_more.length_shares], [one_more.kind_shares]
    for trial in trials:
        some = np.arange(min(_LEARNED_RUNS, len(trial.true)))
        runs, residual = trial.runs.at(some), (trial.true - weights @ trial.predicted)[some]
        by_kind = [fit_processes(runs, residual, start, causes) for causes in KINDS]
        shares = evidence_weights([process for processes in by_kind for process in processes])
        ends = np.cumsum([len(processes) for processes in by_kind])[:-1]
        kinds.append(np.array([part.sum() for part in np.split(shares, ends)]))
        full = by_kind[KINDS.index(EVERY_CAUSE)]
        of_length = evidence_weights(full)
        logs.append(of_length @ np.log([process.amplitudes for process in full]))
        lengths.append(of_length)
    centre = np.mean(logs, axis=0)
    squares = ((np.array(logs) - centre) ** 2).sum(axis=0) + one_more.freedom**2
    freedom = np.sqrt(squares / len(logs))
    return Expectation(np.exp(centre), freedom, np.mean(lengths, axis=0), np.mean(kinds, axis=0))


def half_widths(trials: Sequence[Trial], weights: Floats, unknown: Spreads = UNKNOWN) -> tuple[float, float] | None:
    """Half widths of a 90% interval of log seconds before any shot: of any run, and of one that ran on the source only.

    None without trials. Every trial counts the same, its errors stretched to the distance of the real pair, and
    `unknown` counts like one more: errors on a new machine are not those on the few that are known.
    """
    if not trials:
        return None
    one_more = np.hypot(unknown.offset, unknown.run) * ndtri(0.5 + 0.5 * (np.arange(_MOST_RUNS) + 0.5) / _MOST_RUNS)
    errors = [trial.stretch * np.abs(trial.true - weights @ trial.predicted) for trial in trials]
    errors_alone = [trial.stretch * np.abs(trial.true - weights @ trial.predicted_alone) for trial in trials]
    narrow, wide = (_pooled_quantile([*of_trials, one_more]) for of_trials in (errors, errors_alone))
    return narrow, max(narrow, wide)


def as_run_on_source_only(samples: PairedSamples, source: int, rows: Indices) -> PairedSamples:
    """The samples as if nobody but the source had run some configurations."""
    names = list(samples.configurations)
    for row in rows:
        names[row] = f"unknown {row}"
    hidden = np.zeros_like(samples.log_seconds, bool)
    hidden[:, rows] = True
    hidden[source] = False
    return replace(samples, configurations=tuple(names), log_seconds=np.where(hidden, np.nan, samples.log_seconds))


def benchmark_distance(samples: PairedSamples, source: int, target: int) -> float:
    """Root mean square log ratio of benchmark times of two machines; 0 without a benchmark."""
    rows = samples.benchmark_rows()
    if not len(rows):
        return 0.0
    return float(np.sqrt(np.mean((samples.log_seconds[target, rows] - samples.log_seconds[source, rows]) ** 2)))


def _nearest(samples: PairedSamples, machine: int) -> float:
    """Benchmark distance of a machine to the nearest one with application runs."""
    here = samples.physical_machines
    known = [int(m) for m in samples.training_machines if here[m] != here[machine]]
    return min((benchmark_distance(samples, machine, m) for m in known), default=0.0)


def _without_near_relatives(samples: PairedSamples, machine: int, nearest: float) -> PairedSamples:
    """The samples without machines that are much nearer to this one than `nearest`."""
    here = samples.physical_machines
    for other in samples.training_machines:
        if here[other] != here[machine] and _MUCH_NEARER * benchmark_distance(samples, machine, int(other)) < nearest:
            samples = samples.hide_machine(int(other))
    return samples


def _as_unlike(hidden: PairedSamples, source: int, target: int, playing: int) -> int | None:
    """The machine that is to the playing one about as our source is to our target; None where none shares runs."""
    here = hidden.physical_machines
    others = [int(m) for m in hidden.training_machines if here[m] != here[playing]]
    others = [other for other in others if len(_shared(hidden, other, playing)) >= _LEAST_RUNS]
    if not others:
        return None
    wanted = benchmark_distance(hidden, source, target)
    differences = [abs(_log_factor(benchmark_distance(hidden, other, playing), wanted)) for other in others]
    return others[int(np.argmin(differences))]


def _log_factor(first: float, second: float) -> float:
    least = 1e-3
    return float(np.log(max(first, least) / max(second, least)))


def _likeness(trials: Sequence[Trial]) -> Floats:
    """Shares of the trials, with sum 1."""
    likeness = np.array([trial.likeness for trial in trials])
    return np.asarray(likeness / likeness.sum())


def _shared(samples: PairedSamples, first: int, second: int) -> Indices:
    on_both = np.isfinite(samples.log_seconds[[first, second]]).all(axis=0)
    return np.flatnonzero(on_both & ~samples.is_benchmark)


def _pooled_quantile(errors: Sequence[Floats]) -> float:
    """Value below which nine tenths of the errors are, every machine counting the same."""
    values = np.concatenate(errors)
    weights = np.concatenate([np.full(len(one), 1 / len(one)) for one in errors]) / len(errors)
    order = np.argsort(values)
    position = int(np.searchsorted(np.cumsum(weights[order]), _LEVEL))
    return float(values[order][min(position, len(values) - 1)])
