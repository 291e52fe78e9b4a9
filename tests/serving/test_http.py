"""The service: the same answers and the same words over HTTP, and what it refuses."""

import asyncio
import json
import re
import threading
import time
from collections.abc import AsyncIterator, Iterator
from html import unescape
from typing import Any

import pytest
from fastapi.testclient import TestClient

from perf_assets.core.errors import BadInputError
from perf_assets.registry.versions import load, promote, versions
from perf_assets.serving.http.app import Limits, create_app
from perf_assets.serving.http.guard import Guard
from perf_assets.serving.predictor import Predictor
from tests.serving.conftest import MACHINE, NAME, Fleet

pytestmark = pytest.mark.xdist_group("serving")  # one worker makes what they share

TOKEN = "let-me-in-please"
HERE = "http://127.0.0.1"


@pytest.fixture
def client(predictor: Predictor) -> Iterator[TestClient]:
    predictor.models.load_all()
    limits = Limits(body_bytes=200_000, rows=100, seconds=20.0)
    with TestClient(create_app(predictor, limits, None), HERE, raise_server_exceptions=False) as client:
        yield client


def question(fleet: Fleet, rows: list[int], target: str = MACHINE, **changes: Any) -> dict[str, Any]:
    runs = [fleet.run(row, **changes).model_dump() for row in rows]
    return {"target": target, "runs": runs}


def test_it_answers_as_the_predictor_does(client: TestClient, predictor: Predictor, fleet: Fleet) -> None:
    for count in (1, 50):
        rows = fleet.unseen()[:count]
        answer = client.post("/predict", json=question(fleet, rows))
        assert answer.status_code == 200, answer.text
        found = answer.json()["predictions"]
        expected = predictor.predict([fleet.run(row) for row in rows], MACHINE)
        for name in ("predicted_seconds", "lower_seconds", "upper_seconds"):
            assert [one[name] for one in found] == pytest.approx([getattr(one, name) for one in expected], rel=1e-9)
    zero_shot = client.post("/predict", json=question(fleet, [0], "fir")).json()["predictions"][0]
    assert (zero_shot["model"], zero_shot["is_with_amm"]) == ("perf-source", True)


def test_any_registered_model_takes_a_table(client: TestClient) -> None:
    for name, alias in ((NAME, "champion"), ("perf-source", "with-amm")):
        served = load(name, alias)
        example = served.input_example
        rows = json.loads(example.to_json(orient="records", double_precision=15))
        answer = client.post(f"/predict/{name}", json={"rows": rows})
        assert answer.status_code == 200, answer.text
        found, expected = answer.json(), served.predict(example)
        assert (found["model"], found["version"]) == (name, versions(name)[alias])
        seconds = [row["predicted_seconds"] for row in found["answers"]]
        assert seconds == pytest.approx(expected["predicted_seconds"].tolist(), rel=1e-9)
    unknown = client.post("/predict/nobody", json={"rows": [{"a": 1}]})
    assert unknown.status_code == 404
    assert "no model nobody is registered" in unknown.json()["error"]
    lacking = client.post("/predict/perf-source", json={"rows": [{"app": "a"}]})
    assert lacking.status_code == 422
    assert "the table lacks the column target_machine: perf-source needs target_machine" in lacking.json()["error"]
    wrong = client.post("/predict/perf-source", json={"rows": [{**rows[0], "ranks": "two"}]})
    assert "column ranks must hold a whole number: row 0 has 'two'" in wrong.json()["error"]
    many = client.post("/predict/perf-source", json={"rows": rows * 100})
    assert many.status_code == 413


def test_machines_models_health_and_the_page(client: TestClient) -> None:
    assert client.get("/health").json() == {"status": "ok", "champions": 1}
    machines = {row["machine"]: row for row in client.get("/machines").json()["machines"]}
    assert machines[MACHINE]["champion_version"] == 1
    assert {row["name"] for row in client.get("/models").json()["models"]} == {NAME, "perf-source"}
    description = client.get("/openapi.json").json()
    answering = {"/predict", "/predict/{model}", "/advise", "/observe", "/plan/{machine}"}
    assert set(description["paths"]) == {*answering, "/machines", "/models", "/health", "/metrics"}
    page = client.get("/").text
    assert page == client.get("/docs").text, "who comes to the address alone is led there"
    assert "POST" in page
    assert "src=" not in page, "it works without network"
    for path in ("/predict", "/observe"):
        assert f"curl {HERE}{path} -H" in page
    assert "Threads per rank." in page, "fields say what they are"


def test_the_examples_of_the_page_are_valid_questions(client: TestClient) -> None:
    schema = client.get("/openapi.json").json()
    example = schema["components"]["schemas"]["Question"]["examples"][0]
    answer = client.post("/predict", json=example)
    assert (answer.status_code, answer.json()["error"][:25]) == (404, "machine 'dane' is not kno")


