"""The page of a machine and its pictures: computed figures, nothing from outside, nothing of the data as HTML."""

import base64
import io
import re
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pandas as pd
import pytest
from matplotlib.collections import PathCollection

from perf_assets.reports.machine import figures
from perf_assets.reports.machine.findings import machine_findings, severity_finding
from perf_assets.reports.machine.numbers import distances, method_name, rank_correlation, transfer_gains
from perf_assets.reports.machine.page import machine_page
from perf_assets.reports.scores import error
from tests.reports import machine_tables as tables

pytestmark = pytest.mark.slow

PNG = b"\x89PNG\r\n\x1a\n"
ATTACK = '"><script>alert(1)</script>&'


@pytest.fixture(scope="module")
def page() -> str:
    return machine_page(tables.full((6, 8)))


@pytest.fixture(scope="module")
def empty_page() -> str:
    return machine_page(tables.empty())


def headlines(**changes: object) -> str:
    return "\n".join(
        f"{found.headline} {found.detail}" for found in machine_findings(replace(tables.full((6, 8)), **changes))
    )


def test_times_that_are_relative_are_said_to_be(page: str) -> None:
    facts = replace(tables.full((6, 8)), is_simulated=False, relative_times="relative to quartz")
    relative = machine_page(facts)
    assert "Times of its runs are relative to quartz, not in seconds; so are all predictions of them." in relative
    assert ">measured<" in relative
    assert "simulated" not in relative.split("<main")[0].casefold()
    assert "not in seconds" not in page


def test_numbers_of_all_parts_are_there(page: str) -> None:
    assert "perf-target-dane version 3" in page
    assert 'mlflow.pyfunc.load_model("models:/perf-target-dane@champion")' in page
    assert ">SIMULATED<" in page
    for method, level in tables.LEVELS.items():
        assert f'title="{method}"' in page
        assert f"<td>{error(level)}</td>" in page
    assert "<td>0.30\N{MULTIPLICATION SIGN}</td>" in page  # product beside the best baseline, 0.10 / 0.33
    assert f">{error(0.1 * 1.2 / 6**0.5)} <span" in page  # the median of five seeds at 50 shots
    assert "88% <span" in page  # coverage of the product at 50 shots
    assert "Severity 0.28: the transfer is easy." in page
    nearest = distances(tables.amms(), "dane", "dane")
    assert f'{nearest.index[0]} <span class="spread">{nearest.iloc[0]:.2f}</span>' in page
    assert "perf::target_counter_" in page
    assert "<details>" in page
    assert "quantity: l2_misses" in page
    assert "<td>12.0%</td><td><b>11.0%</b></td><td>0.25</td>" in page
    assert "<td>not known</td>" in page


def test_it_begins_with_the_machine_and_three_lines(page: str) -> None:
    parts = ["sheet", "curve", "use", "findings", "model", "verdicts"]
    places = [page.index(f'<section id="{name}">') for name in parts]
    assert places == sorted(places)


def test_losing_candidates_are_shown_and_the_chosen_one_is_marked(page: str) -> None:
    assert page.count("candidate, not chosen") == 2 * 2
    assert page.count("<b>chosen</b>") == 2
    assert page.count('class="left">baseline<') == 2 * 3


def test_missing_parts_say_why(page: str, empty_page: str) -> None:
    for part in ("amms", "candidates", "curve", "severity", "alignment", "next_runs", "registered_as"):
        assert f"reason of {part}" in empty_page
    assert "<img" not in empty_page
    assert "SIMULATED" not in empty_page
    assert "load_model" not in empty_page
    assert "What these data say" not in empty_page
    assert 'class="absent"' not in page
    assert "no reason was given" in machine_page(replace(tables.empty(), missing={}))


def test_views_that_a_table_lacks_are_named() -> None:
    rows = tables.candidates()
    facts = replace(tables.empty(), candidates=rows[rows["seen_as"] == "dane"], next_runs=tables.next_runs())
    assert machine_page(facts).count("Nothing here on dane (host): too few runs to hold some out.") == 1


