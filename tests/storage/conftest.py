"""A stand-in for the readers: storage must not depend on file formats."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from perf_assets.core.errors import UnreadableFileError
from perf_assets.core.manifest import BundleFacts, Manifest
from perf_assets.core.tables.landing import COUNTERS, RUNS
from perf_assets.storage.lake import Lake
from perf_assets.storage.landing import Landing, land


@dataclass(frozen=True)
class Content:
    format: str
    rows: dict[str, list[dict[str, Any]]]


def read_counters(directory: Path, manifest: Manifest, digest: str, name: str) -> Content:
    """Rows of a bundle whose one file is a JSON object of counters."""
    try:
        counters = json.loads((directory / "counters.json").read_bytes())
    except ValueError:
        raise UnreadableFileError("counters.json is not JSON: write it again") from None
    origin = {"machine": manifest.machine, "bundle": name, "bundle_digest": digest, "run": "."}
    run = origin | {
        "app": manifest.app, "args": manifest.args, "ranks": 1, "threads": 1, "nodes": None, "gpus": None,
        "wall_seconds": manifest.wall_seconds, "target_column": None, "target_value": None, "labels": "{}",
        "format": "test", "collected_at": manifest.collected_at.replace(tzinfo=None), "is_simulated": False,
    }  # fmt: skip
    values = ["value_sum", "value_mean_over_ranks", "value_min", "value_max"]
    rows = [
        origin | {"counter": counter, "unit": "count", "running_ratio": None} | dict.fromkeys(values, value)
        for counter, value in counters.items()
    ]
    return Content("test", {RUNS.name: [run], COUNTERS.name: rows})


def land_counters(lake: Lake, name: str, facts: BundleFacts, counters: dict[str, float]) -> Landing:
    def write(folder: Path) -> None:
        (folder / "counters.json").write_text(json.dumps(counters))

    return land(lake, facts, name, write)
