"""Registration of target models: `perf-target-<machine>`, aliases `champion` and `challenger`."""

from collections.abc import Mapping, Sequence
from pathlib import Path

import pandas as pd

from perf_assets.core.catalogue import Resolved
from perf_assets.core.errors import RegistryError, UnknownError
from perf_assets.features.counters.raw import load_formulas, save_formulas
from perf_assets.models.target.model import AdaptedTarget
from perf_assets.registry.store import Candidate, Version, register
from perf_assets.registry.tables.target import example_questions
from perf_assets.registry.tables.target_inputs import signature
from perf_assets.registry.versions import CHALLENGER, CHAMPION, fitted_folder, versions, versions_with

FORMULAS = "counters.json"
INPUTS = "inputs_digest"
"""Tag: what a version was made of."""


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


def register_target(
    adapted: AdaptedTarget, formulas: Sequence[Resolved], provenance: dict[str, str], files: Mapping[str, bytes]
) -> Version:
    """Register a target model as challenger; `formulas` are those of its reference machine's counters."""
    params: dict[str, object] = {}
    metrics: dict[str, float] = {}
    for position, (name, view) in enumerate(adapted.views.items()):
        params |= {f"view{position}": name, f"view{position} source": view.source, f"view{position} shots": view.shots}
        params |= {f"view{position} chosen": view.chosen}
        if view.ratio_to_target_only is not None:
            metrics[f"view{position} ratio_to_target_only"] = view.ratio_to_target_only
        if view.severity is not None:
            metrics[f"view{position} severity_ratio"] = view.severity
        metrics |= {f"view{position} {score.name} mape_ratio": score.mape for score in view.candidates}
        metrics |= {f"view{position} {score.name} log_rmse": score.log_rmse for score in view.candidates}

    def save(folder: Path) -> None:
        adapted.save(folder)
        save_formulas(folder / FORMULAS, formulas)

    candidate = Candidate(
        registered_name(adapted.machine),
        Path(__file__).with_name("target_pyfunc.py"),
        save,
        signature(formulas),
        example_questions(adapted),
        metrics,
        params,
        {**provenance, "kind": "target", "machine": adapted.machine, "severity": _severity(adapted)},
        {"candidates": candidate_table(adapted)},
        files,
    )
    return register(candidate, CHALLENGER)


def champion_of(machine: str) -> tuple[int, AdaptedTarget] | None:
    """Version and model that people get for a machine."""
    number = versions(registered_name(machine)).get(CHAMPION)
    return None if number is None else (number, load_target(machine, number)[0])


def load_target(machine: str, version: int) -> tuple[AdaptedTarget, list[Resolved]]:
    """A registered version, and the formulas of its reference machine's counters."""
    name = registered_name(machine)
    folder = fitted_folder(name, version)
    try:
        return AdaptedTarget.load(folder), load_formulas(folder / FORMULAS)
    except (KeyError, TypeError, ValueError) as error:
        raise RegistryError(
            f"{name} version {version} was stored by another version of perf_assets ({error!r}): "
            f"run 'perf-assets adapt --machine {machine}'"
        ) from None


def shown_of(machine: str) -> tuple[str, int, AdaptedTarget]:
    """Alias, version and model to tell of: the champion, or where nothing was promoted yet, the newest challenger."""
    name = registered_name(machine)
    aliases = versions(name)
    for alias in (CHAMPION, CHALLENGER):
        if alias in aliases:
            return alias, aliases[alias], load_target(machine, aliases[alias])[0]
    raise UnknownError(f"there is no target model of {machine!r}: run 'perf-assets adapt --machine {machine}'")


def made_of(machine: str, inputs_digest: str) -> int | None:
    """The newest version that was made of these inputs, whatever became of it."""
    return max(versions_with(registered_name(machine), INPUTS, inputs_digest), default=None)


def _severity(adapted: AdaptedTarget) -> str:
    """Of the hardest view."""
    known = [view.severity for view in adapted.views.values() if view.severity is not None]
    return f"{max(known):.3f}" if known else "not known"
