"""Registration of target models: `perf-target-<machine>`, alias `champion`."""

from pathlib import Path

import pandas as pd

from perf_assets.models.adapted import AdaptedTarget
from perf_assets.registry import target_pyfunc
from perf_assets.registry.store import Candidate, Version, register
from perf_assets.registry.target_questions import SIGNATURE, example_questions

ALIAS = "champion"


def registered_name(machine: str) -> str:
    """Of a machine's target model."""
    return f"perf-target-{machine}"


def candidate_table(adapted: AdaptedTarget) -> pd.DataFrame:
    """All candidates and baselines on held-out shots, by view; which was chosen."""
    return pd.DataFrame(
        [
            {
                "seen_as": name,
                "source": view.source,
                "shots": view.shots,
                "method": score.name,
                "mape_ratio": score.mape,
                "log_rmse": score.log_rmse,
                "is_chosen": score.name == view.chosen,
            }
            for name, view in adapted.views.items()
            for score in view.candidates
        ]
    )


def register_target(adapted: AdaptedTarget, provenance: dict[str, str]) -> Version:
    """Register the target model of a machine."""
    params: dict[str, object] = {}
    metrics: dict[str, float] = {}
    for position, (name, view) in enumerate(adapted.views.items()):
        params |= {f"view{position}": name, f"view{position} source": view.source, f"view{position} shots": view.shots}
        params |= {f"view{position} chosen": view.chosen}
        if view.ratio_to_target_only is not None:
            metrics[f"view{position} ratio_to_target_only"] = view.ratio_to_target_only
        metrics |= {f"view{position} {score.name} mape_ratio": score.mape for score in view.candidates}
        metrics |= {f"view{position} {score.name} log_rmse": score.log_rmse for score in view.candidates}
    candidate = Candidate(
        registered_name(adapted.machine),
        Path(target_pyfunc.__file__),
        adapted.save,
        SIGNATURE,
        example_questions(adapted),
        metrics,
        params,
        {**provenance, "kind": "target", "machine": adapted.machine},
        {"candidates": candidate_table(adapted)},
    )
    return register(candidate, ALIAS)
