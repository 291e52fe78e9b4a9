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


def local_warehouse(lake: Path) -> Path | None:
    """File of this host's own warehouse of a lake that several hosts share: `PERF_ASSETS_WAREHOUSE`.

    It is that of the lake which the environment names, of no other.
    """
    given = os.environ.get("PERF_ASSETS_WAREHOUSE")
    return _folder("PERF_ASSETS_WAREHOUSE", "") if given and lake == lake_root() else None


def dagster_home() -> Path:
    """Folder of the Dagster instance: `DAGSTER_HOME`, or the project's own."""
    return _folder("DAGSTER_HOME", "dagster_home")


def check_dagster_home() -> Path:
    """`dagster_home`, once it is one."""
    home = dagster_home()
    if not (home / "dagster.yaml").is_file():
        raise BadInputError(f"{home} has no dagster.yaml: copy the project's dagster_home/dagster.yaml there")
    return home


def database_of(home: Path) -> str | None:
    """Address of the PostgreSQL database that a home's dagster.yaml names; None where it names none: SQLite files."""
    from perf_assets.core.yaml_text import parse_yaml

    file = home / "dagster.yaml"
    document = parse_yaml(str(file), file.read_text()) if file.is_file() else None
    address = ((document or {}).get("storage") or {}).get("postgres", {}).get("postgres_url")
    return address if isinstance(address, str) else None


def mlflow_uri_file() -> Path:
    """File in the lake that names an MLflow store elsewhere; see 'perf-assets database'."""
    return lake_root() / "mlflow" / "tracking_uri"


def mlflow_tracking_uri() -> str:
    """Address of the MLflow store: `MLFLOW_TRACKING_URI`, the one that the lake names, or a SQLite file in the lake."""
    given = os.environ.get("MLFLOW_TRACKING_URI")
    if given:
        return given
    file = mlflow_uri_file()
    return file.read_text().strip() if file.is_file() else f"sqlite:///{lake_root() / 'mlflow' / 'mlflow.db'}"


def is_own_registry() -> bool:
    """Whether the MLflow store is a file in the lake, or the database that 'perf-assets database' chose for it."""
    uri, file = mlflow_tracking_uri(), mlflow_uri_file()
    if file.is_file() and uri == file.read_text().strip():
        return True
    database = sqlite_file(uri)
    return database is not None and database.resolve().is_relative_to(lake_root().resolve())


def sqlite_file(uri: str) -> Path | None:
    """The file that an address of a store names; None where it names a server."""
    prefix = "sqlite:///"
    return Path(uri.removeprefix(prefix)).absolute() if uri.startswith(prefix) else None


def has_registry() -> bool:
    """Whether anything may be registered: a file that is not there holds nothing, and is not made to find that out."""
    file = sqlite_file(mlflow_tracking_uri())
    return file is None or file.exists()
