"""Fitted models as files without pickle: a dataclass is an .npz archive of its arrays, with the rest as JSON.

What is stored follows from the fields and their types: numbers, texts, arrays, collections of these, settings
(pydantic), and parts that are dataclasses. Where a type is a union, a part is known by the name of its class.
"""

import hashlib
import json
import os
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from pathlib import Path
from types import NoneType, UnionType
from typing import Any, ClassVar, Self, Union, get_args, get_origin, get_type_hints
from zipfile import BadZipFile

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel

from perf_assets.core.errors import UnreadableFileError

_DESCRIPTION = "description.json"
_CLASS = "class"
"""Key of the name of a class: a word that no field can be called."""
Arrays = dict[str, NDArray[Any]]


class Stored:
    """A fitted dataclass that is kept in a folder, as one file."""

    FILE: ClassVar[str] = "model.npz"

    def save(self, folder: Path) -> None:
        """Store into a folder, without pickle."""
        write(folder / self.FILE, self)

    @classmethod
    def load(cls, folder: Path) -> Self:
        """Read what `save` wrote; raise UnreadableFileError where it is not there or of another release."""
        return read(folder / cls.FILE, cls)  # type: ignore[no-any-return]


def write(path: Path, model: Any) -> None:
    """Store a dataclass under a temporary name and rename: a reader never sees half a model."""
    arrays: Arrays = {}
    text = np.frombuffer(json.dumps(_described(model, "", arrays, {})).encode(), np.uint8)
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.{os.getpid()}.npz")
    np.savez_compressed(temporary, allow_pickle=False, **{_DESCRIPTION: text}, **arrays)
    temporary.replace(path)


def read(path: Path, kind: Any) -> Any:
    """A dataclass that `write` stored: of a class, or of one of the classes of a union."""
    try:
        with np.load(path, allow_pickle=False) as stored:
            arrays = {name: stored[name] for name in stored.files}
        description = json.loads(arrays.pop(_DESCRIPTION).tobytes())
    except (OSError, ValueError, KeyError, EOFError, BadZipFile) as error:
        raise UnreadableFileError(f"{path} is no saved model ({error})") from None
    try:
        return _restored(kind, description, arrays)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise UnreadableFileError(f"{path} is no saved model, or one of another release ({error!r})") from None


def identity(model: Any) -> str:
    """Digest of all that there is of a dataclass: equal ones answer alike."""
    arrays: Arrays = {}
    seen = hashlib.sha256(json.dumps(_described(model, "", arrays, {})).encode())
    for array in arrays.values():
        seen.update(np.ascontiguousarray(array).tobytes())
    return seen.hexdigest()[:16]


def _described(value: Any, name: str, arrays: Arrays, names: dict[int, str]) -> Any:
    """JSON of a value; arrays are put among `arrays`, each once, and named there."""
    if isinstance(value, np.ndarray):
        stored_name = names.setdefault(id(value), f"{len(arrays)}.{name}")
        arrays[stored_name] = value
        return stored_name
    if isinstance(value, BaseModel):
        return value.model_dump(mode="json")
    if isinstance(value, Mapping):
        return {str(key): _described(part, name, arrays, names) for key, part in value.items()}
    if isinstance(value, list | tuple | frozenset):
        return [_described(part, name, arrays, names) for part in value]
    if is_dataclass(value):
        parts = {
            field.name: _described(getattr(value, field.name), field.name, arrays, names) for field in fields(value)
        }
        return {_CLASS: type(value).__name__, **parts}
    return value.item() if isinstance(value, np.generic) else value


def _restored(hint: Any, stored: Any, arrays: Arrays) -> Any:
    """A value of a type; fields that were not stored take their defaults."""
    origin, args = get_origin(hint), get_args(hint)
    if stored is None or hint is Any:
        return stored
    if origin in (Union, UnionType):
        kinds = [kind for kind in args if kind is not NoneType]
        named = [kind for kind in kinds if isinstance(stored, dict) and kind.__name__ == stored.get(_CLASS)]
        return _restored((named or kinds)[0], stored, arrays)
    if origin is np.ndarray:
        return arrays[stored]
    if origin is tuple and Ellipsis not in args:
        return tuple(_restored(kind, part, arrays) for kind, part in zip(args, stored, strict=True))
    if isinstance(stored, list):
        return (origin if origin in (tuple, frozenset) else list)(_restored(args[0], part, arrays) for part in stored)
    if is_dataclass(hint):
        if stored[_CLASS] != hint.__name__:  # type: ignore[union-attr]
            raise ValueError(f"it holds a {stored[_CLASS]}")
        hints = get_type_hints(hint)
        given = [field.name for field in fields(hint) if field.name in stored]
        return hint(**{name: _restored(hints[name], stored[name], arrays) for name in given})  # type: ignore[operator]
    if isinstance(hint, type) and issubclass(hint, BaseModel):
        return hint.model_validate(stored)
    if isinstance(stored, dict) and args:
        return {key: _restored(args[1], part, arrays) for key, part in stored.items()}
    return stored
