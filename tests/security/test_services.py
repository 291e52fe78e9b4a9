"""Services: who is let in, what they can make of a request, where they listen, and what they never show."""

import asyncio
import logging
import socket
from pathlib import Path
from typing import Any

import mlflow
import pytest
from fastapi.testclient import TestClient

from perf_assets.cli.commands.start import up
from perf_assets.cli.support.output import say
from perf_assets.core.addresses import Addresses
from perf_assets.core.errors import BadInputError
from perf_assets.core.paths import is_own_registry
from perf_assets.core.text import without_passwords
from perf_assets.serving import site
from perf_assets.serving.http.app import Limits, create_app
from perf_assets.serving.http.guard import Guard, is_loopback

PASSWORD = "pa:ss@w/ord"
STORE = f"postgresql://perf:{PASSWORD}@db.example.org:5432/mlflow"
JSON = {"Content-Type": "application/json"}


def client(host: str = "127.0.0.1") -> TestClient:
    """Of an application that no good question reaches."""
    nobody: Any = None
    return TestClient(create_app(nobody, Limits(), None), f"http://{host}", raise_server_exceptions=False)


@pytest.mark.parametrize("host", ["127.0.0.1", "127.0.0.1:8000", "localhost:8000", "[::1]:8000", "LOCALHOST"])
def test_this_machine_is_let_in_under_its_own_name(host: str) -> None:
    assert client().get("/openapi.json", headers={"Host": host}).status_code == 200


@pytest.mark.parametrize("host", ["evil.example", "evil.example:8000", "127.0.0.1.evil.example", "10.0.0.1", "", "[::"])
def test_a_page_elsewhere_that_points_here_is_not_let_in(host: str) -> None:
    for path in ("/predict", "/observe"):
        answer = client().post(path, json={}, headers={"Host": host})
        assert answer.status_code == 421
        assert "localhost only" in answer.json()["error"]


@pytest.mark.parametrize("kind", ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data", ""])
def test_what_a_page_elsewhere_may_send_unasked_is_not_taken(kind: str) -> None:
    """Browsers send these without asking the service first; JSON they do not."""
    body = b'{"machine": "cedar", "app": "x", "ranks": 1, "wall_seconds": 1}'
    answer = client().post("/observe", content=body, headers={"Content-Type": kind, "Origin": "http://evil.example"})
    assert answer.status_code in (400, 422)
    assert "access-control-allow-origin" not in answer.headers


@pytest.mark.parametrize(
    "body",
    [b"[" * 100_000, b'{"a":' * 100_000, b'{"target": ' + b"9" * 100_000 + b"}", b"\xff\xfe", b'{"a":"\\ud800"}'],
)
def test_bodies_that_break_parsers_are_bad_questions(body: bytes) -> None:
    answer = client().post("/predict", content=body, headers=JSON)
    assert answer.status_code in (400, 422)
    assert len(answer.json()["error"]) < 5000


def test_a_length_of_thousands_of_digits_is_refused() -> None:
    sent: list[Any] = []

    async def ask() -> None:
        async def none(*_: Any) -> Any:
            raise AssertionError

        async def send(message: Any) -> None:
            sent.append(message)

        headers = [(b"content-length", b"9" * 5000), (b"host", b"localhost")]
        scope = {"type": "http", "method": "POST", "path": "/predict", "headers": headers}
        await Guard(none, 1000, None)(scope, none, send)

    asyncio.run(ask())
    assert sent[0]["status"] == 413


@pytest.mark.parametrize(
    ("host", "is_here"),
    [("127.0.0.1", True), ("127.9.9.9", True), ("::1", True), ("localhost", True)]
    + [(host, False) for host in ("0.0.0.0", "::", "", "192.168.1.1", "localhost.example.org", socket.gethostname())],
)
def test_which_addresses_are_this_machine_only(host: str, is_here: bool) -> None:
    assert is_loopback(host) == is_here


def test_passwords_of_addresses_are_not_shown(capsys: pytest.CaptureFixture[str]) -> None:
    say(f"the store is {STORE}")
    shown = [str(BadInputError(f"{STORE} is away")), without_passwords(STORE), capsys.readouterr().err]
    for text in shown:
        assert PASSWORD not in text
        assert "w/ord" not in text
        assert "postgresql://perf:***@db.example.org:5432/mlflow" in text
    assert without_passwords("http://h/x?token=abc&y=1") == "http://h/x?token=***&y=1"
    assert without_passwords("see http://127.0.0.1:3000/a, write to me@x.org") == (
        "see http://127.0.0.1:3000/a, write to me@x.org"
    )


def test_a_store_that_cannot_be_used_is_said_without_its_password(monkeypatch: pytest.MonkeyPatch) -> None:
    from perf_assets.registry.store import open_store

    monkeypatch.setenv("MLFLOW_TRACKING_URI", f"nonsense://perf:{PASSWORD}@127.0.0.1:1/mlflow")
    with pytest.raises(BadInputError) as error:
        open_store()
    assert "w/ord" not in str(error.value)


def test_pages_listen_on_this_machine_only_and_no_argument_is_a_secret(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from perf_assets.defs.operate import dead_runs, launch

    started: list[tuple[list[str], dict[str, str]]] = []
    monkeypatch.setattr(launch, "open_instance", lambda: None)
    monkeypatch.setattr(dead_runs, "end_dead_runs", lambda instance: None)
    monkeypatch.setattr(up, "Service", lambda name, command, log, env, *_: started.append((command, env)))
    monkeypatch.setattr(up, "wait_until_ready", lambda *_: None)
    monkeypatch.setenv("PERF_ASSETS_LAKE", str(tmp_path))
    monkeypatch.setenv("MLFLOW_TRACKING_URI", STORE)
    up._start_all(tmp_path, Addresses())
    assert len(started) == 5
    for command, environment in started:
        assert PASSWORD not in " ".join(command)
        assert environment["MLFLOW_BACKEND_STORE_URI"] == STORE
        if "code-server" in command:
            socket_folder = Path(command[1 + command.index("--socket")]).parent
            assert socket_folder.stat().st_mode & 0o077 == 0, "whoever reaches it runs code as its owner"
        elif "perf_assets.serving.site" in command:
            assert site.HOST == "127.0.0.1"
        elif "daemon" not in command[0]:
            assert command[1 + command.index("-h" if "-h" in command else "--host")] == "127.0.0.1"


def test_a_registry_elsewhere_is_said_to_run_its_code(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    from perf_assets.registry import versions

    monkeypatch.setattr(versions, "open_store", lambda: None)
    monkeypatch.setattr(mlflow.pyfunc, "load_model", lambda address, **_: address)
    monkeypatch.setenv("PERF_ASSETS_LAKE", str(tmp_path))
    with caplog.at_level(logging.WARNING):
        monkeypatch.delenv("MLFLOW_TRACKING_URI", raising=False)
        assert is_own_registry()
        versions.load("perf-source", "with-amm")
        assert not caplog.messages
        for elsewhere in (STORE, "http://mlflow.example.org", f"sqlite:///{tmp_path}/../mlflow.db"):
            monkeypatch.setenv("MLFLOW_TRACKING_URI", elsewhere)
            versions.load("perf-source", "with-amm")
            assert "loading runs the code stored there" in caplog.messages[-1]
            assert "w/ord" not in caplog.messages[-1]
    assert len(caplog.messages) == 3
