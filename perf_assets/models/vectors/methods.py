"""Methods that predict relative-performance vectors, behind one interface: nets, trees, pairs, the majority."""

from collections import Counter
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Protocol, cast

import numpy as np

from perf_assets.core.errors import UnreadableFileError
from perf_assets.core.vector_settings import VectorSettings
from perf_assets.features.samples import Floats, Mask
from perf_assets.features.vectors import VectorSamples, as_columns, centred
from perf_assets.infra.threads import thread_budget
from perf_assets.models.common import archive
from perf_assets.models.common.regressors import Regressor, load_regressor, make_regressor
from perf_assets.models.common.trees import TreeEnsemble
from perf_assets.models.source.attention import AttentionSettings
from perf_assets.models.source.methods import MethodFactory, best_components
from perf_assets.models.source.stored import StoredPredictor, load_predictor, save_predictor
from perf_assets.models.vectors.vae_dnn import VaeDnn

MAJORITY = "majority"
MEAN = "mean"
PAIRWISE = "pairwise"
_KIND_FILE = "method.json"
_TREES_FILE = "machines.json"
_RIDGE = 1e-2


class VectorPredictor(Protocol):
    """A fitted method."""

    def predict(self, samples: VectorSamples) -> Floats:
        """Samples x machines: log times up to a level of each sample; looks at the sample's own run only."""

    def save(self, folder: Path) -> None:
        """Store into a folder, without pickle."""


class VectorTrees:
    """XGBoost on the features of a run and the machine it ran on, one output after the other."""

    def __init__(self, machines: tuple[str, ...], regressors: Mapping[str, Regressor]) -> None:
        self._machines = machines
        self._regressors = dict(regressors)

    @classmethod
    def fit(cls, samples: VectorSamples, seed: int) -> "VectorTrees":
        """Each machine from the samples whose configuration ran there."""
        model = cls(samples.machines, {})
        columns = tree_columns(samples, samples.machines)
        targets = centred(samples.log_seconds)[samples.row]
        for position, machine in enumerate(samples.machines):
            known = np.isfinite(targets[:, position])
            if known.any():
                fitted = make_regressor("xgboost", seed).fit(columns[known], targets[known, position])
                model._regressors[machine] = fitted
        return model

    def predict(self, samples: VectorSamples) -> Floats:
        """Centred log times; a machine without training runs gets the mean of the others."""
        columns = tree_columns(samples, self._machines)
        log_times = np.full((len(samples), len(self._machines)), np.nan)
        for position, machine in enumerate(self._machines):
            if machine in self._regressors:
                log_times[:, position] = self._regressors[machine].predict(columns)
        return np.where(np.isnan(log_times), np.nanmean(log_times, axis=1, keepdims=True), log_times)

    def save(self, folder: Path) -> None:
        """Store into a folder."""
        folder.mkdir(parents=True, exist_ok=True)
        for position, (_, regressor) in enumerate(self._regressors.items()):
            regressor.save(folder / f"machine{position}")
        described = {"machines": self._machines, "fitted": list(self._regressors)}
        archive.save_description(folder / _TREES_FILE, described)

    @classmethod
    def load(cls, folder: Path) -> "VectorTrees":
        """Read what `save` wrote."""
        described = archive.load_description(folder / _TREES_FILE)
        fitted = {name: load_regressor(folder / f"machine{i}") for i, name in enumerate(described["fitted"])}
        return cls(tuple(described["machines"]), fitted)


class VectorForest:
    """A random forest whose leaves are whole vectors. Times that were not measured are filled in for it."""

    def __init__(self, machines: tuple[str, ...], trees: TreeEnsemble) -> None:
        self._machines = machines
        self._trees = trees

    @classmethod
    def fit(cls, samples: VectorSamples, seed: int, trees: int) -> "VectorForest":
        """Fit trees that grow until leaves are pure."""
        from sklearn.ensemble import RandomForestRegressor

        forest = RandomForestRegressor(
            trees, max_features=0.3, max_samples=0.6, n_jobs=thread_budget(), random_state=seed
        )
        targets = _filled(centred(samples.log_seconds))[samples.row]
        forest.fit(tree_columns(samples, samples.machines).astype(np.float32), targets)
        return cls(samples.machines, TreeEnsemble.of(forest))

    def predict(self, samples: VectorSamples) -> Floats:
        """Centred log times."""
        return self._trees.predict(tree_columns(samples, self._machines))

    def save(self, folder: Path) -> None:
        """Store into a folder."""
        archive.save_description(folder / _TREES_FILE, {"machines": self._machines})
        self._trees.save(folder / "forest.npz")

    @classmethod
    def load(cls, folder: Path) -> "VectorForest":
        """Read what `save` wrote."""
        machines = archive.load_description(folder / _TREES_FILE)["machines"]
        return cls(tuple(machines), TreeEnsemble.load(folder / "forest.npz"))


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


