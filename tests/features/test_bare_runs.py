"""Workloads without counters in a fleet: their arguments describe them, beside runs that have counters."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from perf_assets.core.catalogue import load_catalogue
from perf_assets.core.errors import BadInputError
from perf_assets.core.tables.canonical import XAMM_FEATURES
from perf_assets.features.counters.raw import by_quantity
from perf_assets.features.fleet.samples import FleetTables, argument_names, fleet_samples
from perf_assets.features.samples import PairedSamples
from perf_assets.registry.tables.questions import questions
from perf_assets.serving.requests import Run
from perf_assets.serving.run_columns import BARE, FEATURES, columns_of
from tests.features.fleet_tables import fleet_tables


@pytest.fixture(scope="module")
def tables() -> FleetTables:
    """A fleet in which Kripke and Laghos ran without counters, Kripke with a solver too."""
    tables = fleet_tables()
    runs = tables.runs.copy()
    bare = runs["app"].isin(["Kripke", "Laghos"])
    runs.loc[bare, [feature.name for feature in XAMM_FEATURES]] = np.nan
    is_odd = runs["args"].str[-1].astype(int) % 2 == 1
    solver = np.where(is_odd, " --method bj", " --method sweep")
    runs["args"] = runs["args"].where(runs["app"] != "Kripke", runs["args"] + solver)
    return replace(tables, runs=runs)


@pytest.fixture(scope="module")
def samples(tables: FleetTables) -> PairedSamples:
    return fleet_samples(tables)


def column(samples: PairedSamples, name: str, configuration: str) -> float:
    """What a column says of a configuration where it ran."""
    values = samples.counters[:, samples.configurations.index(configuration), samples.counter_names.index(name)]
    seen = np.isfinite(samples.log_seconds[:, samples.configurations.index(configuration)])
    assert np.isnan(values[~seen]).all()
    (value,) = set(values[seen].tolist())
    return float(value)


def test_arguments_are_columns_of_runs_without_counters(samples: PairedSamples) -> None:
    assert argument_names(samples.counter_names) == [
        "Kripke method=bj", "Kripke method=sweep", "Kripke n", "Laghos n",
    ]  # fmt: skip
    name = "Kripke -n 3 --method bj (1 x 1)"
    assert column(samples, "Kripke n", name) == pytest.approx(np.log1p(3))
    assert (column(samples, "Kripke method=bj", name), column(samples, "Kripke method=sweep", name)) == (1.0, 0.0)
    assert any("16 configurations have no counters: ranks, threads and 4 columns" in note for note in samples.notes)


def test_runs_with_counters_are_as_before(tables: FleetTables, samples: PairedSamples) -> None:
    row = samples.configurations.index("SW4lite -n 3 (1 x 1)")
    added = [samples.counter_names.index(name) for name in argument_names(samples.counter_names)]
    assert np.isnan(samples.counters[:, row][:, added]).all()
    assert not argument_names(fleet_samples(fleet_tables()).counter_names), "nothing is added where all have counters"


def test_columns_stay_those_of_a_model_whatever_runs_come_later(tables: FleetTables, samples: PairedSamples) -> None:
    runs = tables.runs.assign(args=tables.runs["args"] + " --new 7")
    later = fleet_samples(replace(tables, runs=runs), counter_names=samples.counter_names)
    assert later.counter_names == samples.counter_names
    assert "Kripke new" not in later.counter_names


def test_a_question_without_counters_is_known_by_its_arguments(samples: PairedSamples) -> None:
    asked = pd.DataFrame(
        {
            "source_machine": ["ash", "ash"],
            "app": ["Kripke", "SW4lite"],
            "args": ["-n 5 --method bj", "-n 5"],
            "ranks": [1, 1],
            "threads": [1, 1],
            "wall_seconds": [2.0, 2.0],
            XAMM_FEATURES[0].name: [np.nan, 0.5],
        }
    )
    found = questions(asked, ["birch", "birch"], samples).counters
    place = samples.counter_names.index
    assert found[0, place("Kripke n")] == pytest.approx(np.log1p(5))
    assert found[0, place("Kripke method=bj")] == 1.0
    assert np.isnan(found[1, [place(name) for name in argument_names(samples.counter_names)]]).all()


def test_a_served_run_says_that_it_stands_on_its_arguments(samples: PairedSamples) -> None:
    run = Run(machine="ash", app="Kripke", args="-n 5", ranks=1, threads=1, wall_seconds=2.0)
    formulas = by_quantity(load_catalogue().resolve({}, None))
    found, said = columns_of(run, formulas, samples.counter_names, FEATURES, "source models need")
    assert said == [BARE]
    assert found[samples.counter_names.index("Kripke n")] == pytest.approx(np.log1p(5))
    plain = fleet_samples(fleet_tables()).counter_names
    with pytest.raises(BadInputError, match="none of the counters that source models need"):
        columns_of(run, formulas, plain, FEATURES, "source models need")
