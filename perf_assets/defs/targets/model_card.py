"""What goes with a target model, into MLflow and onto its asset: its card, its candidates, a picture."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import dagster as dg

from perf_assets.core.catalogue import Resolved
from perf_assets.core.text import markdown_rows
from perf_assets.defs.specs import Metadata

if TYPE_CHECKING:
    from perf_assets.models.target.model import AdaptedTarget
    from perf_assets.reports.machine.card import CardFacts

_COVERAGE = 0.9


def papers(
    adapted: "AdaptedTarget", formulas: Sequence[Resolved], tags: dict[str, str]
) -> tuple[dict[str, bytes], Metadata]:
    """Files to register with the model, and metadata for its asset."""
    from perf_assets.registry.target import candidate_table
    from perf_assets.reports.machine.card import model_card
    from perf_assets.reports.machine.figures import candidate_figure
    from perf_assets.reports.site import as_data_uri, picture

    candidates = candidate_table(adapted)
    files = {"model_card.md": model_card(_card(adapted, formulas, tags)).encode()}
    metadata: Metadata = {f"shots of {name}": view.shots for name, view in adapted.views.items()}
    if candidates.empty:
        return files, metadata | {"candidates_on_held_out_shots": "too few runs to hold some out"}
    drawn = picture(lambda target: candidate_figure(candidates, target))
    files["candidates.png"] = drawn
    return files, metadata | {
        "candidates_on_held_out_shots": dg.MetadataValue.md(
            markdown_rows(candidates.drop(columns=["source", "shots"]), ".3f")
        ),
        "errors_beside_baselines": dg.MetadataValue.md(f"![errors on held-out runs]({as_data_uri(drawn)})"),
    }


def _card(adapted: "AdaptedTarget", formulas: Sequence[Resolved], tags: dict[str, str]) -> "CardFacts":
    from perf_assets.registry.store import code_version
    from perf_assets.registry.tables.target import signature
    from perf_assets.registry.target import candidate_table
    from perf_assets.reports.machine.card import CardColumn, CardFacts, CardView

    signed = signature(formulas)
    inputs, outputs = (
        tuple(CardColumn(column.name, column.type.name, column.required) for column in schema)
        for schema in (signed.inputs, signed.outputs)
    )
    severities = [view.severity for view in adapted.views.values() if view.severity is not None]
    return CardFacts(
        adapted.machine,
        tags["is_simulated"] == "true",
        tuple(CardView(name, view.source, view.shots, view.chosen) for name, view in adapted.views.items()),
        candidate_table(adapted),
        _COVERAGE,
        max(severities, default=None),
        int(tags["source_version"]),
        tags["encoder_version"],
        int(tags["manifests_count"]),
        tags["manifests_digest"],
        int(tags["seed"]),
        code_version(),
        tags["dagster_run_id"],
        inputs,
        outputs,
    )
