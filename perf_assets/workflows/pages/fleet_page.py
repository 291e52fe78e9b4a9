"""The page of the fleet: all machines with their champions, gathered and written."""

from collections.abc import Collection
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

from perf_assets.core.addresses import noted_addresses
from perf_assets.core.freshness import Freshness, load_freshness
from perf_assets.core.manifest import DAMAGED_ON_PURPOSE
from perf_assets.core.tables.landing import BUNDLES, RUNS, TIMINGS
from perf_assets.core.tables.verdicts import VERDICTS
from perf_assets.storage.lake import strays
from perf_assets.storage.pages import INDEX, machine_page_name, other_pages, store_page
from perf_assets.storage.record import MachineRecord
from perf_assets.storage.results import rows_of
from perf_assets.workflows.fleet import Fleet
from perf_assets.workflows.landing.ingest import pending
from perf_assets.workflows.machines.health import MachineHealth
from perf_assets.workflows.machines.readiness import Readiness

if TYPE_CHECKING:
    import pandas as pd

    from perf_assets.reports.fleet.facts import Champion, FleetFacts, MachineState

_COUNTS = f"""
    SELECT machine, max(collected_at) FILTER (status = 'ingested') AS last_landed_at,
           bool_or(is_simulated) AS is_simulated,
           count(*) FILTER (status = 'ingested') AS bundles,
           (SELECT count(*) FROM {RUNS.name} AS t WHERE t.machine = b.machine) AS runs,
           (SELECT count(*) FROM {TIMINGS.name} AS t WHERE t.machine = b.machine) AS kernels
    FROM {BUNDLES.name} AS b GROUP BY machine
"""
_ENOUGH_RUNS = 5
"""Fewest runs from which a model can be judged on held-out runs."""


def write_fleet_page(fleet: Fleet) -> tuple[Path, "FleetFacts"]:
    """Write the page from what is known at this moment; its path, and what it shows."""
    from perf_assets.reports.fleet.page import fleet_page

    (fleet.lake.reports / "fleet.html").unlink(missing_ok=True)  # Its name before it became the index.
    facts = fleet_facts(fleet)
    return store_page(fleet.lake, INDEX, fleet_page(facts)), facts


def fleet_facts(fleet: Fleet) -> "FleetFacts":
    """All machines that landed."""
    from perf_assets.registry.source import NAME
    from perf_assets.registry.versions import created_at, tags_of, versions
    from perf_assets.reports.fleet.facts import FleetFacts
    from perf_assets.workflows.models.vectors import state
    from perf_assets.workflows.pages.story import story_of

    addresses = noted_addresses()
    freshness = load_freshness(fleet.lake.root)
    has_tables = fleet.lake.warehouse.is_file()
    counts = fleet.warehouse.frame(_COUNTS).set_index("machine") if has_tables else None
    relative = fleet.relative_times() if has_tables else {}
    sources = versions(NAME)
    newest = max(sources.values(), default=0)
    trained_at = created_at(NAME, newest) if newest else None
    taught = set(tags_of(NAME, newest).get("machines", NAME).split(", ")) if newest else set()
    return FleetFacts(
        datetime.now(UTC),
        tuple(
            _state(fleet, machine, counts, freshness, taught, relative.get(machine, ""))
            for machine in fleet.lake.machines()
        ),
        freshness.default_days,
        sources,
        trained_at,
        tuple(f"{stray.path}: {stray.reason}" for stray in strays(fleet.lake)),
        addresses.dagster,
        addresses.mlflow,
        other_pages(fleet.lake),
        state(fleet.warehouse, freshness.vector_days) if has_tables else None,
        story_of(fleet.lake),
    )


