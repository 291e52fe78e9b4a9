"""Model card of the source models."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

from perf_assets.core.text import markdown_rows

if TYPE_CHECKING:
    import pandas as pd


def source_card(
    scores: "pd.DataFrame", weights: Mapping[str, Mapping[str, float]], provenance: Mapping[str, str]
) -> str:
    """Markdown: what the models answer, how good they are on what was held out, what they were made of."""
    simulated = "The measurements are simulated. " if provenance.get("is_simulated") == "true" else ""
    blends = "\n".join(
        f"- unseen {unseen}: " + ", ".join(f"{name} {weight:.0%}" for name, weight in blend.items())
        for unseen, blend in weights.items()
    )
    chain = f"perf-source -> perf-amm version {provenance.get('amm_version', 'unknown')}"
    made_of = "\n".join(f"- {name}: {value}" for name, value in provenance.items())
    return f"""# perf-source: relative time between two machines

{simulated}How long a run, measured on one machine, takes on another, from the run's counters and the two machines'
descriptions. Descriptions are inputs: those at registration travel with the model, and a question may bring newer ones
(parameter `descriptions`), also of a machine that came later. Intervals are as wide as the error on what was held out.

Chain: {chain} -> manifests {provenance.get("manifests_digest", "unknown")}

## Blends

{blends}

## On held-out applications and machines

`with_amm` is the blend, its weights for a fold chosen on the others. `unchanged`, `benchmark_mean` and `pair_median`
are the plain answers it steps aside for.

{markdown_rows(scores, ".3f")}

## Made of

{made_of}
"""
