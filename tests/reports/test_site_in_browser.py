"""The site in a real browser, from files: no network, by keyboard, light and dark, on paper, on a small screen."""

import io
import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import quote

import pandas as pd
import pytest

from tests.browser import chromium
from tests.reports.site_checks import Page
from tests.reports.sites import ODD

if TYPE_CHECKING:
    from playwright.sync_api import Browser
    from playwright.sync_api import Page as Tab

pytestmark = [pytest.mark.integration, pytest.mark.xdist_group("site")]
playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")

PAGES = ("index", "machine-dane", "xamm", "vectors", "schedule", "pairs", "modelx", "amm")
PATIENCE = 60_000
"""Milliseconds; other tests use the same two cores."""
OVERFLOW = """() => [...document.querySelectorAll("body *")].filter((element) =>
    element.getBoundingClientRect().right > innerWidth + 1 && !element.closest(".scroll, pre, .unseen, .skip")
).map((element) => element.outerHTML.slice(0, 80))"""


@pytest.fixture(scope="module")
def browser() -> Iterator["Browser"]:
    with chromium() as started:
        yield started


@pytest.fixture
def complaints() -> list[str]:
    """What a page says on the console, fails at, or asks of the network."""
    return []


@pytest.fixture
def tab(browser: "Browser", complaints: list[str]) -> Iterator["Tab"]:
    context = browser.new_context(viewport={"width": 1200, "height": 900}, color_scheme="light", accept_downloads=True)
    page = context.new_page()
    page.set_default_timeout(PATIENCE)
    page.on("console", lambda message: complaints.append(message.text))
    page.on("pageerror", lambda error: complaints.append(str(error)))
    page.on(
        "request",
        lambda request: complaints.append(request.url) if not request.url.startswith(("file:", "data:")) else None,
    )
    yield page
    context.close()


@pytest.fixture
def shots(tmp_path: Path) -> Path:
    """Where pictures are kept: PERF_ASSETS_SCREENSHOTS or a temporary folder."""
    folder = Path(os.environ.get("PERF_ASSETS_SCREENSHOTS", tmp_path))
    folder.mkdir(parents=True, exist_ok=True)
    return folder


@pytest.mark.parametrize("name", PAGES)
def test_pages_in_light_dark_on_paper_and_small(
    name: str, site: Path, tab: "Tab", complaints: list[str], shots: Path
) -> None:
    tab.goto((site / f"{name}.html").as_uri())
    grounds = []
    for scheme in ("light", "dark"):
        tab.emulate_media(color_scheme=scheme)
        grounds.append(tab.evaluate("getComputedStyle(document.body).backgroundColor"))
        tab.screenshot(path=shots / f"site-{name}-{scheme}.png", full_page=True)
    assert grounds == ["rgb(244, 246, 249)", "rgb(17, 22, 28)"]
    tab.pdf(path=shots / f"site-{name}.pdf")
    assert (shots / f"site-{name}.pdf").read_bytes().startswith(b"%PDF")
    tab.emulate_media(media="print")
    assert tab.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)", "also in dark"
    assert not tab.locator("nav, button.copy, a.numbers").locator("visible=true").count()
    tab.emulate_media(media="screen")
    tab.set_viewport_size({"width": 400, "height": 800})
    assert tab.evaluate("document.documentElement.scrollWidth") == 400
    assert tab.evaluate(OVERFLOW) == []
    tab.screenshot(path=shots / f"site-{name}-small.png")
    assert all(tab.evaluate("[...document.images].map((image) => image.naturalWidth > 100)"))
    assert not complaints


def test_the_keyboard_reaches_the_skip_link_then_the_site(site: Path, tab: "Tab") -> None:
    tab.goto((site / "machine-dane.html").as_uri())
    tab.keyboard.press("Tab")
    skip = tab.locator(":focus")
    assert skip.inner_text() == "Skip to the content"
    assert skip.bounding_box()["x"] >= 0, "seen while it has the focus"
    tab.keyboard.press("Tab")
    assert tab.locator(":focus").get_attribute("href") == "index.html"
    assert tab.evaluate("getComputedStyle(document.activeElement).outlineStyle") == "solid"
    tab.keyboard.press("Tab")
    assert tab.locator("nav :focus").get_attribute("href") == "#sheet"
    skip_to = tab.locator("a.skip").get_attribute("href")
    tab.locator("a.skip").focus()
    tab.keyboard.press("Enter")
    tab.keyboard.press("Tab")
    assert tab.evaluate(f"document.querySelector('{skip_to}').compareDocumentPosition(document.activeElement) & 20")


