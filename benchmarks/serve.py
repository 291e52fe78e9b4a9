"""How many single-row predictions a second does `perf-assets serve` answer, beside `mlflow models serve`?

Both serve the same registered target model (made-up fleet of five machines, 120 configurations, 30 shots) on loopback
and are asked by the same client, a process of its own with keep-alive connections: after a warm-up, as many requests
as fit into `SECONDS`, at most `REQUESTS`. Every request has its own row, and every answer is checked to be one.
`cpu_ms` is processor time of the server per request, which other work on the machine changes less.

Last line: one JSON object. Goals: 500 requests a second, p99 below 50 ms, on 2 cores.
"""

import argparse
import asyncio
import json
import os
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import psutil

SHOTS, CONFIGURATIONS, BENCHMARKS = 30, 120, 12
CONNECTIONS, REQUESTS, SECONDS, WARM_UP = 8, 10_000, 15.0, 50
START_SECONDS = 120.0
TARGET = "oak"


def register() -> list[dict[str, Any]]:
    """Fit and register a champion of TARGET; rows to ask about, as the registered model takes them."""
    from perf_assets.features.fleet.samples import RUN_COLUMNS, configuration_name
    from perf_assets.features.samples import PairedSamples
    from perf_assets.models.target.model import PRIOR_COMPONENTS, adapt
    from perf_assets.models.target.prior import refitted_priors
    from perf_assets.registry.target import register_target
    from perf_assets.registry.versions import promote

    random = np.random.default_rng(0)
    machines = ("ash", "birch", "cedar", "elm", TARGET)
    speeds, count = random.normal(size=(len(machines), 2)), CONFIGURATIONS + BENCHMARKS
    shares = random.uniform(size=count)
    log_seconds = random.normal(size=count) - speeds @ np.stack([shares, 1 - shares])
    log_seconds += 0.03 * random.normal(size=log_seconds.shape)
    is_benchmark = np.arange(count) >= CONFIGURATIONS
    log_seconds[-1, SHOTS:CONFIGURATIONS] = np.nan
    scales = np.array([np.exp(random.normal(size=len(RUN_COLUMNS))) for _ in machines])
    counters = scales[:, None, :] * (1 + shares[None, :, None] * np.arange(len(RUN_COLUMNS)))
    counters[:, :, RUN_COLUMNS.index("ranks")] = counters[:, :, RUN_COLUMNS.index("threads")] = 1.0
    apps = np.array([f"app{i % 4}" for i in range(CONFIGURATIONS)] + [f"kernel{i}" for i in range(BENCHMARKS)])
    names = tuple(configuration_name((app, f"-n {i}", 1, 1)) for i, app in enumerate(apps))
    samples = PairedSamples(machines, RUN_COLUMNS, names, apps, is_benchmark, counters, log_seconds)
    adapted = adapt(samples, TARGET, refitted_priors(samples, 0, PRIOR_COMPONENTS), 0, print)
    source = machines.index(adapted.views[TARGET].source)
    version = register_target(adapted, [], {}, {})
    promote(version.name, version.version)
    return [
        dict(zip(RUN_COLUMNS, counters[source, i].tolist(), strict=True))
        | {"source_machine": machines[source], "app": str(apps[i]), "args": f"-n {i}", "ranks": 1, "threads": 1}
        | {"wall_seconds": float(np.exp(log_seconds[source, i])), "uses_gpus": True}
        for i in range(CONFIGURATIONS)
    ]


def as_question(row: dict[str, Any]) -> dict[str, Any]:
    """A row as `perf-assets serve` takes it."""
    named = {name: row[name] for name in ("app", "args", "ranks", "threads", "wall_seconds", "uses_gpus")}
    counters = {name: value for name, value in row.items() if name not in {*named, "source_machine"}}
    return {"target": TARGET, "runs": [{"machine": row["source_machine"], **named, "counters": counters}]}


async def ask(port: int, path: str, bodies: list[bytes]) -> dict[str, float]:
    """Requests one after the other on each of several connections."""
    took: list[float] = []
    deadline = time.monotonic() + SECONDS
    head = f"POST {path} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nContent-Type: application/json\r\n".encode()

    async def connection(number: int) -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        while len(took) < REQUESTS and time.monotonic() < deadline:
            body = bodies[(number + len(took)) % len(bodies)]
            start = time.perf_counter()
            writer.write(head + b"Content-Length: %d\r\n\r\n" % len(body) + body)
            headers = await reader.readuntil(b"\r\n\r\n")
            _, _, told = headers.lower().partition(b"content-length:")
            answer = await reader.readexactly(int(told.split(b"\r\n")[0] or 0))
            took.append(time.perf_counter() - start)
            if not headers.startswith(b"HTTP/1.1 200") or b"predicted_seconds" not in answer:
                raise SystemExit(f"no answer: {headers[:40]!r} {answer[:300]!r}")
        writer.close()

    start = time.perf_counter()
    await asyncio.gather(*(connection(number) for number in range(CONNECTIONS)))
    elapsed = time.perf_counter() - start
    return {
        "requests": len(took),
        "requests_per_second": len(took) / elapsed,
        "p50_ms": 1e3 * float(np.quantile(took, 0.5)),
        "p99_ms": 1e3 * float(np.quantile(took, 0.99)),
    }


