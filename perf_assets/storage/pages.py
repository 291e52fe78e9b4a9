"""Pages for people in the lake's folder of reports."""

from pathlib import Path

from perf_assets.storage.files import write_bytes
from perf_assets.storage.lake import Lake
from perf_assets.storage.leases import leased

_WAIT_SECONDS = 60.0


def store_page(lake: Lake, name: str, content: str | bytes) -> Path:
    """Write or replace a page, or a text or picture that belongs to one; where it is."""
    path = lake.reports / name
    with leased(lake.locks / f"report-{name}.lock", f"the page {name}", _WAIT_SECONDS):
        write_bytes(path, content.encode() if isinstance(content, str) else content)
    return path
