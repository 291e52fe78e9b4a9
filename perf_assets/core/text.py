"""Text from outside in places where it could be more than text: terminals, spreadsheets, Markdown; refused values."""

import re
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pandas as pd
    from pydantic import ValidationError


def first_problem(error: "ValidationError") -> str:
    """The first problem of a validation, with the field it is in."""
    problem = error.errors(include_url=False, include_context=False, include_input=False)[0]
    place = ".".join(str(part) for part in problem["loc"])
    if problem["type"] == "missing":
        return f"{place} is missing"
    if problem["type"] == "extra_forbidden":
        return f"{place}: there is no such field"
    message = problem["msg"].removeprefix("Value error, ")
    return f"{place}: {message}" if place else message


def as_word(value: float) -> str:
    """A number as tables of words hold it: whole ones without a point."""
    return str(int(value)) if value.is_integer() and abs(value) < 2**53 else repr(value)


def check_text(text: str) -> str:
    """Return `text` if it can be printed on one line; raise otherwise."""
    if not text.isprintable():
        raise ValueError(f"{text[:40]!a} holds characters that cannot be printed: leave them out")
    return text


_STARTS_FORMULA = ("=", "+", "-", "@")
_MARKDOWN = re.compile(r"[\\`\[\]|]")
_HTML = str.maketrans({"&": "&amp;", "<": "&lt;", ">": "&gt;"})
_PASSWORD = re.compile(r"(://[^:/@\s]*:)\S*(?=@)|([?&](?:password|passwd|token|secret)=)[^&\s]*", re.IGNORECASE)
"""Password in an address; one that holds an @ ends at the last."""
_MOST_COLUMNS = 50
_MOST_CHARACTERS = 300


def printable(text: str) -> str:
    """`text` on one line, with escapes for what a terminal would take for a command or an end of line."""
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


def without_folder(word: str) -> str:
    """An argument without the folder of the file that it names: it is of one host and one user."""
    option, equals, value = word.partition("=") if word.startswith("-") else ("", "", word)
    return f"{option}{equals}{value.rpartition('/')[2] if value.startswith(('/', '~', './', '../')) else value}"


def without_passwords(text: str) -> str:
    """`text` with stars for the passwords of the addresses in it."""
    return _PASSWORD.sub(r"\1\2***", text) if "@" in text or "=" in text else text


def in_markdown(text: str) -> str:
    """`text` that is not markup in Markdown or HTML, and stays in its cell of a table."""
    return _MARKDOWN.sub(r"\\\g<0>", printable(" ".join(text.split()))).translate(_HTML)


def markdown_rows(rows: "pd.DataFrame", floatfmt: str = "g") -> str:
    """A table for a page of Dagster; one that is too wide for a page is cut."""
    shown = rows.iloc[:, :_MOST_COLUMNS].rename(columns=_cell).map(_cell)
    more = f"\n\nThe first {_MOST_COLUMNS} of {rows.shape[1]} columns." if rows.shape[1] > _MOST_COLUMNS else ""
    return f"{shown.to_markdown(index=False, floatfmt=floatfmt)}{more}"


def csv_of(rows: "pd.DataFrame") -> str:
    """CSV for people: text that a spreadsheet would take for a formula has an apostrophe before it."""
    numbers = rows.select_dtypes(include=["number", "bool", "datetime"]).columns
    texts = {name: rows[name].map(_no_formula) for name in rows.columns.difference(numbers)}
    return rows.assign(**texts).rename(columns=_no_formula).to_csv(index=False)


def _cell(value: Any) -> Any:
    return in_markdown(value[:_MOST_CHARACTERS]) if isinstance(value, str) else value


def _no_formula(cell: Any) -> Any:
    """A text without line breaks and tabs either: after them another cell begins, which could be a formula."""
    if not isinstance(cell, str):
        return cell
    text = printable(cell)
    return f"'{text}" if text.startswith(_STARTS_FORMULA) else text
