"""Advice for one job: the same from the command line, Python and HTTP, and what it promises."""

import json
import math
from pathlib import Path
from statistics import NormalDist

import pandas as pd
import pytest
from click.testing import CliRunner
from fastapi.testclient import TestClient

from perf_assets.cli.main import cli
from perf_assets.core.errors import BadInputError, UnknownError
from perf_assets.features.counters.derivations import deriving
from perf_assets.readers.bundle import read_bundle
from perf_assets.serving.advice import advise, exceeded_by, forward_errors
from perf_assets.serving.asked_runs import stored_runs
from perf_assets.serving.http.app import Limits, create_app
from perf_assets.serving.predictor import Predictor
from perf_assets.storage.lake import Lake
from perf_assets.storage.warehouse import Warehouse
from perf_assets.workflows.landing.ingest import ingest_machine
from perf_assets.workflows.scheduling.shadow import MODELLED
from tests.serving.conftest import MACHINE, Fleet

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("serving")]
APP = "TESTDFFT"
RATIOS = {"PAPI_LD_INS": "load_ratio", "PAPI_SR_INS": "store_ratio", "PAPI_BR_INS": "branch_ratio"}


def land(lake: Lake, machine: str, rows: list[dict[str, object]], folder: Path, name: str = "runs.csv") -> None:
    path = folder / name
    pd.DataFrame(rows).to_csv(path, index=False)
    wanted = ["land", str(path), "--machine", machine, "--kind", "samples", "--target", "wall_seconds"]
    done = CliRunner().invoke(cli, wanted)
    assert done.exit_code == 0, done.output
    ingest_machine(lake, machine, read_bundle)
    warehouse = Warehouse(lake, deriving([]))
    warehouse.load_machine(machine)
    warehouse.derive_machine(machine)


def rows_of(fleet: Fleet, seconds: dict[int, float]) -> list[dict[str, object]]:
    """One problem on 1, 2 and 4 nodes, with the counters of runs that the champion has not seen."""
    rows = []
    for (nodes, wall), row in zip(seconds.items(), fleet.unseen(), strict=False):
        asked = fleet.run(row)
        counted = {name: 1e9 * (asked.counters[ratio] or 0.0) for name, ratio in RATIOS.items()}
        width = {"ranks": nodes, "threads": 1, "nodes": nodes, "wall_seconds": wall}
        rows.append({"app": APP, "args": "--size 64", **width, "PAPI_TOT_INS": 1e9, **counted})
    return rows


@pytest.fixture
def measured(fleet: Fleet, lake: Lake, tmp_path: Path) -> Lake:
    land(lake, fleet.reference, rows_of(fleet, {1: 1000.0, 2: 520.0, 4: 500.0}), tmp_path)
    return lake


def test_the_same_advice_everywhere(fleet: Fleet, measured: Lake, predictor: Predictor) -> None:
    jobs = advise(predictor, APP, machines=[MACHINE])
    assert {(job.machine, job.nodes) for job in jobs} == {(MACHINE, 1), (MACHINE, 2), (MACHINE, 4)}
    assert [job.is_advised for job in jobs] == [True, False, False]
    fastest = min(job.predicted_seconds for job in jobs)
    tolerable = [job.nodes for job in jobs if job.predicted_seconds <= 1.1 * fastest]
    assert jobs[0].nodes == min(nodes for nodes in tolerable if nodes is not None)
    done = CliRunner().invoke(cli, ["advise", "--app", APP, "--machines", MACHINE, "--json"])
    assert done.exit_code == 0, done.output
    said = json.loads(done.stdout)["jobs"]
    assert [job["limit_seconds"] for job in said] == [job.limit_seconds for job in jobs]
    with TestClient(create_app(predictor, Limits(), None), "http://127.0.0.1") as client:
        answer = client.post("/advise", json={"app": APP, "machines": [MACHINE]})
        assert answer.status_code == 200, answer.text
        assert answer.json()["jobs"] == said
        assert client.post("/advise", json={"app": APP, "kill_rate": 0.7}).status_code == 422
    people = CliRunner().invoke(cli, ["advise", "--app", APP])
    assert people.exit_code == 0, people.output
    assert "advised" in people.stdout


def test_a_limit_is_the_quantile_that_is_promised(fleet: Fleet, measured: Lake, predictor: Predictor) -> None:
    limits = []
    for rate in (0.01, 0.05, 0.2):
        (job,) = [job for job in advise(predictor, APP, machines=[MACHINE], kill_rate=rate) if job.nodes == 1]
        assert job.limit_seconds is not None
        assert job.limit_seconds % 60 == 0
        limits.append(job.limit_seconds)
        spread = NormalDist().inv_cdf(1 - rate) / NormalDist().inv_cdf(0.95)
        (answer,) = predictor.predict(stored_runs(measured, fleet.reference, APP, ranks=1), MACHINE)
        exact = answer.predicted_seconds * (answer.upper_seconds / answer.predicted_seconds) ** spread
        assert job.limit_seconds == 60 * math.ceil(exact / 60)
    assert limits == sorted(limits, reverse=True)


def test_fewer_nodes_are_advised_where_that_is_tolerable(fleet: Fleet, measured: Lake, predictor: Predictor) -> None:
    here = {"machines": [fleet.reference]}
    assert advise(predictor, APP, **here)[0].nodes == 2
    assert advise(predictor, APP, tolerance=0.0, **here)[0].nodes == 4
    assert advise(predictor, APP, tolerance=1.0, **here)[0].nodes == 1
    assert advise(predictor, APP, nodes=1, **here)[0].nodes == 1


