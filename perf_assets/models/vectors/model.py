"""The vector model: from one run on any machine of the fleet its times on all, with intervals and a ranking."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

import numpy as np
import pandas as pd

from perf_assets.core.errors import BadInputError
from perf_assets.core.vector_settings import VectorSettings
from perf_assets.features.folds import Unseen
from perf_assets.features.samples import HOST, Floats, Mask, PairedSamples
from perf_assets.features.vectors import FASTEST, SLOWEST, VectorSamples, check_reference, relative
from perf_assets.models.common.archive import Stored
from perf_assets.models.common.contract import Predicted
from perf_assets.models.common.questions import Questions, only_benchmark, with_questions
from perf_assets.models.vectors.blend import Progress, VectorBlend, fit_blend, places_of
from perf_assets.models.vectors.head import LEAST_SHOTS, Head
from perf_assets.models.vectors.methods import VectorMethod
from perf_assets.models.vectors.scores import Held, same_orders, vector_scores

LEVEL = 0.9
"""Nominal coverage of the intervals."""
_BLENDS: dict[str, Unseen | None] = {"configuration": None, "application": "application"}
"""Unknown part of a question, and what is held out to learn about it."""


@dataclass(frozen=True)
class Runs:
    """Runs whose times are to be predicted."""

    sources: Sequence[str]
    apps: Sequence[str]
    uses_gpus: Mask
    """Whether the program runs on GPUs where a machine has some."""
    features: Floats
    """Runs x features of the model, the run's own time last."""
    counters: Floats
    """Runs x counters of the models of pairs."""


@dataclass(frozen=True, eq=False, kw_only=True)
class VectorPredicted(Predicted):
    """Answers of the vector model, runs x machines: logarithms of times relative to the reference."""

    places: Floats
    """Rank of each machine; 0 is the fastest."""
    probability: Floats
    """Per run, that the whole order is right."""


@dataclass(frozen=True)
class VectorModel(Stored):
    """Two blends, for applications that are known and for new ones, and the machines they speak of."""

    trained_machines: tuple[str, ...]
    """Machines whose runs the model can predict."""
    feature_names: tuple[str, ...]
    applications: tuple[str, ...]
    reference: str
    blends: Mapping[str, VectorBlend]
    known: PairedSamples
    """The benchmark of the machines, for models of pairs."""
    heads: Mapping[str, Mapping[str, Head]] = field(default_factory=dict)
    """Machines that joined after training, each with a head for each blend."""

    @property
    def machines(self) -> tuple[str, ...]:
        """All that vectors speak of."""
        return (*self.trained_machines, *self.heads)

    def predict(self, runs: Runs, reference: str | None = None) -> VectorPredicted:
        """Predict vectors relative to the model's own reference or another one."""
        unknown = sorted(set(runs.sources) - set(self.trained_machines))
        if unknown:
            known = ", ".join(self.trained_machines)
            raise BadInputError(f"runs on {unknown[0]!r} are not known to this model, only those on {known}")
        reference = check_reference(reference or self.reference, self.machines)
        samples = self.samples(runs)
        is_known = np.isin(np.array(runs.apps), self.applications)
        shape = (len(samples), len(self.machines))
        log_time, width, places = np.empty(shape), np.empty(shape), np.empty(shape)
        probability = np.empty(len(samples))
        for name, chosen in (("configuration", is_known), ("application", ~is_known)):
            if chosen.any():
                part = samples.where(chosen)
                times = self._grown(name, self.blends[name].predict(part))
                log_time[chosen] = np.log(relative(times, reference, self.machines))
                width[chosen] = self._half_widths(name, reference)
                places[chosen], probability[chosen] = self._order(name, part)
        lower, upper = log_time - width, log_time + width
        new_app = f"the application is new: interval ({LEVEL:.0%}) and probability are those of applications that were "
        return VectorPredicted(
            log_time=log_time,
            # Nothing is slower than the slowest machine, or faster than the fastest.
            lower=np.maximum(lower, 0.0) if reference == FASTEST else lower,
            upper=np.minimum(upper, 0.0) if reference == SLOWEST else upper,
            reasons=["" if app_is_known else f"{new_app}held out" for app_is_known in is_known],
            places=places,
            probability=probability,
        )

    def _grown(self, name: str, known: Floats) -> Floats:
        """Log times on the trained machines, and on those that joined."""
        return np.column_stack([known, *(head[name].predict(known) for head in self.heads.values())])

    def _half_widths(self, name: str, reference: str) -> Floats:
        """Half width per machine, of the logarithm of its relative time."""
        blend = self.blends[name]
        if reference in self.heads:
            known = blend.half_widths(SLOWEST, self.trained_machines, LEVEL)
            width = self.heads[reference][name].half_width(LEVEL, known)
            return np.where(np.array(self.machines) == reference, 0.0, width)
        known = blend.half_widths(reference, self.trained_machines, LEVEL)
        return np.array([*known, *(head[name].half_width(LEVEL, known) for head in self.heads.values())])

    def _order(self, name: str, part: VectorSamples) -> tuple[Floats, Floats]:
        """Places of all machines, and the probability that they are right."""
        known = self.blends[name].ranked(part)
        probability = self.blends[name].probability(known, np.ones(known.shape, bool))
        for head in self.heads.values():
            probability = probability * head[name].stays(known)
        return places_of(self._grown(name, known)), probability

    def samples(self, runs: Runs) -> VectorSamples:
        """The runs as samples of one configuration each, whose times elsewhere are not known."""
        count, machines = len(runs.sources), self.trained_machines
        position = {name: place for place, name in enumerate(self.known.machines)}

        def seen_as(machine: str, on_gpus: bool) -> str:
            return f"{machine}{HOST}" if not on_gpus and f"{machine}{HOST}" in position else machine

        sources = [seen_as(machine, gpus) for machine, gpus in zip(runs.sources, runs.uses_gpus, strict=True)]
        names = [f"question {number}" for number in range(count)]
        own = np.log(runs.features[:, -1])
        targets = [next(m for m in self.known.machines if m != source) for source in sources]
        paired, _ = with_questions(
            self.known,
            Questions(
                sources=sources,
                targets=targets,
                apps=runs.apps,
                configurations=names,
                counters=runs.counters,
                log_seconds=own,
            ),
        )
        source = np.array([machines.index(machine) for machine in runs.sources], np.intp)
        log_seconds = np.full((count, len(machines)), np.nan)
        log_seconds[np.arange(count), source] = own
        views = [[position[seen_as(machine, gpus)] for machine in machines] for gpus in runs.uses_gpus]
        is_cpu = np.array([f"{name}{HOST}" not in position for name in sources], bool)
        return VectorSamples(
            machines=machines,
            feature_names=self.feature_names,
            configurations=tuple(names),
            apps=np.array(runs.apps, np.str_),
            log_seconds=log_seconds,
            source=source,
            row=np.arange(count),
            features=runs.features,
            is_cpu=is_cpu,
            paired=paired,
            views=np.array(views, np.intp),
        )


