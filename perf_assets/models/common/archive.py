"""Fitted models as files without pickle: arrays with a JSON description in an .npz archive, or a description alone."""

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from zipfile import BadZipFile

import numpy as np
from numpy.typing import NDArray

from perf_assets.core.errors import UnreadableFileError

_DESCRIPTION = "description.json"
Arrays = dict[str, NDArray[Any]]


def save(path: Path, description: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> None:
    """Write both under a temporary name and rename: a reader never sees half a model."""
    text = np.frombuffer(json.dumps(description, sort_keys=True).encode(), np.uint8)
    temporary = path.with_name(f".{path.name}.{os.getpid()}.npz")
    np.savez_compressed(temporary, allow_pickle=False, **{_DESCRIPTION: text}, **dict(arrays))
    temporary.replace(path)


def load(path: Path) -> tuple[dict[str, Any], Arrays]:
    """Description and arrays of a saved model."""
    try:
        with np.load(path, allow_pickle=False) as stored:
            arrays = {name: stored[name] for name in stored.files}
        description = json.loads(arrays.pop(_DESCRIPTION).tobytes())
    except (OSError, ValueError, KeyError, EOFError, BadZipFile) as error:
        raise UnreadableFileError(f"{path} is no saved model ({error})") from None
    return description, arrays


def save_description(path: Path, description: Mapping[str, Any]) -> None:
    """Write JSON; the folder is made where it is not there."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(description))


def load_description(path: Path) -> dict[str, Any]:
    """Read JSON that `save_description` wrote."""
    try:
        description: dict[str, Any] = json.loads(path.read_text())
    except (OSError, ValueError) as error:
        raise UnreadableFileError(f"{path.parent} is no saved model ({error})") from None
    return description


def prefixed(prefix: str, arrays: Mapping[str, NDArray[Any]]) -> Arrays:
    """Arrays of a part, named so that they can stand beside those of others."""
    return {f"{prefix}{name}": array for name, array in arrays.items()}


def part(prefix: str, arrays: Mapping[str, NDArray[Any]]) -> Arrays:
    """Arrays that `prefixed` named, by their own names."""
    return {name.removeprefix(prefix): array for name, array in arrays.items() if name.startswith(prefix)}
