"""Debian's chromium, for tests of pages."""

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page


@contextmanager
def chromium() -> Iterator["Browser"]:
    """A browser without a window; skips where it is not installed."""
    program = shutil.which("chromium")
    if program is None:
        pytest.skip("no chromium: install Debian's package 'chromium' to run the browser tests")
    driver = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    with driver.sync_playwright() as started:
        browser = started.chromium.launch(
            executable_path=program,
            args=["--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-component-update"],
        )
        yield browser
        browser.close()


def shoot(tab: "Page", folder: Path, name: str) -> None:
    """Keep a picture of what a tab shows, in PERF_ASSETS_SCREENSHOTS or a folder."""
    kept = Path(os.environ.get("PERF_ASSETS_SCREENSHOTS", folder))
    kept.mkdir(parents=True, exist_ok=True)
    tab.screenshot(path=kept / f"{name}.png")
    assert (kept / f"{name}.png").stat().st_size > 10_000
