"""AMMs as rows of a table."""

from collections.abc import Collection, Mapping

import pandas as pd

from perf_assets.features.samples import Floats
from perf_assets.models.amm.encoder import AmmOptions


def vector_rows(
    vectors: Mapping[str, Floats], options: AmmOptions, encoder_version: str, trained: Collection[str]
) -> pd.DataFrame:
    """One row per machine and component, of the vectors that one encoder made."""
    return pd.DataFrame(
        [
            {
                "seen_as": name,
                "component": component,
                "value": float(value),
                "weighting": options.weighting,
                "normalize": options.normalize,
                "encoder_version": encoder_version,
                "was_in_training": name in trained,
            }
            for name, vector in vectors.items()
            for component, value in enumerate(vector)
        ]
    )
