"""A registered target model answers as the fitted one does, for tables as people give them."""

import numpy as np
import pandas as pd
import pytest

from perf_assets.core.catalogue import load_catalogue
from perf_assets.core.errors import BadInputError
from perf_assets.features.samples import HOST, PairedSamples
from perf_assets.models.common.questions import with_questions
from perf_assets.models.target.model import PRIOR_COMPONENTS, AdaptedTarget, adapt
from perf_assets.models.target.prior import refitted_priors
from perf_assets.registry.store import open_store
from perf_assets.registry.tables.questions import questions
from perf_assets.registry.tables.target import answer, example_questions
from perf_assets.registry.target import champion_of, log_learning_curve, register_target, registered_name
from perf_assets.registry.versions import (
    CHALLENGER,
    CHAMPION,
    load,
    made_of,
    promote,
    registered,
    unknown_model,
    versions,
)


@pytest.fixture(scope="module")
def adapted(fleet: PairedSamples) -> AdaptedTarget:
    """Of the machine with GPUs, which is two to programs."""
    return adapt(fleet, "elm", refitted_priors(fleet, 0, PRIOR_COMPONENTS), 0, lambda line: None)


@pytest.mark.slow
@pytest.mark.usefixtures("own_registry")
def test_the_loaded_model_says_what_the_fitted_one_does(adapted: AdaptedTarget) -> None:
    counters = ["PAPI_TOT_INS", "PAPI_BR_INS"]
    formulas = load_catalogue().resolve(counters, None)
    version = register_target(
        adapted, formulas, {"inputs_digest": "abc", "manifests_digest": "abc"}, {"model_card.md": b"# A card"}
    )
    assert versions(registered_name("elm")) == {CHALLENGER: version.version}
    (listed,) = registered(registered_name("elm"))
    assert {"mape", "mape_target_only", "mape_unchanged", "coverage_90", "severity", "shots"} <= set(listed.metrics)
    assert listed.metrics["shots"] == max(view.shots for view in adapted.views.values())
    stored = open_store().get_model_version(registered_name("elm"), str(version.version))
    assert stored.description == "# A card"
    assert "Adapted to the machine's own runs" in open_store().get_registered_model(registered_name("elm")).description
    methods = {"product": 0.1, "target_gp": 0.3, "target_ridge": 0.4, "source_unchanged": 0.5}
    curve = pd.DataFrame(
        [
            {"target": "elm", "shots": shots, "seed": seed, "method": method, "mape_ratio": error / (1 + shots)}
            | {"coverage_90_ratio": 0.8 + 0.1 * seed if method == "product" else None}
            for shots in (0, 5)
            for seed in (0, 1)
            for method, error in methods.items()
        ]
    )
    for _ in range(2):
        log_learning_curve("elm", curve)
    drawn = open_store().get_metric_history(version.run_id, "curve_mape_target_only")
    assert [(point.step, point.value) for point in drawn] == [(0, pytest.approx(0.3)), (5, pytest.approx(0.05))]
    held = open_store().get_metric_history(version.run_id, "curve_coverage_90")
    assert [(point.step, point.value) for point in held] == [(0, pytest.approx(0.85)), (5, pytest.approx(0.85))]
    run = open_store().get_run(version.run_id)
    assert [(put.dataset.name, put.dataset.digest) for put in run.inputs.dataset_inputs] == [("bundles of elm", "abc")]
    experiment = open_store().get_experiment_by_name("perf-target")
    assert experiment is not None
    assert run.info.experiment_id == experiment.experiment_id
    assert experiment.tags["mlflow.experimentKind"] == "custom_model_development"
    assert experiment.tags["mlflow.note.content"].startswith("Target models")
    assert open_store().get_registered_model(registered_name("elm")).tags["machine"] == "elm"
    assert champion_of("elm") is None
    promote(registered_name("elm"), version.version)
    assert versions(registered_name("elm")) == {CHAMPION: version.version}
    assert (made_of(registered_name("elm"), "abc"), made_of(registered_name("elm"), "abd")) == (version.version, None)
    served = load(registered_name("elm"), CHAMPION)
    assert set(counters) < set(served.metadata.get_input_schema().input_names())
    runs = example_questions(adapted, 8)
    raw = runs.drop(columns="branch_ratio").assign(PAPI_TOT_INS=1e9, PAPI_BR_INS=1e9 * runs["branch_ratio"], other=1.0)
    pd.testing.assert_frame_equal(served.predict(raw), served.predict(runs))
    on_host = runs.assign(uses_gpus=False, source_machine=adapted.views[f"elm{HOST}"].source)
    asked = pd.concat([runs, on_host], ignore_index=True)
    found = served.predict(asked)
    put = questions(asked, ["elm"] * len(asked), adapted.samples)
    assert set(put.targets) == {"elm", f"elm{HOST}"}
    for name, view in adapted.views.items():
        chosen = np.array([target == name for target in put.targets])
        samples, examples = with_questions(adapted.samples, put.where(chosen))
        mean, width = view.distribution(samples, examples.row)
        assert np.log(found["predicted_seconds"].to_numpy()[chosen]) == pytest.approx(mean, rel=1e-6, abs=1e-9)
        assert np.log(found["upper_seconds"].to_numpy()[chosen]) == pytest.approx(mean + width, rel=1e-6, abs=1e-9)
    assert served.predict(asked.iloc[[3]])["predicted_seconds"].item() == pytest.approx(found["predicted_seconds"][3])


def test_what_is_left_out_of_a_question_is_unknown(adapted: AdaptedTarget) -> None:
    runs = example_questions(adapted, 4)
    bare = runs.drop(columns=["args", "uses_gpus", "load_ratio"])
    left_out = runs.assign(args=None, uses_gpus=[None, True, np.nan, True], load_ratio=np.nan)
    found = answer(bare, adapted)
    pd.testing.assert_frame_equal(found, answer(left_out, adapted))
    assert set(found["note"]) == {"counters missing for load_ratio: taken as unknown"}
    assert set(answer(runs, adapted)["note"]) == {""}
    with pytest.raises(BadInputError, match="lack the column threads"):
        answer(runs.drop(columns="threads"), adapted)
    with pytest.raises(BadInputError, match="must be a number above 0"):
        answer(runs.assign(wall_seconds=[1.0, 2.0, np.nan, 1.0]), adapted)


@pytest.mark.parametrize(
    ("asked", "advice"),
    [
        ("h1", "did you mean perf-target-h100?"),
        ("perf-transfer-h10", "did you mean perf-transfer-h100?"),
        ("perf-target-newbox", "there are perf-amm, perf-source, perf-target-h100, perf-transfer-h100"),
    ],
)
def test_a_misspelt_model_is_guessed_also_by_its_machine_alone(asked: str, advice: str) -> None:
    known = ["perf-amm", "perf-source", "perf-target-h100", "perf-transfer-h100"]
    assert str(unknown_model(asked, known)) == f"no model {asked} is registered: {advice}"