@dataclass(frozen=True)
class TrainedVector:
    """The fitted model, and how its blends did on the rows that were held out to choose them."""

    model: VectorModel
    scores: pd.DataFrame
    """unseen, method, scores: somewhat too good for the blend, whose weights were chosen on these rows."""


def train_vector(
    samples: VectorSamples,
    reference: str,
    seed: int,
    settings: VectorSettings,
    progress: Progress = lambda _: None,
) -> TrainedVector:
    """Fit both blends; components that they share are fitted once."""
    check_reference(reference, samples.machines)
    blends: dict[str, VectorBlend] = {}
    fitted: dict[str, VectorMethod] = {}
    for name, unseen in _BLENDS.items():
        prefixed_progress = partial(_prefixed, progress, f"new {name}")
        blends[name] = fit_blend(samples, unseen, seed, settings, fitted, prefixed_progress)
        fitted |= blends[name].components
        progress(f"new {name}: times {blends[name].weights}, order {blends[name].order_weights}")
    applications = tuple(sorted(set(samples.apps.tolist())))
    known = only_benchmark(samples.paired)
    model = VectorModel(
        trained_machines=samples.machines,
        feature_names=samples.feature_names,
        applications=applications,
        reference=reference,
        blends=blends,
        known=known,
    )
    scores = [_scores(name, blend, reference, samples.machines) for name, blend in blends.items()]
    return TrainedVector(model, pd.DataFrame(scores))


def _prefixed(progress: Progress, prefix: str, text: str) -> None:
    progress(f"{prefix}: {text}")


def _scores(name: str, blend: VectorBlend, reference: str, machines: tuple[str, ...]) -> dict[str, object]:
    known = blend.held_out
    typical = np.broadcast_to(np.nanmean(known.log_seconds, axis=0), known.values.shape)
    held = Held(known.log_seconds, known.values, known.orders, typical, same_orders(typical, known.log_seconds))
    scores: dict[str, object] = {"new": name, **vector_scores(held, reference, machines)}
    scores.pop("auc")
    return scores


def join(model: VectorModel, samples: VectorSamples, machine: str) -> VectorModel:
    """The model with one machine more, or with a new head for one that joined before.

    Shots are the configurations in `samples` that ran on the machine and on machines that the model was trained with.
    """
    if machine in model.trained_machines:
        raise BadInputError(f"{machine} is among the machines that the model was trained with: there is nothing to add")
    few = _shots(model, samples, machine)
    count = len(np.unique(few.row))
    if count < LEAST_SHOTS:
        raise BadInputError(
            f"{count} configurations ran on {machine} and on machines of the model, and {LEAST_SHOTS} are needed: "
            f"land more runs of {machine}"
        )
    questions = model.samples(_runs(few))
    rows = np.arange(len(few))
    ratio = few.targets[:, samples.machines.index(machine)] - few.targets[rows, few.source]
    heads = {
        name: Head.fit(blend.predict(questions), ratio, questions.source, few.row)
        for name, blend in model.blends.items()
    }
    return replace(model, heads={**model.heads, machine: heads})


def _shots(model: VectorModel, samples: VectorSamples, machine: str) -> VectorSamples:
    """Runs on trained machines, of configurations that the new one has run too."""
    if machine not in samples.machines:
        return samples.where(np.empty(0, np.intp))
    is_trained = np.isin(np.array(samples.machines), model.trained_machines)
    ran = np.isfinite(samples.targets[:, samples.machines.index(machine)])
    return samples.where(is_trained[samples.source] & ran)


def _runs(samples: VectorSamples) -> Runs:
    """Turn samples into questions."""
    is_host = np.char.endswith(np.array(samples.paired.machines), HOST)
    return Runs(
        np.array(samples.machines)[samples.source].tolist(),
        samples.apps[samples.row].tolist(),
        np.asarray(~is_host[samples.views[samples.row]].any(axis=1)),
        samples.features,
        samples.counters,
    )
