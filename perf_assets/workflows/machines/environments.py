"""Software that runs were made with: what there is, and which of it counts."""

from collections.abc import Sequence
from typing import Any

from perf_assets.core.environment import check_environment, is_meant
from perf_assets.core.errors import UnknownError, listed
from perf_assets.core.tables.runs import ENVIRONMENTS
from perf_assets.storage.lake import Lake
from perf_assets.storage.named_environments import name_environment
from perf_assets.workflows.fleet import open_warehouse

_QUERY = f"""
    SELECT machine, app, environment, environment_digest AS digest, runs_count AS runs,
           configurations_count AS configurations, strftime(newest_at, '%Y-%m-%d') AS newest,
           CASE WHEN is_named AND is_default THEN 'named' WHEN is_default THEN 'default'
                WHEN is_counted THEN 'says less' ELSE 'no' END AS counts
    FROM {ENVIRONMENTS.name} WHERE list_contains($machines, machine) ORDER BY machine, app, newest_at DESC, environment
"""


def listed_environments(lake: Lake, machines: Sequence[str]) -> list[dict[str, Any]]:
    """Rows for people, newest first within an application."""
    rows = open_warehouse(lake).frame(_QUERY, {"machines": list(machines)})
    return [{str(name): value for name, value in row.items()} for row in rows.to_dict("records")]


def choose_environment(lake: Lake, machine: str, environment: str | None) -> None:
    """Let an environment be the default of a machine, or the newest again; one that no run has is refused."""
    if environment is not None:
        environment = check_environment(environment)
        there = list(dict.fromkeys(row["environment"] for row in listed_environments(lake, [machine])))
        if not any(is_meant(environment, one) for one in there):
            raise UnknownError(f"no run on {machine} was made with {environment!r}: there is {listed(there)}")
    name_environment(lake, machine, environment)
    open_warehouse(lake).derive_machine(machine)
