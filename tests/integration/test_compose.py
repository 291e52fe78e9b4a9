"""Commands of the compose file as processes, in their order: prepare, platform, backup, on PostgreSQL.

What `service` runs is the subject of test_serve.py, nginx that of tests/deploy/test_nginx.py. No image is built.
"""

import os
import signal
import subprocess
import urllib.request
from pathlib import Path

import pytest

from tests.deploy.test_units import compose
from tests.installation import PROGRAM, Up
from tests.postgres import Server
from tests.processes import ended

pytestmark = [
    *(pytest.mark.integration, pytest.mark.long, pytest.mark.timeout(1800)),
    pytest.mark.xdist_group("postgres"),
]
ENTRY = ["perf-assets", "-C", "/srv/perf"]


def command_of(name: str, places: dict[str, str]) -> list[str]:
    """Command line of a service of the compose file, with the places of this test."""
    service = compose()["services"][name]
    words = [*service.get("entrypoint", ENTRY), *service["command"]]
    for before, now in places.items():
        words = [word.replace(before, now) for word in words]
    return words


def test_a_home_is_prepared_run_and_saved(postgres: Server, tmp_path: Path) -> None:
    places = {
        "/srv/perf": str(tmp_path / "srv"),
        "/backup": str(tmp_path / "backup"),
        "postgresql://perf@postgres:5432/perf": postgres.database(),
    }
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("PERF_ASSETS_", "DAGSTER_", "MLFLOW_"))}
    environment = {**kept, "PATH": f"{PROGRAM.parent}:{kept['PATH']}"}

    def run(name: str) -> None:
        words = command_of(name, places)
        done = subprocess.run(words, env=environment, capture_output=True, text=True, timeout=600, check=False)
        assert done.returncode == 0, done.stderr

    run("prepare")
    # The ports of the container are taken here, perhaps.
    words = [*command_of("platform", places), "--port", "0", "--mlflow-port", "0", "--pages-port", "0"]
    with (tmp_path / "errors").open("w+") as errors:
        process = subprocess.Popen(words, env=environment, stdout=subprocess.PIPE, stderr=errors, text=True)
        assert process.stdout is not None
        sites = [line.split()[1] for line in (process.stdout.readline() for _ in range(3)) if line]
        assert len(sites) == 3, (tmp_path / "errors").read_text()
        for site in sites:
            with urllib.request.urlopen(site, timeout=120) as response:
                assert response.status == 200
        ended(Up(process, *sites), signal.SIGTERM)
    run("backup")
    assert (tmp_path / "backup" / "first" / "postgresql.dump").is_file()
