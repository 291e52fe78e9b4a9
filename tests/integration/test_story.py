"""The demo's story in a browser: a machine with ten runs, ten more land, a new champion, the figure moves."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from perf_assets.cli.support.demo_fleet import DemoState
from perf_assets.workflows.models.kept_aside import scored, store_truth
from tests.browser import chromium, shoot
from tests.installation import SCALE, Installation, Up, wait_for
from tests.integration.joining import land_at_once

if TYPE_CHECKING:
    from playwright.sync_api import Page

pytestmark = [pytest.mark.integration, pytest.mark.timeout(1800), pytest.mark.xdist_group("live")]
playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")

LATE = "grace"
_SECONDS = 600.0
"""A sensor interval, a run and what follows from it, on a machine that is busy with other tests."""
_PATIENCE = 90_000


@pytest.fixture(scope="module")
def arrived(live: Up, trained: Installation, tmp_path_factory: pytest.TempPathFactory) -> Installation:
    """The small site, at which a machine of the demo arrived late: RAJAPerf and ten runs; others are kept aside."""
    state = DemoState(SCALE, 0, {LATE: 1})
    state.save(trained.lake)
    machine = state.machine(LATE)
    store_truth(trained.lake, LATE, machine.truth())
    folder = tmp_path_factory.mktemp("late")
    land_at_once(trained, LATE, [*machine.benchmark(), *machine.batch(0)], folder)
    wait_for(lambda: runs_told(trained) == 10, "the story on the first page", _SECONDS)
    return trained


@pytest.fixture(scope="module")
def tab() -> Iterator["Page"]:
    with chromium() as browser:
        page = browser.new_page(viewport={"width": 1600, "height": 1000})
        page.set_default_timeout(_PATIENCE)
        yield page


def runs_told(site: Installation) -> int:
    """Runs of the machine that the first page says its model was made of; 0 where it does not tell."""
    page = site.lake.reports / "index.html"
    found = re.search(rf">{LATE}</a></b></th><td>(\d+)</td>", page.read_text() if page.is_file() else "")
    return int(found[1]) if found else 0


def champion(site: Installation) -> int:
    found = [row for row in site.json("models")["models"] if row["name"] == f"perf-target-{LATE}"]
    return max((row["version"] for row in found if "champion" in row["aliases"]), default=0)


def figure(tab: "Page", up: Up) -> str:
    """The picture of the story on the first page, once it is seen."""
    tab.goto(up.pages)
    picture = tab.locator("#story img:visible").first
    playwright.expect(picture).to_be_visible(timeout=_PATIENCE)
    playwright.expect(picture).not_to_have_js_property("naturalWidth", 0)
    return str(picture.get_attribute("src"))


def test_ten_more_runs_move_the_curve(arrived: Installation, live: Up, tab: "Page", tmp_path: Path) -> None:
    before = figure(tab, live)
    shoot(tab, tmp_path, "story_first")
    tab.locator("#story").get_by_role("link", name=LATE).click()
    playwright.expect(tab.get_by_role("heading", name=re.compile(LATE)).first).to_be_visible()
    shoot(tab, tmp_path, "story_machine")
    first = champion(arrived)

    landed = arrived.json("demo", "--next")
    assert (landed["machine"], landed["runs_before"]) == (LATE, 10)
    assert landed["runs"] > 10
    wait_for(lambda: runs_told(arrived) == landed["runs"], "the runs on the first page", _SECONDS)

    assert champion(arrived) > first > 0
    tab.goto(f"{live.dagster}/assets/model_target__adapted?partition={LATE}&view=partitions")
    playwright.expect(tab.get_by_text(f"perf-target-{LATE} version").first).to_be_visible(timeout=_PATIENCE)
    shoot(tab, tmp_path, "story_dagster")
    assert figure(tab, live) != before
    shoot(tab, tmp_path, "story_next")

    rows = scored(arrived.lake)
    widths = (rows["upper_seconds"] / rows["lower_seconds"]).groupby(rows["shots"]).median()
    assert widths.index.tolist() == [0, 5, 10, landed["runs"]]
    assert widths.is_monotonic_decreasing, f"more runs never make a wider interval: {widths.to_dict()}"
