"""What all pages have in common: people can read them, by eye in light and in dark, by ear and by keyboard."""

import base64
import hashlib
import re
import shutil
from html.parser import HTMLParser
from pathlib import Path

import pytest

from perf_assets.reports import site as page_module
from tests.reports.site_checks import Page, check_site
from tests.reports.sites import ODD

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("site")]

FOLDER = Path(page_module.__file__).with_name("templates")
TEXT_ON = {
    "ground": ("ink", "soft", "link"),
    "paper": ("ink", "soft", "link", "good", "bad"),
    "shade": ("ink", "soft"),
    "ours": ("ink", "soft", "link"),
    "good-paper": ("good",),
    "warn-paper": ("warn",),
    "bad-paper": ("bad", "ink"),
}
"""Colours of text by what they stand on."""
LEAST_CONTRAST = 4.5
"""WCAG 2, level AA, for text of ordinary size."""
VOID = {"meta", "img", "br", "link", "input", "hr"}


@pytest.fixture(params=["index", "machine-dane", "xamm", "vectors", "schedule", "pairs", "modelx", "amm"])
def page(request: pytest.FixtureRequest, site: Path) -> str:
    return (site / f"{request.param}.html").read_text()


class Nesting(HTMLParser):
    """Whether elements are closed in the order in which they were opened."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.wrong: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        if not self.open or self.open.pop() != tag:
            self.wrong.append(f"{tag} at {self.getpos()}")


def test_elements_are_nested(page: str) -> None:
    nesting = Nesting()
    nesting.feed(page)
    assert not nesting.wrong
    assert not nesting.open


def test_one_style_for_all_pages(page: str) -> None:
    base = (FOLDER / "page.html.jinja").read_text()
    assert base.split("<style>")[1].split("{% block")[0].rstrip() in page
    others = [file for file in FOLDER.glob("*.html.jinja") if file.name != "page.html.jinja"]
    assert [file.name for file in others if "<style" in file.read_text() or "<html" in file.read_text()] == []


def test_the_site_is_whole_wherever_it_is(site: Path, tmp_path: Path) -> None:
    pages = check_site(shutil.copytree(site, tmp_path / "another place"))
    assert {name: len(page.figures) for name, page in pages.items()} == {
        "index.html": 1,
        "machine-dane.html": 6,
        f"machine-{ODD}.html": 4,
        "xamm.html": 7,
        "vectors.html": 7,
        "schedule.html": 3,
        "pairs.html": 1,
        "modelx.html": 2,
        "amm.html": 2,
    }


def test_only_the_pages_own_script_may_run(page: str) -> None:
    (script,) = re.findall(r"<script>(.*?)</script>", page, flags=re.DOTALL)
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    (policy,) = re.findall(r'<meta http-equiv="Content-Security-Policy" content="([^"]+)">', page)
    assert policy.startswith("default-src 'none'; img-src data:;")
    assert f"script-src 'sha256-{digest}';" in policy


def test_tables_have_captions_and_heads_with_a_scope(page: str) -> None:
    tables = re.findall(r"<table>.+?</table>", page, flags=re.DOTALL)
    assert tables or "<figure>" in page
    assert page.count('<button type="button" class="copy" hidden>') == len(tables)
    for table in tables:
        assert re.match(r"<table>\s*<caption>[^<]+</caption>", table)
        assert '<th scope="row"' in table
    assert all("scope=" in head for head in re.findall(r"<th\b[^>]*>", page))
    assert page.count('<div class="scroll" tabindex="0" role="region" aria-label="') == len(tables)


def test_links_inside_of_the_page_lead_somewhere(page: str) -> None:
    assert '<html lang="en">' in page
    assert re.search(r'<body>\s*<a class="skip" href="#', page)
    found = Page(page)
    assert {link.removeprefix("#") for link in found.links if link.startswith("#")} <= set(found.ids)


@pytest.mark.parametrize("mode", ["light", "dark"])
def test_text_has_enough_contrast(mode: str) -> None:
    parts = (FOLDER / "page.html.jinja").read_text().split("prefers-color-scheme: dark")
    found = dict(re.findall(r"--([a-z-]+): (#[0-9a-f]{6})", parts[mode == "dark"]))
    too_low = {
        (below, above): contrast(found[below], found[above])
        for below, texts in TEXT_ON.items()
        for above in texts
        if contrast(found[below], found[above]) < LEAST_CONTRAST
    }
    assert not too_low


def contrast(first: str, second: str) -> float:
    """WCAG's ratio of luminances, from 1 to 21."""
    low, high = sorted(map(luminance, (first, second)))
    return (high + 0.05) / (low + 0.05)


def luminance(colour: str) -> float:
    parts = [int(colour[place : place + 2], 16) / 255 for place in (1, 3, 5)]
    linear = [part / 12.92 if part <= 0.03928 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return sum(weight * part for weight, part in zip((0.2126, 0.7152, 0.0722), linear, strict=True))


def test_contrast_is_that_of_the_standard() -> None:
    assert contrast("#000000", "#ffffff") == pytest.approx(21)
    assert contrast("#777777", "#ffffff") == pytest.approx(4.48, abs=0.01)
