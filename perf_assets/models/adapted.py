"""A target model of one machine of the fleet: what runs on a reference machine say of it, corrected by its own runs.

A machine with GPUs is seen in two ways, by programs that use them and by those that do not; each has its model. The
correction is chosen on held-out shots among those with the prior, without it, and both weighted by evidence.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np

from perf_assets.core.errors import BadInputError
from perf_assets.features.paired import HOST, Floats, Indices, PairedSamples, physical
from perf_assets.models.blas_threads import keep_blas_to_one_thread
from perf_assets.models.conformal import Interval, cross_conformal
from perf_assets.models.paired_adaptation import PairedModel, fit_correction
from perf_assets.models.paired_evaluation import predict_shots
from perf_assets.models.paired_prior import Prior, PriorParts, attention_prior
from perf_assets.models.residual import folds_of
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
_NORMAL_90 = 1.645
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
    model: PairedModel


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
            wrong = sorted({s for s, c in zip(questions.sources, chosen, strict=True) if c} - {view.source})
            if wrong:
                raise BadInputError(f"the model of {name} starts from runs on {view.source}, not on {wrong[0]}")
            samples, examples = with_questions(self.samples, questions.where(chosen))
            mean, spread = view.model.distribution(samples, examples.row)
            width = np.full(len(mean), view.interval.half_width) if view.interval else _NORMAL_90 * spread
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
            }
        (folder / _VIEWS).write_text(json.dumps({"machine": self.machine, "views": described}))

    @classmethod
    def load(cls, folder: Path) -> "AdaptedTarget":
        """A saved one."""
        description = json.loads((folder / _VIEWS).read_text())
        views = {
            name: AdaptedView(
                view["source"],
                view["shots"],
                view["chosen"],
                tuple(CandidateScore(**score) for score in view["candidates"]),
                None if view["interval"] is None else Interval(**view["interval"]),
                PairedModel.load(folder / f"view{position}"),
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
        prior = attention_prior(samples, target, seed, parts, PRIOR_COMPONENTS)
        views[name] = _adapt_view(samples, source, target, seed, prior)
        view = views[name]
        progress(f"{name}: {view.shots} shots, from {view.source}, {view.chosen}")
    if not views:
        raise BadInputError(f"{machine}: no other two machines ran the same configurations to learn from")
    return AdaptedTarget(machine, samples, views)


def reference_machine(samples: PairedSamples, target: int) -> int | None:
    """The machine to start from: among those that share most runs with the target, the one most like it.

    For a target without runs, the most alike of those that have some; None where there is none.
    """
    here = samples.physical_machines
    others = [int(m) for m in samples.training_machines if here[m] != here[target]]
    if not others:
        return None
    seen = np.isfinite(samples.log_seconds) & ~samples.is_benchmark
    shared = np.array([(seen[other] & seen[target]).sum() for other in others])
    rows = samples.benchmark_rows()
    distances = np.array([np.mean(samples.benchmark_log_ratios(rows)[other, target] ** 2) for other in others])
    good = shared >= 0.9 * shared.max()
    return others[int(np.argmin(np.where(good, distances, np.inf)))]


def shots_of(samples: PairedSamples, source: int, target: int, seed: int, most: int = _MOST_SHOTS) -> Indices:
    """Configurations that ran on both, at most so many, in random order."""
    both = np.isfinite(samples.log_seconds[[source, target]]).all(axis=0) & ~samples.is_benchmark
    return np.random.default_rng(seed).permutation(np.flatnonzero(both))[:most]


def _adapt_view(samples: PairedSamples, source: int, target: int, seed: int, prior: Prior) -> AdaptedView:
    shots = shots_of(samples, source, target, seed)
    name = samples.machines[source]
    if len(shots) < _LEAST_SHOTS:
        model = fit_correction(samples, source, target, shots, _priors("paired" if len(shots) else "with_prior", prior))
        return AdaptedView(name, len(shots), "paired" if len(shots) else "with_prior", (), None, model)
    true = samples.log_seconds[target, shots]
    held_out = {
        method: _held_out(method, samples, source, target, shots, seed, prior) for method in (*BASELINES, *CANDIDATES)
    }
    errors = {method: float(np.mean((found - true) ** 2)) for method, found in held_out.items()}
    chosen = CANDIDATES[0]
    for method in CANDIDATES[1:]:
        if errors[method] < _TIE * errors[chosen]:
            chosen = method
    scores = tuple(
        CandidateScore(m, float(np.mean(np.abs(np.expm1(np.clip(f - true, -50, 50))))), float(np.sqrt(errors[m])))
        for m, f in held_out.items()
    )
    model = fit_correction(samples, source, target, shots, _priors(chosen, prior))
    return AdaptedView(name, len(shots), chosen, scores, cross_conformal(held_out[chosen], true, 0.0), model)


def _held_out(
    method: str, samples: PairedSamples, source: int, target: int, shots: Indices, seed: int, prior: Prior
) -> Floats:
    """Log seconds of the shots, each predicted by a fit that did not see it."""
    found = np.empty(len(shots))
    for inside, outside in folds_of(len(shots), _FOLDS, seed):
        predicted = predict_shots(method, samples, source, target, shots[inside], shots[outside], prior)
        assert predicted is not None
        found[outside] = predicted[0]
    return found


def _priors(chosen: str, prior: Prior) -> Sequence[Prior | None]:
    wanted: dict[str, Sequence[Prior | None]] = {
        "without_prior": [None],
        "with_prior": [prior],
        "paired": [prior, None],
    }
    return wanted[chosen]


def seen_as(machine: str, *, uses_gpus: bool, known: Sequence[str]) -> str:
    """The name under which a program sees a machine."""
    host = f"{machine}{HOST}"
    return host if not uses_gpus and host in known else machine
