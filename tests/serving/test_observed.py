"""Observed runs count at once, land, and are there again after a restart."""

import threading
import time

import numpy as np
import pytest

from perf_assets.core.errors import BadInputError, RegistryError
from perf_assets.features.counters.derivations import deriving
from perf_assets.readers.bundle import read_bundle
from perf_assets.registry.versions import promote
from perf_assets.serving.champions import Watcher
from perf_assets.serving.observations import observed_runs
from perf_assets.serving.predictor import Predictor
from perf_assets.serving.requests import Observation
from perf_assets.storage.lake import Lake
from perf_assets.storage.warehouse import Warehouse
from perf_assets.workflows.landing.ingest import ingest_machine
from tests.serving.conftest import MACHINE, NAME, Fleet

pytestmark = pytest.mark.xdist_group("serving")  # one worker makes what they share


def observation(fleet: Fleet, row: int, factor: float = 1.0, **changes: object) -> Observation:
    run = fleet.run(row)
    given = {name: getattr(run, name) for name in ("app", "args", "ranks", "threads")}
    return Observation.model_validate(
        {"machine": MACHINE, **given, "wall_seconds": factor * fleet.seconds(row), **changes}
    )


def slower(fleet: Fleet, row: int) -> float:
    """How much slower than before runs have become since the champion was made: a new compiler, say."""
    return {"Kripke": 1.5, "Laghos": 0.8}.get(str(fleet.samples.apps[row]), 1.1)


@pytest.mark.slow
def test_a_stream_of_observed_jobs_lowers_the_error(predictor: Predictor, fleet: Fleet) -> None:
    jobs = fleet.unseen()[:100]
    assert len(jobs) == 100
    before = {answer.args + answer.app: answer for answer in predictor.predict([fleet.run(r) for r in jobs], MACHINE)}
    champion, online, inside, took = [], [], [], []
    for row in jobs:
        run, seconds = fleet.run(row), slower(fleet, row) * fleet.seconds(row)
        answer = predictor.predict([run], MACHINE)[0]
        champion.append(abs(np.log(before[run.args + run.app].predicted_seconds / seconds)))
        online.append(abs(np.log(answer.predicted_seconds / seconds)))
        inside.append(answer.lower_seconds <= seconds <= answer.upper_seconds)
        start = time.process_time()
        predictor.observe([observation(fleet, row, slower(fleet, row))])
        took.append(time.process_time() - start)
    assert answer.observed_count == 99
    assert np.mean(online[50:]) < 0.3 * np.mean(champion[50:])
    assert np.mean(online[50:]) < 0.5 * np.mean(online[:20])
    assert np.mean(inside[50:]) >= 0.8
    assert np.median(took) < 1.0
    again = Predictor(predictor.lake)
    runs = [fleet.run(row) for row in jobs[:5]]
    assert [a.predicted_seconds for a in again.predict(runs, MACHINE)] == pytest.approx(
        [a.predicted_seconds for a in predictor.predict(runs, MACHINE)]
    ), "after a restart nothing is lost"