def test_the_forms_of_the_page_ask_what_this_lake_knows(client: TestClient) -> None:
    page = client.get("/docs").text
    boxes = [json.loads(unescape(text)) for text in re.findall(r"<textarea[^>]*>(.*?)</textarea>", page, re.DOTALL)]
    question, table, job, observation = boxes
    assert job == {**{name: question["runs"][0][name] for name in ("app", "args")}, "machines": [MACHINE]}
    refused = client.post("/advise", json=job)
    assert refused.status_code == 422, "this lake has models, and no run in its warehouse"
    answered = client.post("/predict", json=question)
    assert answered.status_code == 200, answered.text
    (shown,) = re.findall(r"The answer to this question:</p><pre>(.*?)</pre>", page, re.DOTALL)
    assert json.loads(unescape(shown)) == answered.json()
    asked = client.post(f"/predict/{NAME}", json=table)
    assert asked.status_code == 200, asked.text
    found, expected = (one[0]["predicted_seconds"] for one in (asked.json()["answers"], answered.json()["predictions"]))
    assert found == pytest.approx(expected, rel=1e-9)
    noted = client.post("/observe", json=observation)
    assert noted.status_code == 200, noted.text
    assert noted.json()["is_new"]


@pytest.mark.slow
def test_runs_are_planned_in_the_words_of_the_command_line(client: TestClient) -> None:
    planned = client.get(f"/plan/{MACHINE}?budget=2").json()
    assert [run["rank"] for run in planned["runs"]] == [1, 2]
    assert planned["verdicts"][0].startswith(f"{MACHINE}: ")
    assert "worth it" in planned["verdicts"][0] or "expected to" in planned["verdicts"][0]
    assert client.get(f"/plan/{MACHINE}?budget=0").status_code == 422
    assert client.get("/plan/nowhere").status_code == 404


@pytest.mark.slow
@pytest.mark.parametrize(
    ("changes", "status", "reason"),
    [
        ({"machine": "nowhere"}, 404, "machine 'nowhere' is not known: nothing of it has landed"),
        ({"counters": {}}, 422, "has none of the counters that the model of cedar needs"),
        ({"target_ranks": 6}, 422, "ran on 1 of the 3 numbers of ranks that a model of scaling needs"),
        ({"counters": {"branch_ratio": None, "load_ratio": None}}, 422, "has none of the counters"),
    ],
)
def test_bad_questions_get_the_words_of_the_command_line(
    changes: dict[str, Any], status: int, reason: str, client: TestClient, predictor: Predictor, fleet: Fleet
) -> None:
    answer = client.post("/predict", json=question(fleet, [0], **changes))
    assert answer.status_code == status
    assert reason in answer.json()["error"]
    with pytest.raises(BadInputError) as error:
        predictor.predict([fleet.run(0, **changes)], MACHINE)
    assert answer.json() == {"error": str(error.value)}


@pytest.mark.parametrize(
    ("field", "value", "reason"),
    [
        ("ranks", "four", "runs.0.ranks: Input should be a valid integer"),
        ("wall_seconds", 0, "runs.0.wall_seconds: Input should be greater than 0"),
        ("counters", {"load_ratio": "many"}, "runs.0.counters.load_ratio"),
        ("counters", {"load_ratio": 1e400}, "runs.0.counters: load_ratio is infinite"),
        ("args", "a\0b", "runs.0.args: 'a\\x00b' holds characters that cannot be printed"),
        ("machine", "../etc", "runs.0.machine: machine id '../etc' is not allowed"),
        ("surprise", 1, "runs.0.surprise: there is no such field"),
    ],
)
def test_wrong_types_are_named(field: str, value: object, reason: str, client: TestClient, fleet: Fleet) -> None:
    asked = question(fleet, [0])
    asked["runs"][0][field] = value
    body = json.dumps(asked).replace("Infinity", "1e400")
    answer = client.post("/predict", content=body, headers={"Content-Type": "application/json"})
    assert answer.status_code == 422
    assert answer.json()["error"].startswith(reason)


def test_what_is_no_question_is_refused(client: TestClient, fleet: Fleet) -> None:
    for body, reason in ((b"", "no JSON object"), (b"{", "the body is not JSON"), (b"[]", "no JSON object")):
        answer = client.post("/predict", content=body, headers={"Content-Type": "application/json"})
        assert answer.status_code == 422
        assert reason in answer.json()["error"]
    nan = json.dumps(question(fleet, [0])).replace(str(fleet.run(0).wall_seconds), "NaN")
    answer = client.post("/predict", content=nan, headers={"Content-Type": "application/json"})
    assert (answer.status_code, "wall_seconds" in answer.json()["error"]) == (422, True)
    assert client.get("/nothing").json() == {"error": "Not Found"}
    assert client.get("/predict").status_code == 405
    many = question(fleet, [0] * 101)
    assert client.post("/predict", json=many).json() == {
        "error": "101 runs are too many: ask for at most 100 at a time"
    }
    large = client.post("/predict", content=b" " * 300_000)
    assert (large.status_code, large.json()["error"][:29]) == (413, "the body is larger than 20000")


