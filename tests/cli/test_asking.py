"""Commands that ask: on a lake that is not there they make none, on one that may only be read they answer."""

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from perf_assets.cli.main import cli
from tests.installation import PROJECT, Installation

ASKING = (
    "predict --from quartz --to ruby",
    "plan ruby",
    "compare Kripke --machines quartz,ruby",
    "reference ruby",
    "models",
    "models perf-source --lineage",
    "promote perf-source 1",
    "rollback perf-source",
    "unpin perf-source",
    "amm",
    "counters",
    "environments ruby",
    "observe --machine ruby --app Kripke --ranks 1 --wall-seconds 2",
    "withdraw bundle --why test",
    "forget ruby --why test",
    "rename ruby rubi --why test",
    "ingest",
    "adapt",
    "doctor",
)


@pytest.mark.parametrize("line", ASKING)
def test_asking_makes_no_lake(line: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lake = tmp_path / "none"
    monkeypatch.setenv("PERF_ASSETS_LAKE", str(lake))
    monkeypatch.setenv("DAGSTER_HOME", str(tmp_path / "home"))
    monkeypatch.delenv("MLFLOW_TRACKING_URI", raising=False)
    done = CliRunner().invoke(cli, line.split())
    assert not lake.exists()
    assert (done.exit_code == 0) == (line == "doctor"), done.output
    assert "\n" not in str(done.exception)


_READ_ONLY = 'mount --bind "$1" "$2" && mount -o remount,ro,bind "$2" && shift 2 && exec "$@"'
_ANSWERS = """
import json, sys
from click.testing import CliRunner
from perf_assets.cli.main import cli
for line in json.load(sys.stdin):
    done = CliRunner().invoke(cli, line.split())
    said = "" if done.exception is None or isinstance(done.exception, SystemExit) else repr(done.exception)
    print(json.dumps([line, done.exit_code, said]))
"""


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_a_lake_that_may_only_be_read_answers(trained_once: Installation, tmp_path: Path) -> None:
    folder = tmp_path / "lake"
    folder.mkdir()
    mounted = ["unshare", "-m", "sh", "-c", _READ_ONLY, "sh", str(trained_once.lake.root), str(folder)]
    if (
        shutil.which("unshare") is None
        or subprocess.run([*mounted, "true"], check=False, capture_output=True).returncode
    ):
        pytest.skip("this user may not mount a folder read-only")
    asked = [
        "models",
        "predict --from quartz --to ruby --app Kripke --no-measured --json",
        "compare Kripke --machines quartz,ruby --predicted --json",
        "amm",
        "doctor --json",
    ]
    environment = {**trained_once.environment(), "PERF_ASSETS_LAKE": str(folder), "PYTHONPATH": str(PROJECT)}
    environment |= {"DAGSTER_HOME": str(tmp_path / "home"), "OMP_NUM_THREADS": "1"}
    (tmp_path / "home").mkdir()
    done = subprocess.run(
        [*mounted, sys.executable, "-c", _ANSWERS],
        input=json.dumps(asked),
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    answers = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("[")]
    # The doctor says that the lake cannot be written, which is a problem to those who want to.
    assert answers == [[line, 1 if line.startswith("doctor") else 0, ""] for line in asked], done.stderr
