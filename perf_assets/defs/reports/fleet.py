"""The home page of the platform: all machines, their problems, and what to do next."""

from datetime import UTC, datetime, timedelta

import dagster as dg

from perf_assets.core.tables.health import HEALTH
from perf_assets.core.tables.landing import BUNDLES, RUNS, TIMINGS
from perf_assets.core.tables.models import TRANSFER_SCORES
from perf_assets.core.tables.runs import VECTOR_FEATURES_TABLE
from perf_assets.core.tables.vectors import VECTOR_VERDICTS
from perf_assets.core.tables.verdicts import VERDICTS
from perf_assets.core.text import in_markdown
from perf_assets.defs.conditions import AFTER_ALL_ELSE
from perf_assets.defs.links import page_metadata
from perf_assets.defs.resources import LakeResource
from perf_assets.defs.sources.assets import WITH_AMM
from perf_assets.defs.specs import model_spec, one_asset
from perf_assets.defs.targets.assets import PAGE

FLEET_PAGE = "out_report__fleet"
_MOST_MACHINES = 20
"""Stale machines in the metadata of their check."""


@one_asset(
    model_spec(
        FLEET_PAGE,
        "Page of the fleet, which leads to all other pages: machines with freshness, champions and their errors, "
        "severities, quarantine, and what to do next.",
        {"html"},
        [
            BUNDLES.name,
            RUNS.name,
            TIMINGS.name,
            VECTOR_FEATURES_TABLE.name,
            WITH_AMM,
            VERDICTS.name,
            HEALTH.name,
            TRANSFER_SCORES.name,
            PAGE,
            VECTOR_VERDICTS.name,
        ],
        automation_condition=AFTER_ALL_ELSE,
        freshness_policy=dg.FreshnessPolicy.time_window(timedelta(days=2)),
    )
)
def out_report__fleet(lake: LakeResource) -> dg.MaterializeResult[None]:
    """Write the page from what is known at this moment."""
    from perf_assets.workflows.pages.fleet_page import write_fleet_page

    path, facts = write_fleet_page(lake.fleet())
    actions = [
        f"- **{state.machine}**: {in_markdown(action)}" for state in facts.machines for action in state.actions[:1]
    ]
    return dg.MaterializeResult(
        metadata={
            **page_metadata(path),
            "machines_count": len(facts.machines),
            "champions_count": sum(state.champion is not None for state in facts.machines),
            "drifted": ", ".join(state.machine for state in facts.machines if state.has_drifted) or "none",
            "next_actions": dg.MetadataValue.md("\n".join(actions) or "nothing to do"),
        }
    )


@dg.asset_check(asset=FLEET_PAGE, name="machines_are_fresh", description="Every machine was measured lately enough")
def check_fleet(lake: LakeResource) -> dg.AssetCheckResult:
    """Machines whose newest measurement is older than their limit, each with its age."""
    from perf_assets.workflows.pages.fleet_page import fleet_facts

    facts = fleet_facts(lake.fleet())
    stale = [state for state in facts.machines if not state.is_fresh]
    now = datetime.now(UTC)
    ages = {
        state.machine: "never measured" if state.last_landed_at is None else f"{(now - state.last_landed_at).days} days"
        for state in stale[:_MOST_MACHINES]
    }
    return dg.AssetCheckResult(
        passed=not stale,
        severity=dg.AssetCheckSeverity.WARN,
        metadata={"stale_machines_count": len(stale), "threshold": 0, "default_days": facts.fresh_days, **ages},
    )
