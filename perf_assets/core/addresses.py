"""Addresses of the pages that `perf-assets up` serves, so that they point at each other: noted where it starts."""

import json
from dataclasses import asdict, dataclass, fields
from pathlib import Path

from perf_assets.core.errors import BadInputError
from perf_assets.core.paths import dagster_home

MODELS_FIRST = "workflowType=machine_learning"
"""Query of addresses in MLflow's page, without which it shows itself as one for language models."""
_FILE = Path("service_logs") / "addresses.json"


@dataclass(frozen=True)
class Addresses:
    """Addresses of the pages for a person's browser; by default those of `perf-assets up` without options."""

    dagster: str = "http://127.0.0.1:3000"
    mlflow: str = "http://127.0.0.1:5000"
    pages: str = "http://127.0.0.1:4000"

    def version(self, name: str, number: int) -> str:
        """Page of a registered version in MLflow."""
        return f"{self.mlflow}/#/models/{name}/versions/{number}?{MODELS_FIRST}"

    def run(self, run_id: str) -> str:
        """Page of a Dagster run."""
        return f"{self.dagster}/runs/{run_id}"

    def partition(self, asset: str, key: str) -> str:
        """Page of a partition of an asset in Dagster."""
        return f"{self.dagster}/assets/{asset}?partition={key}&view=partitions"

    def report(self, name: str) -> str:
        """Page or picture in the lake's folder of reports."""
        return f"{self.pages}/{name}"

    def note(self, home: Path) -> None:
        """Let all that runs on a Dagster home know them, also after `up` has ended: the next one is started alike."""
        file = home / _FILE
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(json.dumps(asdict(self)))


def noted_addresses() -> Addresses:
    """Addresses of the `up` that was started last on this Dagster home; the defaults where there is neither."""
    try:
        noted = json.loads((dagster_home() / _FILE).read_text())
        return Addresses(**{field.name: str(noted[field.name]) for field in fields(Addresses)})
    except (BadInputError, OSError, ValueError, KeyError, TypeError):
        return Addresses()
