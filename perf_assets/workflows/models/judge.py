"""Judging registered models: which version becomes the champion, and what is remembered of it."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Generic, Protocol, TypeVar

import pandas as pd

from perf_assets.core.errors import UnreadableFileError
from perf_assets.core.tables.verdicts import CHALLENGER, PROMOTED
from perf_assets.models.target.promotion import THRESHOLD, Drift
from perf_assets.registry.versions import (
    CHAMPION,
    fitted_folder,
    newest_version,
    pin_of,
    predecessor_of,
    promote,
    versions,
)

Model = TypeVar("Model")


class JudgedModel(Protocol):
    """A new model beside the champion; its numbers are named after columns of the table of verdicts."""

    @property
    def is_promoted(self) -> bool:
        """Whether the new model replaces the champion."""

    @property
    def reason(self) -> str:
        """The reason, for people."""


@dataclass(frozen=True)
class Contest(Generic[Model]):
    """Versions of one registered model, and how they are held against each other."""

    name: str
    load: Callable[[Path], Model]
    """Reads a fitted model from its folder."""
    compare: Callable[[Model, Model | None], JudgedModel]
    """Decides whether a new model replaces the champion."""
    facts: Callable[[Model], Mapping[str, object]]
    """Columns of a verdict about the data that a model was fitted to."""
    drift: Callable[[Model, Model], Drift] | None = None
    """Holds what is new since against the champion, which comes first; None where nothing is held against it."""
    drift_text: str = "takes {:.1f} times as long"
    """Format of the sentence on a run that contradicts the champion."""

    def judge_newest(self, before: pd.DataFrame | None) -> pd.DataFrame:
        """All verdicts, with that on the newest version; it is promoted, or stays a challenger."""
        number = newest_version(self.name)
        if before is not None and (before["version"] == number).any():
            return before
        new = self.load(fitted_folder(self.name, number))
        champion_version = versions(self.name).get(CHAMPION)
        if champion_version == number:
            # Promoted by a run that was killed before it could tell.
            champion_version = predecessor_of(self.name, number)
        old, doubt = self._loaded(champion_version)
        comparison = self.compare(new, old)
        is_promoted = comparison.is_promoted and promote(self.name, number)
        if comparison.is_promoted and not is_promoted:
            pinned = f"{pin_of(self.name)} was chosen: 'perf-assets unpin {self.name}' lets versions compete again"
            doubt = [*doubt, pinned]
        numbers = {name: value for name, value in vars(comparison).items() if name not in ("is_promoted", "reason")}
        if self.drift is not None:
            drifted = Drift(0, 0, 0) if old is None else self.drift(old, new)
            doubt = [*doubt, *self._furthest(drifted)]
            numbers |= {
                "new_runs_count": drifted.new_runs,
                "outside_count": drifted.outside,
                "allowed_count": drifted.allowed,
                "has_drifted": drifted.has_drifted,
            }
        row = {
            "version": number,
            "judged_at": datetime.now(UTC).replace(tzinfo=None),
            "decision": PROMOTED if is_promoted else CHALLENGER,
            "reason": "; ".join([comparison.reason, *doubt]),
            "champion_version": champion_version,
            "threshold_ratio": THRESHOLD,
            **numbers,
            **self.facts(new),
        }
        now = pd.DataFrame([row]).astype({"champion_version": "Int64"})
        if before is None:
            return now
        return pd.concat([before.astype({"champion_version": "Int64"}), now], ignore_index=True)

    def _loaded(self, version: int | None) -> tuple[Model | None, list[str]]:
        """A champion, or why it cannot be compared with: one of an older release may have another form."""
        if version is None:
            return None, []
        try:
            return self.load(fitted_folder(self.name, version)), []
        except (UnreadableFileError, KeyError) as error:
            return None, [f"the champion, version {version}, cannot be compared with ({error})"]

    def _furthest(self, drifted: Drift) -> list[str]:
        """Runs that contradict the champion most, where it has drifted."""
        if not drifted.has_drifted:
            return []
        worst_runs = ", ".join(f"{run} {self.drift_text.format(ratio)}" for run, ratio in drifted.worst)
        return [f"new runs furthest from what was predicted: {worst_runs}"]
