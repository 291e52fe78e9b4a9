"""Pictures: as many bars and points as the tables have, and files that are PNG."""

import io
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from matplotlib.container import BarContainer
from matplotlib.figure import Figure
from matplotlib.text import Text

from perf_assets.reports.style import methods_by_scenario, trees_by_scenario
from perf_assets.reports.xamm.maps import amm_heat_map, embedding_scatter, machine_map, principal_components
from tests.reports.tables import embeddings, scores

PNG = b"\x89PNG\r\n\x1a\n"


def bars(figure: Figure) -> list[int]:
    """Bars of each panel."""
    return [
        sum(len(found) for found in axes.containers if isinstance(found, BarContainer)) for axes in figure.get_axes()
    ]


@pytest.fixture
def amms() -> pd.DataFrame:
    values = np.random.default_rng(0).normal(size=(20, 8))
    return pd.DataFrame(values, index=[f"machine-{n}" for n in range(20)])


def test_bars_by_trees_and_scenario(tmp_path: Path) -> None:
    figure = trees_by_scenario(scores(), tmp_path / "bars.png")
    assert bars(figure) == [2 * 3] * 4
    assert [axes.get_title() for axes in figure.get_axes()] == ["CPU → CPU", "CPU → GPU", "GPU → CPU", "GPU → GPU"]
    assert (tmp_path / "bars.png").read_bytes().startswith(PNG)


def test_bars_by_method_and_scenario() -> None:
    buffer = io.BytesIO()
    figure = methods_by_scenario(scores(), "machine_descriptions", "lomo", buffer)
    assert bars(figure) == [5] * 5
    assert buffer.getvalue().startswith(PNG)
    texts = [text.get_text() for text in figure.get_axes()[-1].texts]
    assert texts == ["42.0%†", "37.8%", "75.6%", "63.0%", "126%"]


@pytest.mark.slow
def test_wide_ranges_are_logarithmic() -> None:
    table = scores()
    table.loc[table["method"] == "raw_xgboost", "mape_ratio"] *= 100
    figure = methods_by_scenario(table, "machine_descriptions", "lomo", io.BytesIO())
    assert {axes.get_xscale() for axes in figure.get_axes()} == {"log"}
    same = methods_by_scenario(scores(), "machine_descriptions", "lomo", io.BytesIO())
    assert {axes.get_xscale() for axes in same.get_axes()} == {"linear"}


@pytest.mark.parametrize(("colour_by", "names"), [("machine", 3), ("app", 2)])
def test_scatter_has_all_runs_and_names(colour_by: str, names: int) -> None:
    figure = embedding_scatter(embeddings(), colour_by, io.BytesIO())
    assert [len(axes.collections[0].get_offsets()) for axes in figure.get_axes()] == [6, 6]
    assert len(figure.legends[0].get_texts()) == names


def test_heat_map_has_every_component(amms: pd.DataFrame) -> None:
    axes = amm_heat_map(amms, io.BytesIO()).get_axes()[0]
    assert axes.images[0].get_array().shape == (20, 8)
    assert sorted(label.get_text() for label in axes.get_yticklabels()) == sorted(amms.index)


def test_labels_of_the_machine_map_do_not_overlap(amms: pd.DataFrame) -> None:
    kinds = pd.Series(["GPU" if n % 3 else "CPU" for n in range(20)], amms.index)
    figure = machine_map(amms, io.BytesIO(), kinds)
    texts = figure.get_axes()[0].texts
    assert {text.get_text() for text in texts} == set(amms.index)
    for text in texts:
        text.get_window_extent()
    boxes = [Text.get_window_extent(text) for text in texts]
    overlaps = [(a, b) for n, a in enumerate(boxes) for b in boxes[:n] if a.overlaps(b)]
    assert not overlaps


def test_principal_components_keep_distances_in_a_plane() -> None:
    plane = np.random.default_rng(1).normal(size=(6, 2)) @ np.random.default_rng(2).normal(size=(2, 5))
    places, shares = principal_components(pd.DataFrame(plane))
    assert shares.sum() == pytest.approx(1)
    assert np.linalg.norm(places[0] - places[3]) == pytest.approx(np.linalg.norm(plane[0] - plane[3]))
    assert principal_components(pd.DataFrame([[1.0], [2.0]]))[0].shape == (2, 2)


def test_no_global_state_is_left() -> None:
    import sys

    assert "matplotlib.pyplot" not in sys.modules or not sys.modules["matplotlib.pyplot"].get_fignums()
