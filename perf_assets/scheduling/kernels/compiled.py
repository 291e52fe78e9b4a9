"""Functions that are compiled to machine code at their first call, and kept for the next process."""

import hashlib
import os
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any, TypeVar, cast

import numba
import numpy as np
from numpy.typing import NDArray

Function = TypeVar("Function", bound=Callable[..., object])
Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
Mask = NDArray[np.bool_]


def compiled(function: Function) -> Function:
    """Compile a function to machine code; its arguments are numbers, arrays and named tuples of these."""
    folder = _folder()
    config: Any = numba.config
    before = config.CACHE_DIR
    config.CACHE_DIR = str(folder or before)
    try:
        machine_code: Any = numba.njit(cache=folder is not None)(function)
    finally:
        config.CACHE_DIR = before
    return cast(Function, machine_code)


@cache
def _folder() -> Path | None:
    """Folder that keeps machine code of exactly these sources; None where nothing can be written.

    Numba itself looks at the file of a function only: it would go on with old code of the functions that are called.
    """
    scheduling = Path(__file__).parents[1]
    sources = b"".join(file.read_bytes() for file in sorted(Path(__file__).parent.glob("*.py")))
    folder = scheduling / "__pycache__" / f"compiled-{hashlib.sha256(sources).hexdigest()[:16]}"
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError:
        return None
    return folder if os.access(folder, os.W_OK) else None
