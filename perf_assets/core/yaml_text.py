"""YAML from files nobody has checked: plain data without aliases; every way to be bad is one clear error."""

from typing import Any

import yaml
from yaml.nodes import Node

from perf_assets.core.errors import BadInputError

_MAX_DEPTH = 50


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
