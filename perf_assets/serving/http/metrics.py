"""Metrics of the service for monitoring: requests and their times, models in use, age of data, the queue."""

import time
from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime

from perf_assets.serving.http.guard import Application, Message, Receive, Scope, Send
from perf_assets.storage.lake import Lake
from perf_assets.storage.record import MachineRecord

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
_BOUNDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)
"""Upper ends of the classes of latency, in seconds."""
_PATHS = ("predict", "advise", "observe", "machines", "models", "health", "metrics", "docs", "openapi.json", "")
_METHODS = ("GET", "HEAD", "POST", "OPTIONS")
_OTHER = "other"
_ESCAPED = str.maketrans({"\\": "\\\\", '"': '\\"', "\n": "\\n"})


_Sample = tuple[str, Mapping[str, str], float]
"""End of the name, labels and value."""


class Counting:
    """Notes every request on its way to the application, also one that is refused before it gets there."""

    def __init__(self, application: Application, metrics: "RequestCounts") -> None:
        self._application = application
        self._metrics = metrics

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on, and note how it ended and after how long."""
        if scope["type"] != "http":
            await self._application(scope, receive, send)
            return
        begun, status = time.perf_counter(), 500

        async def noting(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
            await send(message)

        try:
            await self._application(scope, receive, noting)
        finally:
            self._metrics.note(scope["path"], scope["method"], status, time.perf_counter() - begun)


class RequestCounts:
    """Requests so far. All of one event loop, so that nothing is counted twice."""

    def __init__(self) -> None:
        self._requests: Counter[tuple[str, str, int]] = Counter()
        self._classes: dict[str, list[int]] = defaultdict(lambda: [0] * (len(_BOUNDS) + 1))
        self._seconds: dict[str, float] = defaultdict(float)

    def note(self, path: str, method: str, status: int, seconds: float) -> None:
        """Count one request."""
        path = _path(path)
        self._requests[path, method if method in _METHODS else _OTHER, status] += 1
        self._classes[path][bisect_left(_BOUNDS, seconds)] += 1
        self._seconds[path] += seconds

    def text(
        self,
        waiting: int,
        most_waiting: int,
        models: Mapping[str, Mapping[str, int]],
        measured_at: Mapping[str, datetime],
    ) -> str:
        """All of it as Prometheus reads it."""
        now = datetime.now(UTC)
        families: tuple[tuple[str, str, str, Iterable[_Sample]], ...] = (
            ("requests_total", "counter", "Requests by path, method and status", self._counts()),
            ("request_seconds", "histogram", "Seconds from a request to its answer", self._latencies()),
            ("queue_length", "gauge", "Questions that wait for an answer", [("", {}, waiting)]),
            ("queue_limit", "gauge", "Questions that may wait", [("", {}, most_waiting)]),
            (
                "model_version",
                "gauge",
                "Version that an alias of a registered model points to",
                [
                    ("", {"model": name, "alias": alias}, number)
                    for name, aliases in sorted(models.items())
                    for alias, number in sorted(aliases.items())
                ],
            ),
            (
                "data_age_seconds",
                "gauge",
                "Age of the newest measurement of a machine",
                [("", {"machine": machine}, (now - at).total_seconds()) for machine, at in sorted(measured_at.items())],
            ),
        )
        return "".join(
            line
            for name, kind, about, samples in families
            for line in _family(f"perf_assets_{name}", kind, about, samples)
        )

    def _counts(self) -> Iterator[_Sample]:
        for (path, method, status), count in sorted(self._requests.items()):
            yield "", {"path": path, "method": method, "status": str(status)}, count

    def _latencies(self) -> Iterator[_Sample]:
        for path, classes in sorted(self._classes.items()):
            total = 0
            for bound, count in zip((*map(str, _BOUNDS), "+Inf"), classes, strict=True):
                total += count
                yield "_bucket", {"path": path, "le": bound}, total
            yield "_sum", {"path": path}, self._seconds[path]
            yield "_count", {"path": path}, total


def measured_at(lake: Lake) -> dict[str, datetime]:
    """Time of the newest measurement of each machine, by the record."""
    import pyarrow.compute as pc

    newest = {}
    for machine in lake.machines():
        ledger = MachineRecord(lake.record, machine).ledger(["collected_at", "status"])
        at = pc.max(ledger.filter(pc.field("status") == "ingested")["collected_at"]).as_py()
        if at is not None:
            newest[machine] = at.replace(tzinfo=UTC)
    return newest


def _family(name: str, kind: str, about: str, samples: Iterable[_Sample]) -> Iterator[str]:
    yield f"# HELP {name} {about}\n# TYPE {name} {kind}\n"
    for ending, labels, value in samples:
        given = ",".join(f'{label}="{text.translate(_ESCAPED)}"' for label, text in labels.items())
        yield f"{name}{ending}{{{given}}} {value:.10g}\n" if given else f"{name}{ending} {value:.10g}\n"


def _path(path: str) -> str:
    """Path without what clients choose: there must not be a row for each."""
    first = path.split("/")[1] if path.startswith("/") else path
    return f"/{first}" if first in _PATHS else _OTHER
