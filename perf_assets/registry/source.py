"""Registration of the source models: `perf-source`, aliases `with-amm` and `without-amm`."""

from dataclasses import replace
from pathlib import Path

from perf_assets.features.folds import BY_UNSEEN, Unseen
from perf_assets.features.samples import PairedSamples
from perf_assets.models.source.model import SourceModel
from perf_assets.models.source.training import TrainedSource
from perf_assets.registry.pyfunc import source as source_pyfunc
from perf_assets.registry.store import Candidate, Version, open_store, register
from perf_assets.registry.tables.source import SIGNATURE, example_questions
from perf_assets.registry.versions import fitted_folder

NAME = "perf-source"
WITH_AMM, WITHOUT_AMM = "with-amm", "without-amm"
_WITHOUT, _BLEND = "without AMMs", "with_amm in-sample blend"


def register_source(
    trained: TrainedSource, samples: PairedSamples, provenance: dict[str, str], *, with_amm: bool
) -> Version:
    """Register one of the two; the one with AMMs carries the other for machines that have none."""
    alias = WITH_AMM if with_amm else WITHOUT_AMM
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
        {**params, _WITHOUT: trained.chosen_without_amm},
        {**provenance, "kind": alias},
        {"cross_validation": trained.scores},
    )
    return register(candidate, alias)


def load_source(version: int) -> SourceModel:
    """A registered version."""
    return SourceModel.load(fitted_folder(NAME, version))


def held_out_errors(version: int) -> dict[Unseen, float]:
    """Root mean square log error of a version on held-out applications and on held-out machines, where it is stored.

    The blend's weights were chosen on the same folds, so its error is a little too small.
    """
    client = open_store()
    data = client.get_run(str(client.get_model_version(NAME, str(version)).run_id)).data
    is_blend = any(name.startswith(_BLEND) for name in data.metrics)
    method = _BLEND if is_blend else data.params[_WITHOUT]
    names: dict[Unseen, str] = {unseen: f"{method} unseen {unseen} log_rmse" for unseen in BY_UNSEEN}
    return {unseen: data.metrics[name] for unseen, name in names.items() if name in data.metrics}


def _metric_name(text: str) -> str:
    """Letters that MLflow allows in the name of a metric."""
    return text.replace("with_amm (weights chosen on these folds)", _BLEND)
