"""Judging target models: which one becomes the champion, and what is remembered of it."""

from datetime import UTC, datetime
from typing import TYPE_CHECKING

from perf_assets.core.errors import UnreadableFileError
from perf_assets.core.tables.verdicts import CHALLENGER, PROMOTED, VERDICTS
from perf_assets.core.text import markdown_rows
from perf_assets.defs.resources import LakeResource
from perf_assets.storage.results import rows_of

if TYPE_CHECKING:
    import pandas as pd

    from perf_assets.models.target.model import AdaptedTarget
    from perf_assets.models.target.promotion import Drift

_SHOWN = ("version", "decision", "shots", "log_rmse", "champion_log_rmse", "target_only_log_rmse", "reason")


def judge(lake: LakeResource, machine: str) -> "pd.DataFrame":
    """All verdicts on a machine's models, with that on the newest; it is promoted, or stays a challenger."""
    import pandas as pd

    from perf_assets.models.target.model import AdaptedTarget
    from perf_assets.models.target.promotion import THRESHOLD, Drift, compare, drift
    from perf_assets.registry.target import registered_name
    from perf_assets.registry.versions import CHAMPION, fitted_folder, newest_version, promote, replaced_by, versions

    name = registered_name(machine)
    number = newest_version(name)
    before = rows_of(lake.lake(), VERDICTS, machine)
    if before is not None and (before["version"] == number).any():
        return before
    new = AdaptedTarget.load(fitted_folder(name, number))
    champion_version = versions(name).get(CHAMPION)
    if champion_version == number:
        # Promoted by a run that was killed before it could tell.
        champion_version = replaced_by(name, number)
    old, doubt = _loaded(name, champion_version)
    comparison = compare(new, old)
    drifted = Drift(0, 0, 0) if old is None else drift(old, new.samples)
    if comparison.is_promoted:
        promote(name, number)
    severities = [view.severity for view in new.views.values() if view.severity is not None]
    row = {
        "machine": machine,
        "version": number,
        "judged_at": datetime.now(UTC).replace(tzinfo=None),
        "decision": PROMOTED if comparison.is_promoted else CHALLENGER,
        "reason": "; ".join([comparison.reason, *doubt, *_furthest(drifted)]),
        "shots": sum(view.shots for view in new.views.values()),
        "held_out_count": comparison.held_out_count,
        "mape_ratio": comparison.mape,
        "log_rmse": comparison.log_rmse,
        "champion_version": champion_version,
        "champion_log_rmse": comparison.champion_log_rmse,
        "target_only_mape_ratio": comparison.target_only_mape,
        "target_only_log_rmse": comparison.target_only_log_rmse,
        "threshold_ratio": THRESHOLD,
        "severity_ratio": max(severities, default=None),
        "new_runs_count": drifted.new_runs,
        "outside_count": drifted.outside,
        "allowed_count": drifted.allowed,
        "has_drifted": drifted.has_drifted,
        "is_simulated": lake.is_simulated(machine),
    }
    now = pd.DataFrame([row]).astype({"champion_version": "Int64"})
    return now if before is None else pd.concat([before.astype({"champion_version": "Int64"}), now], ignore_index=True)


def _loaded(name: str, version: int | None) -> "tuple[AdaptedTarget | None, list[str]]":
    """A champion, or why it cannot be compared with: one of an older release may have another form."""
    from perf_assets.models.target.model import AdaptedTarget
    from perf_assets.registry.versions import fitted_folder

    if version is None:
        return None, []
    try:
        return AdaptedTarget.load(fitted_folder(name, version)), []
    except UnreadableFileError as error:
        return None, [f"the champion, version {version}, cannot be compared with ({error})"]


def _furthest(drifted: "Drift") -> list[str]:
    """Runs that contradict the champion most, where it has drifted."""
    if not drifted.has_drifted:
        return []
    told = ", ".join(f"{run} takes {ratio:.1f} times as long" for run, ratio in drifted.worst)
    return [f"new runs furthest from what was predicted: {told}"]


def shown(rows: "pd.DataFrame") -> str:
    """Verdicts as a table for the UI, newest first."""
    return markdown_rows(rows[::-1][list(_SHOWN)], ".3f")
