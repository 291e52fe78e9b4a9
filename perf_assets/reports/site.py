"""How pages are made of templates: self-contained HTML in one frame and one style."""

import base64
import hashlib
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined, Template

from perf_assets.reports.scores import error

_FOLDER = Path(__file__).with_name("templates")
_MARKDOWN = ".md.jinja"
_SCRIPT = "page.js.jinja"


def template(name: str, **filters: Callable[..., Any]) -> Template:
    """A template of this folder, with further filters; in HTML, what the data hold is text, never markup."""
    environment = Environment(
        loader=FileSystemLoader(_FOLDER),
        autoescape=not name.endswith(_MARKDOWN),
        undefined=StrictUndefined,
        trim_blocks=True,
        keep_trailing_newline=True,
    )
    script = (_FOLDER / _SCRIPT).read_text()
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    # Browsers run this script and no other: one that came in with the data would have another digest.
    environment.globals |= {"script": script, "script_digest": f"sha256-{digest}"}
    environment.filters |= {"error": error, "utc": utc, **filters}
    return environment.get_template(name)


def in_utc(moment: datetime) -> datetime:
    """With its zone; a time without one is UTC."""
    return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)


def utc(moment: datetime) -> str:
    """As people read it, to the minute."""
    return f"{in_utc(moment):%Y-%m-%d %H:%M} UTC"
