"""The pages in a real browser, on an instance that runs by itself: Dagster's, MLflow's, and the site's."""

from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests import browser
from tests.browser import chromium
from tests.installation import Up, wait_for
from tests.integration.joining import MACHINE, Joined

if TYPE_CHECKING:
    from playwright.sync_api import Page

pytestmark = [pytest.mark.integration, pytest.mark.timeout(1800), pytest.mark.xdist_group("live")]
playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")

GROUPS = ("landing", "raw", "core", "machines", "sources", "targets", "datasets", "evaluation", "reports")
WIDTH, HEIGHT = 1600, 1000
PATIENCE = 90_000
"""Milliseconds; other tests use the same two cores."""


@pytest.fixture
def adapted(joined: Joined) -> str:
    """A machine that went through the whole pipeline."""
    return MACHINE


@pytest.fixture(scope="module")
def tab(live: Up) -> Iterator["Page"]:
    with chromium() as started:
        page = started.new_page(viewport={"width": WIDTH, "height": HEIGHT})
        page.set_default_timeout(PATIENCE)
        yield page


@pytest.fixture
def shoot(tab: "Page", tmp_path: Path) -> Callable[[str], None]:
    """Keep a picture of the page."""
    return partial(browser.shoot, tab, tmp_path)


def succeeded(up: Up, is_wanted: Callable[[dict[str, Any]], bool]) -> dict[str, Any] | None:
    """The oldest run that automation asked for, or that repeats one, and that went well."""
    runs = [run for run in up.runs("__ASSET_JOB") if run["status"] == "SUCCESS" and is_wanted(run)]
    return runs[-1] if runs else None


def see(tab: "Page", text: str) -> None:
    playwright.expect(tab.get_by_text(text).first).to_be_visible(timeout=PATIENCE)


def test_the_lineage_shows_all_groups_on_one_screen(live: Up, tab: "Page", shoot) -> None:
    tab.goto(f"{live.dagster}/asset-groups")
    for group in GROUPS:
        see(tab, group)
        # The last one is that of the graph; the others are of the list beside it.
        box = tab.get_by_text(group, exact=True).last.bounding_box()
        assert box is not None
        assert 0 < box["x"] < box["x"] + box["width"] < WIDTH
        assert 0 < box["y"] < box["y"] + box["height"] < HEIGHT
    shoot("lineage")


def test_a_target_model_shows_metrics_and_picture(live: Up, adapted: str, tab: "Page", shoot) -> None:
    tab.goto(f"{live.dagster}/assets/model_target__adapted?partition={adapted}&view=partitions")
    see(tab, "errors_beside_baselines")
    see(tab, f"perf-target-{adapted} version")
    shoot("target_partition")
    picture = tab.get_by_alt_text("errors on held-out runs")
    playwright.expect(picture).to_be_visible(timeout=PATIENCE)
    picture.scroll_into_view_if_needed()
    playwright.expect(picture).not_to_have_js_property("naturalWidth", 0)
    shoot("target_picture")
    tab.goto(f"{live.dagster}/assets/model_target__adapted?view=checks")
    see(tab, "not_worse")
    see(tab, "champion_holds")
    shoot("target_checks")


def test_the_sensor_shows_its_ticks(live: Up, adapted: str, tab: "Page", shoot) -> None:
    tab.goto(f"{live.dagster}/locations/perf_assets.definitions/sensors/landing_sensor")
    see(tab, "Running")
    see(tab, "refresh_machine")
    see(tab, "runs requested")
    shoot("sensor")


def test_a_rerun_from_the_button_succeeds(live: Up, adapted: str, tab: "Page", shoot) -> None:
    # What followed from the landing: little work, from which nothing follows.
    run = wait_for(lambda: succeeded(live, lambda run: True), "a run of what follows", 600)
    tab.goto(f"{live.dagster}/runs/{run['runId']}")
    tab.get_by_role("button", name="Re-execute all").first.click()
    parent = {"key": "dagster/parent_run_id", "value": run["runId"]}
    wait_for(lambda: succeeded(live, lambda run: parent in run["tags"]), "the success of a new run", 600)
    shoot("rerun")


def test_runs_of_commands_show_on_the_timeline_and_with_their_job(live: Up, tab: "Page", shoot) -> None:
    # The site was ingested and trained by commands before the services came up.
    tab.goto(f"{live.dagster}/locations/perf_assets.definitions/jobs/train_fleet/runs")
    see(tab, "Success")
    shoot("job_runs")
    tab.goto(f"{live.dagster}/overview/activity/timeline")
    see(tab, "train_fleet")
    assert tab.get_by_text("perf_assets_process").count() == 0
    shoot("timeline")
