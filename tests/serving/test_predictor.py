"""Which model answers, with which numbers, and what is said of the answer."""

from dataclasses import replace

import mlflow
import numpy as np
import pandas as pd
import pytest

from perf_assets.api import open_lake
from perf_assets.core.catalogue import load_catalogue
from perf_assets.core.errors import BadInputError, RegistryError, UnknownError, UnreadableFileError
from perf_assets.features.counters.raw import by_quantity, features_from_counters, features_of_run
from perf_assets.models.target.model import PRIOR_COMPONENTS, adapt
from perf_assets.models.target.prior import refitted_priors
from perf_assets.registry.target import UNPAIRED
from perf_assets.registry.versions import promote
from perf_assets.serving.answers import Prediction, Rows
from perf_assets.serving.predictor import Predictor
from perf_assets.serving.requests import Run
from perf_assets.serving.target import ServedTarget
from tests.features.fleet_tables import SPEEDS
from tests.serving.conftest import COUNTERS, MACHINE, NAME, Fleet

pytestmark = pytest.mark.xdist_group("serving")  # one worker makes what they share


def as_table(runs: list[Run]) -> pd.DataFrame:
    """As the registered model takes them."""
    kept = ("app", "args", "ranks", "threads", "wall_seconds")
    rows = [{"source_machine": run.machine, **{name: getattr(run, name) for name in kept}} for run in runs]
    return pd.DataFrame([row | run.counters for row, run in zip(rows, runs, strict=True)])


def test_the_champion_answers_runs_on_its_reference_machine_as_mlflow_does(predictor: Predictor, fleet: Fleet) -> None:
    runs = [fleet.run(row) for row in fleet.unseen()[:20]]
    found = predictor.predict(runs, MACHINE)
    model = mlflow.pyfunc.load_model(f"models:/{NAME}@champion")
    expected = model.predict(as_table(runs))
    for name in ("predicted_seconds", "lower_seconds", "upper_seconds", "relative_time"):
        assert [getattr(answer, name) for answer in found] == pytest.approx(expected[name].tolist(), rel=1e-9)
    assert {(answer.model, answer.model_version) for answer in found} == {(NAME, 1)}
    one = predictor.predict(runs[:1], MACHINE)[0]
    assert one.predicted_seconds == pytest.approx(found[0].predicted_seconds, rel=1e-9), "alone or among others"
    assert found[0].warnings == ()


def test_raw_counters_are_translated_one_by_one_as_in_tables() -> None:
    formulas = load_catalogue().resolve(COUNTERS, None)
    rows = [
        dict.fromkeys(COUNTERS, 10.0),
        {"PAPI_TOT_INS": 100.0, "PAPI_LD_INS": 25.0, "PAPI_L1_LDM": 3.0},
        {"PAPI_TOT_INS": 0.0, "PAPI_LD_INS": 25.0},
        {"PAPI_SR_INS": 1.0},
    ]
    table = features_from_counters(pd.DataFrame(rows), formulas)
    for position, row in enumerate(rows):
        expected = table.iloc[position].dropna().to_dict()
        assert features_of_run(row, by_quantity(formulas)) == pytest.approx(expected)
    assert len(table.iloc[0].dropna()) >= 4


def test_other_machines_are_answered_by_the_source_models_and_said_so(predictor: Predictor, fleet: Fleet) -> None:
    other = next(name for name in ("ash", "birch") if name != fleet.reference)
    run = fleet.run(0, machine=other, args="-n 999999")
    answer = predictor.predict([run], MACHINE)[0]
    assert (answer.model, answer.is_with_amm) == ("perf-source", True)
    assert any(f"starts from runs on {fleet.reference}" in warning for warning in answer.warnings)
    assert any("wide interval" in warning for warning in answer.warnings)
    width = np.log(answer.upper_seconds / answer.predicted_seconds)
    source = predictor.models.source()
    assert source is not None
    assert width == pytest.approx(1.645 * source.model.errors["with"]["application"].near)


def test_a_configuration_that_ran_on_the_reference_machine_is_answered_by_the_champion(
    predictor: Predictor, fleet: Fleet
) -> None:
    other = next(name for name in ("ash", "birch") if name != fleet.reference)
    row = fleet.unseen()[0]
    direct = predictor.predict([fleet.run(row)], MACHINE)[0]
    asked = fleet.run(row, machine=other, wall_seconds=123.0)
    answer = predictor.predict([asked], MACHINE)[0]
    assert (answer.model, answer.source_machine, answer.source_seconds) == (NAME, other, 123.0)
    assert answer.predicted_seconds == pytest.approx(direct.predicted_seconds)
    assert answer.relative_time == pytest.approx(direct.predicted_seconds / 123.0)
    assert answer.warnings[0].startswith(f"from the same configuration on {fleet.reference}")


