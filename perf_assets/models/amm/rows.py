"""AMMs as rows of a table."""

import pandas as pd

from perf_assets.features.samples import PairedSamples
from perf_assets.models.amm.encoder import AmmEncoder


def amm_rows(encoder: AmmEncoder, samples: PairedSamples) -> pd.DataFrame:
    """One row per machine of `samples` and component: columns of `model_amm__machines` that a model knows."""
    vectors = encoder.machine_models(samples)
    return pd.DataFrame(
        [
            {
                "seen_as": name,
                "component": component,
                "value": float(value),
                "weighting": encoder.options.weighting,
                "normalize": encoder.options.normalize,
                "encoder_version": encoder.version,
                "was_in_training": name in encoder.machines,
            }
            for name, vector in zip(samples.machines, vectors, strict=True)
            for component, value in enumerate(vector)
        ]
    )
