"""The card of a model: what it is, how good beside baselines, what not to use it for; never more than is known."""

import io
import re
from dataclasses import replace

import pandas as pd
import pytest

from perf_assets.reports.machine.card import CardColumn, CardFacts, CardView, model_card
from perf_assets.reports.machine.figures import candidate_figure
from perf_assets.reports.site import as_data_uri, picture
from perf_assets.reports.style import BLUE, ORANGE
from tests.reports import machine_tables as tables

PNG = b"\x89PNG\r\n\x1a\n"


def facts() -> CardFacts:
    return CardFacts(
        machine="dane",
        is_simulated=True,
        views=tuple(CardView(name, "quartz", 40, "with_prior") for name in tables.VIEWS),
        candidates=tables.candidates("with_prior"),
        coverage_ratio=0.9,
        severity=0.283,
        source_version=5,
        encoder_version="9f2c",
        manifests_count=412,
        manifests_digest="ab12",
        tracking_uri="sqlite:////lake/mlflow/mlflow.db",
        seed=0,
        code_version="00f83b1",
        dagster_run_id="6f0e",
        inputs=(CardColumn("source_machine", "string"), CardColumn("args", "string", is_required=False)),
        outputs=(CardColumn("predicted_seconds", "double"),),
    )


@pytest.fixture(scope="module")
def card() -> str:
    return model_card(facts())


def test_sections_in_their_order(card: str) -> None:
    titles = re.findall(r"^## (.+)$", card, flags=re.MULTILINE)
    assert [title.split(",")[0] for title in titles] == [
        "What it is",
        "How to use it",
        "How good it is",
        "What it must not be used for",
        "Where it comes from",
    ]
    assert card.startswith("# Performance model of dane\n")
    assert card.endswith("|\n")


def test_the_example_is_python_for_this_machine(card: str) -> None:
    code = re.search(r"```python\n(.+?)```", card, flags=re.DOTALL)
    assert code is not None
    compile(code[1], "card", "exec")
    assert 'machine = "dane"' in code[1]
    assert 'mlflow.set_tracking_uri("sqlite:////lake/mlflow/mlflow.db")' in code[1], "it runs from any folder"
    assert 'mlflow.pyfunc.load_model(f"models:/perf-target-{machine}@champion")' in code[1]


def test_the_chosen_method_stands_beside_every_baseline(card: str) -> None:
    assert (
        card.count("| benchmark expectation, corrected | **chosen** | 11.0% | 0.33\N{MULTIPLICATION SIGN} | 0.121 |")
        == 2
    )
    assert card.count("| baseline |") == 2 * 3
    assert "3.0 times smaller than that of the best baseline" in card
    assert "at least as good here" not in card


def test_a_baseline_that_wins_is_said() -> None:
    lost = tables.candidates("target_gp").replace({"method": {"target_gp": "paired"}})
    assert model_card(replace(facts(), candidates=lost)).count("**A baseline is at least as good on these runs") == 2


def test_what_is_not_known_is_said() -> None:
    unknown = replace(
        facts(), candidates=pd.DataFrame(), severity=None, source_version=None, encoder_version=None, is_simulated=False
    )
    text = model_card(unknown)
    assert text.count("**Its error is not known**") == 2
    half = tables.candidates()[lambda rows: rows["seen_as"] == "dane"]
    assert "dane (host): too few runs to hold some out" in model_card(replace(facts(), candidates=half))
    assert "Severity of the transfer: not known." in text
    assert "| source model | none |" in text
    assert "imulated" not in text
    assert "None" not in text


def test_simulated_runs_limits_and_origin_are_said(card: str) -> None:
    assert "**Made from simulated runs.**" in card
    assert "10% of the true times are expected outside" in card
    assert "another machine than the reference machine" in card
    for origin in ("perf-source version 5", "9f2c", "412, digest `ab12`", "`00f83b1`", "`6f0e`"):
        assert origin in card
    assert "| `source_machine` | string |" in card
    assert "It may also have `args`" in card


def test_every_row_of_a_table_has_the_columns_of_its_head() -> None:
    attacked = replace(facts(), views=(CardView("a|b\n<script>", "quartz", 4, "x|y"),), encoder_version="a | b")
    text = model_card(attacked)
    assert "<script" not in text
    for block in re.findall(r"(?:^\|.*\n)+", text, flags=re.MULTILINE):
        columns = {len(re.findall(r"(?<!\\)\|", line)) for line in block.splitlines()}
        assert len(columns) == 1, block


def test_candidates_and_baselines_have_different_colours() -> None:
    figure = candidate_figure(tables.candidates("with_prior"), io.BytesIO())
    for axes in figure.axes:
        rows = [label.get_text() for label in axes.get_yticklabels()]
        assert len(rows) == len(tables.LEVELS)
        edges = {
            rows[int(line.get_ydata()[0])]: line.get_markeredgecolor() for line in axes.lines if len(line.get_ydata())
        }
        assert edges["benchmark expectation, corrected"] == edges["time on the source, corrected"] == BLUE
        assert edges["ridge on the shots alone"] == edges["time on the source, unchanged"] == ORANGE
        assert [text.get_text() for text in axes.texts] == ["10.0%", "11.0%", "12.0%", "33.0%", "400%", "900%"]


def test_errors_beyond_the_axis_keep_their_figure() -> None:
    far = tables.candidates().replace({"mape_ratio": {9.0: 77.0, 4.0: float("nan")}})
    axes = candidate_figure(far, io.BytesIO()).axes[0]
    assert "7,700%" in [text.get_text() for text in axes.texts]
    assert axes.get_xlim()[1] < 7700


def test_a_picture_is_drawn_once_for_all_its_uses() -> None:
    drawn = []

    def draw(target: io.BytesIO) -> None:
        drawn.append(target)
        target.write(PNG)

    assert picture(draw) == PNG
    assert len(drawn) == 1
    assert as_data_uri(PNG) == "data:image/png;base64,iVBORw0KGgo="
