"""Model card of the source models, and the picture of their scores beside their baselines."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

import pandas as pd
from matplotlib.figure import Figure

from perf_assets.core.text import markdown_rows
from perf_assets.reports.names import full_name
from perf_assets.reports.style import Target, save

if TYPE_CHECKING:
    import pandas as pd


_SHOWN_METHODS = 12
_TITLES = {"application": "unseen application", "machine": "unseen machine"}


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

`with_amm` is the blend, its weights for a fold chosen on the others. `unchanged`, `benchmark_mean`, `pair_median`
and `typical` are the plain answers it steps aside for.

{markdown_rows(scores, ".3f")}

## Made of

{made_of}
"""


def source_scores(scores: pd.DataFrame, target: Target) -> Figure:
    """Columns unseen, method, mape_ratio: a panel for each kind of held-out data, the best methods first."""
    panels = [kind for kind in _TITLES if (scores["unseen"] == kind).any()]
    figure = Figure(figsize=(4.6 * len(panels), 0.24 * _SHOWN_METHODS + 1), layout="constrained")
    for axes, kind in zip(figure.subplots(1, len(panels), squeeze=False)[0], panels, strict=True):
        best = scores[scores["unseen"] == kind].nsmallest(_SHOWN_METHODS, "mape_ratio")[::-1]
        names = [full_name(str(method)) for method in best["method"]]
        is_ours = best["method"].str.startswith("with_amm")
        bars = axes.barh(names, 100 * best["mape_ratio"], color=["#d9731a" if ours else "#2563a8" for ours in is_ours])
        axes.bar_label(bars, fmt="%.0f%%", padding=3, size=7)
        axes.set_title(_TITLES[kind], size=10)
        axes.set_xlabel("MAPE, %")
        axes.tick_params(labelsize=7)
        axes.margins(x=0.15)
    save(figure, target, 90)
    return figure
