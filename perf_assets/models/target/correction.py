"""Paired adaptation: a machine's few runs correct what is expected of it from runs on another machine.

    log t_T(x) = log t_S(x) + prior(x, S -> T) + correction(x)

S is the source on which x was measured with counters, T the target. The prior needs T's benchmark only; the correction
is fitted to the shots, runs on T of configurations that also ran on S. There are six candidates: the prior, or the time
on the source instead of it, each as it is, with a constant ratio, and with a Gaussian process over runs. They are
averaged by their evidence on the shots, all alike: none is exempt, and none is trusted before. Without shots the prior
stands alone where it was better than "no change" on known machines, beyond chance; else the source's time.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from perf_assets.core.errors import BadInputError
from perf_assets.features.samples import Examples, Floats, Indices, PairedSamples
from perf_assets.models.common.archive import Stored
from perf_assets.models.target.causes import (
    CONSTANT_RATIO,
    EVERY_CAUSE,
    UNCHANGED,
    Expectation,
    Process,
    RunInputs,
    evidence_weights,
    fit_processes,
)
from perf_assets.models.target.prior import Prior, expectation_unchanged, possible_prior
from perf_assets.models.target.run_view import RunView
from perf_assets.models.target.trials import as_run_on_source_only

WITHOUT_PRIOR = {"source_unchanged": UNCHANGED, "constant_ratio": CONSTANT_RATIO, "without_prior": EVERY_CAUSE}
WITH_PRIOR = {"prior_unchanged": UNCHANGED, "prior_constant_ratio": CONSTANT_RATIO, "with_prior": EVERY_CAUSE}
"""Candidates by name, and the causes of their corrections."""
_NEGLIGIBLE = 1e-3
"""Processes whose share is less are left out."""


def fit_paired(
    samples: PairedSamples, source: int, target: int, shots: Indices, seed: int = 0, prior: Prior | None = None
) -> "PairedModel":
    """Fit the correction from the target's times of `shots` (configurations that ran on both) and of no others.

    `prior` comes from `possible_prior`, once for a target; without one it is fitted here, with `seed`, which takes most
    of the time. Where nothing can be known before (no benchmark, no third machine) there is none.
    """
    prior = prior or possible_prior(samples, target, source, seed)
    expected = prior.expected_unchanged if prior else None
    return fit_correction(samples, source, target, shots, starts(prior, shots), expected)


def starts(prior: Prior | None, shots: Indices) -> list[Prior | None]:
    """Starting points of candidates: the prior and the source's time, which shots judge.

    Without shots it is the prior where known machines say that it is better than the source's time, which else stands.
    """
    if prior is None or (not len(shots) and not prior.beats_no_change):
        return [None]
    return [prior, None] if len(shots) else [prior]


def fit_correction(
    samples: PairedSamples,
    source: int,
    target: int,
    shots: Indices,
    priors: Sequence[Prior | None],
    expected: Expectation | None = None,
    only: Sequence[str] | None = None,
    *,
    keeps_all: bool = False,
) -> "PairedModel":
    """The candidates that start from each of `priors`, on the same shots; None is to go from the source's time.

    `expected` is what is expected of corrections of the source's time; a prior knows it, and where there is none it
    is learned from known machines here (`expectation_unchanged`), which takes some tenths of a second. `only` names
    candidates, for comparisons; by default all take part. Without shots all that start from one prior say the same.
    Candidates that have no share to speak of are dropped, unless it `keeps_all` of them, for comparisons.
    """
    _check(samples, source, target, shots)
    view = RunView.fit(samples, source, target)
    runs = view.of(samples, source, shots)
    given = next((prior for prior in priors if prior is not None), None)
    if expected is None:
        expected = given.expected_unchanged if given else expectation_unchanged(samples, source, target)
    processes: list[Process] = []
    candidates: list[str] = []
    has_prior: list[bool] = []
    for prior in priors:
        before = samples.log_seconds[source, shots] + _log_ratios(prior, samples, source, target, shots)
        residual = samples.log_seconds[target, shots] - before
        for name, causes in (WITHOUT_PRIOR if prior is None else WITH_PRIOR).items():
            if (causes != EVERY_CAUSE and not len(shots)) or (only is not None and name not in only):
                continue
            fitted = fit_processes(runs, residual, expected if prior is None else prior.expected, causes)
            processes += fitted
            candidates += [name] * len(fitted)
            has_prior += [prior is not None] * len(fitted)
    model = PairedModel(
        machines=samples.machines,
        source=source,
        target=target,
        shots=tuple(samples.configurations[row] for row in shots),
        view=view,
        prior=given,
        processes=processes,
        candidates=tuple(candidates),
        has_prior=np.array(has_prior),
        shares=evidence_weights(processes),
    )
    return model if keeps_all else model.without_negligible()


@dataclass(frozen=True, eq=False)
class PairedModel(Stored):
    """Times on one target from runs on one source.

    The samples it is used on must have the same machines, counters and benchmark.
    """

    machines: tuple[str, ...]
    source: int
    target: int
    shots: tuple[str, ...]
    """Configurations whose runs on the target it was fitted to."""
    view: RunView
    prior: Prior | None
    processes: list[Process]
    candidates: tuple[str, ...]
    """Candidate of each process, one of `WITHOUT_PRIOR` and `WITH_PRIOR`."""
    has_prior: "np.ndarray[tuple[int], np.dtype[np.bool_]]"
    """Per process, whether it corrects the prior, or else the source's time."""
    shares: Floats
    """Weight of each process; the sum is 1."""

    def predict(self, samples: PairedSamples, rows: Indices) -> Floats:
        """Log seconds on the target of configurations that ran on the source."""
        runs = self._inputs(samples, rows)
        means = self._means(runs, samples.log_seconds[self.source, rows], self._prior(samples, rows))
        return np.asarray(self.shares @ means)

    def spread(self, samples: PairedSamples, rows: Indices) -> Floats:
        """Standard deviation of the measured log seconds around `predict`, noise of a run included."""
        return self.distribution(samples, rows)[1]

    def distribution(self, samples: PairedSamples, rows: Indices) -> tuple[Floats, Floats]:
        """`predict` and `spread` at once."""
        runs = self._inputs(samples, rows)
        return self.combine(runs, samples.log_seconds[self.source, rows], self._prior(samples, rows))

    def combine(self, runs: RunInputs, base: Floats, prior: Floats) -> tuple[Floats, Floats]:
        """Expected log seconds and their standard deviation, of runs with their log seconds on the source and what the
        prior adds to those.
        """
        means = self._means(runs, base, prior)
        variances = np.stack([process.variance(runs) + process.noise**2 for process in self.processes])
        mean = self.shares @ means
        between = (means - mean) ** 2
        return np.asarray(mean), np.asarray(np.sqrt(self.shares @ (variances + between)))

    def covariance(self, samples: PairedSamples, rows: Indices, others: Indices) -> Floats:
        """Rows x others: covariance of what is not known of their log seconds, without noise of a run."""
        runs, further = self._inputs(samples, rows), self._inputs(samples, others)
        by_process = [process.covariance(runs, further) for process in self.processes]
        return np.asarray(np.tensordot(self.shares, np.stack(by_process), 1))

    def held_out(self, samples: PairedSamples, shots: Indices, *, alone: bool = False) -> tuple[Floats, Floats]:
        """Expected log seconds and standard deviation of each of the model's own shots, given all others.

        Amplitudes and shares stay those of all shots. With `alone`, as if only the source had run the asked one.
        """
        asked = as_run_on_source_only(samples, self.source, shots) if alone else samples
        runs, prior = self._inputs(asked, shots), self._prior(asked, shots)
        by_process = [process.without_each(runs) for process in self.processes]
        before = samples.log_seconds[self.source, shots] + np.outer(self.has_prior, prior)
        means, spreads = (
            before + np.stack([mean for mean, _ in by_process]),
            np.stack([spread for _, spread in by_process]),
        )
        mean = self.shares @ means
        return mean, np.asarray(np.sqrt(self.shares @ (spreads**2 + (means - mean) ** 2)))

    def only(self, candidate: str) -> "PairedModel":
        """The model of one of its candidates, however small its share."""
        kept = np.flatnonzero(np.array(self.candidates) == candidate)
        return self._of(kept, evidence_weights([self.processes[k] for k in kept]))

    def without_negligible(self) -> "PairedModel":
        """The model of those processes that have a share to speak of."""
        kept = np.flatnonzero(self.shares > _NEGLIGIBLE)
        return self._of(kept, self.shares[kept] / self.shares[kept].sum())

    @property
    def noise(self) -> float:
        """Standard deviation of one measured run, in log seconds."""
        return float(np.sqrt(self.shares @ np.array([process.noise**2 for process in self.processes])))

    def _of(self, kept: Indices, shares: Floats) -> "PairedModel":
        return replace(
            self,
            processes=[self.processes[k] for k in kept],
            candidates=tuple(self.candidates[k] for k in kept),
            has_prior=self.has_prior[kept],
            shares=shares,
        )

    def _means(self, runs: RunInputs, base: Floats, prior: Floats) -> Floats:
        """Process x run: expected log seconds."""
        return np.stack(
            [
                base + has * prior + process.mean(runs)
                for process, has in zip(self.processes, self.has_prior, strict=True)
            ]
        )

    def _prior(self, samples: PairedSamples, rows: Indices) -> Floats:
        if not self.has_prior.any():
            return np.zeros(len(rows))
        return _log_ratios(self.prior, samples, self.source, self.target, rows)

    def _inputs(self, samples: PairedSamples, rows: Indices) -> RunInputs:
        if samples.machines != self.machines:
            raise BadInputError(f"this model is for machines {', '.join(self.machines)}, in this order")
        return self.view.of(samples, self.source, rows)


def _log_ratios(prior: Prior | None, samples: PairedSamples, source: int, target: int, rows: Indices) -> Floats:
    """Expected log(time on target / time on source); 0 without a prior."""
    if prior is None or not len(rows):
        return np.zeros(len(rows))
    return prior.predict(samples, Examples(np.full(len(rows), source), np.full(len(rows), target), rows))


def _check(samples: PairedSamples, source: int, target: int, shots: Indices) -> None:
    if source == target:
        raise BadInputError(f"{samples.machines[source]} cannot be source and target")
    measured = np.isfinite(samples.log_seconds[[source, target]][:, shots]).all(axis=0)
    if not measured.all():
        bad = samples.configurations[shots[~measured][0]]
        raise BadInputError(
            f"a shot must have run on {samples.machines[source]} and {samples.machines[target]}; {bad!r} did not"
        )
