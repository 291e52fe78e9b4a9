"""The page of a comparison: every figure, what it rests on, what is not sure; nothing of the data as HTML."""

import base64
import io
import re
from dataclasses import replace
from datetime import UTC, datetime

import pandas as pd
import pytest

from perf_assets.reports.compare.page import application_map, compare_page, intervals
from tests.reports.comparisons import comparison
from tests.reports.site_checks import check_page

NOW = datetime(2026, 11, 16, 12, 0, tzinfo=UTC)
PNG = b"\x89PNG\r\n\x1a\n"


@pytest.fixture(scope="module")
def page() -> str:
    return compare_page(comparison(), NOW)


def row_of(page: str, machine: str) -> str:
    """Of the table of machines."""
    rows = re.findall(r"<tr><th scope=\"row\">.+?</tr>", page.split('<section id="machines">')[1], flags=re.DOTALL)
    return next(row for row in rows if f">{machine}<" in row)


@pytest.mark.slow
def test_every_machine_has_its_row(page: str) -> None:
    row = row_of(page, "h100")
    assert '<b>0.34</b><span class="spread under">0.31 to 0.38</span>' in row
    assert "540 measured" in row
    assert "4 champion" in row
    assert "simulated" not in row
    assert ">simulated<" in row_of(page, "tioga")
    assert ">measured<" in row_of(page, "tioga")
    assert '<span class="tag small bad">prior only</span>' in row_of(page, "new$box$")
    assert "place by price" in page
    assert "kWh" in page


@pytest.mark.slow
def test_nothing_of_the_data_is_markup_and_nothing_is_loaded(page: str) -> None:
    assert "&lt;b&gt;$x$" in page
    assert "<b>$x$" not in page
    assert "&lt;i&gt;hard" in page
    assert "2 of 12 configurations are left out" in page
    assert "simulated machines are marked" in page
    assert not re.search(r'(src|href)="(?!data:|#)', page)


def test_the_figures_can_be_downloaded(page: str) -> None:
    assert len(check_page(page).figures) == 2
    machines, applications = (
        pd.read_csv(io.BytesIO(base64.b64decode(data)))
        for data in re.findall(r'href="data:text/csv;charset=utf-8;base64,([^"]+)"', page)
    )
    found = comparison()
    assert machines["relative_time_value"].tolist() == pytest.approx([m.relative_time.value for m in found.machines])
    assert applications["app"].tolist() == [one.app for one in found.applications]
    assert applications["seconds_upper"].tolist() == pytest.approx([one.seconds.upper for one in found.applications])


def test_pictures_have_a_panel_for_each_measure_and_all_intervals() -> None:
    stored = io.BytesIO()
    figure = intervals(comparison(), stored)
    assert stored.getvalue().startswith(PNG)
    assert [axes.get_title() for axes in figure.axes] == ["price", "time", "node-hours", "energy"]
    time = figure.axes[1]
    lines = [line.get_xdata() for line in time.lines]
    for one in comparison().machines:
        assert any(list(line) == [one.relative_time.lower, one.relative_time.upper] for line in lines)  # type: ignore[arg-type]
    assert [text.get_text() for text in time.texts] == ["1 to 2", "1 to 3", "2 to 3"]
    two = intervals(comparison(has_costs=False), io.BytesIO())
    assert [axes.get_title() for axes in two.axes] == ["time", "node-hours"]


def test_the_map_names_each_time_and_its_interval() -> None:
    figure = application_map(comparison(), io.BytesIO())
    texts = [text.get_text() for text in figure.axes[0].texts]
    assert texts[:2] == ["0.34", "0.31 to 0.38"]
    assert len(texts) == 2 * 3 * 2


def test_one_machine_has_nothing_to_be_told_from() -> None:
    alone = comparison(has_costs=False)
    page = compare_page(replace(alone, machines=alone.machines[:1], applications=alone.applications[:2]), NOW)
    assert "there is nothing to order" in page
