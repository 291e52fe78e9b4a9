"""Pages for people in the lake's folder of reports."""

import html
import re
from pathlib import Path

from perf_assets.infra.files import write_bytes
from perf_assets.infra.leases import leased
from perf_assets.storage.lake import Lake

INDEX = "index.html"
_MACHINE = "machine-{}.html"
_WAIT_SECONDS = 60.0
_TITLE = re.compile(r"<title>(.*?)</title>", re.DOTALL)
_HEAD_LENGTH = 4096
"""Characters of a page in which its title is."""


def store_page(lake: Lake, name: str, content: str | bytes) -> Path:
    """Write or replace a page, or a text or picture that belongs to one; where it is."""
    path = lake.reports / name
    with leased(lake.locks / f"report-{name}.lock", f"the page {name}", _WAIT_SECONDS):
        write_bytes(path, content.encode() if isinstance(content, str) else content)
    return path


def machine_page_name(machine: str) -> str:
    """Name of the page of a machine."""
    return _MACHINE.format(machine)


def other_pages(lake: Lake) -> dict[str, str]:
    """Title by name of each page that is neither the index nor of a machine."""
    titles = {}
    for path in sorted(lake.reports.glob("*.html")):
        if path.name != INDEX and not path.match(_MACHINE.format("*")):
            with path.open(encoding="utf-8", errors="replace") as file:
                title = _TITLE.search(file.read(_HEAD_LENGTH))
            titles[path.name] = html.unescape(title[1]).strip() if title else path.stem
    return titles
