"""Models of a target that know its shots and their counters on the source, and nothing else."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from perf_assets.features.samples import Floats, Indices, PairedSamples
from perf_assets.features.standardise import Scaler
from perf_assets.models.common import archive
from perf_assets.models.common.small_models import FIT_SMALL, SmallModel, restore

SHOTS_ONLY = ("target_ridge", "target_gp")
_PREFIX = "target_"


@dataclass(frozen=True, eq=False)
class ShotsOnly:
    """Log seconds on the target from counters on the source."""

    scaler: Scaler
    model: SmallModel

    @classmethod
    def fit(cls, method: str, samples: PairedSamples, source: int, target: int, shots: Indices) -> "ShotsOnly":
        """One of `SHOTS_ONLY`; counters are scaled by all runs on the source."""
        on_source = ~samples.is_benchmark & np.isfinite(samples.log_seconds[source])
        scaler = Scaler.fit(samples.counters[source, on_source])
        inputs = scaler.transform(samples.counters[source, shots])
        return cls(scaler, FIT_SMALL[method.removeprefix(_PREFIX)](inputs, samples.log_seconds[target, shots], 0))

    def predict(self, counters: Floats) -> Floats:
        """Of runs x counters as measured on the source."""
        return self.model.predict(self.scaler.transform(counters))

    def save(self, path: Path) -> None:
        """Store without pickle."""
        own = {f"model_{name}": array for name, array in self.model.arrays().items()}
        description = {"kind": self.model.kind, "settings": self.model.description()}
        archive.save(path, description, {**own, **self.scaler.arrays()})

    @classmethod
    def load(cls, path: Path) -> "ShotsOnly":
        """From the file that `save` wrote."""
        description, arrays = archive.load(path)
        own = {name.removeprefix("model_"): array for name, array in arrays.items() if name.startswith("model_")}
        return cls(Scaler.from_arrays(arrays), restore(description["kind"], description["settings"], own))
