"""Judging target models: which one becomes the champion, and what is remembered of it."""

from typing import TYPE_CHECKING

from perf_assets.core.tables.verdicts import VERDICTS
from perf_assets.core.text import markdown_rows
from perf_assets.defs.resources import LakeResource
from perf_assets.storage.results import rows_of

if TYPE_CHECKING:
    import pandas as pd

    from perf_assets.models.target.model import AdaptedTarget

_SHOWN = ("version", "decision", "shots", "log_rmse", "champion_log_rmse", "target_only_log_rmse", "reason")


def judge(lake: LakeResource, machine: str) -> "pd.DataFrame":
    """All verdicts on a machine's models, with that on the newest; it is promoted, or stays a challenger."""
    from perf_assets.models.target.model import AdaptedTarget
    from perf_assets.models.target.promotion import compare, drift
    from perf_assets.registry.target import registered_name
    from perf_assets.workflows.judge import Contest

    def facts(new: "AdaptedTarget") -> dict[str, object]:
        severities = [view.severity for view in new.views.values() if view.severity is not None]
        return {
            "machine": machine,
            "shots": sum(view.shots for view in new.views.values()),
            "severity_ratio": max(severities, default=None),
            "is_simulated": lake.is_simulated(machine),
        }

    contest = Contest(
        registered_name(machine),
        AdaptedTarget.load,
        compare,
        lambda champion, new: drift(champion, new.samples),
        facts,
    )
    return contest.judge_newest(rows_of(lake.lake(), VERDICTS, machine))


def shown(rows: "pd.DataFrame") -> str:
    """Verdicts as a table for the UI, newest first."""
    return markdown_rows(rows[::-1][list(_SHOWN)], ".3f")
