"""What the target model of a machine says of runs that it was not fitted to, beside what was measured."""

import numpy as np
import pandas as pd

from perf_assets.models.target.model import AdaptedTarget


def held_out_predictions(adapted: AdaptedTarget) -> pd.DataFrame:
    """Application runs that were no shots: measured and predicted seconds, and the upper end of the 90% interval."""
    samples = adapted.samples
    found = []
    for view in adapted.views.values():
        source, target = view.model.source, view.model.target
        names = np.array(samples.configurations)
        ran = np.isfinite(samples.log_seconds[[source, target]]).all(axis=0) & ~samples.is_benchmark
        rows = np.flatnonzero(ran & ~np.isin(names, view.model.shots))
        if len(rows):
            mean, width = view.distribution(samples, rows)
            found.append(
                pd.DataFrame(
                    {
                        "machine": adapted.machine,
                        "configuration": names[rows],
                        "seconds": np.exp(samples.log_seconds[target, rows]),
                        "predicted_seconds": np.exp(mean),
                        "upper_seconds": np.exp(mean + width),
                    }
                )
            )
    columns = ["machine", "configuration", "seconds", "predicted_seconds", "upper_seconds"]
    return pd.concat(found, ignore_index=True) if found else pd.DataFrame(columns=columns)
