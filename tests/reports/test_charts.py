"""The numbers behind figures are those that are drawn, and no spreadsheet computes them."""

import io
from collections.abc import Callable

import numpy as np
import pandas as pd
import pytest
from matplotlib.axes import Axes
from matplotlib.collections import PatchCollection, PathCollection
from matplotlib.container import BarContainer
from matplotlib.figure import Figure

from perf_assets.core.text import csv_of
from perf_assets.reports.fleet.page import champion_errors, fleet_page
from perf_assets.reports.fleet.pair_gains import gain_chart, pairs_page
from perf_assets.reports.machine import figures as machine_charts
from perf_assets.reports.machine import figures as machine_figures
from perf_assets.reports.machine.numbers import method_name
from perf_assets.reports.schedule import page as schedule
from perf_assets.reports.schedule import page as schedule_figures
from perf_assets.reports.site import Chart, chart
from perf_assets.reports.style import BLUE, MOST_MAPE, ORANGE, methods_by_scenario, trees_by_scenario
from perf_assets.reports.vectors import figures as vector_figures
from perf_assets.reports.vectors import page as vectors
from perf_assets.reports.xamm import amm_charts, maps
from perf_assets.reports.xamm.page import xamm_page
from tests.reports import machine_tables, result_tables
from tests.reports.fleets import every_state
from tests.reports.site_checks import Page, table_of
from tests.reports.tables import embeddings, scores


def numbers(of: Chart) -> pd.DataFrame:
    """As somebody gets them who follows the link."""
    return table_of(of.numbers_address)


def drawn(draw: Callable[..., Figure], *given: object) -> list[Axes]:
    return draw(*given, io.BytesIO()).axes


def bars(axes: Axes, *, is_flat: bool = False) -> list[float]:
    found = [bar for group in axes.containers if isinstance(group, BarContainer) for bar in group]
    return [bar.get_width() if is_flat else bar.get_height() for bar in found]


def points(axes: Axes) -> np.ndarray:
    found = [np.asarray(part.get_offsets()) for part in axes.collections if isinstance(part, PathCollection)]
    return np.concatenate([part for part in found if len(part)])


def same(first: object, second: object) -> None:
    """In any order."""
    left, right = (np.asarray(values, float).reshape(len(values), -1) for values in (first, second))  # type: ignore[arg-type]
    assert len(left)
    assert left[np.lexsort(left.T)] == pytest.approx(right[np.lexsort(right.T)], rel=1e-8)


def test_texts_that_look_like_formulas_are_texts() -> None:
    texts = ["=1+1", "+1", "-1", "@SUM(A1)", "\t=1", "\r=1", "\n=1", "plain", "a=b", None]
    table = pd.DataFrame({"=cmd|' /C calc'!A0": texts, "value": [-1.5, *range(8), np.nan]})
    found = pd.read_csv(io.StringIO(csv_of(table)))
    assert list(found.columns) == ["'=cmd|' /C calc'!A0", "value"]
    assert [str(text)[:1] for text in found.iloc[:7, 0]] == ["'"] * 4 + ["\\"] * 3, "tabs and line breaks are escapes"
    assert found.iloc[7:9, 0].tolist() == ["plain", "a=b"]
    assert found["value"].tolist()[:3] == [-1.5, 0, 1], "a negative number is no formula"
    assert found.iloc[9].isna().all()


def test_numbers_keep_their_digits_and_text_its_commas() -> None:
    table = pd.DataFrame({"x": [1 / 3, 2_592_000.25, 1e-12], "name": ['a,"b"', "c;d", "ü"], "is": [True, False, True]})
    made = chart("a b/../c", "title", "words", lambda target: target.write(b""), table)
    found = numbers(made)
    assert found["x"].to_numpy() == pytest.approx(table["x"].to_numpy(), rel=1e-9)
    assert found["name"].tolist() == table["name"].tolist()
    assert found["is"].tolist() == table["is"].tolist()
    assert made.file == "a-b-..-c.csv"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("shown", "draw"),
    [
        (machine_charts.Shown.ERROR, machine_figures.learning_curve),
        (machine_charts.Shown.COVERAGE, machine_figures.calibration),
    ],
)
def test_curves(shown: machine_charts.Shown, draw: Callable[..., Figure]) -> None:
    made = machine_charts.curve_chart("dane", machine_tables.curve(), shown)
    lines = {
        (axes.get_title().split(" (medians")[0], line.get_label()): np.column_stack(
            [line.get_xdata(), line.get_ydata()]
        )
        for axes in drawn(draw, machine_tables.curve())
        for line in axes.lines
        if not str(line.get_label()).startswith("nominal")
    }
    found = numbers(made).groupby(["target", "source", "method"])
    assert len(found) == len(lines)
    for (target, source, method), here in found:
        line = lines[f"{target} from {source}", method_name(str(method))]
        same(line, np.column_stack([here["shots"], 100 * here[shown.middle]]))
    assert "our model has" in made.words


