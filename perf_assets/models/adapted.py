"""A target model of one machine of the fleet: what runs on a reference machine say of it, corrected by its own runs.

A machine with GPUs is seen in two ways, by programs that use them and by those that do not; each has its model. The
correction is chosen on held-out shots among those with the prior, without it, and both weighted by evidence.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path

import numpy as np

from perf_assets.core.errors import BadInputError, UnreadableFileError
from perf_assets.features.paired import Floats, Indices, Mask, PairedSamples, physical
from perf_assets.models.blas_threads import keep_blas_to_one_thread
from perf_assets.models.conformal import Interval, cross_conformal
from perf_assets.models.paired_adaptation import PairedModel, fit_correction
from perf_assets.models.paired_evaluation import NINETY_PERCENT, predict_shots, shuffled_runs
from perf_assets.models.paired_prior import Prior, PriorParts, attention_prior
from perf_assets.models.residual import folds_of
from perf_assets.models.severity import severity
from perf_assets.models.stored_samples import Questions, load_samples, save_samples, with_questions

PRIOR_COMPONENTS = ("bilinear", "mixture")
"""Attention is left out: on fleets of this kind the blend gives it no weight, and it takes nine tenths of the time."""
CANDIDATES = ("without_prior", "with_prior", "paired")
"""Simplest first: ties go to it."""
BASELINES = ("source_unchanged", "target_ridge", "target_gp")
_MOST_SHOTS = 200
"""Runs that the correction is fitted to; further ones hardly change it and cost their cube."""
_FOLDS = 5
_LEAST_SHOTS = 5
"""To choose on held-out shots."""
_TIE = 0.98
"""A candidate must have less than this share of a simpler one's squared error to be taken."""
_SAMPLES, _VIEWS = "samples.npz", "views.json"


@dataclass(frozen=True)
class CandidateScore:
    """How a candidate did on held-out shots."""

    name: str
    mape: float
    log_rmse: float


@dataclass(frozen=True, eq=False)
class AdaptedView:
    """The model of one way in which programs see the machine."""

    source: str
    """Reference machine whose runs it starts from."""
    shots: int
    chosen: str
    candidates: tuple[CandidateScore, ...]
    """All of them and the baselines, on the same held-out shots; none where there are too few shots to hold out."""
    interval: Interval | None
    """Of log seconds, from held-out shots; without, the model's own spread is taken."""
    interval_alone: Interval | None
    """The same for configurations that ran on the source and nowhere else: less is known of them."""
    model: PairedModel
    severity: float | None = None
    """How hard the transfer is, 0 to 1; None where shots are too few to tell."""
    held_out: Mapping[str, float] = field(default_factory=dict)
    """Log seconds of each shot by its configuration, predicted by a fit that did not see it."""

    def distribution(self, samples: PairedSamples, rows: Indices) -> tuple[Floats, Floats]:
        """Log seconds of configurations, and the half width of their 90% interval."""
        mean, spread = self.model.distribution(samples, rows)
        if self.interval is None or self.interval_alone is None:
            return mean, NINETY_PERCENT * spread
        widths = np.where(
            known_elsewhere(samples, rows, self.model), self.interval.half_width, self.interval_alone.half_width
        )
        return mean, widths

    @property
    def ratio_to_target_only(self) -> float | None:
        """Squared log error of what was chosen over that of the best target-only baseline, on held-out shots."""
        errors = {score.name: score.log_rmse**2 for score in self.candidates}
        alone = [error for name, error in errors.items() if name.startswith("target_")]
        return errors[self.chosen] / min(alone) if alone else None