class Pairwise:
    """Source models of the xAMM kind: one ratio for each pair of machines, put together to a vector."""

    def __init__(self, models: Mapping[str, StoredPredictor]) -> None:
        self.models = dict(models)

    @classmethod
    def fit(cls, samples: VectorSamples, seed: int, attention: AttentionSettings | None = None) -> "Pairwise":
        """Fit the machine models of a blend for new applications; without a benchmark, trees with the machine's id."""
        names = ["onehot_xgboost"]
        if samples.paired.is_benchmark.any():
            names = best_components(samples.paired, "application")
        factory = MethodFactory(seed, attention=attention)
        fitted = {name: factory.fit(name, samples.paired, "application") for name in names}
        return cls(cast(dict[str, StoredPredictor], fitted))

    def predict(self, samples: VectorSamples) -> Floats:
        """Log times relative to the machine of the sample, which is 0 there; mean of the models."""
        examples = samples.pair_examples()
        log_ratios = np.mean([model.predict(samples.paired, examples) for model in self.models.values()], axis=0)
        log_ratios = np.where(examples.source == examples.target, 0.0, log_ratios)
        return np.asarray(log_ratios.reshape(len(samples), len(samples.machines)))

    def save(self, folder: Path) -> None:
        """Store into a folder."""
        for name, model in self.models.items():
            save_predictor(model, folder / name)

    @classmethod
    def load(cls, folder: Path) -> "Pairwise":
        """Read what `save` wrote."""
        return cls({part.name: load_predictor(part) for part in sorted(folder.iterdir()) if part.is_dir()})


class Majority:
    """The most frequent order of the machines in training, whatever the run: the baseline of every order."""

    def __init__(self, centred_times: Floats) -> None:
        self._known = centred_times
        self._found: dict[bytes, Floats] = {}

    @classmethod
    def fit(cls, samples: VectorSamples) -> "Majority":
        """Fit to all configurations, each once."""
        return cls(centred(samples.log_seconds))

    def predict(self, samples: VectorSamples) -> Floats:
        """Mean log times of the configurations that had the most frequent order."""
        return self.typical(np.isfinite(samples.targets))

    def typical(self, asked: Mask) -> Floats:
        """Samples x machines: mean log times of the most frequent order of the machines that are asked for."""
        return np.array([self._among(ran) for ran in asked])

    def save(self, folder: Path) -> None:
        """Store into a folder."""
        folder.mkdir(parents=True, exist_ok=True)
        archive.save(folder / "majority.npz", {}, {"known": self._known})

    @classmethod
    def load(cls, folder: Path) -> "Majority":
        """Read what `save` wrote."""
        return cls(archive.load(folder / "majority.npz")[1]["known"])

    def _among(self, ran: Mask) -> Floats:
        """Mean log times on the machines that a configuration ran on, from all that ran on these at least."""
        key = ran.tobytes()
        if key not in self._found:
            complete = self._known[np.isfinite(self._known[:, ran]).all(axis=1)]
            times = _means(self._known)
            if len(complete):
                orders = [tuple(order) for order in np.argsort(complete[:, ran], axis=1).tolist()]
                most = Counter(orders).most_common(1)[0][0]
                times[ran] = complete[[order == most for order in orders]][:, ran].mean(axis=0)
            self._found[key] = times
        return self._found[key]


class MeanVector:
    """The mean vector of the training applications, each of which counts the same, whatever the run."""

    def __init__(self, log_times: Floats) -> None:
        self._log_times = log_times

    @classmethod
    def fit(cls, samples: VectorSamples) -> "MeanVector":
        """Fit to all configurations; a machine that ran nothing is as the average machine."""
        times = centred(samples.log_seconds)
        by_app = [times[samples.apps == app] for app in np.unique(samples.apps)]
        return cls(_means(np.stack([np.where(np.isfinite(own).any(axis=0), _means(own), np.nan) for own in by_app])))

    def predict(self, samples: VectorSamples) -> Floats:
        """Log times, the same for every sample."""
        return np.broadcast_to(self._log_times, (len(samples), len(self._log_times)))

    def save(self, folder: Path) -> None:
        """Store into a folder, without pickle."""
        folder.mkdir(parents=True, exist_ok=True)
        archive.save(folder / "mean.npz", {}, {"log_times": self._log_times})

    @classmethod
    def load(cls, folder: Path) -> "MeanVector":
        """Read what `save` wrote."""
        return cls(archive.load(folder / "mean.npz")[1]["log_times"])


_FIT: dict[str, Callable[[VectorSamples, int], VectorPredictor]] = {
    "xgboost": VectorTrees.fit,
    PAIRWISE: Pairwise.fit,
    MAJORITY: lambda samples, _: Majority.fit(samples),
    MEAN: lambda samples, _: MeanVector.fit(samples),
}
_LOAD: dict[str, Callable[[Path], VectorPredictor]] = {
    "vae_dnn": VaeDnn.load,
    "random_forest": VectorForest.load,
    "xgboost": VectorTrees.load,
    PAIRWISE: Pairwise.load,
    MAJORITY: Majority.load,
    MEAN: MeanVector.load,
}


def fit_method(name: str, samples: VectorSamples, seed: int, settings: VectorSettings) -> VectorPredictor:
    """Fit a method by its name."""
    if name == "vae_dnn":
        return VaeDnn(settings.net, seed).fit(samples)
    if name == "random_forest":
        return VectorForest.fit(samples, seed, settings.trees)
    return _FIT[name](samples, seed)


def save_method(name: str, fitted: VectorPredictor, folder: Path) -> None:
    """Store a fitted method with its name."""
    folder.mkdir(parents=True, exist_ok=True)
    fitted.save(folder)
    archive.save_description(folder / _KIND_FILE, {"method": name})


def load_method(folder: Path) -> VectorPredictor:
    """Read what `save` wrote."""
    try:
        return _LOAD[archive.load_description(folder / _KIND_FILE)["method"]](folder)
    except (ValueError, KeyError) as error:
        raise UnreadableFileError(f"{folder} is no saved model ({error})") from None
