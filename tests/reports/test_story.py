"""What the first page says of a few runs: from the numbers, also where they are against us."""

from dataclasses import replace
from io import BytesIO
from itertools import combinations

import numpy as np
import pandas as pd

from perf_assets.reports.fleet.facts import Story
from perf_assets.reports.fleet.page import fleet_page
from perf_assets.reports.fleet.story import draw_curve, story_charts, story_finding
from tests.reports.fleets import fleet, well


def story() -> Story:
    """Two machines: ours is best on the first, the time unchanged on the second."""
    errors = {"ash": (0.08, 0.4, 0.3), "birch": (0.12, 0.5, 0.1)}
    curve = pd.DataFrame(
        [
            {
                "machine": machine,
                "shots": shots,
                "kept_aside": 81,
                "ours": ours if shots else 0.3,
                "target_only": alone if shots else np.nan,
                "unchanged": unchanged,
                "coverage": 0.9,
            }
            for machine, (ours, alone, unchanged) in errors.items()
            for shots in (0, 10)
        ]
    )
    runs = pd.DataFrame({"machine": "ash", "measured_seconds": [1.0, 10.0], "predicted_seconds": [1.05, 20.0]})
    return Story(curve, runs, are_kept_aside=True, is_simulated=True)


def test_the_sentence_has_the_medians_and_names_where_ours_is_not_best() -> None:
    found = story_finding(story())
    assert found.headline.startswith(
        "With 10 runs each on 2 machines (median) our models are 10.0% off on runs kept aside"
    )
    assert "alone 45.0%, the time unchanged 20.0%" in found.headline
    assert found.detail.startswith("Ours is the smallest error on 1 of 2; not on birch (12.0%; time on the reference")


def test_the_figures_have_their_numbers_and_words() -> None:
    curve, scatter = story_charts(story())
    assert len(curve.numbers) == 4
    assert scatter.words == "2 runs: 50% within 10%, 50% within 25%."
    assert curve.png.startswith(b"\x89PNG")
    assert len(story_charts(replace(story(), runs=pd.DataFrame()))) == 1


def test_the_fleet_page_leads_with_it_and_says_that_it_is_simulated() -> None:
    page = fleet_page(replace(fleet(well("ash"), well("birch")), story=story()))
    assert page.index('id="story"') < page.index('id="summary"')
    assert "All of this is simulated" in page
    assert '<a href="machine-ash.html">ash</a>' in page
    assert 'id="story"' not in fleet_page(fleet(well("ash")))


def test_bundles_damaged_on_purpose_need_nobody() -> None:
    state = replace(well("ash"), quarantined={"kripke-1-damaged-on-purpose": "profile.db is cut off"})
    page = fleet_page(fleet(state))
    assert "The demo damaged 1 bundle on purpose" in page
    assert "All machines are up to date." in page
    refused = replace(state, quarantined={"kripke-1": "profile.db is cut off"})
    assert "1 bundle of ash is in quarantine" in fleet_page(fleet(refused))


def test_a_machine_that_teaches_the_source_models_needs_no_model_of_its_own() -> None:
    state = replace(well("ash"), champion=None)
    assert "No model yet of ash" in fleet_page(fleet(state))
    page = fleet_page(fleet(replace(state, is_source=True)))
    assert "No model yet" not in page
    assert "teaches the source models" in page


def test_a_thick_line_has_no_point_where_a_machine_has_no_value() -> None:
    told = story()
    few = told.curve["shots"].eq(0) & told.curve["machine"].eq("ash")
    curve = told.curve.assign(target_only=told.curve["target_only"].mask(few, 0.9))
    axes = draw_curve(replace(told, curve=curve), BytesIO()).axes[0]
    thick = {
        line.get_label(): list(line.get_xdata()) for line in axes.lines if not str(line.get_label()).startswith("_")
    }
    assert thick["best model of these runs alone (target-only)"] == [10]
    assert thick["our model"] == [0, 10]


def test_values_at_the_ends_of_lines_never_cover_each_other() -> None:
    told = story()
    close = told.curve.assign(ours=0.1, target_only=0.101, unchanged=0.102)
    drawn = draw_curve(replace(told, curve=close), BytesIO())
    drawn.draw_without_rendering()
    boxes = [text.get_window_extent() for text in drawn.axes[0].texts]
    assert sorted(text.get_text() for text in drawn.axes[0].texts) == ["10.0%", "10.1%", "10.2%"]
    assert not any(one.overlaps(other) for one, other in combinations(boxes, 2))