@dataclass(frozen=True, eq=False)
class AdaptedTarget:
    """Target models of one machine."""

    machine: str
    samples: PairedSamples
    views: Mapping[str, AdaptedView]

    def predict(self, questions: Questions) -> tuple[Floats, Floats, Floats]:
        """Log seconds on the machine, and the ends of the 90% interval. The questions' targets are views of it."""
        found = np.full((3, len(questions.sources)), np.nan)
        for name in set(questions.targets):
            view = self._view(name)
            chosen = np.array([target == name for target in questions.targets])
            asked = questions.where(chosen)
            wrong = sorted({physical(source) for source in asked.sources} - {physical(view.source)})
            if wrong:
                raise BadInputError(f"the model of {name} starts from runs on {view.source}, not on {wrong[0]}")
            # Whether a program uses GPUs says how it sees the target; of the source there is one view here.
            samples, examples = with_questions(self.samples, replace(asked, sources=[view.source] * len(asked.sources)))
            mean, width = view.distribution(samples, examples.row)
            found[:, chosen] = mean, mean - width, mean + width
        return found[0], found[1], found[2]

    def save(self, folder: Path) -> None:
        """Store into a folder, without pickle."""
        folder.mkdir(parents=True, exist_ok=True)
        save_samples(folder / _SAMPLES, self.samples)
        described = {}
        for position, (name, view) in enumerate(self.views.items()):
            view.model.save(folder / f"view{position}")
            described[name] = {
                "source": view.source,
                "shots": view.shots,
                "chosen": view.chosen,
                "candidates": [asdict(score) for score in view.candidates],
                "interval": None if view.interval is None else asdict(view.interval),
                "interval_alone": None if view.interval_alone is None else asdict(view.interval_alone),
                "severity": view.severity,
                "held_out": dict(view.held_out),
            }
        (folder / _VIEWS).write_text(json.dumps({"machine": self.machine, "views": described}))

    @classmethod
    def load(cls, folder: Path) -> "AdaptedTarget":
        """A saved one."""
        try:
            description = json.loads((folder / _VIEWS).read_text())
        except (OSError, ValueError) as error:
            raise UnreadableFileError(f"{folder} is no saved target model ({error})") from None
        views = {
            name: AdaptedView(
                view["source"],
                view["shots"],
                view["chosen"],
                tuple(CandidateScore(**score) for score in view["candidates"]),
                None if view["interval"] is None else Interval(**view["interval"]),
                None if view["interval_alone"] is None else Interval(**view["interval_alone"]),
                PairedModel.load(folder / f"view{position}"),
                view["severity"],
                view["held_out"],
            )
            for position, (name, view) in enumerate(description["views"].items())
        }
        return cls(description["machine"], load_samples(folder / _SAMPLES), views)

    def _view(self, name: str) -> AdaptedView:
        if name not in self.views:
            raise BadInputError(f"this is the model of {', '.join(self.views)}, not of {name}")
        return self.views[name]


def adapt(samples: PairedSamples, machine: str, seed: int, progress: Callable[[str], None]) -> AdaptedTarget:
    """Fit the models of a machine from everything that ran on it and on others."""
    names = [name for name in samples.machines if physical(name) == machine]
    if not names:
        raise BadInputError(f"nothing describes {machine}: land its RAJAPerf runs")
    keep_blas_to_one_thread()
    parts = PriorParts(seed)
    views = {}
    for name in names:
        target = samples.machines.index(name)
        source = reference_machine(samples, target)
        if source is None:
            continue
        shots = shuffled_runs(samples, source, target, seed)[:_MOST_SHOTS]
        try:
            prior = attention_prior(samples, target, seed, parts, PRIOR_COMPONENTS)
        except BadInputError as error:
            progress(f"{name}: no prior, {error}")
            prior = None
        views[name] = adapt_view(samples, source, target, shots, seed, prior, BASELINES)
        view = views[name]
        progress(f"{name}: {view.shots} shots, from {view.source}, {view.chosen}")
    if not views:
        raise BadInputError(f"{machine}: no other two machines ran the same configurations to learn from")
    return AdaptedTarget(machine, samples, views)


def reference_machine(samples: PairedSamples, target: int) -> int | None:
    """The machine to start from: among those that share most runs with the target, the one most like it.

    For a target without runs, among those that ran most; None where there is none.
    """
    here = samples.physical_machines
    others = [int(m) for m in samples.training_machines if here[m] != here[target]]
    if not others:
        return None
    seen = np.isfinite(samples.log_seconds) & ~samples.is_benchmark
    wanted = seen[target] if seen[target].any() else np.ones(len(seen[target]), bool)
    shared = np.array([(seen[other] & wanted).sum() for other in others])
    rows = samples.benchmark_rows()
    distances = np.array([np.mean(samples.benchmark_log_ratios(rows)[other, target] ** 2) for other in others])
    good = shared >= 0.9 * shared.max()
    return others[int(np.argmin(np.where(good, distances, np.inf)))]


