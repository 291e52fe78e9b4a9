"""Registration of target models: `perf-target-<machine>`, aliases `champion` and `challenger`."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import pandas as pd
from mlflow.entities import Metric

from perf_assets.core.catalogue import Resolved
from perf_assets.core.errors import BadInputError, UnknownError
from perf_assets.core.metrics import mape
from perf_assets.features.counters.raw import load_formulas, save_formulas
from perf_assets.models.target.model import AdaptedTarget
from perf_assets.registry.store import Candidate, Version, open_store, register
from perf_assets.registry.tables.target import example_questions, signature
from perf_assets.registry.versions import (
    CHALLENGER,
    CHAMPION,
    fitted_folder,
    load_fitted,
    shown_alias,
    tags_of,
    versions,
    versions_of,
)

FORMULAS = "counters.json"
UNPAIRED = "transfer"
"""Kind of the versions that predict from counters of the machine itself, because its runs pair with no other's."""


class UnpairedTargetError(BadInputError):
    """A target model is asked for what runs on another machine say, and was made without any."""


def registered_name(machine: str) -> str:
    """Name in the registry of a machine's target model."""
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


def register_target(
    adapted: AdaptedTarget, formulas: Sequence[Resolved], provenance: dict[str, str], files: Mapping[str, bytes]
) -> Version:
    """Register a target model as challenger; `formulas` are those of its reference machine's counters."""
    params: dict[str, object] = {}
    for position, (name, view) in enumerate(adapted.views.items()):
        params |= {f"view{position}": name, f"view{position} source": view.source, f"view{position} shots": view.shots}
        params |= {f"view{position} chosen": view.chosen}

    def save(folder: Path) -> None:
        adapted.save(folder)
        save_formulas(folder / FORMULAS, formulas)

    candidate = Candidate(
        registered_name=registered_name(adapted.machine),
        code=Path(__file__).with_name("pyfunc") / "target.py",
        save=save,
        signature=signature(formulas),
        example=example_questions(adapted),
        # Those of single candidates are in a table: as metrics, they would be columns that no two machines share.
        metrics=comparable_metrics(adapted),
        params=params,
        tags={**provenance, "kind": "target", "machine": adapted.machine, "severity": _severity(adapted)},
        tables={"candidates": candidate_table(adapted)},
        files=files,
    )
    return register(candidate, CHALLENGER)


def comparable_metrics(adapted: AdaptedTarget) -> dict[str, float]:
    """Metrics by names that are the same for every machine, of the view with the most shots, on held-out shots.

    `mape` is the model's own, beside `mape_target_only` (best baseline fitted to the shots alone) and `mape_unchanged`
    (time on the reference machine as the answer); `coverage_90` is the share of shots within the 90% interval.
    """
    name, view = max(adapted.views.items(), key=lambda item: item[1].shots)
    metrics = {"shots": float(view.shots)} | ({} if view.severity is None else {"severity": view.severity})
    if not view.held_out:
        return metrics
    samples = adapted.samples
    row_of = {configuration: row for row, configuration in enumerate(samples.configurations)}
    rows = [row_of[configuration] for configuration in view.held_out]
    true, unchanged = (samples.log_seconds[samples.machines.index(m), rows] for m in (name, view.source))
    own = np.array(list(view.held_out.values()))
    metrics["mape"] = mape(np.exp(true), np.exp(own))
    metrics["mape_unchanged"] = mape(np.exp(true), np.exp(unchanged))
    if view.held_out_alone:
        alone = np.array([view.held_out_alone[configuration] for configuration in view.held_out])
        metrics["mape_target_only"] = mape(np.exp(true), np.exp(alone))
    if view.interval is not None:
        metrics["coverage_90"] = float((np.abs(own - true) <= view.interval.half_width).mean())
    return metrics


def log_learning_curve(machine: str, rows: pd.DataFrame) -> None:
    """Log rows of `eval_transfer__scores` with the newest version's run, a step per number of shots: MLflow draws them.

    `curve_mape` is what would be registered, beside `curve_mape_target_only` (the best at each number of shots) and
    `curve_mape_unchanged`: medians over seeds, of the view with the most rows; `curve_coverage_90` is the share of
    test rows within its 90% interval, the mean over seeds. A version gets its curves once.
    """
    client, name = open_store(), registered_name(machine)
    stored_versions = versions_of(client, name)
    if rows.empty or not stored_versions:
        return
    run_id = str(max(stored_versions, key=lambda version: int(version.version)).run_id)
    if "curve_mape" in client.get_run(run_id).data.metrics:
        return
    here = rows[rows["target"] == rows["target"].mode()[0]]
    medians = here.pivot_table(index="shots", columns="method", values="mape_ratio", aggfunc="median")
    alone = [column for column in medians if str(column).startswith("target_")]
    own = here[here["method"] == "product"]
    curves = {
        "curve_coverage_90": own.groupby("shots")["coverage_90_ratio"].mean(),
        "curve_mape": medians.get("product"),
        "curve_mape_target_only": medians[alone].min(axis=1) if alone else None,
        "curve_mape_unchanged": medians.get("source_unchanged"),
    }
    now = int(datetime.now(UTC).timestamp() * 1000)
    metrics = [
        Metric(label, float(value), now, int(shots))
        for label, curve in curves.items()
        if curve is not None
        for shots, value in curve.dropna().items()
    ]
    client.log_batch(run_id, metrics)


def champion_of(machine: str) -> tuple[int, AdaptedTarget] | None:
    """Version and model that people get for a machine."""
    number = versions(registered_name(machine)).get(CHAMPION)
    return None if number is None else (number, load_target(machine, number)[0])


def load_target(machine: str, version: int) -> tuple[AdaptedTarget, list[Resolved]]:
    """A registered version, and the formulas of its reference machine's counters."""
    name = registered_name(machine)
    if is_unpaired(machine, version):
        raise UnpairedTargetError(
            f"{name} version {version} predicts from counters measured on {machine} itself, because its runs pair with "
            f"those of no other machine: ask it with a table of them ('perf-assets predict --model {name} TABLE')"
        )
    adapted = load_fitted(AdaptedTarget.load, name, version, f"run 'perf-assets adapt --machine {machine}'")
    return adapted, load_formulas(fitted_folder(name, version) / FORMULAS)


def is_unpaired(machine: str, version: int) -> bool:
    """Whether a version predicts from counters of the machine itself, not from runs on a reference machine."""
    return tags_of(registered_name(machine), version).get("kind") == UNPAIRED


def shown_of(machine: str) -> tuple[str, int, AdaptedTarget]:
    """Alias, version and model to show: the champion, or where nothing was promoted yet, the newest challenger."""
    alias, version = shown_version(machine)
    return alias, version, load_target(machine, version)[0]


def shown_version(machine: str) -> tuple[str, int]:
    """Alias and version to show."""
    shown = shown_alias(registered_name(machine))
    if shown is None:
        raise UnknownError(f"there is no target model of {machine!r}: run 'perf-assets adapt --machine {machine}'")
    return shown


def _severity(adapted: AdaptedTarget) -> str:
    """Severity of the hardest view, as text."""
    known = [view.severity for view in adapted.views.values() if view.severity is not None]
    return f"{max(known):.3f}" if known else "not known"
