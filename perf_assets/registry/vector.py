"""Registration of the vector model: `perf-relative-vector`, alias `champion`."""

from pathlib import Path

from perf_assets.features.vectors import VectorSamples
from perf_assets.models.vector_model import TrainedVector
from perf_assets.registry import vector_pyfunc
from perf_assets.registry.store import Candidate, Version, register
from perf_assets.registry.vector_questions import SIGNATURE, example_questions

NAME = "perf-relative-vector"
ALIAS = "champion"


def register_vector(trained: TrainedVector, samples: VectorSamples, provenance: dict[str, str]) -> Version:
    """Register the vector model."""
    model = trained.model
    metrics = {
        f"new {row['new']} {name}": float(value)
        for row in trained.scores.to_dict("records")
        for name, value in row.items()
        if name != "new"
    }
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
        {"held_out": trained.scores},
    )
    return register(candidate, ALIAS)