@pytest.mark.slow
def test_weights_of_counters() -> None:
    weights = machine_tables.weights(70, 90)
    found = numbers(machine_charts.weights_chart("dane", "quartz", weights)).set_index("source_counter")
    image = drawn(machine_figures.alignment_heat_map, weights)[0].images[0].get_array()
    assert found.to_numpy() == pytest.approx(np.asarray(image))
    assert found.shape == (60, 60)
    name = found.columns[3]
    assert found.loc[weights.index[5], name] == pytest.approx(weights.iloc[5][name])


@pytest.mark.slow
def test_machines_and_their_vectors() -> None:
    amms = machine_tables.amms()
    found = numbers(amm_charts.vectors_chart("dane", amms, ["dane"])).set_index("machine")
    axes = drawn(maps.amm_heat_map, amms)[0]
    names = [label.get_text() for label in axes.get_yticklabels()]
    assert found.loc[names].to_numpy() == pytest.approx(np.asarray(axes.images[0].get_array()))
    placed = numbers(amm_charts.map_chart("dane", amms))
    same(placed[["first_component", "second_component"]], points(drawn(maps.machine_map, amms)[0]))
    assert placed["machine"].tolist() == amms.index.tolist()


def test_components_are_known_by_kernels() -> None:
    amms = machine_tables.amms()
    kinds = ["memory", "memory", "", "cache", "compute", "compute"]
    found = amm_charts.component_kernels(amms, machine_tables.kernel_times(amms), kinds).set_index("component")
    of_kinds, slow, fast, spread = found.loc["0"]
    assert "memory (+" in of_kinds
    assert "cache (\N{MINUS SIGN}" in of_kinds
    assert "compute" not in of_kinds
    assert slow.startswith("SLOW (+")
    assert "FAST" not in slow
    assert fast.startswith("FAST (\N{MINUS SIGN}")
    assert "SLOW" not in fast
    assert spread == pytest.approx(amms[0].std(ddof=0))
    few = amms.iloc[:5]
    unnamed = amm_charts.component_kernels(few, machine_tables.kernel_times(few), kinds)
    assert set(unnamed.iloc[0, 1:4]) == {"\N{EN DASH}"}


def test_machines_are_placed_by_kind() -> None:
    names = pd.Index(["elm", "elm (host)", "oak"])
    assert amm_charts.kinds_of(names).tolist() == ["GPUs", "hosts of GPUs", "CPUs"]


def test_champions() -> None:
    found = Page(fleet_page(every_state())).numbers()["champion-errors.csv"]
    (axes,) = drawn(champion_errors, every_state().machines)
    lines = [line for line in axes.lines if len(line.get_xdata()) == 1]
    ours, alone = ([line.get_xdata()[0] for line in lines if line.get_markeredgecolor() == c] for c in (BLUE, ORANGE))
    same(ours, 100 * found["champion_mape_ratio"])
    # Beyond the end of the axis there is an arrow with its figure.
    same(alone, 100 * found["target_only_mape_ratio"].clip(upper=MOST_MAPE))


@pytest.mark.slow
def test_experiments() -> None:
    found = Page(xamm_page(scores(), embeddings())).numbers()
    inputs = found["xamm-raw_vs_embedding_vs_amm-loao.csv"]
    same(100 * inputs["mape"], [bar for axes in drawn(trees_by_scenario, scores()) for bar in bars(axes)])
    methods = found["xamm-machine_descriptions-lomo.csv"]
    axes = drawn(methods_by_scenario, scores(), "machine_descriptions", "lomo")
    same(100 * methods["mape"], [bar for panel in axes for bar in bars(panel, is_flat=True)])
    runs = found["xamm-embeddings-by-app.csv"]
    panels = drawn(maps.embedding_scatter, embeddings(), "app")
    same(runs[["x", "y"]], np.concatenate([points(panel) for panel in panels]))


def test_pairs() -> None:
    found = numbers(gain_chart(machine_tables.matrix()))
    same(
        found[["severity_ratio", "log_gain"]],
        points(drawn(machine_figures.severity_against_gain, machine_tables.matrix())[0]),
    )
    assert np.log(found["gain_factor"]).to_numpy() == pytest.approx(found["log_gain"].to_numpy())


@pytest.mark.slow
def test_pairs_without_a_severity_have_a_line_in_place_of_a_figure() -> None:
    unknown = machine_tables.matrix().assign(severity_ratio=np.nan)
    page = pairs_page(unknown, gain_chart(unknown), pd.DataFrame({"method": ["product"], 10: [0.1]}))
    assert "<figure>" not in page
    assert "Nothing to show: no pair has a severity and scores at 10 shots." in page


