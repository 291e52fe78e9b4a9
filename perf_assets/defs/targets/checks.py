"""Checks of target models and of the fleet: what gates a promotion, what contradicts a champion, what grew stale."""

from collections.abc import Iterator
from datetime import UTC, datetime

import dagster as dg

from perf_assets.core.tables.verdicts import VERDICTS
from perf_assets.defs.ingest.checks import partitioned_spec
from perf_assets.defs.reports.fleet import FLEET_PAGE
from perf_assets.defs.resources import LakeResource
from perf_assets.defs.targets.assets import ADAPTED
from perf_assets.defs.verdicts import verdict_checks
from perf_assets.storage.results import rows_of
from perf_assets.workflows.pages.fleet_page import fleet_facts

_SHOWN = 20


@dg.multi_asset_check(
    specs=[
        partitioned_spec(
            ADAPTED,
            "not_worse",
            "The newest model is not worse than the champion and the best target-only baseline on held-out runs; "
            "otherwise it stays @challenger",
            blocking=False,
            additional_deps=[VERDICTS.name],
        ),
        partitioned_spec(
            ADAPTED,
            "champion_holds",
            "Runs that the champion had not seen lie in its 90% intervals as often as promised; otherwise the machine "
            "has drifted, and is adapted to anew",
            blocking=False,
            additional_deps=[VERDICTS.name],
        ),
    ],
    name="check_target",
)
def check_target(context: dg.AssetCheckExecutionContext, lake: LakeResource) -> Iterator[dg.AssetCheckResult]:
    """The last verdict, with its numbers and thresholds."""
    rows = rows_of(lake.lake(), VERDICTS, context.partition_key)
    if rows is None:
        raise dg.Failure(f"{context.partition_key} has no judged target model: run 'perf-assets adapt'")
    yield from verdict_checks(ADAPTED, rows)


@dg.asset_check(asset=FLEET_PAGE, name="machines_are_fresh", description="Every machine was measured lately enough")
def check_fleet(lake: LakeResource) -> dg.AssetCheckResult:
    """Machines whose newest measurement is older than their limit, each with its age."""
    facts = fleet_facts(lake.fleet())
    stale = [state for state in facts.machines if not state.is_fresh]
    now = datetime.now(UTC)
    ages = {
        state.machine: "never measured" if state.last_landed_at is None else f"{(now - state.last_landed_at).days} days"
        for state in stale[:_SHOWN]
    }
    return dg.AssetCheckResult(
        passed=not stale,
        severity=dg.AssetCheckSeverity.WARN,
        metadata={"stale_machines_count": len(stale), "threshold": 0, "default_days": facts.fresh_days, **ages},
    )
