"""JSON from files that may be bad: whatever is wrong is one clear error."""

import json
import math
from typing import Any, NoReturn

from perf_assets.readers.files import SourceFile, read_text, unreadable

MAX_JSON_BYTES = 16 * 2**20


def parse_json(source: SourceFile) -> Any:
    """The document in a file."""
    return parse_json_text(source, read_text(source, MAX_JSON_BYTES))


def parse_json_text(source: SourceFile, text: str) -> Any:
    """The document in a text that came from `source`."""

    def refuse(constant: str) -> NoReturn:
        raise ValueError(f"the number {constant} is not finite")

    try:
        return json.loads(text, parse_constant=refuse)
    except RecursionError:
        raise unreadable(source, "is nested too deeply to be a profile") from None
    except ValueError as error:
        raise unreadable(source, f"is not valid JSON ({error}): copy it again") from None


def finite_number(source: SourceFile, value: Any, what: str) -> float:
    """A number that may stand as text; anything else is an error that names `what`."""
    try:
        number = math.nan if isinstance(value, bool) else float(value)
    except (TypeError, ValueError, OverflowError):
        number = math.nan
    if not math.isfinite(number):
        raise unreadable(source, f"{what} is {str(value)[:40]!r} instead of a finite number")
    return number
