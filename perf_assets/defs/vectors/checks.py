"""Checks of the vector model: whether the newest was promoted, and whether the champion is still current."""

from collections.abc import Iterator
from datetime import UTC, datetime

import dagster as dg

from perf_assets.core.freshness import load_freshness
from perf_assets.core.tables.vectors import VECTOR_VERDICTS
from perf_assets.core.tables.verdicts import PROMOTED
from perf_assets.defs.resources import LakeResource
from perf_assets.defs.vectors.assets import VECTOR
from perf_assets.storage.results import has_rows, stored
from perf_assets.workflows.models.vectors import state

_NUMBERS = ("log_rmse", "champion_log_rmse", "mean_vector_log_rmse", "threshold_ratio")


@dg.multi_asset_check(
    specs=[
        dg.AssetCheckSpec(
            "not_worse",
            asset=VECTOR,
            description="The newest model is not worse than the champion and the mean vector on held-out samples; "
            "otherwise it stays @challenger",
            additional_deps=[VECTOR_VERDICTS.name],
        ),
        dg.AssetCheckSpec(
            "is_current",
            asset=VECTOR,
            description="The champion was trained lately and covers every machine with enough runs",
            additional_deps=[VECTOR_VERDICTS.name],
        ),
    ],
    name="check_vector_model",
)
def check_vector_model(lake: LakeResource) -> Iterator[dg.AssetCheckResult]:
    """The last verdict with its numbers, and what makes the champion stale."""
    if not has_rows(lake.lake(), VECTOR_VERDICTS):
        raise dg.Failure("no vector model was judged yet: run 'perf-assets vectors'")
    last = stored(lake.lake(), VECTOR_VERDICTS, "perf-assets vectors").iloc[-1]
    yield dg.AssetCheckResult(
        asset_key=VECTOR,
        check_name="not_worse",
        passed=last["decision"] == PROMOTED,
        severity=dg.AssetCheckSeverity.WARN,
        metadata={
            "reason": str(last["reason"]),
            "version": int(last["version"]),
            **{name: float(last[name]) for name in _NUMBERS if last[name] == last[name]},
        },
    )
    now = state(lake.warehouse(), load_freshness(lake.lake().root).vector_days)
    problems = now.problems(datetime.now(UTC))
    yield dg.AssetCheckResult(
        asset_key=VECTOR,
        check_name="is_current",
        passed=now.version is not None and not problems,
        severity=dg.AssetCheckSeverity.WARN,
        metadata={
            "problems": "; ".join(problems) or "none",
            "limit_days": now.limit_days,
            "absent_machines": ", ".join(now.absent_machines) or "none",
            "what_to_do": "the weekly training fixes it, or 'perf-assets vectors'" if problems else "nothing",
        },
    )
