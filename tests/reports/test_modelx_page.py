"""The page of ModelX's table: all rows, the numbers that are drawn, nothing of the data as HTML."""

import io
import re

import numpy as np
import pytest
from matplotlib.collections import PathCollection

from perf_assets.reports.modelx.page import METHODS, learning_curves, modelx_page, severity_against_gain
from tests.reports.result_tables import modelx_rows
from tests.reports.site_checks import check_page

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def page() -> str:
    return modelx_page(modelx_rows())


def row_of(page: str, transfer: str, shots: int) -> str:
    """Of the first table."""
    rows = re.findall(r"<tr><th scope=\"row\">.+?</tr>", page, flags=re.DOTALL)
    return next(row for row in rows if f">{transfer}<" in row and f"<td>{shots}</td>" in row)


def test_every_row_is_in_the_table(page: str) -> None:
    row = row_of(page, "comd + cg → kripke", 8)
    assert "<td>0.011</td>" in row
    assert "<td>56.0%</td>" in row
    assert ">product</td>" in row
    assert "<td>0.00054</td>" in row_of(page, "comd + cg → kripke", 28), "small errors keep two digits"
    unshared = row_of(page, "comd + cg → &lt;b&gt;$new$", 8)
    assert "<td>\N{EN DASH}</td>" in unshared, "no zero-shot without a shared feature"
    assert "\N{MINUS SIGN}40.0%" in unshared
    assert "best target-only" in unshared


def test_nothing_of_the_data_is_markup(page: str) -> None:
    assert "<b>$new$" not in page
    found = check_page(page)
    assert "index.html" in found.links
    assert "index.html" not in check_page(modelx_page(modelx_rows(), is_in_site=False)).links


def test_numbers_behind_figures_are_those_of_the_table(page: str) -> None:
    gains, curves = check_page(page).numbers().values()
    rows = modelx_rows()
    assert curves["product"].tolist() == rows["product"].tolist()
    assert curves["zero_shot"].isna().tolist() == rows["zero_shot"].isna().tolist()
    known = rows[rows["severity"].notna()]
    assert gains["gain"].tolist() == pytest.approx((known["target_best"] / known["product"]).tolist())
    assert gains["severity"].tolist() == known["severity"].tolist()
    assert "at 1 of them the sources did harm" in page


def test_pictures_show_the_numbers() -> None:
    rows = modelx_rows().assign(transfer=modelx_rows()["target"])
    panels = [axes for axes in learning_curves(rows, io.BytesIO()).axes if axes.axison]
    assert len(panels) == 2
    assert [line.get_label() for line in panels[0].lines] == list(METHODS.values())
    assert list(panels[0].lines[0].get_ydata()) == rows["product"].tolist()[:2]
    gains = rows[rows["severity"].notna()].assign(gain=2.0)
    axes = severity_against_gain(gains, io.BytesIO()).axes[0]
    points = np.vstack([one.get_offsets() for one in axes.collections if isinstance(one, PathCollection)])
    assert sorted(points[:, 0]) == sorted(gains["severity"])
    assert set(points[:, 1]) == {2.0}


def test_a_table_without_severity_says_so() -> None:
    page = modelx_page(modelx_rows().assign(severity=np.nan))
    assert "No transfer has a severity" in page
    assert len(check_page(page).figures) == 1
