"""Paired adaptation: a machine's few runs correct what is expected of it from runs on another machine.

    log t_T(x) = log t_S(x) + prior(x, S -> T) + correction(x)

S is the source on which x was measured with counters, T the target. The prior needs T's benchmark only; the correction
is a Gaussian process fitted to the shots, runs on T of configurations that also ran on S. A second process corrects the
source's time itself, without prior: near relatives differ by little but a factor, and then a prior is in the way. Both
are averaged by evidence. Without shots the prior stands alone, and without prior the source's time.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from perf_assets.core.errors import BadInputError
from perf_assets.features.paired import Examples, Floats, Indices, PairedSamples
from perf_assets.features.scaling import Scaler, signed_log
from perf_assets.models import archive
from perf_assets.models.additive_gp import (
    Process,
    RunInputs,
    Spreads,
    describe,
    evidence_weights,
    fit_processes,
    restore,
)
from perf_assets.models.paired_prior import Prior, PriorParts, attention_prior

__all__ = ["PairedAdaptation", "PairedModel", "Prior", "PriorParts", "attention_prior"]

_WITHOUT_PRIOR = Spreads(offset=0.5, run=0.25)
"""Of log(time on target / time on source) where nothing is known of the target."""
_NEGLIGIBLE = 1e-3
"""Processes whose share is less are left out."""
_PRIOR_FOLDER, _CORRECTION_FILE = "prior", "correction.npz"


@dataclass(frozen=True)
class _View:
    """How runs on the source are shown to a process."""

    scaler: Scaler
    others: Indices
    """Known machines beside source and target."""
    centre: Floats
    scale: float

    @classmethod
    def fit(cls, samples: PairedSamples, source: int, target: int) -> "_View":
        known = samples.hide_machine(target).training_machines
        others = known[known != source]
        runs = ~samples.is_benchmark & np.isfinite(samples.log_seconds[source])
        ratios = (samples.log_seconds[others] - samples.log_seconds[source]).T[runs]
        seen = np.isfinite(ratios)
        centre = np.where(seen, ratios, 0.0).sum(axis=0) / np.maximum(seen.sum(axis=0), 1)
        deviations = np.where(seen, ratios - centre, 0.0)
        scale = float(np.sqrt((deviations**2).sum(axis=1).mean())) if len(deviations) else 0.0
        return cls(Scaler.fit(samples.counters[source, runs]), others, centre, scale + 1e-6)

    def of(self, samples: PairedSamples, source: int, rows: Indices) -> RunInputs:
        ratios = (samples.log_seconds[self.others][:, rows] - samples.log_seconds[source, rows]).T
        return self.inputs(signed_log(samples.counters[source, rows]), ratios, samples.apps[rows])

    def inputs(self, logs: Floats, ratios: Floats, apps: NDArray[np.str_]) -> RunInputs:
        """From signed logarithms of counters, and log times on `others` relative to the source."""
        counters = self.scaler.standardised(logs)
        # A run that is unknown on another machine is taken to behave there like the average run.
        profile = np.nan_to_num(ratios - self.centre, nan=0.0) / self.scale
        return RunInputs(counters / np.sqrt(counters.shape[1]), profile, apps)


class PairedAdaptation:
    """Fits the correction."""

    def fit(
        self,
        samples: PairedSamples,
        source: int,
        target: int,
        shots: Indices,
        seed: int = 0,
        prior: Prior | None = None,
    ) -> "PairedModel":
        """From the target's times of `shots` (configurations that ran on both) and of no others.

        `prior` comes from `attention_prior`, once for a target; without one it is fitted here, with `seed`, which
        takes most of the time. Where nothing can be known before (no benchmark, no third machine) there is none.
        """
        if prior is None and samples.is_benchmark.any() and len(samples.hide_machine(target).examples()):
            prior = attention_prior(samples, target, seed)
        return fit_correction(samples, source, target, shots, [prior, None] if prior and len(shots) else [prior])


def fit_correction(
    samples: PairedSamples, source: int, target: int, shots: Indices, priors: Sequence[Prior | None]
) -> "PairedModel":
    """A group of processes for each of `priors`, on the same shots; None is to go from the source's time."""
    _check(samples, source, target, shots)
    view = _View.fit(samples, source, target)
    runs = view.of(samples, source, shots)
    given = next((prior for prior in priors if prior is not None), None)
    residuals: list[Floats] = []
    processes: list[Process] = []
    has_prior: list[bool] = []
    for prior in priors:
        expected = samples.log_seconds[source, shots] + _log_ratios(prior, samples, source, target, shots)
        residual = samples.log_seconds[target, shots] - expected
        fitted = fit_processes(runs, residual, _WITHOUT_PRIOR if prior is None else prior.spreads)
        residuals.append(residual)
        processes += fitted
        has_prior += [prior is not None] * len(fitted)
    shares = evidence_weights(processes)
    kept = np.flatnonzero(shares > _NEGLIGIBLE)
    return PairedModel(
        samples.machines,
        source,
        target,
        tuple(samples.configurations[row] for row in shots),
        view,
        given,
        [processes[k] for k in kept],
        np.array(has_prior)[kept],
        shares[kept] / shares[kept].sum(),
        {prior is not None: residual for prior, residual in zip(priors, residuals, strict=True)},
    )


