"""What goes with a target model, into MLflow and onto its asset: candidates, a picture."""

from typing import TYPE_CHECKING

import dagster as dg

from perf_assets.defs.table_metadata import Metadata

if TYPE_CHECKING:
    from perf_assets.models.adapted import AdaptedTarget


def papers(adapted: "AdaptedTarget", tags: dict[str, str]) -> tuple[dict[str, bytes], Metadata]:
    """Files to register with the model, and metadata for its asset."""
    from perf_assets.registry.target import candidate_table

    candidates = candidate_table(adapted)
    return {}, {
        "candidates_on_held_out_shots": dg.MetadataValue.md(candidates.to_markdown(index=False, floatfmt=".3f")),
        **{f"shots of {name}": view.shots for name, view in adapted.views.items()},
    }
