"""Registration of the source models: `perf-source`, aliases `with-amm` and `without-amm`."""

from dataclasses import replace
from pathlib import Path

import pandas as pd

from perf_assets.core.errors import BadInputError
from perf_assets.core.paths import has_registry
from perf_assets.features.samples import PairedSamples
from perf_assets.models.source.basis import PriorBasis
from perf_assets.models.source.model import SourceModel
from perf_assets.models.source.training import BLEND, TrainedSource
from perf_assets.models.source.tree_features import Embedded
from perf_assets.registry.lineage import SOURCE
from perf_assets.registry.store import Candidate, Version, register
from perf_assets.registry.tables.source import SIGNATURE, example_questions
from perf_assets.registry.versions import SOURCE_ALIASES, fitted_folder, load_fitted, versions

NAME = SOURCE
WITH_AMM, WITHOUT_AMM = SOURCE_ALIASES
_BASIS, _EMBEDDING = "basis", "embedding"
_TRAIN = "run 'perf-assets train'"


def register_source(
    trained: TrainedSource,
    samples: PairedSamples,
    provenance: dict[str, str],
    *,
    with_amm: bool,
    basis: PriorBasis | None = None,
    embedding: Embedded | None = None,
    files: dict[str, bytes] | None = None,
) -> Version:
    """Register one of the two; the one with AMMs carries the other for machines that have none.

    No alias points to it yet: `promote` lets one, once it is known to be no worse than plain answers.
    """
    model = trained.model if with_amm else replace(trained.model, with_amm=None)
    method = BLEND if with_amm else trained.chosen_without_amm
    shown = [
        method,
        "raw_xgboost",
        "onehot_xgboost",
        "spec_xgboost",
        "benchmark_mean",
        "unchanged",
        "pair_median",
        "typical",
    ]
    metrics = {
        f"{row['method']} unseen {row['unseen']} {score}": float(row[score])
        for row in trained.scores[trained.scores["method"].isin(shown)].to_dict("records")
        for score in ("mape_ratio", "median_ape_ratio", "log_rmse")
    }
    metrics |= _comparable(trained.scores, method)
    blends = trained.model.with_amm or {}
    params = {"machines": len(samples.machines), "applications": ", ".join(samples.application_names)}
    params |= {f"blend for unseen {unseen}": str(blend.weights) for unseen, blend in blends.items() if with_amm}

    def save(folder: Path) -> None:
        model.save(folder)
        if basis is not None:
            basis.save(folder / _BASIS)
        if embedding is not None:
            embedding.save(folder / _EMBEDDING)

    candidate = Candidate(
        registered_name=NAME,
        code=Path(__file__).with_name("pyfunc") / "source.py",
        save=save,
        signature=SIGNATURE,
        example=example_questions(samples),
        metrics=metrics,
        params={**params, "without AMMs": trained.chosen_without_amm},
        tags={**provenance, "kind": WITH_AMM if with_amm else WITHOUT_AMM},
        tables={"cross_validation": trained.scores},
        files=files or {},
    )
    return register(candidate, None)


def _comparable(scores: pd.DataFrame, method: str) -> dict[str, float]:
    """Metrics by names that are the same for every kind of model: on machines that were held out."""
    held_out = scores[scores["unseen"] == "machine"].set_index("method")["mape_ratio"]
    named = {"mape": method, "mape_unchanged": "unchanged"}
    return {metric: float(held_out[name]) for metric, name in named.items() if name in held_out}


def load_source(version: int) -> SourceModel:
    """The source model of a registered version."""
    return load_fitted(SourceModel.load, NAME, version, _TRAIN)


def load_basis(version: int) -> PriorBasis:
    """Basis of target models, from a registered version with AMMs."""
    if not (fitted_folder(NAME, version) / _BASIS).is_dir():
        raise BadInputError(
            f"target models cannot start from {NAME} version {version}, which has no members without a machine: name "
            f"one of {WITH_AMM}, or run 'perf-assets train'"
        )
    return load_fitted(lambda folder: PriorBasis.load(folder / _BASIS), NAME, version, _TRAIN)


def load_embedding(version: int) -> Embedded:
    """The embedding of runs that was fitted with a registered version with AMMs."""
    return load_fitted(lambda folder: Embedded.load(folder / _EMBEDDING), NAME, version, _TRAIN)


def source_in_use() -> int:
    """The version that target models start from; refuses where there is none."""
    number = versions(NAME).get(WITH_AMM) if has_registry() else None
    if number is None:
        raise BadInputError("there are no source models yet to start from: run 'perf-assets train'")
    return number
