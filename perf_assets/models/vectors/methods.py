"""Methods that predict relative-performance vectors, behind one interface: nets, trees, pairs, the majority."""

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import cast

import numpy as np

from perf_assets.core.vector_settings import VectorSettings
from perf_assets.features.samples import Floats, Mask
from perf_assets.features.vectors import VectorSamples, as_columns, centred
from perf_assets.infra.threads import thread_budget
from perf_assets.models.common.archive import Stored
from perf_assets.models.common.regressors import Regressor, fit_regressor
from perf_assets.models.common.trees import Forest, forest_of
from perf_assets.models.source.attention import AttentionSettings
from perf_assets.models.source.methods import MethodFactory, best_components
from perf_assets.models.source.stored import StoredPredictor
from perf_assets.models.vectors.vae_dnn import VaeDnn

MAJORITY = "majority"
MEAN = "mean"
PAIRWISE = "pairwise"
_RIDGE = 1e-2


@dataclass(frozen=True, eq=False)
class VectorTrees(Stored):
    """XGBoost on the features of a run and the machine it ran on, one output after the other."""

    machines: tuple[str, ...]
    regressors: Mapping[str, Regressor]
    """Regressors by machine, of machines that have training runs."""

    @classmethod
    def fit(cls, samples: VectorSamples, settings: None = None, seed: int = 0) -> "VectorTrees":
        """Each machine from the samples whose configuration ran there."""
        columns, regressors = tree_columns(samples, samples.machines), {}
        targets = centred(samples.log_seconds)[samples.row]
        for position, machine in enumerate(samples.machines):
            known = np.isfinite(targets[:, position])
            if known.any():
                regressors[machine] = fit_regressor("xgboost", columns[known], targets[known, position], seed)
        return cls(samples.machines, regressors)

    def predict(self, samples: VectorSamples) -> Floats:
        """Centred log times; a machine without training runs gets the mean of the others."""
        columns = tree_columns(samples, self.machines)
        log_times = np.full((len(samples), len(self.machines)), np.nan)
        for position, machine in enumerate(self.machines):
            if machine in self.regressors:
                log_times[:, position] = self.regressors[machine].predict(columns)
        return np.where(np.isnan(log_times), np.nanmean(log_times, axis=1, keepdims=True), log_times)


@dataclass(frozen=True, eq=False)
class VectorForest(Stored):
    """A random forest whose leaves are whole vectors. Times that were not measured are filled in for it."""

    machines: tuple[str, ...]
    trees: Forest

    @classmethod
    def fit(cls, samples: VectorSamples, settings: VectorSettings | None = None, seed: int = 0) -> "VectorForest":
        """Fit trees that grow until leaves are pure."""
        from sklearn.ensemble import RandomForestRegressor

        trees = (settings or VectorSettings()).trees
        forest = RandomForestRegressor(
            trees, max_features=0.3, max_samples=0.6, n_jobs=thread_budget(), random_state=seed
        )
        targets = _filled(centred(samples.log_seconds))[samples.row]
        forest.fit(tree_columns(samples, samples.machines).astype(np.float32), targets)
        return cls(samples.machines, forest_of(forest))

    def predict(self, samples: VectorSamples) -> Floats:
        """Centred log times of samples x machines."""
        return self.trees.predict(tree_columns(samples, self.machines))


def tree_columns(samples: VectorSamples, machines: tuple[str, ...]) -> Floats:
    """Features of each run and which of the known machines it ran on; -1 where missing."""
    which = np.array([[name == known for known in machines] for name in samples.machines], float)
    return np.asarray(np.nan_to_num(np.hstack([as_columns(samples.features), which[samples.source]]), nan=-1.0))


def _filled(targets: Floats) -> Floats:
    """Missing times from the other machines' times of the configuration, by ridge regression."""
    middle = _means(targets)
    centred = np.nan_to_num(targets - middle)
    filled = centred.copy()
    for machine, known in enumerate(np.isfinite(targets).T):
        others = np.delete(centred, machine, axis=1)
        gram = others[known].T @ others[known] + _RIDGE * np.eye(others.shape[1])
        slopes = np.linalg.solve(gram, others[known].T @ centred[known, machine])
        filled[~known, machine] = others[~known] @ slopes
    return np.asarray(filled + middle)


def _means(targets: Floats) -> Floats:
    """Mean of each machine; 0, the mean of all, where it ran nothing."""
    return np.asarray(np.nansum(targets, axis=0) / np.maximum(np.isfinite(targets).sum(axis=0), 1))