def test_the_page_needs_nothing_from_outside(page: str) -> None:
    assert not re.search(r"https?://|<script [^>]*src|<link|@import|url\(|srcset", page)
    assert all(link.startswith(("#", "data:", "index.html")) for link in re.findall(r'href="([^"]+)"', page))
    sources = re.findall(r'src="([^"]+)"', page)
    assert len(sources) == 6
    for source in sources:
        start, data = source.split(",", 1)
        assert start == "data:image/png;base64"
        assert base64.b64decode(data, validate=True).startswith(PNG)


def test_links_of_the_page_lead_somewhere(empty_page: str) -> None:
    for name in re.findall(r'href="#([^"]+)"', empty_page):
        assert f'<section id="{name}">' in empty_page


def test_text_of_the_data_is_escaped() -> None:
    facts = tables.full((3, 3))
    weights = facts.alignment_weights.rename(columns=lambda name: f"{ATTACK}$x_{name}")
    attacked = replace(
        facts,
        amms=pd.DataFrame(),
        registered_as=ATTACK,
        candidates=facts.candidates.replace({"method": {"with_prior": ATTACK}, "source": {"quartz": ATTACK}}),
        curve=facts.curve.replace({"method": {"with_prior": ATTACK}, "source": {"quartz": ATTACK}}),
        alignment=tables.alignment(weights),
        alignment_weights=weights,
        alignment_source=ATTACK,
        catalogue_proposal=ATTACK,
        next_runs=facts.next_runs.assign(configuration=ATTACK, app=ATTACK),
    )
    assert machine_page(attacked).count("<script") == 1, "the page's own"
    reasons = dict.fromkeys(tables.empty().missing, ATTACK)
    assert machine_page(replace(tables.empty(), missing=reasons)).count("<script") == 1


def test_words_follow_the_data() -> None:
    assert "MAPE 10.0% on 40 held-out shots, 3.3 times smaller than that of the best baseline" in headlines()
    ridge = tables.candidates().assign(mape_ratio=lambda t: t["mape_ratio"].where(t["method"] != "target_ridge", 0.05))
    assert "2.0 times larger than that of the best baseline" in headlines(candidates=ridge)
    assert "smallest log error of all: our model" in headlines(candidates=tables.candidates("with_prior"))
    assert "every baseline at all 5 numbers of shots" in headlines()
    lost = tables.curve()
    lost.loc[(lost["method"] == "target_gp") & (lost["shots"] == 50), "mape_ratio"] = 0.01
    said = headlines(curve=lost)
    assert (
        "every baseline at 4 of 5 numbers of shots (not at 50 shots: Gaussian process on the shots alone 1.0%" in said
    )
    assert "Outside of 85% to 95% with 0 shots (98%, too wide), 5 shots (97%, too wide)" in headlines()
    good = headlines(curve=tables.curve().assign(coverage_90_ratio=0.9))
    assert "holds 90% of the test rows. Between 85% and 95% at every number of shots" in good
    assert "from 12.0% to 7.0% for 3.75 node-hours" in headlines()


@pytest.mark.parametrize(
    ("severity", "said"),
    [
        (0.0, "Severity 0.00: the transfer is easy"),
        (0.5, "Severity 0.50: the transfer is of middle difficulty"),
        (0.9, "Severity 0.90: the transfer is hard"),
    ],
)
def test_severity_in_words(severity: float, said: str) -> None:
    assert said in severity_finding(severity).headline


def test_errors_beyond_use_read_the_same() -> None:
    assert [error(value) for value in (0.123, 12.3, 4e8, np.nan)] == ["12.3%", "1,230%", ">10,000%", "not known"]


def test_the_page_draws_three_lines_and_tells_of_the_others_behind_a_fold(page: str) -> None:
    unchanged, alone = method_name("source_unchanged"), method_name("target_ridge")
    assert f"over the number of shots; lines: {method_name('product')}; {unchanged}; {alone}." in page
    folded = page.split("<details><summary>All methods, our own variants too")[1].split("</details>")[0]
    assert all(f'title="{method}"' in folded for method in ("with_prior", "target_gp"))


