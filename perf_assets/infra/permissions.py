"""Permissions of this installation's homes, which must not be open to everybody on the machine."""

import stat
from collections.abc import Iterator
from pathlib import Path

from perf_assets.core.errors import BadInputError
from perf_assets.core.paths import dagster_home, lake_root, mlflow_tracking_uri, sqlite_file


def private_places() -> Iterator[tuple[str, Path]]:
    """Folders and files that only the owner and the group may change, by what they are."""
    home, lake = dagster_home(), lake_root()
    yield from (("Dagster home", home), ("Dagster configuration", home / "dagster.yaml"), ("lake", lake))
    yield from (("record", lake / "record"), ("models", lake / "models"), ("counter catalogue", lake / "catalogue"))
    database = sqlite_file(mlflow_tracking_uri())
    if database is not None:
        yield from (("MLflow store", database.parent), ("MLflow store", database))
        yield "MLflow artifacts", database.parent / "artifacts"


def open_places() -> list[tuple[str, Path]]:
    """Places that everybody may change."""
    return [(what, path) for what, path in private_places() if _mode(path) & stat.S_IWOTH]


def check_private_places() -> None:
    """Refuse to run services on what everybody may change: it holds code and settings that they execute."""
    for what, path in open_places():
        raise BadInputError(f"every user of this machine may change the {what} {path}: run 'chmod o-w {path}'")


def is_anybodys(folder: Path) -> bool:
    """Whether everybody may also remove there what others have put."""
    mode = _mode(folder)
    return bool(mode & stat.S_IWOTH and not mode & stat.S_ISVTX)


def check_secret_file(path: Path) -> None:
    """Refuse a file with a secret that others than owner and group may read, or others than the owner may change."""
    if _mode(path) & (stat.S_IROTH | stat.S_IWOTH | stat.S_IWGRP):
        raise BadInputError(f"others may read or change {path}, which holds a secret: run 'chmod 600 {path}'")


def _mode(path: Path) -> int:
    try:
        return path.stat().st_mode
    except OSError:
        return 0