def test_what_the_champion_knows_is_answered_though_nothing_answers_the_rest(
    predictor: Predictor, fleet: Fleet, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = next(name for name in ("ash", "birch") if name != fleet.reference)
    asked = [fleet.run(0, machine=other, args="-n 999999"), fleet.run(fleet.unseen()[0], machine=other)]
    # As on a lake whose machines have no RAJAPerf: there are no source models.
    monkeypatch.setattr(predictor.models, "source", lambda: None)
    with pytest.raises(UnknownError, match="no source model is registered"):
        predictor.predict(asked, MACHINE)
    (answer,), (note,) = predictor.predict_known(asked, MACHINE)
    assert (answer.model, answer.args) == (NAME, asked[1].args)
    assert note.startswith(f"1 of 2 runs are left out: the model of {MACHINE} starts from runs on {fleet.reference}")
    with pytest.raises(UnknownError, match="no source model is registered"):
        predictor.predict_known(asked[:1], MACHINE)


def test_more_that_is_known_never_makes_a_wider_interval(predictor: Predictor, fleet: Fleet) -> None:
    source = predictor.models.source()
    assert source is not None
    known, new = fleet.run(0), fleet.run(0, app="Unheard")
    widths = {}
    for target in ("birch" if fleet.reference != "birch" else "ash", "fir"):
        for what, run in (("known", known), ("new", new)):
            answer = source.predict([run], target, {}, "")[0]
            widths[target == "fir", what] = answer.upper_seconds / answer.lower_seconds
    assert widths[False, "known"] <= min(widths[False, "new"], widths[True, "known"])
    assert max(widths[False, "new"], widths[True, "known"]) <= widths[True, "new"]


def test_a_machine_with_only_a_benchmark_is_answered_before_any_run(predictor: Predictor, fleet: Fleet) -> None:
    answer = predictor.predict([fleet.run(0)], "fir")[0]
    assert (answer.model, answer.is_with_amm, answer.observed_count) == ("perf-source", True, 0)
    assert any("fir has no champion yet" in warning for warning in answer.warnings)
    assert any("held-out machines" in warning for warning in answer.warnings)
    assert answer.lower_seconds < answer.predicted_seconds < answer.upper_seconds


def test_warnings_name_what_is_missing_outside_and_hard(predictor: Predictor, fleet: Fleet) -> None:
    run = fleet.run(0)
    first, second = list(run.counters)[:2]
    counters = {**run.counters, first: None, second: 1e30}
    answer = predictor.predict([run.model_copy(update={"counters": counters})], MACHINE)[0]
    assert any(warning.startswith(f"counters missing for {first}:") for warning in answer.warnings)
    assert any(f"outside the training range: {second} 1e+30" in warning for warning in answer.warnings)
    champion = predictor.models.champion(MACHINE)
    views = {name: replace(view, severity=0.9, shots=0) for name, view in champion.adapted.views.items()}
    hard = ServedTarget(
        replace(champion.adapted, views=views), champion.formulas, champion.catalogue, 1, champion.made_at, True
    )
    said = " | ".join(hard.predict([hard.ask(run)])[0].warnings)
    assert "severity 0.90" in said
    assert "expected from its benchmark alone" in said


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"machine": "nowhere"}, r"machine 'nowhere' is not known: nothing of it has landed: land its RAJAPerf runs"),
        ({"machine": MACHINE}, "was measured on cedar itself"),
        ({"counters": {}}, "has none of the counters that the model of cedar needs"),
        ({"counters": {"PAPI_FOO": 3.0}}, "has none of the counters"),
        ({"counters": {"branch_ratio": float("nan"), "load_ratio": None}}, "has none of the counters"),
    ],
)
def test_bad_runs_are_refused_in_one_line(
    change: dict[str, object], reason: str, predictor: Predictor, fleet: Fleet
) -> None:
    with pytest.raises(BadInputError, match=reason) as error:
        predictor.predict([fleet.run(0, **change)], MACHINE)
    assert "\n" not in str(error.value)


def test_unknown_targets_and_machines_without_a_model_say_what_to_land(predictor: Predictor, fleet: Fleet) -> None:
    with pytest.raises(UnknownError, match=r"machine 'nowhere' is not known: .* land its RAJAPerf runs"):
        predictor.predict([fleet.run(0)], "nowhere")
    (predictor.lake.landing / "newbox").mkdir()
    with pytest.raises(
        UnknownError,
        match=r"newbox has no champion yet \(no RAJAPerf run has landed, and no application run .* --machine newbox",
    ):
        predictor.predict([fleet.run(0)], "newbox")
    assert {machine.machine: machine.next_step for machine in predictor.machines()}["newbox"].startswith(
        "no RAJAPerf run"
    )


