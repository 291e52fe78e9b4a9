"""`perf-assets up` with a real webserver, daemon, MLflow server and browser.

That it ends on SIGTERM and on SIGINT without leaving a process behind is asserted where the fixtures `services` and
`live` end.
"""

import shutil
import urllib.request

import psutil
import pytest

from tests.browser import chromium
from tests.defs.conftest import land_perf_stat
from tests.installation import Installation, rows, run_command, wait_for
from tests.integration.conftest import Services

pytestmark = [pytest.mark.integration, pytest.mark.timeout(900), pytest.mark.xdist_group("services")]


def page(url: str) -> str:
    with urllib.request.urlopen(url, timeout=10) as response:
        text: str = response.read().decode()
    return text


def test_it_answers_and_keeps_logs(services: Services) -> None:
    assert "dagster_webserver_version" in page(f"{services.up.dagster}/server_info")
    assert page(f"{services.up.mlflow}/health") == "OK"
    assert "machine_learning" in page(services.up.mlflow), "models first, and no assistant"
    assert "no pages yet" in page(services.up.pages) or "The fleet" in page(services.up.pages)
    serving = [one for one in psutil.process_iter(["cmdline"]) if "--port" in (one.info["cmdline"] or ())]
    mlflow_port = services.up.mlflow.rsplit(":", 1)[1]
    (mlflow,) = [one for one in serving if mlflow_port in one.info["cmdline"]]
    assert mlflow.children() == [], "nobody gives it jobs to run"
    assert mlflow.environ()["MLFLOW_DISABLE_TELEMETRY"] == "true"
    logs = sorted(path.name for path in (services.installation.home / "service_logs").iterdir())
    assert logs == [
        "addresses.json",
        "dagster-code-server.log",
        "dagster-daemon.log",
        "dagster-webserver.log",
        "mlflow.log",
        "pages.log",
        "workspace.yaml",
    ]


def test_what_lands_is_ingested_by_itself_and_seen_in_the_browser(services: Services) -> None:
    up, machine = services.up, "corona"
    land_perf_stat(services.installation.lake, machine, "b1", 12345)
    wait_for(lambda: rows(services.installation, machine) == 1, "the sensor's run of what landed", 600)
    with chromium() as browser:
        from playwright.sync_api import expect

        tab = browser.new_page()
        tab.goto(f"{up.dagster}/assets/raw_profiles__counters?view=overview")
        expect(tab.get_by_text("one row per run and counter").first).to_be_visible(timeout=60_000)
        expect(tab.get_by_text("Join the Dagster community")).to_have_count(0)
        tab.goto(f"{up.dagster}/assets/raw_profiles__counters?partition={machine}&view=partitions")
        expect(tab.get_by_text(machine).first).to_be_visible(timeout=60_000)


def test_a_second_one_and_a_taken_port_are_one_clear_line(services: Services) -> None:
    up, installation = services.up, services.installation
    second = installation.run("up", "--port", "0", "--mlflow-port", "0", "--pages-port", "0")
    assert second.returncode == 2
    assert "perf-assets up is already running" in second.stderr
    assert "Traceback" not in second.stderr
    elsewhere = Installation(installation.root / "elsewhere")
    elsewhere.home.mkdir(parents=True)
    shutil.copyfile(installation.home / "dagster.yaml", elsewhere.home / "dagster.yaml")
    same_lake = {**elsewhere.environment(), "PERF_ASSETS_LAKE": str(installation.lake.root)}
    beside = run_command(["up", "--port", "0", "--mlflow-port", "0", "--pages-port", "0"], same_lake, elsewhere.root)
    assert beside.returncode == 2
    assert "already running on the lake" in beside.stderr
    assert "two would do everything twice" in beside.stderr
    taken = elsewhere.run("up", "--port", up.dagster.rsplit(":", 1)[1])
    assert taken.returncode == 2
    assert "choose another with --port" in taken.stderr
