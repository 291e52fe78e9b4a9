"""Addresses of the pages that `perf-assets up` starts, so that Dagster and MLflow point at each other."""

import os
from typing import TYPE_CHECKING, Any

import dagster as dg

if TYPE_CHECKING:
    from perf_assets.registry.store import Version

DAGSTER_URL, MLFLOW_URL = "PERF_ASSETS_DAGSTER_URL", "PERF_ASSETS_MLFLOW_URL"
"""Environment variables; `up` sets them for all that it starts."""


def dagster_url() -> str:
    """Of the Dagster page."""
    return os.environ.get(DAGSTER_URL, "http://127.0.0.1:3000")


def mlflow_url() -> str:
    """Of the MLflow page."""
    return os.environ.get(MLFLOW_URL, "http://127.0.0.1:5000")


def run_link(run_id: str) -> str:
    """Page of a Dagster run."""
    return f"{dagster_url()}/runs/{run_id}"


def version_link(name: str, version: int) -> str:
    """Page of a registered version."""
    return f"{mlflow_url()}/#/models/{name}/versions/{version}"


def run_tags(context: dg.AssetExecutionContext) -> dict[str, str]:
    """Tags of a registered version: the Dagster run that made it."""
    return {"dagster_run_id": context.run.run_id, "dagster_run": run_link(context.run.run_id)}


def version_metadata(version: "Version") -> dict[str, Any]:
    """Metadata of an asset that is a registered version."""
    return registered_metadata(version.name, version.version)


def registered_metadata(name: str, version: int) -> dict[str, Any]:
    """Metadata of an asset that is a registered version, by its name and number."""
    return {
        "mlflow_version": f"{name} version {version}",
        "mlflow_uri": f"models:/{name}/{version}",
        "mlflow": dg.MetadataValue.url(version_link(name, version)),
    }
