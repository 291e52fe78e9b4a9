"""Registration of the source models: `perf-source`, aliases `with-amm` and `without-amm`."""

from dataclasses import replace
from pathlib import Path

from perf_assets.features.paired import PairedSamples
from perf_assets.models.source_training import TrainedSource
from perf_assets.registry import source_pyfunc
from perf_assets.registry.source_questions import SIGNATURE, example_questions
from perf_assets.registry.store import Candidate, Version, register

NAME = "perf-source"


def register_source(
    trained: TrainedSource, samples: PairedSamples, provenance: dict[str, str], *, with_amm: bool
) -> Version:
    """Register one of the two; the one with AMMs carries the other for machines that have none."""
    alias = "with-amm" if with_amm else "without-amm"
    model = trained.model if with_amm else replace(trained.model, with_amm=None)
    method = "with_amm (weights chosen on these folds)" if with_amm else trained.chosen_without_amm
    shown = [method, "raw_xgboost", "onehot_xgboost", "spec_xgboost", "benchmark_mean"]
    metrics = {
        f"{row['method']} unseen {row['unseen']} {score}": float(row[score])
        for row in trained.scores[trained.scores["method"].isin(shown)].to_dict("records")
        for score in ("mape_ratio", "median_ape_ratio", "log_rmse")
    }
    blends = trained.model.with_amm or {}
    params = {"machines": len(samples.machines), "applications": ", ".join(samples.application_names)}
    params |= {f"blend for unseen {unseen}": str(blend.weights) for unseen, blend in blends.items() if with_amm}
    candidate = Candidate(
        NAME,
        Path(source_pyfunc.__file__),
        model.save,
        SIGNATURE,
        example_questions(samples),
        {_metric_name(name): value for name, value in metrics.items()},
        {**params, "without AMMs": trained.chosen_without_amm},
        {**provenance, "kind": alias},
        {"cross_validation": trained.scores},
    )
    return register(candidate, alias)


def _metric_name(text: str) -> str:
    """Letters that MLflow allows in the name of a metric."""
    return text.replace("(weights chosen on these folds)", "in-sample blend")