@dataclass(frozen=True, eq=False)
class Pairwise(Stored):
    """Source models of the xAMM kind: one ratio for each pair of machines, put together to a vector."""

    models: Mapping[str, StoredPredictor]

    @classmethod
    def fit(cls, samples: VectorSamples, settings: AttentionSettings | None = None, seed: int = 0) -> "Pairwise":
        """Fit the machine models of a blend for new applications; without a benchmark, trees with the machine's id."""
        names = ["onehot_xgboost"]
        if samples.paired.is_benchmark.any():
            names = best_components(samples.paired, "application")
        factory = MethodFactory(seed, attention=settings)
        fitted = {name: factory.fit(name, samples.paired, "application") for name in names}
        return cls(cast(dict[str, StoredPredictor], fitted))

    def predict(self, samples: VectorSamples) -> Floats:
        """Log times relative to the machine of the sample, which is 0 there; mean of the models."""
        examples = samples.pair_examples()
        log_ratios = np.mean([model.predict(samples.paired, examples) for model in self.models.values()], axis=0)
        log_ratios = np.where(examples.source == examples.target, 0.0, log_ratios)
        return np.asarray(log_ratios.reshape(len(samples), len(samples.machines)))


@dataclass(frozen=True, eq=False)
class Majority(Stored):
    """The most frequent order of the machines in training, whatever the run: the baseline of every order."""

    known: Floats
    """Configurations x machines: centred log times, NaN where it did not run."""

    @classmethod
    def fit(cls, samples: VectorSamples, settings: None = None, seed: int = 0) -> "Majority":
        """Fit to all configurations, each once."""
        return cls(centred(samples.log_seconds))

    def predict(self, samples: VectorSamples) -> Floats:
        """Mean log times of the configurations that had the most frequent order."""
        return self.typical(np.isfinite(samples.targets))

    def typical(self, asked: Mask) -> Floats:
        """Samples x machines: mean log times of the most frequent order of the machines that are asked for."""
        patterns, of_sample = np.unique(asked, axis=0, return_inverse=True)
        return np.array([self._among(ran) for ran in patterns])[of_sample.ravel()]

    def _among(self, ran: Mask) -> Floats:
        """Mean log times on the machines that a configuration ran on, from all that ran on these at least."""
        complete = self.known[np.isfinite(self.known[:, ran]).all(axis=1)]
        times = _means(self.known)
        if len(complete):
            orders = [tuple(order) for order in np.argsort(complete[:, ran], axis=1).tolist()]
            most = Counter(orders).most_common(1)[0][0]
            times[ran] = complete[[order == most for order in orders]][:, ran].mean(axis=0)
        return times


@dataclass(frozen=True, eq=False)
class MeanVector(Stored):
    """The mean vector of the training applications, each of which counts the same, whatever the run."""

    log_times: Floats

    @classmethod
    def fit(cls, samples: VectorSamples, settings: None = None, seed: int = 0) -> "MeanVector":
        """Fit to all configurations; a machine that ran nothing is as the average machine."""
        times = centred(samples.log_seconds)
        by_app = [times[samples.apps == app] for app in np.unique(samples.apps)]
        return cls(_means(np.stack([np.where(np.isfinite(own).any(axis=0), _means(own), np.nan) for own in by_app])))

    def predict(self, samples: VectorSamples) -> Floats:
        """Log times, the same for every sample."""
        return np.broadcast_to(self.log_times, (len(samples), len(self.log_times)))


VectorMethod = VaeDnn | VectorForest | VectorTrees | Pairwise | Majority | MeanVector
"""Fitted methods: each predicts samples x machines, log times up to a level of each sample, from its own run only."""


def fit_method(name: str, samples: VectorSamples, seed: int, settings: VectorSettings) -> VectorMethod:
    """Fit a method by its name."""
    fits: dict[str, Callable[[], VectorMethod]] = {
        "vae_dnn": lambda: VaeDnn.fit(samples, settings.net, seed),
        "random_forest": lambda: VectorForest.fit(samples, settings, seed),
        "xgboost": lambda: VectorTrees.fit(samples, seed=seed),
        PAIRWISE: lambda: Pairwise.fit(samples, seed=seed),
        MAJORITY: lambda: Majority.fit(samples),
        MEAN: lambda: MeanVector.fit(samples),
    }
    return fits[name]()
