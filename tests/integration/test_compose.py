"""The parts of the compose file as processes, in their order, where no container engine is: prepare, service, backup.

What `platform` runs, `up`, is the subject of test_up.py, nginx that of tests/deploy/test_nginx.py. No image is built.
"""

import json
import os
import subprocess
import urllib.request
from pathlib import Path

import psutil
import pytest

from tests.deploy.test_units import compose
from tests.installation import PROGRAM, wait_for
from tests.postgres import Server

pytestmark = [pytest.mark.integration, pytest.mark.xdist_group("postgres")]
ENTRY = ["perf-assets", "-C", "/srv/perf"]
TOKEN = "a-token-of-many-letters"


def command_of(name: str, places: dict[str, str]) -> list[str]:
    """Command line of a service of the compose file, with the places of this test."""
    service = compose()["services"][name]
    words = [*service.get("entrypoint", ENTRY), *service["command"]]
    for before, now in places.items():
        words = [word.replace(before, now) for word in words]
    return words


@pytest.mark.slow
def test_its_parts_run_one_after_the_other(postgres: Server, tmp_path: Path) -> None:
    (tmp_path / "token").write_text(TOKEN)
    (tmp_path / "token").chmod(0o600)
    places = {
        "/srv/perf": str(tmp_path / "srv"),
        "/backup": str(tmp_path / "backup"),
        "/run/secrets": str(tmp_path),
        "postgresql://perf@postgres:5432/perf": postgres.database(),
    }
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("PERF_ASSETS_", "DAGSTER_", "MLFLOW_"))}
    environment = kept | {"PGPASSFILE": str(postgres.passwords), "PATH": f"{PROGRAM.parent}:{kept['PATH']}"}

    def ran(name: str) -> None:
        done = subprocess.run(command_of(name, places), env=environment, capture_output=True, text=True, timeout=250)
        assert done.returncode == 0, done.stderr

    ran("prepare")
    assert "postgres" in (tmp_path / "srv" / "dagster_home" / "dagster.yaml").read_text()
    words = [word if word != "8000" else "0" for word in command_of("service", places)]
    service = subprocess.Popen(words, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    try:
        port = wait_for(lambda: listening(service), "the service", 120)
        asked = urllib.request.Request(f"http://127.0.0.1:{port}/models", headers={"Authorization": f"Bearer {TOKEN}"})
        with urllib.request.urlopen(asked, timeout=30) as answer:
            assert json.load(answer) is not None
    finally:
        service.terminate()
        service.wait(60)
    ran("backup")
    assert (tmp_path / "backup" / "first" / "postgresql.dump").is_file()


def listening(process: "subprocess.Popen[str]") -> int | None:
    """Port of a process, or of one that it started, once it listens."""
    assert process.poll() is None, process.communicate()[1]
    family = [psutil.Process(process.pid), *psutil.Process(process.pid).children(recursive=True)]
    ports = [c.laddr.port for one in family for c in one.net_connections("tcp") if c.status == psutil.CONN_LISTEN]
    return ports[0] if ports else None