@contextmanager
def served(command: list[str], port: int, health: str) -> Iterator[int]:
    """A server that answers; its process id."""
    with tempfile.TemporaryFile() as log:
        process = subprocess.Popen(command, stdout=log, stderr=subprocess.STDOUT)
        try:
            deadline = time.monotonic() + START_SECONDS
            while not answers(f"http://127.0.0.1:{port}{health}"):
                if process.poll() is not None or time.monotonic() > deadline:
                    log.seek(0)
                    raise SystemExit(f"{command[0]} did not start: {log.read()[-2000:].decode(errors='replace')}")
                time.sleep(0.2)
            yield process.pid
        finally:
            family = [process.pid, *(child.pid for child in psutil.Process(process.pid).children(recursive=True))]
            for pid in family:
                if psutil.pid_exists(pid):
                    psutil.Process(pid).terminate()
            process.wait(30)


def answers(url: str) -> bool:
    """Whether somebody is there."""
    try:
        with urllib.request.urlopen(url, timeout=2):
            return True
    except (urllib.error.URLError, OSError):
        return False


def measured(command: list[str], port: int, health: str, path: str, bodies: list[dict[str, Any]]) -> dict[str, float]:
    """Start a server, ask it from another process, stop it."""
    with served(command, port, health) as pid, tempfile.TemporaryDirectory() as folder:
        questions = Path(folder) / "questions.json"
        questions.write_text(json.dumps(bodies))
        family = [psutil.Process(pid), *psutil.Process(pid).children(recursive=True)]
        before = sum(sum(process.cpu_times()[:2]) for process in family)
        done = subprocess.run(
            [sys.executable, __file__, *sys.argv[1:], "--client", str(port), path, str(questions)],
            capture_output=True,
            text=True,
        )
        if done.returncode:
            raise SystemExit(done.stderr)
        found: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
        after = sum(sum(process.cpu_times()[:2]) for process in family)
        return {**found, "cpu_ms": 1e3 * (after - before) / (found["requests"] + WARM_UP)}


def client(port: int, path: str, questions: Path) -> None:
    """What the client process does."""
    global REQUESTS
    bodies = [json.dumps(body).encode() for body in json.loads(questions.read_text())]
    wanted, REQUESTS = REQUESTS, WARM_UP
    asyncio.run(ask(port, path, bodies))
    REQUESTS = wanted
    print(json.dumps(asyncio.run(ask(port, path, bodies))))


def free_port() -> int:
    """That nobody listens on."""
    import socket

    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def main() -> None:
    """Both servers, one after the other."""
    with tempfile.TemporaryDirectory() as lake:
        os.environ |= {"PERF_ASSETS_LAKE": lake, "OMP_NUM_THREADS": "1"}
        os.environ.pop("MLFLOW_TRACKING_URI", None)
        rows = register()
        os.environ["MLFLOW_TRACKING_URI"] = f"sqlite:///{lake}/mlflow/mlflow.db"
        program, port = Path(sys.executable).parent, free_port()
        own = measured(
            [str(program / "perf-assets"), "serve", "--port", str(port)],
            port,
            "/health",
            "/predict",
            [as_question(row) for row in rows],
        )
        print(f"perf-assets serve: {own}")
        port = free_port()
        uri = f"models:/perf-target-{TARGET}@champion"
        # MLflow starts its server by name.
        os.environ["PATH"] = os.pathsep.join([str(program), os.environ.get("PATH", "")])
        command = [str(program / "mlflow"), "models", "serve", "-m", uri, "--env-manager", "local", "-p", str(port)]
        theirs = measured(command, port, "/ping", "/invocations", [{"dataframe_records": [row]} for row in rows])
        print(f"mlflow models serve: {theirs}")
    kept = ("requests_per_second", "p99_ms")
    found = {name: round(own[name], 1) for name in kept} | {f"mlflow_{name}": round(theirs[name], 1) for name in kept}
    print(json.dumps(found))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--quick", action="store_true", help="seconds instead of minutes, figures without meaning")
    parser.add_argument("--client", nargs=3, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.quick:
        SHOTS, CONFIGURATIONS, REQUESTS, WARM_UP = 10, 40, 100, 8
    if given.client:
        client(int(given.client[0]), given.client[1], Path(given.client[2]))
    else:
        main()