def test_widths_that_nobody_ran_are_answered_by_the_model_of_scaling(
    fleet: Fleet, measured: Lake, predictor: Predictor, tmp_path: Path
) -> None:
    here = {"machines": [fleet.reference]}
    with pytest.raises(BadInputError, match="on 1, 2, 4 nodes, not on 8"):
        advise(predictor, APP, nodes=8, **here)  # three runs are too few
    seconds = {1: 1000.0, 2: 520.0, 4: 280.0, 16: 95.0}
    land(measured, fleet.reference, rows_of(fleet, seconds), tmp_path, "wider.csv")
    jobs = {job.nodes: job for job in advise(predictor, APP, nodes=64, **here)}
    assert {nodes for nodes, job in jobs.items() if job.model == "scaling"} == {8, 64}
    assert jobs[8].predicted_seconds == pytest.approx(163, rel=0.15)
    assert jobs[64].predicted_seconds < jobs[16].predicted_seconds
    assert jobs[8].ranks == 8
    assert "nobody ran TESTDFFT on 8 nodes" in jobs[8].warnings[0]
    within, outside = (jobs[nodes].limit_seconds / jobs[nodes].predicted_seconds for nodes in (8, 64))  # type: ignore[operator]
    assert outside > within


def test_measured_times_have_a_limit_where_runs_were_repeated(
    fleet: Fleet, measured: Lake, predictor: Predictor, tmp_path: Path
) -> None:
    once = advise(predictor, APP, machines=[fleet.reference])[0]
    assert (once.model, once.limit_seconds) == ("measured", None)
    assert "no limit: fewer than 5 runs were repeated" in once.warnings[-1]
    for number, factor in enumerate((0.9, 1.1, 1.2)):
        repeated = rows_of(fleet, {1: 1000.0 * factor, 2: 520.0 * factor, 4: 500.0 * factor})
        land(measured, fleet.reference, repeated, tmp_path, f"again{number}.csv")
    job = advise(predictor, APP, machines=[fleet.reference], kill_rate=0.3)[0]
    # Three configurations, each 1, 0.9, 1.1, 1.2 times as long: every run against the median of those before.
    errors = forward_errors([[1.0, 0.9, 1.1, 1.2]])
    assert errors == pytest.approx([math.log(0.9), math.log(1.1 / 0.95), math.log(1.2)])
    expected = job.predicted_seconds * math.exp(exceeded_by(3 * errors, 0.3))
    assert job.limit_seconds == 60 * math.ceil(expected / 60)


def test_a_share_of_errors_is_above_the_limit() -> None:
    errors = [place / 100 for place in range(99)]
    assert sum(error > exceeded_by(errors, 0.05) for error in errors) == 4
    assert exceeded_by(errors, 0.001) > max(errors)
    assert exceeded_by([-0.1, -0.2], 0.01) == 0.0


def test_what_cannot_be_advised_is_said(fleet: Fleet, measured: Lake, predictor: Predictor, tmp_path: Path) -> None:
    with pytest.raises(BadInputError, match=f"did you mean {APP}"):
        advise(predictor, "TESTDFT")
    with pytest.raises(BadInputError, match="has the arguments '--size 65'"):
        advise(predictor, APP, "--size 65")
    with pytest.raises(BadInputError, match="on 1, 2, 4 nodes, not on 3"):
        advise(predictor, APP, nodes=3)
    with pytest.raises(BadInputError, match="above 0 and below"):
        advise(predictor, APP, kill_rate=0.5)
    other = [{**row, "args": "--size 32"} for row in rows_of(fleet, {1: 10.0})]
    land(measured, fleet.reference, other, tmp_path, "other.csv")
    with pytest.raises(BadInputError, match="ran with 2 arguments: give --args"):
        advise(predictor, APP)
    done = CliRunner().invoke(cli, ["advise", "--app", APP, "--machines", "cedarr"])
    assert isinstance(done.exception, UnknownError | BadInputError)
    assert "did you mean cedar?" in str(done.exception)


def test_a_log_is_replayed_with_other_machines_as_their_target_models_say(
    measured: Lake, fleet: Fleet, tmp_path: Path
) -> None:
    jobs = ["JobID|JobName|User|Submit|Start|End|NNodes|Timelimit|State"]
    for number in range(120):
        times = [pd.Timestamp(f"2019-01-02T00:{number % 60:02}:00") + pd.Timedelta(minutes=m) for m in (0, 1, 31)]
        shown = "|".join((time + pd.Timedelta(hours=number // 60)).isoformat() for time in times)
        jobs.append(f"{number}|{APP if number % 2 else 'other'}|u{number % 5}|{shown}|2|01:00:00|COMPLETED")
    log, page = tmp_path / "sacct.txt", tmp_path / "page.html"
    log.write_text("\n".join(jobs) + "\n")
    wanted = ["shadow", str(log), "--nodes", "8", "--zone", "UTC", "--machine", fleet.reference]
    done = CliRunner().invoke(
        cli, [*wanted, "--machines", f"{MACHINE}=4", "--replays", "2", "--page", str(page), "--json"]
    )
    assert done.exit_code == 0, done.output
    document = json.loads(done.stdout)
    assert document["other_machines"] == [f"{MACHINE} (4)"]
    assert document["modelled_jobs"] == 60
    (said,) = document["models"]
    answers = Predictor(measured).predict(stored_runs(measured, fleet.reference, APP), MACHINE, with_measured=True)
    ratio = math.exp(sum(math.log(one.relative_time) for one in answers) / len(answers))
    assert said.startswith(f"{APP}: predicted {ratio:.2f} times as long on {MACHINE} (90%: ")
    waits = {one["plan"]: one["wait_hours_per_job"] for one in document["savings"]}
    assert waits[MODELLED] < waits["user statistics"]
    assert f"The nodes of {MACHINE} (4) come on top: a part of the gain is theirs." in page.read_text()
