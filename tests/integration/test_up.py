"""`perf-assets up` with a real webserver, daemon, MLflow server and browser."""

import os
import shutil
import signal
import time
import urllib.request

import psutil
import pytest

from tests.browser import chromium
from tests.defs.conftest import land_perf_stat
from tests.installation import Installation, Up

pytestmark = [pytest.mark.integration, pytest.mark.timeout(900)]


def page(url: str) -> str:
    with urllib.request.urlopen(url, timeout=10) as response:
        text: str = response.read().decode()
    return text


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_it_answers_and_leaves_no_process_behind(up: Up, installation: Installation, number: signal.Signals) -> None:
    assert "dagster_webserver_version" in page(f"{up.dagster}/server_info")
    assert page(f"{up.mlflow}/health") == "OK"
    family = psutil.Process(up.process.pid).children(recursive=True)
    assert len(family) >= 3
    logs = sorted(path.name for path in (installation.home / "service_logs").iterdir())
    assert logs == ["dagster-daemon.log", "dagster-webserver.log", "mlflow.log"]
    os.kill(up.process.pid, number)
    assert up.process.wait(60) == 0
    _, alive = psutil.wait_procs(family, timeout=5)
    assert alive == []


def test_what_lands_is_ingested_by_itself_and_seen_in_the_browser(up: Up, installation: Installation) -> None:
    land_perf_stat(installation.lake, "quartz", "b1", 12345)
    deadline = time.monotonic() + 150
    while not installation.lake.warehouse.is_file():
        assert time.monotonic() < deadline, "the sensor did not ingest what landed"
        time.sleep(1)
    with chromium() as browser:
        from playwright.sync_api import expect

        tab = browser.new_page()
        tab.goto(f"{up.dagster}/assets/raw_profiles__counters?view=overview")
        expect(tab.get_by_text("one row per run and counter").first).to_be_visible(timeout=60_000)
        expect(tab.get_by_text("Join the Dagster community")).to_have_count(0)
        tab.goto(f"{up.dagster}/assets/raw_profiles__counters?partition=quartz&view=partitions")
        expect(tab.get_by_text("quartz").first).to_be_visible(timeout=60_000)


def test_a_second_one_and_a_taken_port_are_one_clear_line(up: Up, installation: Installation) -> None:
    second = installation.run("up", "--port", "0", "--mlflow-port", "0")
    assert second.returncode == 2
    assert "perf-assets up is already running" in second.stderr
    assert "Traceback" not in second.stderr
    elsewhere = Installation(installation.root / "elsewhere")
    elsewhere.home.mkdir(parents=True)
    shutil.copyfile(installation.home / "dagster.yaml", elsewhere.home / "dagster.yaml")
    taken = elsewhere.run("up", "--port", up.dagster.rsplit(":", 1)[1])
    assert taken.returncode == 2
    assert "choose another with --port" in taken.stderr