def adapt_view(
    samples: PairedSamples,
    source: int,
    target: int,
    shots: Indices,
    seed: int,
    prior: Prior | None,
    baselines: Sequence[str] = (),
) -> AdaptedView:
    """Choose among the candidates on held-out shots, fit to all shots; baselines are scored on the same."""
    name = samples.machines[source]
    candidates = CANDIDATES if prior is not None else CANDIDATES[:1]
    if len(shots) < _LEAST_SHOTS:
        chosen = candidates[-1] if len(shots) or prior is None else "with_prior"
        model = fit_correction(samples, source, target, shots, _priors(chosen, prior))
        return AdaptedView(name, len(shots), chosen, (), None, None, model)
    true = samples.log_seconds[target, shots]
    held_out = {method: _held_out(method, samples, source, target, shots, seed, prior) for method in candidates}
    errors = {method: float(np.mean((found[0] - true) ** 2)) for method, found in held_out.items()}
    chosen = candidates[0]
    for method in candidates[1:]:
        if errors[method] < _TIE * errors[chosen]:
            chosen = method
    known, alone = held_out[chosen]
    hard = pair_severity(samples, source, target, shots)
    narrow, wide = (cross_conformal(found, true, 1.0 if hard is None else hard) for found in (known, alone))
    others = {m: _baseline(m, samples, source, target, shots, seed, prior) for m in baselines} if prior else {}
    scored = {**others, **{method: found[0] for method, found in held_out.items()}}
    scores = tuple(_score(method, found, true) for method, found in scored.items())
    model = fit_correction(samples, source, target, shots, _priors(chosen, prior))
    of_shots = dict(zip((samples.configurations[row] for row in shots), known.tolist(), strict=True))
    return AdaptedView(name, len(shots), chosen, scores, narrow, wide, model, hard, of_shots)


def known_elsewhere(samples: PairedSamples, rows: Indices, model: PairedModel) -> Mask:
    """Of configurations, whether a machine that is neither source nor target ran them."""
    others = np.setdiff1d(np.arange(len(samples.machines)), [model.source, model.target])
    return np.asarray(np.isfinite(samples.log_seconds[others][:, rows]).any(axis=0))


def as_run_on_source_only(samples: PairedSamples, source: int, rows: Indices) -> PairedSamples:
    """The same, but for some configurations nobody but the source seems to have run them."""
    names = list(samples.configurations)
    for row in rows:
        names[row] = f"unknown {row}"
    hidden = np.zeros_like(samples.log_seconds, bool)
    hidden[:, rows] = True
    hidden[source] = False
    return replace(samples, configurations=tuple(names), log_seconds=np.where(hidden, np.nan, samples.log_seconds))


def pair_severity(samples: PairedSamples, source: int, target: int, shots: Indices) -> float | None:
    """Rescaled severity of the transfer, from what was measured on both machines; None where shots are too few."""
    runs = np.isfinite(samples.log_seconds[source]) & ~samples.is_benchmark
    theirs, ours = samples.counters[source, runs], samples.counters[target, shots]
    theirs, ours = (values[:, np.isfinite(values).all(axis=0)] for values in (theirs, ours))
    try:
        return severity(theirs, samples.log_seconds[source, runs], ours, samples.log_seconds[target, shots]).rescaled
    except BadInputError:
        return None


def _held_out(
    method: str, samples: PairedSamples, source: int, target: int, shots: Indices, seed: int, prior: Prior | None
) -> tuple[Floats, Floats]:
    """Log seconds of the shots, each predicted by a fit that did not see it: as they are, and as if they had run on
    the source only.
    """
    found = np.empty((2, len(shots)))
    for inside, outside in folds_of(len(shots), _FOLDS, seed):
        model = fit_correction(samples, source, target, shots[inside], _priors(method, prior))
        asked = shots[outside]
        found[0, outside] = model.predict(samples, asked)
        found[1, outside] = model.predict(as_run_on_source_only(samples, source, asked), asked)
    return found[0], found[1]


def _baseline(
    method: str, samples: PairedSamples, source: int, target: int, shots: Indices, seed: int, prior: Prior
) -> Floats:
    """The same of a baseline, which does not look at other machines."""
    found = np.empty(len(shots))
    for inside, outside in folds_of(len(shots), _FOLDS, seed):
        predicted = predict_shots(method, samples, source, target, shots[inside], shots[outside], prior)
        assert predicted is not None
        found[outside] = predicted[0]
    return found


def _score(name: str, found: Floats, true: Floats) -> CandidateScore:
    error = np.clip(found - true, -50, 50)
    return CandidateScore(name, float(np.mean(np.abs(np.expm1(error)))), float(np.sqrt(np.mean(error**2))))


def _priors(chosen: str, prior: Prior | None) -> Sequence[Prior | None]:
    wanted: dict[str, Sequence[Prior | None]] = {
        "without_prior": [None],
        "with_prior": [prior],
        "paired": [prior, None],
    }
    return wanted[chosen]