@pytest.mark.slow
def test_schedules() -> None:
    rows = result_tables.schedule_rows()
    found = numbers(schedule.turnaround_chart(rows, 1.0))
    hours, slowdowns = drawn(schedule_figures.turnaround_by_strategy, rows, 1.0)
    same(found["turnaround_mean_seconds_mean"] / 3600, bars(hours, is_flat=True))
    same(found["bounded_slowdown_mean_mean"], bars(slowdowns, is_flat=True))
    swept = numbers(schedule.sweep_chart(rows, 2.0))
    lines = drawn(schedule_figures.load_sweep, rows, 2.0)[0].lines
    same(
        np.column_stack([swept["load_ratio"], swept["turnaround_mean_seconds"] / 3600]),
        np.concatenate([line.get_xydata() for line in lines]),
    )


def test_a_busy_day() -> None:
    given = (result_tables.busy_day(), 8, result_tables.DAY, 2 * result_tables.DAY)
    found = numbers(schedule.day_chart(*given))
    boxes = [
        path.get_extents().bounds
        for axes in drawn(schedule_figures.gantt, *given)
        for part in axes.collections
        if isinstance(part, PatchCollection)
        for path in part.get_paths()
    ]
    hours = found[["start_seconds", "end_seconds"]] / 3600
    width = hours["end_seconds"] - hours["start_seconds"]
    start = hours["start_seconds"] - result_tables.DAY / 3600
    same(np.column_stack([start, found["first_node"], width, found["nodes_count"]]), boxes)


@pytest.mark.slow
def test_vectors() -> None:
    rows, entries, measured = result_tables.vector_rows(), result_tables.vector_entries(), result_tables.vectors()
    parts = vectors.score_parts(rows, entries, measured, result_tables.vector_scores())
    found = {made.name: numbers(made) for part in parts for made in part.charts}
    for name, column, draw in (
        ("orders", "same_order_ratio", vector_figures.orders_by_application),
        ("errors", "absolute_error", vector_figures.errors_by_application),
    ):
        same(found[f"vectors-{name}-by-application"][column], [bar for axes in drawn(draw, rows) for bar in bars(axes)])
    shown = found["vectors-predicted-against-true"]
    panels = drawn(vector_figures.predicted_against_true, entries)
    same(shown[["relative_time", "predicted_relative_time"]], np.concatenate([points(axes) for axes in panels]))
    curves = found["vectors-majority-roc"]
    lines = [
        line for axes in drawn(vector_figures.majority_roc, rows) for line in axes.lines if line.get_linestyle() == "-"
    ]
    same(curves[["false_positive_ratio", "true_positive_ratio"]], np.concatenate([line.get_xydata() for line in lines]))
    (axes,) = drawn(vector_figures.vector_of_application, measured, entries, "Laghos")
    same(found["vectors-one-application"]["relative_time"], bars(axes))
    held_out = entries[(entries["app"] == "Laghos") & (entries["protocol"] == "sample")]
    laghos = held_out[held_out["method"] == "vae_dnn"].groupby("target_machine")["relative_time"].median()
    same(found["vectors-one-application"]["relative_time"][: len(laghos)], laghos)
    (axes,) = drawn(vector_figures.relative_by_machine, measured)
    medians = [line.get_ydata()[0] for line in axes.lines if line.get_color() == "#333333"]
    same(found["vectors-relative-by-machine"]["percentile_50"], medians)


@pytest.mark.slow
def test_figures_of_the_paper_are_named_as_there() -> None:
    parts = vectors.score_parts(
        result_tables.vector_rows(),
        result_tables.vector_entries(),
        result_tables.vectors(),
        result_tables.vector_scores(),
    )
    titles = [made.title for part in parts for made in part.charts]
    numbered = [title.partition(" of Nichols et al.: ")[::2] for title in titles if title.startswith("Figure ")]
    assert [number for number, _ in numbered] == ["Figure 2", "Figure 3", "Figure 4", "Figure 5"]
    starts = (
        "distribution of relative performance by machine",
        "the vector of Laghos",
        "machines all in the right",
        "ROC",
    )
    assert all(text.startswith(start) for (_, text), start in zip(numbered, starts, strict=True))
    (table,) = (table for part in parts for name, table in part.tables.items() if name == "Ours and the paper's")
    same_order = dict(zip(table["method"], table["same order, paper"], strict=True))
    assert (same_order["sigma-VAE + DNN"], same_order["majority order"]) == (0.91, 0.80)


def test_a_fleet_that_grows() -> None:
    (made,) = vectors.growth_part(result_tables.growth()).charts
    found = numbers(made)
    (axes,) = drawn(vector_figures.growth, result_tables.growth())
    same(100 * found["mape_ratio"], points(axes)[:, 1])
    medians = found.drop_duplicates(["method", "shots"])["median_mape_ratio"]
    same(100 * medians, np.concatenate([line.get_ydata() for line in axes.lines]))
    assert medians.iloc[0] == pytest.approx(0.9 * 1.7 / 2)
