"""How pages are made of templates: self-contained HTML in one frame and one style."""

from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined, Template

from perf_assets.reports.summary import error

_MARKDOWN = ".md.jinja"


def template(name: str, **filters: Callable[..., Any]) -> Template:
    """A template of this folder, with further filters; in HTML, what the data hold is text, never markup."""
    environment = Environment(
        loader=FileSystemLoader(Path(__file__).parent),
        autoescape=not name.endswith(_MARKDOWN),
        undefined=StrictUndefined,
        trim_blocks=True,
        keep_trailing_newline=True,
    )
    environment.filters |= {"error": error, "utc": utc, **filters}
    return environment.get_template(name)


def in_utc(moment: datetime) -> datetime:
    """With its zone; a time without one is UTC."""
    return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)


def utc(moment: datetime) -> str:
    """As people read it, to the minute."""
    return f"{in_utc(moment):%Y-%m-%d %H:%M} UTC"
