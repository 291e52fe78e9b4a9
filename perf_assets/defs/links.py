"""Addresses of the pages that `perf-assets up` starts, so that Dagster and MLflow point at each other."""

import os

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
