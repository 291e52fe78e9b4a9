"""Registration of the vector model: `perf-relative-vector`, alias `champion`."""

from pathlib import Path

import numpy as np
import pandas as pd

from perf_assets.core.errors import BadInputError
from perf_assets.features.vectors import VectorSamples
from perf_assets.models.vectors.model import TrainedVector, VectorModel
from perf_assets.registry.pyfunc import vector as vector_pyfunc
from perf_assets.registry.store import Candidate, Version, register
from perf_assets.registry.tables.vector import SIGNATURE, example_questions
from perf_assets.registry.versions import fitted_folder, versions

NAME = "perf-relative-vector"
ALIAS = "champion"


def register_vector(trained: TrainedVector, samples: VectorSamples, provenance: dict[str, str]) -> Version:
    """Register the vector model, with its scores on held-out rows."""
    metrics = {
        f"new {row['new']} {name}": float(value)
        for row in trained.scores.to_dict("records")
        for name, value in row.items()
        if name != "new"
    }
    return _register(trained.model, samples, metrics, provenance, {"held_out": trained.scores})


def champion_vector() -> VectorModel:
    """The model in use."""
    version = versions(NAME).get(ALIAS)
    if version is None:
        raise BadInputError(f"there is no {NAME}@{ALIAS}: run 'perf-assets vectors'")
    return VectorModel.load(fitted_folder(NAME, version))


def register_joined(model: VectorModel, machine: str, samples: VectorSamples, provenance: dict[str, str]) -> Version:
    """Register a vector model that a machine has joined, with what its shots say about its head."""
    heads = model.heads[machine]
    metrics = {f"{machine} new {name} log error of shots left out": head.spread for name, head in heads.items()}
    is_trained = np.isin(np.array(samples.machines), model.trained_machines)
    return _register(model, samples.where(is_trained[samples.source]), metrics, provenance, {})


def _register(
    model: VectorModel,
    samples: VectorSamples,
    metrics: dict[str, float],
    provenance: dict[str, str],
    tables: dict[str, pd.DataFrame],
) -> Version:
    params: dict[str, object] = {
        "machines": ", ".join(model.machines),
        "applications": ", ".join(model.applications),
        "relative_to": model.reference,
    }
    for name, blend in model.blends.items():
        params |= {f"times of a new {name}": str(blend.weights), f"order of a new {name}": str(blend.order_weights)}
    candidate = Candidate(
        NAME,
        Path(vector_pyfunc.__file__),
        model.save,
        SIGNATURE,
        example_questions(samples),
        metrics,
        params,
        {**provenance, "kind": "vector"},
        tables,
    )
    return register(candidate, ALIAS)
