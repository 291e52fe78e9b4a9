"""What this installation runs cannot be changed by everybody on the machine, and secrets are not theirs to read."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from perf_assets.cli.commands.answers import serve
from perf_assets.cli.commands.start import doctor, up
from perf_assets.core.errors import BadInputError
from perf_assets.infra.permissions import check_private_places, is_anybodys

SECRET = "a-secret-of-many-letters"


@pytest.fixture
def homes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in ("lake/mlflow/artifacts", "lake/record", "lake/landing", "home"):
        (tmp_path / name).mkdir(parents=True, mode=0o755)
    (tmp_path / "home" / "dagster.yaml").touch(0o644)
    (tmp_path / "lake" / "mlflow" / "mlflow.db").touch(0o644)
    monkeypatch.setenv("PERF_ASSETS_LAKE", str(tmp_path / "lake"))
    monkeypatch.setenv("DAGSTER_HOME", str(tmp_path / "home"))
    monkeypatch.delenv("MLFLOW_TRACKING_URI", raising=False)
    return tmp_path


PLACES = ["home", "home/dagster.yaml", "lake", "lake/record", "lake/mlflow", "lake/mlflow/mlflow.db"]


@pytest.mark.parametrize("place", [*PLACES, "lake/mlflow/artifacts"])
def test_services_refuse_homes_that_everybody_may_change(place: str, homes: Path) -> None:
    check_private_places()
    (homes / place).chmod(0o777)
    for command, arguments in ((up.command, []), (serve.command, ["--port", "0"])):
        error = CliRunner().invoke(command, arguments).exception
        assert isinstance(error, BadInputError)
        assert str(error).endswith(f"run 'chmod o-w {homes / place}'")
    findings = [finding for finding in doctor._permissions() if finding.state == "problem"]
    assert [str(homes / place) in finding.found for finding in findings] == [True]


def test_a_group_may_share_homes(homes: Path) -> None:
    (homes / "lake").chmod(0o2775)
    check_private_places()
    assert [finding.state for finding in doctor._permissions()] == ["ok"]


def test_a_landing_zone_for_everybody_is_a_warning_unless_sticky(homes: Path) -> None:
    landing = homes / "lake" / "landing"
    landing.chmod(0o777)
    assert is_anybodys(landing)
    assert [finding.state for finding in doctor._permissions()] == ["warning", "ok"]
    landing.chmod(0o1777)
    assert [finding.state for finding in doctor._permissions()] == ["ok"]


@pytest.mark.parametrize("mode", [0o644, 0o604, 0o602, 0o660, 0o666])
def test_a_token_file_of_others_is_refused(mode: int, homes: Path) -> None:
    file = homes / "token"
    file.write_text(SECRET)
    file.chmod(mode)
    with pytest.raises(BadInputError, match="chmod 600") as error:
        serve._token(file)
    assert SECRET not in str(error.value)


@pytest.mark.parametrize("mode", [0o600, 0o400, 0o640])
def test_a_token_file_of_the_owner_is_read(mode: int, homes: Path) -> None:
    file = homes / "token"
    file.write_text(f"{SECRET}\n")
    file.chmod(mode)
    assert serve._token(file) == SECRET


@pytest.mark.parametrize("token", ["short", "a secret of many letters", "sécret-of-many-letters"])
def test_a_bad_token_is_not_shown(token: str, homes: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = homes / "token"
    file.write_text(token)
    file.chmod(0o600)
    monkeypatch.setenv("PERF_ASSETS_TOKEN", token)
    for given in (file, None):
        with pytest.raises(BadInputError) as error:
            serve._token(given)
        assert token not in str(error.value)


def test_the_token_is_no_argument_and_no_child_inherits_it(monkeypatch: pytest.MonkeyPatch) -> None:
    assert [option for option in serve.command.params if "token" in str(option.name)] == [
        option for option in serve.command.params if option.name == "token_file"
    ]
    monkeypatch.setenv("PERF_ASSETS_TOKEN", SECRET)
    assert serve._token(None) == SECRET
    assert "PERF_ASSETS_TOKEN" not in os.environ


def test_nothing_is_made_for_everybody_to_change(homes: Path) -> None:
    source = homes / "t.csv"
    source.write_text("x,wall_seconds\n1,2\n")
    land = ["land", str(source), "--machine", "quartz", "--kind", "samples", "--target", "wall_seconds"]
    program = "import os, sys; os.umask(0); from perf_assets.cli.main import main; sys.argv[0] = 'perf-assets'; main()"
    done = subprocess.run([sys.executable, "-c", program, *land], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    made = list((homes / "lake" / "landing").rglob("*"))
    assert len(made) == 4
    assert not [path for path in made if path.stat().st_mode & 0o002]
