"""Expected times on a machine of which only the benchmark is known: the prior that shots then correct.

A blend of attention over benchmark rows, trees anchored on the benchmark, the bilinear model, the mixture of known
machines, and "no change": the time on the source. Its weights, how far it is off and what corrections of it look like
come from known machines that play the target (`trials.py`): of the target nothing but its benchmark is seen. The
mixture takes what a configuration took on other known machines where it ran there; where it ran on the source only, it
is the bilinear model.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from perf_assets.core.errors import BadInputError
from perf_assets.features.samples import Examples, Floats, PairedSamples
from perf_assets.models.common.archive import Stored
from perf_assets.models.source.anchored_trees import AnchoredTrees
from perf_assets.models.source.attention import BenchmarkAttention
from perf_assets.models.source.bilinear import BilinearModel
from perf_assets.models.source.mixture import ElsewhereSettings, MachineMixture
from perf_assets.models.target.causes import Expectation, Spreads
from perf_assets.models.target.trials import (
    UNKNOWN,
    FitComponent,
    beats_no_change,
    benchmark_distance,
    blend_weights,
    half_widths,
    learn_expectation,
    play_trials,
)

Component = AnchoredTrees | BenchmarkAttention | BilinearModel | MachineMixture
"""Fitted components of priors."""
COMPONENTS = ("anchored", "attention", "bilinear", "mixture")
_MIXTURE = ElsewhereSettings(tried=(1e-3, 1e-2))
"""Penalties of the mixture: weak ones, for the blend's weights shrink it already. Stronger ones make the mixture alone
better, but more alike to the blend's other parts, and the blend worse (docs/research_log.md)."""
_NEARLY_MOST = 0.9
"""Share of the runs that a reference machine must have in common with the target, of the most that any has."""


@dataclass(frozen=True, kw_only=True)
class PriorTerms:
    """Knowledge about a prior from known machines that played the target."""

    weights: dict[str, float]
    """Share of each component, above 0, with a sum of at most 1; the rest is that of "no change"."""
    expected: Expectation
    """Size of corrections of this prior."""
    expected_unchanged: Expectation
    """Size of corrections of the time on the source."""
    half_widths: tuple[float, float] | None
    """Half widths of the 90% interval of log seconds before any shot: of any run, and of one on the source only."""
    beats_no_change: bool = True
    """Whether known machines say that it is better than the time on the source, beyond chance. Where they do not, it is
    that time that answers before any shot, and that `half_widths` are of; shots judge both."""

    def with_components(self, components: dict[str, Component]) -> "Prior":
        """The prior of these fitted components."""
        return Prior(components=components, **vars(self))


@dataclass(frozen=True, kw_only=True)
class Prior(PriorTerms, Stored):
    """A fitted prior for one target; what known machines taught about it goes with it.

    The samples it is used on must have the same counters and benchmark rows.
    """

    components: dict[str, Component]

    def predict(self, samples: PairedSamples, examples: Examples) -> Floats:
        """Log relative times. Looks at times on the source and on known machines, never at those on the target."""
        total = np.zeros(len(examples))
        for name, weight in self.weights.items():
            total += weight * self.components[name].predict(samples, examples)
        return total


PriorOf = Callable[[str, str], Prior | None]
"""The prior for a target and a source, as programs see them; None where nothing describes the target."""


class PriorParts:
    """Fits the components of priors, each once: priors of several targets hold out the same pairs of machines."""

    def __init__(self, seed: int) -> None:
        self._seed = seed
        self._fitted: dict[tuple[str, str], Component] = {}

    def fit(self, name: str, samples: PairedSamples) -> Component:
        """A component, fitted on what can be seen."""
        key = (name, samples.digest)
        if key not in self._fitted:
            self._fitted[key] = fit_component(name, samples, self._seed, self.fit)
        return self._fitted[key]


def fit_component(
    name: str, samples: PairedSamples, seed: int, fit: Callable[[str, PairedSamples], Component]
) -> Component:
    """A component of a prior, fitted on what can be seen; `fit` fits, or remembers, another one that it is made of."""
    if name == "anchored":
        return AnchoredTrees.fit(samples, seed=seed)
    if name == "attention":
        return BenchmarkAttention.fit(samples, seed=seed)
    if name == "bilinear":
        return BilinearModel.fit(samples, seed=seed)
    bilinear = fit("bilinear", samples)
    assert isinstance(bilinear, BilinearModel)
    return MachineMixture.fit(samples, _MIXTURE, seed, bilinear)


