"""What Prometheus reads of the service."""

import re

import pytest
from fastapi.testclient import TestClient

from perf_assets.readers.bundle import read_bundle
from perf_assets.serving.http.app import Limits, create_app
from perf_assets.serving.http.metrics import RequestCounts
from perf_assets.serving.predictor import Predictor
from perf_assets.storage.lake import Lake
from perf_assets.workflows.landing.ingest import ingest_machine
from tests.defs.conftest import land_perf_stat
from tests.serving.conftest import MACHINE, NAME, Fleet

pytestmark = pytest.mark.xdist_group("serving")
TOKEN = "let-me-in-please"
HERE = "http://127.0.0.1"
_SAMPLE = re.compile(r'(perf_assets_\w+)(?:\{((?:\w+="(?:[^"\\\n]|\\.)*",?)*)\})? ([-+0-9.e]+|\+Inf)')


def samples(text: str) -> dict[tuple[str, str], float]:
    """Values by name and labels; every line must be one or a comment, as the text format wants it."""
    found = {}
    for line in text.splitlines():
        if line.startswith("# "):
            assert re.match(r"# (HELP|TYPE) perf_assets_\w+ .+", line), line
            continue
        match = _SAMPLE.fullmatch(line)
        assert match, line
        found[match[1], match[2] or ""] = float(match[3])
    return found


def test_requests_models_data_and_queue_are_told(predictor: Predictor, lake: Lake, fleet: Fleet) -> None:
    land_perf_stat(lake, MACHINE, "b1", 12345)
    ingest_machine(lake, MACHINE, read_bundle)
    with TestClient(create_app(predictor, Limits(), TOKEN), HERE) as client:
        assert client.get("/metrics").status_code == 401
        known = {"Authorization": f"Bearer {TOKEN}"}
        question = {"target": MACHINE, "runs": [fleet.run(fleet.unseen()[0]).model_dump()]}
        for _ in range(3):
            assert client.post("/predict", json=question, headers=known).status_code == 200
        assert client.get("/made-up", headers=known).status_code == 404
        answer = client.get("/metrics", headers=known)
    assert answer.headers["content-type"].startswith("text/plain; version=0.0.4")
    told = samples(answer.text)
    requests = "perf_assets_requests_total"
    assert told[requests, 'path="/predict",method="POST",status="200"'] == 3
    assert told[requests, 'path="/metrics",method="GET",status="401"'] == 1
    assert told[requests, 'path="other",method="GET",status="404"'] == 1
    assert told["perf_assets_request_seconds_count", 'path="/predict"'] == 3
    assert told["perf_assets_request_seconds_bucket", 'path="/predict",le="+Inf"'] == 3
    assert told["perf_assets_model_version", f'model="{NAME}",alias="champion"'] == 1
    assert told["perf_assets_data_age_seconds", f'machine="{MACHINE}"'] > 3600
    assert told["perf_assets_queue_length", ""] == 0
    assert told["perf_assets_queue_limit", ""] == Limits().waiting


def test_buckets_add_up_and_names_cannot_break_lines() -> None:
    metrics = RequestCounts()
    for seconds in (0.0001, 0.001, 0.2, 100.0):
        metrics.note("/predict/perf-source", "POST", 200, seconds)
    metrics.note("/predict", 'BREW"\n', 405, 0.1)
    told = samples(metrics.text(0, 1, {'odd"name\n': {"champion": 2}}, {}))
    buckets = [
        told["perf_assets_request_seconds_bucket", f'path="/predict",le="{le}"'] for le in ("0.001", "0.25", "+Inf")
    ]
    assert buckets == [2, 4, 5]
    assert told["perf_assets_request_seconds_sum", 'path="/predict"'] == pytest.approx(100.3011)
    assert told["perf_assets_requests_total", 'path="/predict",method="other",status="405"'] == 1
    assert told["perf_assets_model_version", 'model="odd\\"name\\n",alias="champion"'] == 2
