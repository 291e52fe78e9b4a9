"""Model card of the AMM encoder."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from perf_assets.core.text import markdown_rows

if TYPE_CHECKING:
    import pandas as pd


def encoder_card(
    options: str, machines: Sequence[str], identity: str, tried: "pd.DataFrame", provenance: Mapping[str, str]
) -> str:
    """Markdown: what the encoder is for, what it was made of, how its options were chosen."""
    simulated = "The measurements are simulated. " if provenance.get("is_simulated") == "true" else ""
    chosen = (
        markdown_rows(tried, ".3f")
        if len(tried)
        else "None were compared (too few machines, or a quick training): the paper's option."
    )
    made_of = "\n".join(f"- {name}: {value}" for name, value in provenance.items())
    return f"""# perf-amm: encoder of RAJAPerf results

{simulated}It turns the RAJAPerf kernel times of a machine (one core, all cores, about half of them, GPUs; by problem
size) into an Abstract Machine Model, a vector that source models take as their input. It is frozen: a machine that
comes later is described by it without training anything.

- identity: {identity}
- option of Algorithm 1: {options}
- trained on: {", ".join(machines)}

## Options, by their log error on machines that were held out

{chosen}

## Made of

{made_of}
"""
