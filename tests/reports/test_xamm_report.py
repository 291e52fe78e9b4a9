"""The page: computed figures, no links outside, pictures that decode."""

import base64
import re

import pytest

from perf_assets.reports.scores import ScorePlace, change, origin, percent
from perf_assets.reports.xamm.findings import CLAIMS
from perf_assets.reports.xamm.page import summary_picture, what_it_says, xamm_page
from tests.reports.tables import embeddings, scores

pytestmark = pytest.mark.slow

PNG = b"\x89PNG\r\n\x1a\n"


_CPU, _TO_GPU, _GPU = "CPU → CPU", "CPU → GPU", "GPU → GPU"
PAPER = (
    (1, _CPU, "XGBoost", "49.64"),
    (1, _TO_GPU, "XGBoost", "99.07"),
    (1, f"{_CPU} and {_TO_GPU}", "AdaBoost", "84.70"),
    (1, f"{_CPU} and {_TO_GPU}", "bagging", "67.50"),
    (1, f"{_CPU} and {_TO_GPU}", "random forest", "63.85"),
    (1, f"{_CPU} and {_TO_GPU}", "XGBoost", "74.35"),
    (2, _CPU, "against raw, XGBoost", "20.30"),
    (2, _TO_GPU, "against raw, XGBoost", "3.31"),
    (3, _CPU, "AMM added to the embedding", "3.20"),
    (3, _TO_GPU, "AMM added to the embedding", "22.40"),
    (3, _GPU, "AMM added to the embedding", "36.80"),
    (4, _CPU, "option 2 (L2) against option 1", "25.50"),
    (4, _TO_GPU, "option 2 (L2) against option 1", "2.64"),
    (4, _CPU, "option 3 (variance) against option 1", "10.46"),
    (4, _TO_GPU, "option 3 (variance) against option 1", "5.05"),
)
"""Figures of xAMM by experiment, scenario and what is compared."""


@pytest.fixture(scope="module")
def page() -> str:
    return xamm_page(scores(), embeddings())


def test_figures_are_quoted_with_the_experiment_and_scenario_that_they_are_of() -> None:
    quoted = [claim for claim in CLAIMS if not claim.what.startswith("our best")]
    assert len(quoted) == len(PAPER)
    for claim, (experiment, scenario, what, figure) in zip(quoted, PAPER, strict=True):
        assert (claim.number, claim.where, f"{-100 * claim.paper:.2f}") == (experiment, scenario, figure)
        assert what in claim.what


def test_the_page_has_ours_beside_the_papers(page: str) -> None:
    for figure in ("49.64", "99.07", "74.35", "67.50", "20.30", "3.31", "3.20", "22.40", "36.80", "25.50", "2.64"):
        assert f">\N{MINUS SIGN}{figure}%<" in page
    found = change(
        scores(), ScorePlace("raw_vs_embedding_vs_amm", "loao", "CPU->CPU"), "embedding_amm_xgboost", "raw_xgboost"
    )
    assert found is not None
    assert f"<b>{percent(found.relative, signed=True)}</b>" in page
    assert f"{percent(found.baseline_mape)} → {percent(found.mape)}" in page


def test_experiments_are_numbered_as_in_the_paper(page: str) -> None:
    titles = re.findall(r"<h2>((?:Experiment|Beyond)[^<]*)</h2>", page)
    assert [title.split(":")[0] for title in titles] == [*(f"Experiment {n}" for n in range(1, 5)), "Beyond the paper"]
    (row,) = re.findall(r"<tr>(?:(?!</tr>).)*36\.80%.*?</tr>", page, re.DOTALL)
    assert "<td>3</td>" in row
    assert "<td>GPU → GPU</td>" in row


def test_other_scores_make_another_page(page: str) -> None:
    table = scores()
    table.loc[table["method"].str.startswith("embedding_amm"), "mape_ratio"] *= 1.234
    assert f"<b>{percent(0.4 * 1.234 - 1, signed=True)}</b>" in xamm_page(table, embeddings())
    assert f"<b>{percent(0.4 * 1.234 - 1, signed=True)}</b>" not in page


def test_the_page_says_which_data_it_is_from(page: str) -> None:
    assert '<span class="tag">simulated fleet</span>' in page
    assert origin(scores(is_simulated=False)) == "measured machines"
    assert "simulated fleet" not in xamm_page(scores(is_simulated=False), embeddings())


def test_the_page_needs_nothing_from_outside(page: str) -> None:
    assert not re.search(r"https?://|<script [^>]*src|<link|@import|url\(", page)
    sources = re.findall(r'src="([^"]+)"', page)
    assert len(sources) == 5 + 2
    for source in sources:
        start, data = source.split(",", 1)
        assert start == "data:image/png;base64"
        assert base64.b64decode(data, validate=True).startswith(PNG)


def test_what_it_says_fits_into_metadata() -> None:
    assert what_it_says(scores()).startswith("- **Unseen application: embedding (TabNet) beats raw counters")
    assert len(summary_picture(scores())) < 150_000
