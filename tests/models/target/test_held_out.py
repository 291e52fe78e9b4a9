"""Predictions for schedulers are of runs that a target model was not fitted to."""

import numpy as np
import pandas as pd

from perf_assets.features.fleet.samples import scaling_runs
from perf_assets.models.target import model as adapted
from perf_assets.models.target.model import held_out_predictions
from perf_assets.models.target.prior import refitted_priors
from tests.models.fleets import fleet


def test_shots_are_left_out() -> None:
    few = adapted.TargetSettings(most_shots=8)
    samples = fleet()
    found = adapted.adapt(samples, "d", refitted_priors(samples, 0, adapted.PRIOR_COMPONENTS), 0, lambda _: None, few)
    (view,) = found.views.values()
    rows = held_out_predictions(found)
    assert len(view.model.shots) == 8
    assert set(rows["configuration"]).isdisjoint(view.model.shots)
    assert len(rows) == (~samples.is_benchmark).sum() - 8
    assert (rows["predicted_seconds"] < rows["upper_seconds"]).all()
    assert np.median(np.abs(np.log(rows["predicted_seconds"] / rows["seconds"]))) < 0.2


def test_of_runs_on_the_same_nodes_the_one_predicted_fastest_is_taken() -> None:
    runs = pd.DataFrame(
        {"machine": "m", "app": "a", "args": "x", "ranks": [1, 2, 8, 16], "threads": 1, "nodes": [1, 1, 2, 2]}
    )
    predictions = pd.DataFrame(
        {
            "machine": "m",
            "configuration": [f"a x ({ranks} x 1)" for ranks in (1, 2, 8)],
            "seconds": [9.0, 8.0, 3.0],
            "predicted_seconds": [7.0, 8.5, 3.5],
            "upper_seconds": [8.0, 9.0, 4.0],
        }
    )
    found = scaling_runs(runs, predictions)
    assert found["nodes"].tolist() == [1, 2]
    assert found["seconds"].tolist() == [9.0, 3.0]