def fit_prior(
    samples: PairedSamples,
    target: int,
    seed: int,
    parts: PriorParts | None = None,
    names: Sequence[str] = COMPONENTS,
    source: int | None = None,
    unknown: Spreads = UNKNOWN,
) -> Prior:
    """The prior for a target machine, fitted with the target's application runs hidden, of the named components.

    Weights and expectations are for runs on `source`, by default the target's reference machine; another source may
    be asked about all the same. Give the same `parts` (of the same seed) for several targets and sources of one fleet
    to fit shared components once. `unknown` is what is expected of machines before any is known.
    """
    hidden = samples.hide_machine(target)
    if not samples.is_benchmark.any():
        raise BadInputError("a prior for a new machine needs benchmark rows: name the benchmark applications")
    if not len(hidden.examples()):
        raise BadInputError(
            "a prior for a new machine needs two other machines on which the same application configurations ran"
        )
    parts = parts or PriorParts(seed)
    start = reference_machine(samples, target) if source is None else source
    assert start is not None, "two other machines are known"
    terms = prior_terms(samples, target, parts.fit, names, start, unknown)
    return terms.with_components({name: parts.fit(name, hidden) for name in terms.weights})


def possible_prior(
    samples: PairedSamples, target: int, source: int, seed: int = 0, parts: PriorParts | None = None
) -> Prior | None:
    """The prior for a target; None where nothing can be known before: no benchmark, or no third machine."""
    if not samples.is_benchmark.any() or not len(samples.hide_machine(target).examples()):
        return None
    return fit_prior(samples, target, seed, parts, source=source)


def refitted_priors(samples: PairedSamples, seed: int, names: Sequence[str] = COMPONENTS) -> PriorOf:
    """Priors by target and source that are fitted to samples themselves, for comparisons without a source model."""
    parts, place = PriorParts(seed), samples.machines.index
    return lambda target, source: fit_prior(samples, place(target), seed, parts, names, place(source))


def prior_terms(
    samples: PairedSamples,
    target: int,
    fit: FitComponent,
    names: Sequence[str],
    source: int,
    unknown: Spreads = UNKNOWN,
) -> PriorTerms:
    """Knowledge of known machines about a prior for runs on `source`; of the target only its benchmark is seen."""
    trials = play_trials(samples, source, target, names, fit)
    shares, none = blend_weights(trials, len(names)), np.zeros(len(names))
    is_better = beats_no_change(trials, shares)
    return PriorTerms(
        weights={name: float(share) for name, share in zip(names, shares, strict=True) if share > 0},
        expected=learn_expectation(trials, shares, unknown),
        expected_unchanged=learn_expectation(trials, none, unknown),
        half_widths=half_widths(trials, shares if is_better else none, unknown),
        beats_no_change=is_better,
    )


def expectation_unchanged(samples: PairedSamples, source: int, target: int, unknown: Spreads = UNKNOWN) -> Expectation:
    """Expected size of corrections of the time on the source, from known machines; no benchmark is needed."""
    trials = play_trials(samples, source, target, (), _no_component)
    return learn_expectation(trials, np.zeros(0), unknown)


def reference_machine(samples: PairedSamples, target: int) -> int | None:
    """The machine to start from: the most similar one among those that share most runs with the target.

    For a target without runs, among those that ran most; None where there is none.
    """
    here = samples.physical_machines
    others = [int(m) for m in samples.training_machines if here[m] != here[target]]
    if not others:
        return None
    seen = np.isfinite(samples.log_seconds) & ~samples.is_benchmark
    wanted = seen[target] if seen[target].any() else np.ones(len(seen[target]), bool)
    shared = np.array([(seen[other] & wanted).sum() for other in others])
    distances = np.array([benchmark_distance(samples, other, target) for other in others])
    good = shared >= _NEARLY_MOST * shared.max()
    return others[int(np.argmin(np.where(good, distances, np.inf)))]


def _no_component(name: str, samples: PairedSamples) -> Component:
    raise BadInputError(f"no component {name} is known")
