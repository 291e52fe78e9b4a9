"""Every kind of model that is stored: how a tiny one is fitted, and what it is asked.

Run as a program with a folder, it loads the models in there and writes what they answer.
"""

import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from perf_assets.core.vector_settings import VectorSettings
from perf_assets.features.fleet.samples import benchmark_samples, fleet_samples
from perf_assets.features.fleet.vectors import fleet_vectors
from perf_assets.features.samples import Floats, PairedSamples
from perf_assets.features.vectors import VectorSamples
from perf_assets.models.common import archive
from perf_assets.models.common.contract import StoredModel
from perf_assets.models.common.questions import Questions
from perf_assets.models.source import stored
from perf_assets.models.source.amm_options import TrainedEncoder
from perf_assets.models.source.attention import AttentionSettings
from perf_assets.models.source.methods import MethodFactory
from perf_assets.models.source.model import SourceModel
from perf_assets.models.source.settings import SourceSettings
from perf_assets.models.source.training import train_source
from perf_assets.models.target.model import PRIOR_COMPONENTS, AdaptedTarget, adapt
from perf_assets.models.target.prior import refitted_priors
from perf_assets.models.transfer.adapted import AdaptedTransfer, NamedTable, adapt_transfer
from perf_assets.models.vectors import methods
from perf_assets.models.vectors.model import Runs, VectorModel, train_vector
from tests.described import DescribedFleet, described_fleet
from tests.features.fleet_tables import fleet_tables, vector_rows
from tests.models import transfers

TARGET = "birch"
NOWHERE = "nowhere"
FOREST = VectorSettings(components=["random_forest"], trees=5)


@dataclass(frozen=True)
class Estimator:
    """A registered kind of model."""

    kind: type[Any]
    fit: Callable[[], Any]
    questions: Callable[[], Any]
    one: Callable[[Any], Any]
    """The first of some questions alone."""
    bare: Callable[[Any], Any]
    """Questions without some of what was measured."""
    unknown: Callable[[Any], Any]
    """Questions about a machine that the model has never heard of, or in other words than its own."""
    refuses: str
    """What it then says, as an error or as the reason of each answer."""
    ask: Callable[[Any, Any], Floats] = lambda model, questions: model.predict(questions).bounds
    """Answers as one array; the last axis, or the one before for vectors, is that of questions."""


def _first(questions: Questions) -> Questions:
    return questions.where(np.arange(len(questions.sources)) == 0)


def _without_counters(questions: Questions) -> Questions:
    counters = questions.counters.copy()
    counters[:, ::2] = np.nan
    return replace(questions, counters=counters)


def _to_nowhere(questions: Questions) -> Questions:
    return replace(questions, targets=[NOWHERE] * len(questions.targets))


@cache
def _described() -> DescribedFleet:
    return described_fleet(fleet_tables(sizes=4))


@cache
def _samples() -> PairedSamples:
    return fleet_samples(fleet_tables(sizes=4))


@cache
def _vector_samples() -> VectorSamples:
    tables = fleet_tables(sizes=4)
    return fleet_vectors(vector_rows(tables), tables)


def _questions(samples: PairedSamples, target: str, source: str, count: int = 6) -> Questions:
    place = samples.machines.index(source)
    ran = np.isfinite(samples.log_seconds[[place, samples.machines.index(target)]]).all(axis=0)
    rows = np.flatnonzero(ran & ~samples.is_benchmark)[:count]
    return Questions(
        sources=[source] * len(rows),
        targets=[target] * len(rows),
        apps=samples.apps[rows].tolist(),
        configurations=[f"another {row}" for row in rows],
        counters=samples.counters[place, rows],
        log_seconds=samples.log_seconds[place, rows],
    )


def _source() -> SourceModel:
    settings = SourceSettings(
        without_amm=("raw_xgboost",), with_amm=("raw_amm_xgboost",), baselines=(), machine_models=("bilinear",)
    )
    return train_source(_described().samples, _described().by, settings, lambda line: None).model


@cache
def _target() -> AdaptedTarget:
    samples = _samples()
    return adapt(samples, TARGET, refitted_priors(samples, 0, PRIOR_COMPONENTS[:1]), 0, lambda line: None)


def _transfer() -> AdaptedTransfer:
    target = transfers.table("new", rows=16, seed=2, slowness=3.0)
    names = [f"row {row}" for row in range(len(target))]
    return adapt_transfer(NamedTable(target, names, "seconds"), [transfers.table("old", rows=40, seed=1)])


def _vector_runs() -> Runs:
    samples = _vector_samples()
    few = samples.where(np.arange(0, len(samples), 9))
    return Runs(
        sources=np.array(samples.machines)[few.source].tolist(),
        apps=few.apps[few.row].tolist(),
        uses_gpus=np.ones(len(few), bool),
        features=few.features,
        counters=few.counters,
    )


def _bare_runs(runs: Runs) -> Runs:
    features = runs.features.copy()
    features[:, 0] = np.nan
    return replace(runs, features=features)