@pytest.mark.slow
def test_an_observed_run_is_a_bundle_that_ingestion_takes(predictor: Predictor, fleet: Fleet, lake: Lake) -> None:
    row = fleet.unseen()[0]
    noted = predictor.observe([observation(fleet, row, counters={"PAPI_TOT_INS": 1e9})])[0]
    assert noted.is_new
    assert noted.observed_count == 1
    again = predictor.observe([observation(fleet, row, counters={"PAPI_TOT_INS": 1e9})])[0]
    assert (again.is_new, again.bundle, again.observed_count) == (False, noted.bundle, 1)
    bare = observation(fleet, row, args="", reference=fleet.run(row, args=""))
    predictor.observe([bare])
    assert [landed.observation.reference for landed in observed_runs(lake, MACHINE)] == [None, bare.reference]
    ingest_machine(lake, MACHINE, read_bundle)
    warehouse = Warehouse(lake, deriving([]))
    warehouse.load_machine(MACHINE)
    warehouse.derive_machine(MACHINE)
    runs = warehouse.frame("SELECT app, args, ranks, wall_seconds, is_simulated FROM core_runs__features ORDER BY args")
    assert runs["args"].tolist() == ["", fleet.run(row).args]
    assert runs["wall_seconds"].tolist() == pytest.approx([fleet.seconds(row)] * 2)
    assert runs["is_simulated"].all(), "runs of a simulated machine are simulated"
    counters = warehouse.frame("SELECT counter, value FROM core_runs__counters")
    assert counters.to_numpy().tolist() == [["PAPI_TOT_INS", 1e9]]


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        (
            {"args": "-n 7777"},
            "is not known on .*from whose runs the model of cedar starts: give that run",
        ),
        ({"machine": "fir"}, "fir has no champion"),
        ({"counters": {"wall_seconds": 3.0}}, "counters.wall_seconds: is no counter"),
    ],
)
def test_what_is_wrong_does_not_land(
    changes: dict[str, object], reason: str, predictor: Predictor, fleet: Fleet, lake: Lake
) -> None:
    rows = fleet.unseen()
    good, bad = observation(fleet, rows[0]), observation(fleet, rows[1], **changes)
    with pytest.raises(BadInputError, match=reason):
        predictor.observe([good, bad])
    assert list(lake.landing.glob("*/*")) == []
    with pytest.raises(BadInputError, match=r"reference\.ranks: differs"):
        predictor.observe([observation(fleet, rows[1], reference=fleet.run(rows[1], ranks=2))])


def test_a_new_champion_keeps_what_it_was_not_made_of(predictor: Predictor, fleet: Fleet) -> None:
    learned = set(fleet.models[1].views[MACHINE].model.shots)
    rows = fleet.unseen()
    new = next(row for row in rows if fleet.samples.configurations[row] in learned)
    other = next(row for row in rows if fleet.samples.configurations[row] not in learned)
    predictor.observe([observation(fleet, new), observation(fleet, other, 1.2)])
    try:
        promote(NAME, 2)
        predictor.models.refresh()
        answer = predictor.predict([fleet.run(other)], MACHINE)[0]
        assert (answer.model_version, answer.observed_count) == (2, 2), "both were handed in after it was made"
        champion = predictor.models.champion(MACHINE)
        assert champion.learned_from(champion.ask(fleet.run(new)))
        assert not champion.learned_from(champion.ask(fleet.run(other)))
    finally:
        promote(NAME, 1)


def test_runs_that_another_process_hands_in_count_within_a_second(fleet: Fleet, lake: Lake) -> None:
    serving, other = Predictor(lake), Predictor(lake)
    serving.models.load_all()
    watcher = Watcher(serving.models)
    watcher.start()
    try:
        row = fleet.unseen()[0]
        serving.models.catch_up()
        threading.Thread(target=other.observe, args=([observation(fleet, row, 2.0)],)).start()
        deadline = time.monotonic() + 10
        while serving.predict([fleet.run(row)], MACHINE)[0].observed_count == 0 and time.monotonic() < deadline:
            time.sleep(0.05)
        assert serving.predict([fleet.run(row)], MACHINE)[0].observed_count == 1
    finally:
        watcher.stop()


def test_a_champion_whose_files_are_gone_leaves_the_present_one_in_use(
    predictor: Predictor, fleet: Fleet, monkeypatch: pytest.MonkeyPatch
) -> None:
    said: list[str] = []
    models = Predictor(predictor.lake, said.append).models
    models.load_all()

    def gone(machine: str, version: int, catalogue: object) -> None:
        raise RegistryError("the files cannot be had")

    monkeypatch.setattr("perf_assets.serving.champions.ServedTarget.load", gone)
    try:
        promote(NAME, 2)
        models.refresh()
        models.refresh()
        assert models.champion(MACHINE).version == 1
        assert said == ["the champion of cedar cannot be used: the files cannot be had"]
    finally:
        promote(NAME, 1)


def test_a_time_far_outside_the_interval_takes_force(predictor: Predictor, fleet: Fleet) -> None:
    row = fleet.unseen()[0]
    slip = observation(fleet, row, 1000.0)
    with pytest.raises(BadInputError, match=r"are predicted: are these seconds\? --force"):
        predictor.observe([slip], force=False)
    assert predictor.models.champion(MACHINE).observed_count == 0
    predictor.observe([slip], force=True)
    assert predictor.models.champion(MACHINE).observed_count == 1
