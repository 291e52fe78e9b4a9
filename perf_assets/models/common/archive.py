"""Fitted models as files without pickle: arrays and one JSON description in an .npz archive."""

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
