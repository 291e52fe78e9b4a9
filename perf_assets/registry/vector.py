"""Registration of the vector model: `perf-relative-vector`, first as `challenger`, then as `champion`."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pandas as pd

from perf_assets.core.errors import BadInputError
from perf_assets.features.vectors import VectorSamples
from perf_assets.models.vectors.model import TrainedVector, VectorModel
from perf_assets.registry.store import Candidate, Version, register
from perf_assets.registry.tables.vector import SIGNATURE, example_questions
from perf_assets.registry.versions import CHALLENGER, CHAMPION, load_fitted, versions

NAME = "perf-relative-vector"
ALIAS = CHAMPION
SPEAKS_OF = "speaks_of"
"""Tag of a version: machines whose times it predicts."""


def register_vector(trained: TrainedVector, samples: VectorSamples, provenance: dict[str, str]) -> Version:
    """Register the vector model, with its scores on held-out rows."""
    metrics = {
        f"new {row['new']} {name}": float(value)
        for row in trained.scores.to_dict("records")
        for name, value in row.items()
        if name != "new"
    }
    # Names that models share, so that their pages can be compared.
    metrics |= {name: metrics[f"new configuration {name}"] for name in ("mape", "same_order")}
    return _register(trained.model, samples, metrics, provenance, {"held_out": trained.scores})


def champion_vector() -> VectorModel:
    """The model in use."""
    version = versions(NAME).get(ALIAS)
    if version is None:
        raise BadInputError(f"there is no {NAME}@{ALIAS}: run 'perf-assets vectors'")
    return load_vector(version)


def load_vector(version: int) -> VectorModel:
    """The vector model of a registered version."""
    return load_fitted(VectorModel.load, NAME, version, "run 'perf-assets vectors'")


def register_joined(
    model: VectorModel, joined: Sequence[str], samples: VectorSamples, provenance: dict[str, str]
) -> Version:
    """Register a vector model that machines have joined, with the scores of their heads on their shots."""
    metrics = {
        f"{machine} new {name} log error of shots left out": head.spread
        for machine in joined
        for name, head in model.heads[machine].items()
    }
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
        registered_name=NAME,
        code=Path(__file__).with_name("pyfunc") / "vector.py",
        save=model.save,
        signature=SIGNATURE,
        example=example_questions(samples),
        metrics=metrics,
        params=params,
        tags={**provenance, "kind": "vector", SPEAKS_OF: ", ".join(model.machines)},
        tables=tables,
    )
    return register(candidate, CHALLENGER)