@dataclass(frozen=True, eq=False)
class PairedModel:
    """Times on one target from runs on one source."""

    machines: tuple[str, ...]
    source: int
    target: int
    shots: tuple[str, ...]
    """Configurations whose runs on the target it was fitted to."""
    view: _View
    prior: Prior | None
    processes: list[Process]
    has_prior: "np.ndarray[tuple[int], np.dtype[np.bool_]]"
    """Of each process: whether it corrects the prior, or else the source's time."""
    shares: Floats
    """Of each process, with sum 1."""
    residuals: dict[bool, Floats]
    """Of the shots, with prior (True) and without: what the processes were fitted to, in log seconds."""

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
        """The same of runs with their log seconds on the source and what the prior adds to those."""
        means = self._means(runs, base, prior)
        variances = np.stack([process.variance(runs) + process.noise**2 for process in self.processes])
        found = self.shares @ means
        between = (means - found) ** 2
        return np.asarray(found), np.asarray(np.sqrt(self.shares @ (variances + between)))

    def covariance(self, samples: PairedSamples, rows: Indices, others: Indices) -> Floats:
        """Rows x others: covariance of what is not known of their log seconds, without noise of a run."""
        runs, further = self._inputs(samples, rows), self._inputs(samples, others)
        found = [process.covariance(runs, further) for process in self.processes]
        return np.asarray(np.tensordot(self.shares, np.stack(found), 1))

    @property
    def noise(self) -> float:
        """Standard deviation of one measured run, in log seconds."""
        return float(np.sqrt(self.shares @ np.array([process.noise**2 for process in self.processes])))

    def save(self, folder: Path) -> None:
        """Store without pickle, in files of a folder that is made if needed."""
        folder.mkdir(parents=True, exist_ok=True)
        if self.prior is not None:
            self.prior.save(folder / _PRIOR_FOLDER)
        description = {
            "machines": self.machines,
            "source": self.source,
            "target": self.target,
            "shots": self.shots,
            "scale": self.view.scale,
            "has_prior": self.prior is not None,
            "processes": [describe(process) for process in self.processes],
        }
        runs = self.processes[0].runs
        arrays = {
            "mean": self.view.scaler.mean,
            "spread": self.view.scaler.spread,
            "others": self.view.others,
            "centre": self.view.centre,
            "counters": runs.counters,
            "profile": runs.profile,
            "apps": runs.apps,
            "process_has_prior": self.has_prior,
            "shares": self.shares,
        }
        arrays |= {f"residual_{int(key)}": residual for key, residual in self.residuals.items()}
        archive.save(folder / _CORRECTION_FILE, description, arrays)

    @classmethod
    def load(cls, folder: Path) -> "PairedModel":
        """A saved one. The samples it is used on must have the same machines, counters and benchmark rows."""
        description, arrays = archive.load(folder / _CORRECTION_FILE)
        runs = RunInputs(arrays["counters"], arrays["profile"], arrays["apps"])
        residuals = {bool(key): arrays[f"residual_{key}"] for key in (0, 1) if f"residual_{key}" in arrays}
        has_prior = arrays["process_has_prior"]
        return cls(
            tuple(description["machines"]),
            description["source"],
            description["target"],
            tuple(description["shots"]),
            _View(Scaler(arrays["mean"], arrays["spread"]), arrays["others"], arrays["centre"], description["scale"]),
            Prior.load(folder / _PRIOR_FOLDER) if description["has_prior"] else None,
            [
                restore(process, runs, residuals[bool(has)])
                for process, has in zip(description["processes"], has_prior, strict=True)
            ],
            has_prior,
            arrays["shares"],
            residuals,
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