def test_programs_that_never_used_gpus_are_taken_not_to(predictor: Predictor, fleet: Fleet) -> None:
    source = predictor.models.source()
    assert source is not None
    run = fleet.run(0)
    with_gpus, without = (
        source.predict([run.model_copy(update={"uses_gpus": u})], "elm", {}, "")[0] for u in (True, False)
    )
    assert with_gpus.predicted_seconds != without.predicted_seconds
    silent = source.predict([run], "elm", {}, "")[0]
    assert any("taken to use GPUs" in warning for warning in silent.warnings)


@pytest.mark.slow
def test_a_champion_of_a_machine_with_gpus_has_two_views(predictor: Predictor, fleet: Fleet) -> None:
    adapted = adapt(fleet.samples, "elm", refitted_priors(fleet.samples, 0, PRIOR_COMPONENTS), 0, lambda line: None)
    elm = ServedTarget(adapted, [], predictor.models.catalogue, 1, predictor.models.champion(MACHINE).made_at, True)

    seen = {}
    for app, view in (("Kripke", "elm"), ("miniVite", "elm (host)"), ("Unheard", "elm")):
        asked = elm.ask(fleet.run(0, app=app, machine=elm.references[view]))
        seen[app] = (asked.seen_as, " ".join(asked.warnings))
    assert (seen["Kripke"][0], "taken to" in seen["Kripke"][1]) == ("elm", False)
    assert seen["miniVite"][0] == "elm (host)"
    assert seen["miniVite"][1].startswith("miniVite is taken to run without GPUs, as it did so far")
    assert seen["Unheard"][0] == "elm"
    assert seen["Unheard"][1].startswith("Unheard is taken to use GPUs: say uses_gpus if it does not")
    told = elm.ask(fleet.run(0, uses_gpus=False, machine=elm.references["elm (host)"]))
    assert told.seen_as == "elm (host)"
    with pytest.raises(BadInputError, match="gpus: is missing: elm has GPUs"):
        elm.seen_as(None)
    assert (elm.seen_as(0), elm.seen_as(2)) == ("elm (host)", "elm")


def test_all_machines_but_those_without_a_model_for_the_run(
    predictor: Predictor, fleet: Fleet, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = predictor.models.source()
    assert source is not None
    monkeypatch.setattr(type(source), "knows", lambda self, machine: machine not in (MACHINE, f"{MACHINE} (host)"))
    other = next(name for name in ("ash", "birch") if name != fleet.reference)
    answers, left_out = predictor.predict_everywhere([fleet.run(0, machine=other, args="-n 999999")])
    assert {answer.target_machine for answer in answers} == {*SPEEDS} - {other, MACHINE}
    assert len(left_out) == 1
    assert left_out[0].startswith(f"cedar is left out: the model of cedar starts from runs on {fleet.reference}")


def test_a_version_of_older_code_is_no_traceback(
    predictor: Predictor, fleet: Fleet, monkeypatch: pytest.MonkeyPatch
) -> None:
    def old(folder: object) -> None:
        raise UnreadableFileError("no held_out_alone")

    monkeypatch.setattr("perf_assets.registry.target.AdaptedTarget.load", old)
    with pytest.raises(RegistryError, match="version 1 was stored by another version of perf_assets"):
        predictor.predict([fleet.run(0)], MACHINE)


def test_the_api_shows_tables(predictor: Predictor, fleet: Fleet) -> None:
    lake = open_lake()
    answers = lake.predict(fleet.run(0, app="<b>Kripke"), to=MACHINE)
    html = answers._repr_html_()
    assert "&lt;b&gt;Kripke" in html
    assert "<b>" not in html
    assert answers.to_frame().loc[0, "model"] == NAME
    assert {row.machine for row in lake.machines()} == {*SPEEDS}
    assert {(row.name, row.aliases) for row in lake.models()} >= {(NAME, ("champion",))}
    everywhere = lake.predict([fleet.run(0)], to="all")
    assert {answer.target_machine for answer in everywhere} == {*SPEEDS} - {fleet.reference}
    assert everywhere.notes == ()
    assert "<table>" in lake._repr_html_()
    assert isinstance(everywhere[:2], Rows)
    assert isinstance(everywhere[0], Prediction)
    with pytest.raises(BadInputError, match="there is no data lake at"):
        open_lake("/nowhere/at/all")


def test_a_champion_that_answers_tables_alone_takes_the_place_of_one_that_answers_runs(predictor: Predictor) -> None:
    models, store = predictor.models, mlflow.MlflowClient()
    assert models.champion(MACHINE).version == 1
    store.set_model_version_tag(NAME, "2", "kind", UNPAIRED)
    try:
        promote(NAME, 2)
        models.refresh()
        assert models.target(MACHINE) is None, "the version before is not used on"
        assert models.asked_with_tables(MACHINE) == NAME
    finally:
        store.delete_model_version_tag(NAME, "2", "kind")
        promote(NAME, 1)
    models.refresh()
    assert models.champion(MACHINE).version == 1
