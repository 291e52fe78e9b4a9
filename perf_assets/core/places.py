"""Where things are: the project's own folders, unless the environment moves them."""

import os
from pathlib import Path

from perf_assets.core.errors import BadInputError


def project_root() -> Path:
    """The checkout this package runs from."""
    root = Path(__file__).resolve().parents[2]
    if not (root / "workspace.yaml").is_file():
        raise BadInputError(
            f"{root} is not a perf_assets checkout: set PERF_ASSETS_LAKE and DAGSTER_HOME to absolute folders"
        )
    return root


def _folder(variable: str, default: str) -> Path:
    given = os.environ.get(variable)
    if not given:
        return project_root() / default
    if not Path(given).is_absolute():
        raise BadInputError(f"{variable}={given} is not an absolute path: give one")
    return Path(given)


def lake_root() -> Path:
    """Folder of the data lake: `PERF_ASSETS_LAKE`, or the project's own."""
    return _folder("PERF_ASSETS_LAKE", "data_lake")


def dagster_home() -> Path:
    """Folder of the Dagster instance: `DAGSTER_HOME`, or the project's own."""
    return _folder("DAGSTER_HOME", "dagster_home")


def check_dagster_home() -> Path:
    """`dagster_home`, once it is one."""
    home = dagster_home()
    if not (home / "dagster.yaml").is_file():
        raise BadInputError(f"{home} has no dagster.yaml: copy the project's dagster_home/dagster.yaml there")
    return home


def mlflow_tracking_uri() -> str:
    """Address of the MLflow store: `MLFLOW_TRACKING_URI`, or a SQLite file in the lake."""
    return os.environ.get("MLFLOW_TRACKING_URI") or f"sqlite:///{lake_root() / 'mlflow' / 'mlflow.db'}"


def is_own_registry() -> bool:
    """Whether the MLflow store is a file in the lake, which only we write."""
    prefix, uri = "sqlite:///", mlflow_tracking_uri()
    return uri.startswith(prefix) and Path(uri.removeprefix(prefix)).resolve().is_relative_to(lake_root().resolve())
