"""Pages of the site: templates, charts with their numbers, pages of results; HTML without outside parts."""

import base64
import hashlib
import io
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from typing import Any, BinaryIO

import pandas as pd
from jinja2 import Environment, FileSystemLoader, StrictUndefined, Template

from perf_assets.core.text import csv_of
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
    """Time with its zone; one without is UTC."""
    return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)


def utc(moment: datetime) -> str:
    """Time as people read it, to the minute."""
    return f"{in_utc(moment):%Y-%m-%d %H:%M} UTC"


Draw = Callable[[BinaryIO], object]
"""Writes a PNG."""


def picture(draw: Draw) -> bytes:
    """Picture that a function draws: once, however often it is stored or shown."""
    buffer = io.BytesIO()
    draw(buffer)
    return buffer.getvalue()


def as_data_uri(png: bytes) -> str:
    """An address that holds the picture itself."""
    return f"data:image/png;base64,{base64.b64encode(png).decode()}"


_NOT_IN_A_FILE_NAME = re.compile(r"[^\w.-]+")


_WIDE_RATIO = 1.6


@dataclass(frozen=True)
class Chart:
    """A picture and what a page needs around it."""

    name: str
    """Name of the file of its numbers, without ending."""
    title: str
    words: str
    """Text for those who cannot see the picture."""
    png: bytes
    numbers: pd.DataFrame
    """Data behind the picture; ratios, where the picture shows percentages."""

    @cached_property
    def picture_address(self) -> str:
        """An address that holds the picture itself."""
        return as_data_uri(self.png)

    @cached_property
    def numbers_address(self) -> str:
        """An address that holds the numbers themselves."""
        return f"data:text/csv;charset=utf-8;base64,{base64.b64encode(csv_of(self.numbers).encode()).decode()}"

    @property
    def is_wide(self) -> bool:
        """Whether its words would be too small on the width of a telephone."""
        width, height = (int.from_bytes(self.png[at : at + 4], "big") for at in (16, 20))
        return width > _WIDE_RATIO * height

    @property
    def file(self) -> str:
        """Name under which a browser stores the numbers."""
        return f"{_NOT_IN_A_FILE_NAME.sub('-', self.name)}.csv"


def chart(name: str, title: str, words: str, draw: Draw, numbers: pd.DataFrame) -> Chart:
    """A figure from a function that draws it."""
    return Chart(name, title, words, picture(draw), numbers)


_TEMPLATE = "results.html.jinja"
_LEAST_WITH_THREE_PLACES = 0.01
"""Numbers below have two digits that count: three places would leave one or none."""


@dataclass(frozen=True)
class Part:
    """A section of a page."""

    title: str
    text: str
    charts: Sequence[Chart]
    tables: Mapping[str, pd.DataFrame] = field(default_factory=dict)
    """Tables by caption; the first column names the row."""


def results_page(title: str, origin: str, lead: str, parts: Sequence[Part], *, is_in_site: bool = True) -> str:
    """The page; `origin` says which data the figures are from. One that is not in the site has no way to its index."""
    return template(_TEMPLATE, cell=_cell).render(
        title=title, origin=origin, lead=lead, shown=parts, is_in_site=is_in_site
    )


def _cell(value: object) -> str:
    if isinstance(value, float):
        shown = f"{value:.2g}" if 0 < abs(value) < _LEAST_WITH_THREE_PLACES else f"{value:,.3f}"
        return "\N{EN DASH}" if value != value else shown.replace("-", "\N{MINUS SIGN}")
    return f"{value:,}" if isinstance(value, int) and not isinstance(value, bool) else str(value)
