"""Runs that are kept aside score models, and take part in nothing else."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from perf_assets.features.fleet.samples import FleetTables, fleet_samples
from perf_assets.features.samples import PairedSamples
from perf_assets.models.target.model import PRIOR_COMPONENTS
from perf_assets.models.target.prior import Prior, refitted_priors
from perf_assets.storage.lake import Lake
from perf_assets.workflows.models.kept_aside import has_truth, score_kept_aside, scored, store_truth
from perf_assets.workflows.pages.story import kept_aside_curve, story_of, story_rows
from tests.features.fleet_tables import fleet_tables

MACHINE = "cedar"
LANDED = 6


@dataclass(frozen=True)
class Inputs:
    """What scoring takes of the inputs of a target model."""

    machine: str
    samples: PairedSamples

    def prior(self, target: str, source: str) -> Prior:
        return refitted_priors(self.samples, 0, PRIOR_COMPONENTS)(target, source)


@pytest.fixture(scope="module")
def tables() -> tuple[Inputs, pd.DataFrame]:
    """A machine of which some runs landed, and the others."""
    every = fleet_tables(sizes=6)
    own = every.runs["machine"] == MACHINE
    order = np.random.default_rng(0).permutation(np.flatnonzero(own))
    landed, aside = order[:LANDED], order[LANDED:]
    kept = every.runs.drop(index=every.runs.index[aside]).reset_index(drop=True)
    samples = fleet_samples(FleetTables(kept, every.kernels, every.specs))
    assert len(landed) == LANDED
    truth = every.runs.iloc[aside][["app", "args", "ranks", "threads", "gpus", "wall_seconds"]]
    return Inputs(MACHINE, samples), truth.reset_index(drop=True)


def score(lake: Lake, inputs: Inputs, truth: pd.DataFrame) -> pd.DataFrame:
    store_truth(lake, MACHINE, truth)
    curve = score_kept_aside(lake, inputs, (0, 3, 50), 2, lambda line: None)  # type: ignore[arg-type]
    assert set(curve["shots"]) == {0, 3, LANDED}
    assert set(curve["method"]) == {"product", "target_ridge", "target_gp", "source_unchanged"}
    return scored(lake)


def test_predictions_do_not_depend_on_what_is_kept_aside(tmp_path: Path, tables: tuple[Inputs, pd.DataFrame]) -> None:
    inputs, truth = tables
    lake = Lake(tmp_path)
    assert not has_truth(lake, MACHINE)
    honest = score(lake, inputs, truth)
    assert has_truth(lake, MACHINE)
    other = score(lake, inputs, truth.assign(wall_seconds=10 * truth["wall_seconds"]))
    said = ["predicted_seconds", "lower_seconds", "upper_seconds", "target_ridge_seconds", "unchanged_seconds"]
    pd.testing.assert_frame_equal(honest[said], other[said])
    assert other["measured_seconds"].tolist() == pytest.approx((10 * honest["measured_seconds"]).tolist())


def test_a_run_that_landed_is_no_longer_kept_aside(tmp_path: Path, tables: tuple[Inputs, pd.DataFrame]) -> None:
    inputs, truth = tables
    landed = inputs.samples.log_seconds[inputs.samples.machines.index(MACHINE)]
    known = [
        name
        for name, seconds, is_benchmark in zip(
            inputs.samples.configurations, landed, inputs.samples.is_benchmark, strict=True
        )
        if np.isfinite(seconds) and not is_benchmark
    ]
    app, rest = known[0].split(" ", 1)
    again = pd.DataFrame(
        [{"app": app, "args": rest.removesuffix(" (1 x 1)"), "ranks": 1, "threads": 1, "gpus": 0, "wall_seconds": 1.0}]
    )
    rows = score(Lake(tmp_path), inputs, pd.concat([truth, again], ignore_index=True))
    assert not set(rows["configuration"]) & set(known)
    assert rows["configuration"].nunique() == len(truth)


def test_the_story_is_told_by_machine_with_all_runs_that_landed(
    tmp_path: Path, tables: tuple[Inputs, pd.DataFrame]
) -> None:
    lake = Lake(tmp_path)
    assert story_of(lake) is None
    assert story_rows(lake) == []
    rows = score(lake, *tables)
    (row,) = story_rows(lake)
    last = rows[rows["shots"] == LANDED]
    assert (row["machine"], row["shots"], row["kept_aside"]) == (MACHINE, LANDED, len(tables[1]))
    assert row["ours"] == pytest.approx((last["predicted_seconds"] / last["measured_seconds"] - 1).abs().mean())
    assert row["unchanged"] == pytest.approx((last["unchanged_seconds"] / last["measured_seconds"] - 1).abs().mean())
    assert row["ours"] < row["unchanged"]
    story = story_of(lake)
    assert story is not None
    assert story.are_kept_aside
    assert len(story.runs) == len(tables[1])


def test_the_better_model_of_the_runs_alone_is_the_baseline() -> None:
    rows = pd.DataFrame(
        {
            "machine": "newbox",
            "shots": 10,
            "configuration": ["a", "b"],
            "measured_seconds": [10.0, 20.0],
            "predicted_seconds": [11.0, 20.0],
            "lower_seconds": [9.0, 21.0],
            "upper_seconds": [12.0, 30.0],
            "unchanged_seconds": [20.0, 40.0],
            "target_ridge_seconds": [15.0, 30.0],
            "target_gp_seconds": [12.0, 24.0],
        }
    )
    (found,) = kept_aside_curve(rows).to_dict("records")
    assert found["ours"] == pytest.approx(0.05)
    assert found["target_only"] == pytest.approx(0.2)
    assert found["unchanged"] == pytest.approx(1.0)
    assert found["coverage"] == 0.5