def test_a_large_body_is_refused_before_it_is_read_whole() -> None:
    """Also one that does not say how large it is."""
    given = 0

    async def body() -> AsyncIterator[bytes]:
        nonlocal given
        while True:
            given += 1
            yield b"x" * 1000

    async def refuse(headers: list[tuple[bytes, bytes]]) -> int:
        parts, sent = body(), []

        async def receive() -> dict[str, Any]:
            return {"type": "http.request", "body": await anext(parts), "more_body": True}

        async def send(message: Any) -> None:
            sent.append(message)

        async def application(scope: Any, receive: Any, send: Any) -> None:
            raise AssertionError("the body went through")

        scope = {"type": "http", "method": "POST", "path": "/predict", "headers": headers}
        await Guard(application, 10_000, None)(scope, receive, send)
        return int(sent[0]["status"])

    assert asyncio.run(refuse([(b"content-length", b"1000000000")])) == 413
    assert given == 0, "a body that says how large it is is not read at all"
    assert asyncio.run(refuse([(b"transfer-encoding", b"chunked")])) == 413
    assert given == 11


def test_the_token_is_asked_for(predictor: Predictor, fleet: Fleet) -> None:
    with TestClient(create_app(predictor, Limits(), TOKEN)) as client:
        assert client.get("/health").status_code == 200
        for headers in ({}, {"Authorization": "Bearer wrong"}, {"Authorization": TOKEN}):
            answer = client.post("/predict", json=question(fleet, [0]), headers=headers)
            assert answer.status_code == 401
            assert "missing or wrong" in answer.json()["error"]
            assert TOKEN not in answer.text
        given = {"Authorization": f"Bearer {TOKEN}"}
        assert client.post("/predict", json=question(fleet, [0]), headers=given).status_code == 200


def test_an_observed_run_counts_for_the_next_question(client: TestClient, fleet: Fleet) -> None:
    row = fleet.unseen()[0]
    before = client.post("/predict", json=question(fleet, [row])).json()["predictions"][0]
    run = {name: getattr(fleet.run(row), name) for name in ("app", "args", "ranks", "threads")}
    handed = {"machine": MACHINE, **run, "wall_seconds": 2 * before["predicted_seconds"]}
    noted = client.post("/observe", json=handed)
    assert noted.status_code == 200, noted.text
    assert noted.json()["predicted_seconds"] == pytest.approx(before["predicted_seconds"])
    after = client.post("/predict", json=question(fleet, [row])).json()["predictions"][0]
    assert after["observed_count"] == 1
    assert after["predicted_seconds"] > 1.2 * before["predicted_seconds"]
    wrong = client.post("/observe", json={**handed, "wall_seconds": -1})
    assert (wrong.status_code, wrong.json()["error"]) == (422, "wall_seconds: Input should be greater than 0")


@pytest.mark.slow
def test_the_champion_is_replaced_while_questions_are_answered(client: TestClient, fleet: Fleet) -> None:
    asked = question(fleet, fleet.unseen()[:3])
    found: list[tuple[int, Any]] = []
    ended = threading.Event()

    def ask() -> None:
        while not ended.is_set():
            answer = client.post("/predict", json=asked)
            found.append((answer.status_code, answer.json()["predictions"][0]["model_version"]))

    asking = threading.Thread(target=ask)
    asking.start()
    try:
        promote(NAME, 2)
        deadline = time.monotonic() + 30
        while (200, 2) not in found and time.monotonic() < deadline:
            time.sleep(0.1)
    finally:
        promote(NAME, 1)
        ended.set()
        asking.join()
    assert set(found) == {(200, 1), (200, 2)}, "none failed"


def test_slow_answers_and_long_queues_are_refused(
    predictor: Predictor, fleet: Fleet, monkeypatch: pytest.MonkeyPatch
) -> None:
    champion = predictor.models.champion(MACHINE)
    may_answer = threading.Event()
    monkeypatch.setattr(champion, "predict", lambda asked: may_answer.wait(10) and [])
    with TestClient(create_app(predictor, Limits(seconds=0.3, waiting=1), None), HERE) as client:
        slow = client.post("/predict", json=question(fleet, [0]))
        assert (slow.status_code, slow.json()["error"]) == (503, "no answer within 0.3 s: ask for fewer runs")
        client.post("/predict", json=question(fleet, [0]))
        full = client.post("/predict", json=question(fleet, [0]))
        assert (full.status_code, full.json()["error"]) == (503, "too many predictions are waiting: try again later")
        assert client.get("/health").status_code == 200, "the others are not held up"
        may_answer.set()


def test_a_failure_inside_is_no_traceback(client: TestClient, predictor: Predictor, monkeypatch: Any) -> None:
    def fail() -> None:
        raise RuntimeError("secret of the inside")

    monkeypatch.setattr(predictor, "machines", fail)
    answer = client.get("/machines")
    assert (answer.status_code, answer.json()) == (
        500,
        {"error": "the service failed on this request: its log says why"},
    )