def _first_run(runs: Runs) -> Runs:
    return Runs(runs.sources[:1], runs.apps[:1], runs.uses_gpus[:1], runs.features[:1], runs.counters[:1])


def _of_machine(kernels: pd.DataFrame, machine: str) -> pd.DataFrame:
    return kernels[kernels["machine"] == machine]


REGISTERED = {
    "amm": Estimator(
        kind=TrainedEncoder,
        fit=lambda: _described().encoder,
        questions=lambda: fleet_tables().kernels,
        one=lambda kernels: _of_machine(kernels, "ash"),
        bare=lambda kernels: kernels[kernels["kernel"] != "Apps_VOL"],
        unknown=lambda kernels: kernels.assign(kernel="Other_" + kernels["kernel"]),
        refuses="kernel",
        ask=lambda trained, kernels: trained.encoder.machine_models(benchmark_samples(kernels, with_scaling=True)),
    ),
    "source": Estimator(
        kind=SourceModel,
        fit=_source,
        questions=lambda: _questions(_samples(), "cedar", "ash"),
        one=_first,
        bare=_without_counters,
        unknown=_to_nowhere,
        refuses="no AMM of nowhere in this model",
    ),
    "target": Estimator(
        kind=AdaptedTarget,
        fit=_target,
        questions=lambda: _questions(_samples(), TARGET, next(iter(_target().views.values())).source),
        one=_first,
        bare=_without_counters,
        unknown=_to_nowhere,
        refuses="this is the model of birch, not of nowhere",
    ),
    "transfer": Estimator(
        kind=AdaptedTransfer,
        fit=_transfer,
        questions=lambda: transfers.machine("new", rows=5, seed=3).drop(columns=["seconds", "note"]),
        one=lambda table: table.iloc[:1],
        bare=lambda table: table.assign(c0=np.nan),
        unknown=lambda table: table.add_prefix("other_"),
        refuses="none of the columns that the model of new knows",
    ),
    "vector": Estimator(
        kind=VectorModel,
        fit=lambda: train_vector(_vector_samples(), "max", 0, FOREST).model,
        questions=_vector_runs,
        one=_first_run,
        bare=_bare_runs,
        unknown=lambda runs: replace(runs, sources=[NOWHERE] * len(runs.sources)),
        refuses="runs on 'nowhere' are not known to this model",
    ),
}
"""By the file of registry/pyfunc that serves the kind."""
SOURCE_METHODS = {
    "AnchoredTrees": "anchored_xgboost",
    "BenchmarkAttention": "attention",
    "BenchmarkMean": "benchmark_mean",
    "BilinearModel": "bilinear",
    "DescribedTrees": "raw_xgboost",
    "KernelMixture": "kernel_mixture",
    "MachineMixture": "mixture",
    "PairMedian": "pair_median",
    "TypicalTimes": "typical",
    "Unchanged": "unchanged",
}
"""Names of methods by the kind that is stored."""
VECTOR_METHODS = ("vae_dnn", "random_forest", "xgboost", "pairwise", "majority", "mean")


def save_components(folder: Path) -> dict[str, Floats]:
    """Fit and store every kind of component; what each predicts."""
    answers: dict[str, Floats] = {}
    samples, few = _samples(), _vector_samples()
    attention = AttentionSettings(steps=5, members=1)
    factory = MethodFactory(0, attention=attention)
    for kind, name in SOURCE_METHODS.items():
        fitted: Any = factory.fit(name, samples, "machine")
        assert type(fitted).__name__ == kind
        fitted.save(folder / "source" / name)
        answers[f"source {name}"] = fitted.predict(samples, samples.examples())
    for name in VECTOR_METHODS:
        is_pairwise = name == methods.PAIRWISE
        settings = VectorSettings.quick()
        predictor = methods.Pairwise.fit(few, attention) if is_pairwise else methods.fit_method(name, few, 0, settings)
        predictor.save(folder / "vector" / name)
        answers[f"vector {name}"] = predictor.predict(few)
    return answers


def loaded_answers(folder: Path) -> Mapping[str, Floats]:
    """What the models and components in a folder answer."""
    answers = {}
    for name, estimator in REGISTERED.items():
        model: StoredModel = estimator.kind.load(folder / name)
        answers[name] = estimator.ask(model, estimator.questions())
    samples, few = _samples(), _vector_samples()
    for name in SOURCE_METHODS.values():
        method = archive.read(folder / "components" / "source" / name / archive.Stored.FILE, stored.StoredPredictor)
        answers[f"source {name}"] = method.predict(samples, samples.examples())
    for name in VECTOR_METHODS:
        predictor = archive.read(folder / "components" / "vector" / name / archive.Stored.FILE, methods.VectorMethod)
        answers[f"vector {name}"] = predictor.predict(few)
    return answers


if __name__ == "__main__":
    np.savez(Path(sys.argv[1]) / "answers.npz", **loaded_answers(Path(sys.argv[1])))  # type: ignore[arg-type]
