"""YAML from files that may be bad: plain data without aliases; whatever is wrong is one clear error."""

from pathlib import Path
from typing import Any, TypeVar

import yaml
from pydantic import BaseModel, ValidationError
from yaml.nodes import Node

from perf_assets.core.errors import BadInputError
from perf_assets.core.text import first_problem

_MAX_DEPTH = 50
_Model = TypeVar("_Model", bound=BaseModel)


class _PlainLoader(yaml.SafeLoader):
    """YAML loader without aliases: a few lines of them can unfold to any size."""

    _depth = 0

    def compose_node(self, parent: Node | None, index: Any) -> Node | None:
        if self.check_event(yaml.AliasEvent):
            raise yaml.YAMLError("aliases (*name) are not allowed: write the value itself")
        if self._depth >= _MAX_DEPTH:
            raise yaml.YAMLError(f"nested more than {_MAX_DEPTH} deep")
        self._depth += 1
        try:
            return super().compose_node(parent, index)
        finally:
            self._depth -= 1


def parse_yaml(name: str, text: str) -> Any:
    """The document in a text; `name` is what an error calls it."""
    try:
        return yaml.load(text, _PlainLoader)
    # A date that is none and a number of too many digits are errors of Python.
    except (yaml.YAMLError, ValueError, OverflowError) as error:
        raise BadInputError(f"{name} is not YAML: {error}") from None


def validated(model: type[_Model], name: str, document: object) -> _Model:
    """A document as a model describes it; `name` is what the error about the first thing that is wrong calls it."""
    try:
        return model.model_validate(document)
    except ValidationError as error:
        raise BadInputError(f"{name}: {first_problem(error)}") from None


def read_settings(model: type[_Model], path: Path) -> _Model:
    """A settings file of a site, checked; the defaults where there is none."""
    if not path.is_file():
        return model()
    try:
        text = path.read_text("utf-8")
    except UnicodeDecodeError:
        raise BadInputError(f"{path}: is no text") from None
    return validated(model, str(path), parse_yaml(str(path), text) or {})
