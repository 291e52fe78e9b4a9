"""Paths: folders of a checkout or of 'perf-assets init', unless environment variables name others."""

import os
from pathlib import Path

from perf_assets.core.errors import BadInputError

HOME = "PERF_ASSETS_HOME"
"""Variable of the environment that names the folder of lake and Dagster home; 'perf-assets -C DIR' sets it."""


def checkout() -> Path | None:
    """Folder of the checkout that this package runs from; None where it was installed from a wheel."""
    root = Path(__file__).resolve().parents[2]
    return root if (root / "workspace.yaml").is_file() else None


def home_folder() -> Path:
    """Folder that holds the lake and the Dagster home: `PERF_ASSETS_HOME`, or the checkout."""
    given = os.environ.get(HOME)
    if not given:
        root = checkout()
        if root is None:
            raise BadInputError(
                "no folder is named: make one with 'perf-assets init DIR', and name it with 'perf-assets -C DIR …' "
                f"or {HOME}"
            )
        return root
    folder = _absolute(HOME, given)
    check_restored(folder)
    if not (folder / "workspace.yaml").is_file():
        raise BadInputError(f"{folder} is no folder of perf_assets: make it one with 'perf-assets init {folder}'")
    return folder


def unfinished_restore(folder: Path) -> Path:
    """Folder in which a home is restored until all of it is there; then it gets the home's name."""
    return folder.with_name(f".{folder.name}.restoring")


def check_restored(folder: Path) -> None:
    """Refuse the place of a home whose restoring did not come to its end."""
    if not folder.exists() and unfinished_restore(folder).exists():
        raise BadInputError(
            f"{folder} is half restored: 'perf-assets restore' is at work, or was stopped; run it again, it begins anew"
        )


def _folder(variable: str, default: str) -> Path:
    given = os.environ.get(variable)
    return _absolute(variable, given) if given else home_folder() / default


def _absolute(variable: str, given: str) -> Path:
    if not Path(given).is_absolute():
        raise BadInputError(f"{variable}={given} is not an absolute path: give one")
    return Path(given)


def lake_root() -> Path:
    """Folder of the data lake: `PERF_ASSETS_LAKE`, or `data_lake` in the home folder."""
    return _folder("PERF_ASSETS_LAKE", "data_lake")


def local_warehouse(lake: Path) -> Path | None:
    """File of this host's own warehouse of a lake that several hosts share: `PERF_ASSETS_WAREHOUSE`.

    It is that of the lake which the environment names, of no other.
    """
    given = os.environ.get("PERF_ASSETS_WAREHOUSE")
    return _folder("PERF_ASSETS_WAREHOUSE", "") if given and lake == lake_root() else None


def dagster_home() -> Path:
    """Folder of the Dagster instance: `DAGSTER_HOME`, or `dagster_home` in the home folder."""
    return _folder("DAGSTER_HOME", "dagster_home")


def check_dagster_home() -> Path:
    """`dagster_home`, once it is one."""
    home = dagster_home()
    if not (home / "dagster.yaml").is_file():
        raise BadInputError(f"{home} has no dagster.yaml: copy the one there that 'perf-assets init DIR' writes")
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
