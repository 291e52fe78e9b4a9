"""Removing of old models and runs, as the site's rule says."""

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from perf_assets.core.errors import BadInputError
from perf_assets.core.paths import has_registry, is_own_registry, mlflow_tracking_uri
from perf_assets.core.site import load_site
from perf_assets.core.text import without_passwords
from perf_assets.infra.locks import exclusive
from perf_assets.storage.lake import Lake
from perf_assets.workflows.operate.backup import RETENTION_LOCK

if TYPE_CHECKING:
    from perf_assets.registry.retention import Superfluous

_WAIT_SECONDS = 600.0


def prune(lake: Lake, say: Callable[[str], None], *, is_trial: bool) -> "Superfluous | None":
    """Remove versions and runs that nothing needs any more, or only find them; None where nothing is registered."""
    if not has_registry():
        return None
    if not is_own_registry():
        place = without_passwords(mlflow_tracking_uri())
        raise BadInputError(f"the registry {place} is not of this lake: what others need of it is not known here")
    from perf_assets.registry.retention import remove, superfluous

    with exclusive(_lock(lake), "a backup, or removing of old models,", _WAIT_SECONDS):
        removable = superfluous(load_site(lake.root).retention)
        if not is_trial and (removable.versions or removable.runs):
            say(f"removing {len(removable.versions)} versions and {len(removable.runs)} runs")
            remove(removable)
    return removable


def _lock(lake: Lake) -> Path:
    return lake.locks / RETENTION_LOCK