def _state(
    fleet: Fleet,
    machine: str,
    counts: "pd.DataFrame | None",
    freshness: Freshness,
    taught: Collection[str],
    relative_times: str,
) -> "MachineState":
    from perf_assets.registry.target import registered_name
    from perf_assets.registry.versions import CHALLENGER, CHAMPION, versions
    from perf_assets.reports.fleet.facts import MachineState

    known = counts.loc[machine].to_dict() if counts is not None and machine in counts.index else {}
    landed = known.get("last_landed_at")
    last = None if landed is None or landed != landed else landed.to_pydatetime().replace(tzinfo=UTC)
    limit = timedelta(days=freshness.days(machine))
    verdicts, aliases = rows_of(fleet.lake, VERDICTS, machine), versions(registered_name(machine))
    champion = _champion(verdicts, aliases.get(CHAMPION))
    challenger = aliases.get(CHALLENGER)
    newest = None if verdicts is None else verdicts.iloc[-1]
    has_drifted = newest is not None and bool(newest["has_drifted"]) and newest["version"] != aliases.get(CHAMPION)
    page = machine_page_name(machine)
    missing = "" if champion is not None or machine in taught else Readiness.of(fleet, machine).missing
    facts: dict[str, Any] = {
        "machine": machine,
        "is_simulated": bool(known.get("is_simulated", False)),
        "relative_times": relative_times,
        "bundles_count": int(known.get("bundles", 0)),
        "runs_count": int(known.get("runs", 0)),
        "kernels_count": int(known.get("kernels", 0)),
        "last_landed_at": last,
        # What is simulated does not age.
        "is_fresh": bool(known.get("is_simulated")) or (last is not None and datetime.now(UTC) - last <= limit),
        "quarantined": MachineRecord(fleet.lake.record, machine).refusals(),
        "waiting_count": pending(fleet.lake, machine).new_count,
        "champion": champion,
        "challenger_version": challenger,
        "challenger_reason": _reason(verdicts, challenger),
        "has_drifted": has_drifted,
        "changed": MachineHealth.of(fleet, machine).text,
        "page": page if (fleet.lake.reports / page).is_file() else None,
        "is_source": machine in taught,
    }
    return MachineState(**facts, actions=tuple(_actions(facts, limit.days, missing)))


def _reason(verdicts: "pd.DataFrame | None", version: int | None) -> str:
    """Reason why a version was promoted, or was not."""
    reasons = [] if verdicts is None else verdicts.loc[verdicts["version"] == version, "reason"].tolist()
    return str(reasons[-1]) if reasons else ""


def _champion(verdicts: "pd.DataFrame | None", version: int | None) -> "Champion | None":
    from perf_assets.reports.fleet.facts import Champion

    if verdicts is None or version is None or not (verdicts["version"] == version).any():
        return None
    row = verdicts[verdicts["version"] == version].iloc[-1]
    numbers = (row[name] for name in ("mape_ratio", "target_only_mape_ratio", "severity_ratio"))
    errors = (float(value) if value == value and value is not None else None for value in numbers)
    return Champion(version, row["judged_at"].to_pydatetime().replace(tzinfo=UTC), int(row["shots"]), *errors)


def _actions(facts: dict[str, Any], limit_days: int, missing: str) -> list[str]:
    """Actions for a machine, most urgent first; `missing` is what keeps it from having a model."""
    machine, champion = facts["machine"], facts["champion"]
    rules = [
        (facts["has_drifted"], f"new runs contradict its champion: look at {machine}'s page, then repeat odd runs"),
        (
            facts["changed"],
            "RAJAPerf does not run as before: find the cause, or accept it in site.yaml (health.accepted)",
        ),
        (facts["waiting_count"], "bundles wait to be ingested: 'perf-assets ingest', or start 'perf-assets up'"),
        (
            any(DAMAGED_ON_PURPOSE not in bundle for bundle in facts["quarantined"]),
            "bundles were refused: fix their files, or land them again",
        ),
        (
            missing and not facts["waiting_count"] and facts["challenger_version"] is None,
            missing,
        ),
        (champion is not None and champion.shots < _ENOUGH_RUNS, f"run some of 'perf-assets plan {machine}'"),
        (facts["challenger_version"], "its newest model is not promoted: see why on its page"),
        (not facts["is_fresh"], f"not measured for more than {limit_days} days: land a new RAJAPerf run"),
    ]
    return [advice for applies, advice in rules if applies]
