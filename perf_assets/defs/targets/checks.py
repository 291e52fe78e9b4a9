"""Checks of target models and of the fleet: what gates a promotion, what contradicts a champion, what grew stale."""

from datetime import UTC, datetime

import dagster as dg

from perf_assets.core.tables.verdicts import VERDICTS
from perf_assets.defs.partitions import machines
from perf_assets.defs.reports.fleet import FLEET_PAGE
from perf_assets.defs.resources import LakeResource
from perf_assets.defs.targets.assets import ADAPTED
from perf_assets.defs.verdicts import verdict_check
from perf_assets.workflows.pages.fleet_page import fleet_facts

_SHOWN = 20


check_target = verdict_check("check_target", ADAPTED, VERDICTS, machines, "runs")


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
