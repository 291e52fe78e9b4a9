"""A new machine as a mixture of known ones, found by its benchmark.

    log t_T(b) = a + sum_m w_m log t_m(b)        fitted on benchmark rows b, ridge regression
    log t_T(x) = a + sum_m w_m log t_m(x)        for a run x of an application

The fleet knows how long x took on the machines m where it ran. Where it did not run on one of them, that time is
predicted from the run on the source machine by the bilinear model; counters are needed for nothing else.
"""

import numpy as np

from perf_assets.features.paired import Examples, Floats, Indices, PairedSamples
from perf_assets.models.bilinear import BilinearModel

_PENALTY = 1e-3
_LEVEL = 3.0
"""The level a is a free shift of all times: it is penalised a ninth as much as the weights."""


class MachineMixture:
    """Weights come from the benchmark of the target at prediction time; nothing is learned about a target before."""

    def __init__(self, seed: int = 0) -> None:
        self._seed = seed
        self._machines: Indices
        self._log_seconds: Floats
        self._bilinear: BilinearModel

    def fit(self, samples: PairedSamples) -> "MachineMixture":
        """Keep the times that can be seen, and a model for those that cannot."""
        self._machines = samples.training_machines
        self._log_seconds = samples.log_seconds[self._machines]
        self._bilinear = BilinearModel(seed=self._seed).fit(samples)
        return self

    def weights(self, samples: PairedSamples, target: int) -> tuple[Floats, float]:
        """Weight of each training machine in `target`, and the level a. A training machine is itself."""
        if target in self._machines:
            return (self._machines == target).astype(float), 0.0
        rows = samples.benchmark_rows()
        known, wanted = samples.log_seconds[self._machines][:, rows].T, samples.log_seconds[target, rows]
        mean = known.mean(axis=1)
        inputs = np.column_stack([known - mean[:, None], np.full(len(rows), _LEVEL)])
        _, of_row, counts = np.unique(samples.apps[rows], return_inverse=True, return_counts=True)
        importance = 1.0 / (len(counts) * counts[of_row])
        gram = (inputs * importance[:, None]).T @ inputs + _PENALTY * np.eye(inputs.shape[1])
        found = np.linalg.solve(gram, inputs.T @ (importance * (wanted - mean)))
        # Weights act on deviations from the mean machine, so what they lack to 1 is spread over all.
        mixture = found[:-1] + (1 - found[:-1].sum()) / len(self._machines)
        return np.asarray(mixture), float(_LEVEL * found[-1])

    def predict(self, samples: PairedSamples, examples: Examples) -> Floats:
        """Log relative times."""
        ratios = self._ratios_to_known(samples, examples)
        predicted = np.empty(len(examples))
        for target in np.unique(examples.target):
            chosen = examples.target == target
            mixture, level = self.weights(samples, int(target))
            predicted[chosen] = ratios[chosen] @ mixture + level
        return predicted

    def _ratios_to_known(self, samples: PairedSamples, examples: Examples) -> Floats:
        """Examples x training machines: log(time there / time on the source), measured where the run is known."""
        of_source = np.full((len(samples.machines), self._log_seconds.shape[1]), np.nan)
        of_source[self._machines] = self._log_seconds
        ratios = self._log_seconds[:, examples.row].T - of_source[examples.source, examples.row][:, None]
        for position, machine in enumerate(self._machines):
            unknown = np.isnan(ratios[:, position])
            if unknown.any():
                asked = examples.where(unknown)
                there = Examples(asked.source, np.full(len(asked), machine, np.intp), asked.row)
                ratios[unknown, position] = self._bilinear.predict(samples, there)
        return np.asarray(ratios)
