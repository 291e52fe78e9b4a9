"""Real servers on a real port: the service beside MLflow's own, with wrong input, and what it leaves behind."""

import json
import os
import re
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psutil
import pytest

from perf_assets.storage.lake import Lake
from tests.installation import PROGRAM
from tests.serving.conftest import MACHINE, NAME, Fleet, fleet, lake

pytestmark = [pytest.mark.integration, pytest.mark.timeout(900), pytest.mark.xdist_group("serving")]
__all__ = ["fleet", "lake"]
TOKEN = "open-sesame-and-more"


@contextmanager
def started(command: Sequence[str], environment: dict[str, str]) -> Iterator["subprocess.Popen[str]"]:
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=environment)
    try:
        yield process
    finally:
        alive = process.poll() is None
        family = [psutil.Process(process.pid), *psutil.Process(process.pid).children(recursive=True)] if alive else []
        for member in family:
            if member.is_running():
                member.terminate()
        psutil.wait_procs(family, timeout=30)


def ask(url: str, document: object | None = None, token: str = TOKEN) -> tuple[int, Any]:
    body = None if document is None else json.dumps(document).encode()
    headers = {"Content-Type": "application/json", "Authorization": f"Bearer {token}"}
    try:
        with urllib.request.urlopen(urllib.request.Request(url, body, headers), timeout=60) as response:
            return response.status, json.load(response)
    except urllib.error.HTTPError as error:
        return error.code, json.load(error)


def refusal(port: int, head: str, chunk: bytes) -> tuple[bytes, int]:
    """Status line that a body without end gets, and how many bytes of it could be sent before."""
    sent = 0
    with socket.create_connection(("127.0.0.1", port), timeout=30) as connection:
        connection.sendall(
            f"POST /predict HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {TOKEN}\r\n{head}\r\n\r\n".encode()
        )
        connection.settimeout(0.05)
        while sent < 100_000_000:
            try:
                found = connection.recv(100)
                return found.split(b"\r\n")[0], sent
            except TimeoutError:
                try:
                    connection.sendall(chunk)
                    sent += len(chunk)
                except (TimeoutError, OSError):
                    pass
            except OSError:
                break
    return b"", sent


def row_of(asked: Any) -> dict[str, Any]:
    kept = {name: getattr(asked, name) for name in ("app", "args", "ranks", "threads", "wall_seconds")}
    return {"source_machine": asked.machine, **kept, **asked.counters}


def test_the_service_and_mlflow_give_the_same_numbers(fleet: Fleet, lake: Lake, tmp_path: Path) -> None:
    environment = {**os.environ, "PERF_ASSETS_TOKEN": TOKEN}
    runs = [fleet.run(row) for row in fleet.unseen()[:4]]
    question = {"target": MACHINE, "runs": [run.model_dump() for run in runs]}
    with started([str(PROGRAM), "serve", "--port", "0"], environment) as service:
        assert service.stdout is not None
        lines = []
        for line in service.stdout:
            lines.append(line)
            if "/docs" in line:
                break
        found = re.search(r"http://127\.0\.0\.1:(\d+)/docs", lines[-1])
        assert found, lines
        port = int(found[1])
        root = f"http://127.0.0.1:{port}"
        status, answer = ask(f"{root}/predict", question)
        assert status == 200
        assert ask(f"{root}/predict", question, token="wrong")[0] == 401
        assert refusal(port, "Content-Length: 1000000000", b"x" * 100_000) == (
            b"HTTP/1.1 413 Request Entity Too Large",
            0,
        )
        status_line, sent = refusal(port, "Transfer-Encoding: chunked", b"186a0\r\n" + b"x" * 100_000 + b"\r\n")
        assert (status_line[:12], sent < 50_000_000) == (b"HTTP/1.1 413", True)
        handed = {k: v for k, v in runs[0].model_dump().items() if k in ("app", "args", "ranks", "threads")}
        assert ask(f"{root}/observe", {"machine": MACHINE, **handed, "wall_seconds": 99.0})[0] == 200
        service.send_signal(signal.SIGTERM)
        assert service.wait(120) == 0
        rest = service.stdout.read()
        assert "Traceback" not in rest
        assert TOKEN not in "".join(lines) + rest
    assert len(list((lake.landing / MACHINE).iterdir())) == 1
    expected = _from_mlflow([row_of(run) for run in runs], environment)
    for name in ("predicted_seconds", "lower_seconds", "upper_seconds", "relative_time"):
        assert [one[name] for one in answer["predictions"]] == pytest.approx([row[name] for row in expected], rel=1e-9)


def _from_mlflow(rows: list[dict[str, Any]], environment: dict[str, str]) -> list[dict[str, float]]:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    program = Path(sys.executable).with_name("mlflow")
    uri = f"models:/{NAME}@champion"
    command = [str(program), "models", "serve", "-m", uri, "--env-manager", "local", "-p", str(port)]
    # MLflow starts its server by name.
    path = os.pathsep.join([str(program.parent), environment.get("PATH", "")])
    with started(command, environment | {"PATH": path}) as server:
        deadline = time.monotonic() + 400
        while time.monotonic() < deadline and server.poll() is None:
            try:
                status, answer = ask(f"http://127.0.0.1:{port}/invocations", {"dataframe_records": rows})
                assert status == 200, answer
                return list(answer["predictions"])
            except OSError:
                time.sleep(0.3)
    pytest.fail("mlflow models serve did not answer")


def test_wrong_input_is_one_line_and_exit_code_2(fleet: Fleet, lake: Lake, tmp_path: Path) -> None:
    (tmp_path / "empty.csv").write_text("")
    command = [str(PROGRAM), "predict", "--from", fleet.reference, "--to", MACHINE, str(tmp_path / "empty.csv")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert done.stdout == ""
    assert len(done.stderr.splitlines()) == 1
    assert done.stderr.startswith("perf-assets: ")
