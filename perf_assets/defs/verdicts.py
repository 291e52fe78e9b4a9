"""Judging target models: which one becomes the champion, and what is remembered of it."""

from datetime import UTC, datetime
from typing import TYPE_CHECKING

from perf_assets.core.verdict_tables import CHALLENGER, PROMOTED, VERDICTS
from perf_assets.defs.resources import LakeResource
from perf_assets.storage.results import rows_of

if TYPE_CHECKING:
    import pandas as pd

_SHOWN = ("version", "decision", "shots", "log_rmse", "champion_log_rmse", "target_only_log_rmse", "reason")


def judge(lake: LakeResource, machine: str) -> "pd.DataFrame":
    """All verdicts on a machine's models, with that on the newest; it is promoted, or stays a challenger."""
    import pandas as pd

    from perf_assets.models.adapted import AdaptedTarget
    from perf_assets.models.judgement import THRESHOLD, Drift, compare, drift
    from perf_assets.registry.target import champion_of, registered_name
    from perf_assets.registry.versions import fitted_folder, newest_version, promote

    name = registered_name(machine)
    number = newest_version(name)
    before = rows_of(lake.lake(), VERDICTS, machine)
    if before is not None and (before["version"] == number).any():
        return before
    new = AdaptedTarget.load(fitted_folder(name, number))
    champion = champion_of(machine)
    champion_version = None if champion is None or champion[0] == number else champion[0]
    old = None if champion is None or champion_version is None else champion[1]
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
        "reason": comparison.reason,
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


def shown(rows: "pd.DataFrame") -> str:
    """Verdicts as a table for the UI, newest first."""
    return str(rows[::-1][list(_SHOWN)].to_markdown(index=False, floatfmt=".3f"))
