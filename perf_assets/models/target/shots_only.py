"""Models of a target machine from its shots alone, which know nothing of other machines."""

import numpy as np

from perf_assets.features.samples import Indices, PairedSamples
from perf_assets.features.standardise import Scaler
from perf_assets.models.common.small_models import FIT_SMALL, ScaledSmallModel

SHOTS_ONLY = ("target_ridge", "target_gp")
_PREFIX = "target_"


class ShotsOnly(ScaledSmallModel):
    """Log seconds on the target from counters on the source."""

    @classmethod
    def fit(cls, method: str, samples: PairedSamples, source: int, target: int, shots: Indices) -> "ShotsOnly":
        """Fit one of `SHOTS_ONLY`; counters are scaled by all runs on the source."""
        on_source = ~samples.is_benchmark & np.isfinite(samples.log_seconds[source])
        scaler = Scaler.fit(samples.counters[source, on_source])
        inputs = scaler.transform(samples.counters[source, shots])
        return cls(scaler, FIT_SMALL[method.removeprefix(_PREFIX)](inputs, samples.log_seconds[target, shots], 0))
