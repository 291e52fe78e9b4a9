"""What the source models look at, as tables for people."""

import numpy as np
import pandas as pd

from perf_assets.features.samples import PairedSamples
from perf_assets.models.amm.tabnet import TabNetEmbedding
from perf_assets.models.source.attention import BenchmarkAttention
from perf_assets.models.source.model import SourceModel
from perf_assets.models.source.settings import SourceSettings
from perf_assets.models.source.training import attention_of
from perf_assets.models.source.tree_features import Embedded


def behaves_like(samples: PairedSamples, model: SourceModel, settings: SourceSettings) -> pd.DataFrame:
    """machine, app, kernel, attention_ratio, runs_count: which kernels an application behaves like.

    From the attention in the model's blend, or from one fitted for this where the blend does without it.
    """
    components = [c for blend in (model.with_amm or {}).values() for c in blend.components.values()]
    attention = next((c for c in components if isinstance(c, BenchmarkAttention)), None)
    attention = attention or BenchmarkAttention(attention_of(settings), settings.seed).fit(samples)
    rows = []
    for machine in samples.training_machines:
        kernels, shares = attention.behaves_like(samples, int(machine))
        seen = np.isfinite(samples.log_seconds[machine]) & ~samples.is_benchmark
        for app in sorted(set(samples.apps[seen].tolist())):
            chosen = seen & (samples.apps == app)
            described = {"machine": samples.machines[machine], "app": app, "runs_count": int(chosen.sum())}
            mean = np.clip(shares[chosen].mean(axis=0), 0.0, 1.0)
            rows += [
                {**described, "kernel": k, "attention_ratio": float(s)} for k, s in zip(kernels, mean, strict=True)
            ]
    return pd.DataFrame(rows)


def feature_masks(samples: PairedSamples, embedded: Embedded) -> pd.DataFrame:
    """app, feature, attention_ratio: what TabNet looks at when it embeds the runs of an application."""
    assert isinstance(embedded.embedding, TabNetEmbedding)
    machines = samples.training_machines
    seen = np.isfinite(samples.log_seconds[machines]) & ~samples.is_benchmark
    masks = embedded.embedding.masks(embedded.scaler.transform(samples.counters[machines][seen]))
    apps = np.broadcast_to(samples.apps, seen.shape)[seen]
    rows = [
        {"app": app, "feature": feature, "attention_ratio": float(np.clip(share, 0.0, 1.0))}
        for app in sorted(set(apps.tolist()))
        for feature, share in zip(samples.counter_names, masks[apps == app].mean(axis=0), strict=True)
    ]
    return pd.DataFrame(rows)
