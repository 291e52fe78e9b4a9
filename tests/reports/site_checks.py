"""What must hold of every page of a site, and of the links between them."""

import base64
import io
import itertools
import re
from dataclasses import dataclass, field
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pandas as pd

_RESOURCES = {"script": ("src",), "img": ("src", "srcset"), "link": ("href",), "iframe": ("src",), "object": ("data",)}


@dataclass
class Page(HTMLParser):
    """What a page has, as a browser reads it."""

    text: str
    ids: list[str] = field(default_factory=list)
    links: list[str] = field(default_factory=list)
    resources: list[str] = field(default_factory=list)
    headings: list[int] = field(default_factory=list)
    images: list[dict[str, str]] = field(default_factory=list)
    figures: list[dict[str, str]] = field(default_factory=list)
    """Of each: `alt` of its image, `download` and `href` of its numbers."""

    def __post_init__(self) -> None:
        super().__init__()
        self.feed(self.text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attrs}
        self.ids += [given["id"]] if "id" in given else []
        self.resources += [value for name, value in given.items() if name in _RESOURCES.get(tag, ())]
        if re.fullmatch(r"h[1-6]", tag):
            self.headings.append(int(tag[1]))
        elif tag == "figure":
            self.figures.append({})
        elif tag == "img":
            self.images.append(given)
            self.figures[-1]["alt"] = given.get("alt", "")
        elif tag == "a" and "download" in given:
            self.figures[-1] |= {"download": given["download"], "href": given["href"]}
        elif tag == "a":
            self.links.append(given["href"])

    def numbers(self) -> dict[str, pd.DataFrame]:
        """Behind each figure, by file name."""
        return {figure["download"]: table_of(figure["href"]) for figure in self.figures}


def table_of(address: str) -> pd.DataFrame:
    """The table that a data: address holds."""
    start, data = address.split(",", 1)
    assert start == "data:text/csv;charset=utf-8;base64"
    return pd.read_csv(io.BytesIO(base64.b64decode(data, validate=True)), float_precision="round_trip")


def check_page(text: str) -> Page:
    """Nothing from outside, words and numbers for every picture, unique ids, headings in order."""
    page = Page(text)
    assert all(address.startswith("data:image/png;base64,") for address in page.resources)
    assert not re.search(r"@import|url\(", text)
    assert len(page.ids) == len(set(page.ids))
    assert page.headings.count(1) == 1
    assert page.headings[0] == 1
    assert all(after <= before + 1 for before, after in itertools.pairwise(page.headings))
    assert len(page.images) == len(page.figures)
    assert all(len(figure["alt"]) > 20 for figure in page.figures)
    assert all(len(table) for table in page.numbers().values())
    assert len(page.numbers()) == len(page.figures), "two figures have one name"
    return page


def check_site(folder: Path) -> dict[str, Page]:
    """All pages of a folder by name; every link leads to a page or part that is there, and index.html leads to all."""
    pages = {path.name: check_page(path.read_text()) for path in folder.glob("*.html")}
    reached = {"index.html"}
    for name, page in pages.items():
        for link in page.links:
            parts = urlsplit(link)
            if parts.scheme:
                assert name == "index.html" or name.startswith("machine-"), f"{name} leads out of the site"
                continue
            file = unquote(parts.path) or name
            assert file in pages, f"{link} in {name}"
            assert not parts.fragment or parts.fragment in pages[file].ids, f"{link} in {name}"
            reached |= {file} if name == "index.html" else set()
        assert "index.html" in page.links
    assert reached == set(pages)
    return pages