def test_links_lead_from_the_fleet_to_machines_and_back(site: Path, tab: "Tab", complaints: list[str]) -> None:
    tab.goto((site / "index.html").as_uri())
    tab.locator("#machines").get_by_role("link", name=ODD).click()
    assert tab.url.endswith(quote(f"machine-{ODD}.html"))
    assert tab.locator("h1").inner_text() == f"Machine {ODD}"
    tab.get_by_role("navigation", name="Site").get_by_role("link", name="The fleet").click()
    assert tab.locator("h1").inner_text() == "The fleet"
    assert tab.get_by_role("main").count() == tab.get_by_role("banner").count() == 1
    assert not complaints


@pytest.mark.parametrize("way", ["clipboard", "fallback", "by hand"])
def test_tables_are_copied(way: str, site: Path, tab: "Tab", complaints: list[str]) -> None:
    tab.context.grant_permissions(["clipboard-read", "clipboard-write"])
    if way != "clipboard":
        tab.add_init_script("navigator.clipboard.writeText = () => Promise.reject(new Error('not allowed'))")
    if way == "by hand":
        tab.add_init_script("document.execCommand = () => false")
    tab.goto((site / "index.html").as_uri())
    tab.get_by_role("button", name="Copy table - Machines, their data and champions").focus()
    button = tab.locator("button:focus")
    tab.keyboard.press("Enter")
    if way == "by hand":
        playwright.expect(button).to_contain_text("press Ctrl+C")
        assert "quartz" in tab.evaluate("getSelection().toString()")
        return
    playwright.expect(button).to_contain_text("Copied")
    playwright.expect(tab.get_by_role("status")).to_have_text("Copied - Machines, their data and champions")
    assert tab.evaluate("document.activeElement.className") == "copy", "the focus stays"
    copied = pd.read_csv(io.StringIO(tab.evaluate("navigator.clipboard.readText()")), sep="\t", dtype=str)
    assert list(copied.columns)[:4] == ["machine", "state", "newest measurement", "runs"]
    rows = copied.set_index("machine")
    assert rows.loc["quartz", "its MAPE"] == "8.0%"
    assert rows.loc["quartz", "champion"].startswith("version 3 40 shots")
    tab.keyboard.press("Tab")
    playwright.expect(tab.locator("#machines button.copy")).to_contain_text("Copy table")
    assert not complaints


def test_what_is_copied_is_no_formula(site: Path, tab: "Tab", complaints: list[str]) -> None:
    tab.context.grant_permissions(["clipboard-read", "clipboard-write"])
    tab.goto((site / "pairs.html").as_uri())
    for place, text in enumerate(("=1+1", "@a", "-x", "-1.5%", "+2")):
        tab.locator("tbody td").nth(place).evaluate("(cell, text) => { cell.textContent = text; }", text)
    tab.locator("button.copy").first.click()
    playwright.expect(tab.locator("button.copy").first).to_contain_text("Copied")
    cells = tab.evaluate("navigator.clipboard.readText()").replace("\n", "\t").split("\t")
    assert {"'=1+1", "'@a", "'-x", "-1.5%", "+2"} <= set(cells)
    assert not {"=1+1", "@a", "-x"} & set(cells)
    assert not complaints


def test_numbers_of_a_figure_are_downloaded(site: Path, tab: "Tab", complaints: list[str]) -> None:
    tab.goto((site / "machine-dane.html").as_uri())
    with tab.expect_download() as started:
        tab.locator("#curve a.numbers").click()
    assert started.value.suggested_filename == "dane-learning-curve.csv"
    expected = Page((site / "machine-dane.html").read_text()).numbers()["dane-learning-curve.csv"]
    pd.testing.assert_frame_equal(pd.read_csv(started.value.path()), expected)
    assert not complaints


def test_a_script_of_the_data_could_not_run(site: Path, tab: "Tab", tmp_path: Path) -> None:
    text = (site / "pairs.html").read_text()
    (tmp_path / "attacked.html").write_text(text.replace("</main>", "<script>document.title = 'run'</script></main>"))
    tab.goto((tmp_path / "attacked.html").as_uri())
    assert tab.title() != "run"