def test_learning_curve_has_a_line_for_each_method() -> None:
    buffer = io.BytesIO()
    figure = figures.learning_curve(tables.curve(), buffer)
    assert buffer.getvalue().startswith(PNG)
    assert [len(axes.lines) for axes in figure.axes] == [6, 6]
    assert {axes.get_yscale() for axes in figure.axes} == {"log"}
    first = figure.axes[0].lines[0]
    assert np.asarray(first.get_xdata()).tolist() == list(tables.SHOTS)
    assert np.asarray(first.get_ydata())[0] == pytest.approx(12.0)
    assert "not shown" in figure.axes[1].get_title()
    near = tables.curve()[lambda rows: rows["method"].isin(["product", "with_prior"])]
    assert {axes.get_yscale() for axes in figures.learning_curve(near, io.BytesIO()).axes} == {"linear"}


def test_calibration_has_methods_with_an_interval_and_the_nominal_line() -> None:
    figure = figures.calibration(tables.curve(), io.BytesIO())
    assert [len(axes.lines) for axes in figure.axes] == [4 + 1, 4 + 1]


def test_curves_without_intervals_have_no_calibration() -> None:
    page = machine_page(replace(tables.empty(), curve=tables.curve().assign(coverage_90_ratio=np.nan)))
    assert "No method of the learning curve has an interval." in page


@pytest.mark.parametrize("counters", [(1, 1), (60, 60), (70, 90)])
def test_heat_maps_are_readable(counters: tuple[int, int]) -> None:
    figure = figures.alignment_heat_map(tables.weights(*counters), io.BytesIO())
    axes = figure.axes[0]
    shown = tuple(min(count, figures.MOST_COUNTERS) for count in counters)
    assert axes.images[0].get_array().shape == shown
    assert (len(axes.get_yticklabels()), len(axes.get_xticklabels())) == shown
    assert ("60 of 90" in axes.get_xlabel()) == (counters[1] > 60)
    figure.draw_without_rendering()
    for labels, size in ((axes.get_yticklabels(), "height"), (axes.get_xticklabels(), "width")):
        boxes = [label.get_window_extent() for label in labels]
        starts = sorted(box.y0 if size == "height" else box.x0 for box in boxes)
        thickest = max(getattr(box, size) for box in boxes)
        assert all(after - before > 0.85 * thickest for before, after in pairwise(starts))


def test_a_point_for_each_pair_and_their_rank_correlation() -> None:
    figure = figures.severity_against_gain(tables.matrix(5), io.BytesIO())
    points = figure.axes[0].collections[0]
    assert isinstance(points, PathCollection)
    assert len(np.asarray(points.get_offsets())) == 5 * 4 - 1
    assert "19 pairs: rank correlation \N{MINUS SIGN}1.00 (simulated fleet)" in figure.axes[0].get_title()


def test_the_gain_is_of_medians_beside_the_best_target_only_method() -> None:
    gains = transfer_gains(tables.matrix(3)).set_index(["source", "target"])["gain"]
    assert gains["m2", "m0"] == pytest.approx(np.log(0.4 / (0.05 * 2.02)))
    assert transfer_gains(tables.matrix(3)[lambda rows: rows["method"] != "product"]).empty


def test_too_few_pairs_have_no_correlation() -> None:
    assert rank_correlation(pd.Series([0.1, 0.2]), pd.Series([1.0, 2.0])) is None
    assert rank_correlation(pd.Series([0.1, 0.2, 0.3]), pd.Series([1.0, 3.0, 9.0])) == pytest.approx(1.0)
    figure = figures.severity_against_gain(tables.matrix(2), io.BytesIO())
    assert "1 pairs: rank correlation not defined" in figure.axes[0].get_title()
    nothing = figures.severity_against_gain(tables.matrix(2).assign(severity_ratio=np.nan), io.BytesIO())
    assert "0 pairs" in nothing.axes[0].get_title()
