"""Are Dagster's pages usable with 1,000 machines? Seconds until chromium shows what a person came for.

A home of its own (SQLite), all machines as partitions, bundles and features materialised for each of them, and the web
server with our definitions. Each page is opened three times: the first, with a cold server, and the median are shown.

Last line: one JSON object (seconds, and processor seconds of the server for all pages). Takes ten minutes, most of it
to make the home; `--machines` is their number (1000), `--quick` 20. Needs Debian's chromium.
"""

import argparse
import json
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING

import dagster as dg
import psutil

from perf_assets.cli.main import cli
from perf_assets.core.tables.landing import BUNDLES
from perf_assets.core.tables.runs import FEATURES

if TYPE_CHECKING:
    from playwright.sync_api import Page

MADE = (BUNDLES, FEATURES)
PATIENCE = 120_000
TIMES = 3


def main(count: int) -> None:
    """Make the home, open the pages, print the JSON line."""
    names = [f"machine-{number:04d}" for number in range(count)]
    pages = {
        "lineage": ("asset-groups", "evaluation"),
        "asset": (f"assets/{FEATURES.name}?view=overview", FEATURES.name),
        "partitions of an asset": (f"assets/{FEATURES.name}?view=partitions", names[0]),
        "a machine of an asset": (
            f"assets/{FEATURES.name}?view=partitions&partition={names[-1]}",
            "dagster/partition_row_count",
        ),
        "checks of an asset": (f"assets/{BUNDLES.name}?view=checks", "none_quarantined"),
        "runs": ("runs", "Runs"),
    }
    with tempfile.TemporaryDirectory() as folder:
        cli(["init", folder], standalone_mode=False)
        os.environ["DAGSTER_HOME"] = f"{folder}/dagster_home"
        os.environ["PERF_ASSETS_LAKE"] = f"{folder}/data_lake"
        began = time.monotonic()
        with dg.DagsterInstance.get() as instance:
            instance.add_dynamic_partitions("machines", names)
            for table in MADE:
                for name in names:
                    event = dg.AssetMaterialization(
                        table.name, partition=name, metadata={"dagster/partition_row_count": 10}
                    )
                    instance.report_runless_asset_event(event)
        print(f"{count * len(MADE)} materialisations in {time.monotonic() - began:.0f} s", flush=True)
        print(json.dumps({"machines": count, **_timed(pages)}))


def _timed(pages: dict[str, tuple[str, str]]) -> dict[str, object]:
    from playwright.sync_api import sync_playwright

    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    program = Path(sys.executable).with_name("dagster-webserver")
    server = subprocess.Popen(
        [program, "-m", "perf_assets.definitions", "-h", "127.0.0.1", "-p", str(port)],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        _wait(f"http://127.0.0.1:{port}/server_info")
        with sync_playwright() as started:
            browser = started.chromium.launch(
                executable_path=shutil.which("chromium"), args=["--no-sandbox", "--disable-gpu"]
            )
            tab = browser.new_page(viewport={"width": 1600, "height": 1000})
            before = _cpu_seconds(server.pid)
            found = {name: _page(tab, f"http://127.0.0.1:{port}/{path}", text) for name, (path, text) in pages.items()}
            browser.close()
        return {"pages": found, "server_cpu_seconds": round(_cpu_seconds(server.pid) - before, 1)}
    finally:
        server.terminate()
        server.wait()


def _page(tab: "Page", address: str, text: str) -> dict[str, float]:
    seconds = []
    for _ in range(TIMES):
        tab.goto("about:blank")
        began = time.monotonic()
        tab.goto(address)
        tab.get_by_text(text).first.wait_for(state="visible", timeout=PATIENCE)
        seconds.append(time.monotonic() - began)
    print(f"{address.rpartition('/')[2][:60]}: first {seconds[0]:.1f} s, median {median(seconds):.1f} s", flush=True)
    return {"first": round(seconds[0], 2), "median": round(median(seconds), 2)}


def _cpu_seconds(pid: int) -> float:
    """Processor time of a process and of those that it started."""
    processes = [psutil.Process(pid), *psutil.Process(pid).children(recursive=True)]
    return sum(process.cpu_times().user + process.cpu_times().system for process in processes)


def _wait(address: str) -> None:
    for _ in range(600):
        try:
            urllib.request.urlopen(address, timeout=5).close()
        except OSError:
            time.sleep(0.2)
        else:
            return
    raise TimeoutError(address)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--machines", type=int, default=1000)
    parser.add_argument("--quick", action="store_true", help="20 machines")
    chosen = parser.parse_args()
    main(20 if chosen.quick else chosen.machines)
