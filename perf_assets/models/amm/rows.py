"""AMMs as rows of a table."""

from collections.abc import Collection, Mapping

import pandas as pd

from perf_assets.features.samples import Floats, PairedSamples
from perf_assets.models.amm.encoder import AmmEncoder, AmmOptions


def amm_rows(encoder: AmmEncoder, samples: PairedSamples) -> pd.DataFrame:
    """One row per machine of `samples` and component: columns of `model_amm__machines` that a model knows."""
    vectors = dict(zip(samples.machines, encoder.machine_models(samples), strict=True))
    return vector_rows(vectors, encoder.options, encoder.version, encoder.machines)


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
