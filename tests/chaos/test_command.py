"""What `make chaos` does before it begins. All of it takes half an hour: see docs/chaos.md for what it showed."""

import subprocess
import sys

import pytest

from chaos import __main__ as chaos
from tests.installation import PROJECT
from tests.postgres import MISSING


@pytest.mark.slow
def test_what_make_asks_for_is_understood() -> None:
    told = subprocess.run(
        ["make", "--dry-run", "--assume-old=setup", "chaos", "MINUTES=0", "SEED=7"],
        cwd=PROJECT,
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    given = next(line for line in told.splitlines() if "-m chaos" in line).partition("-m chaos ")[2].split()
    assert given == ["--minutes", "0", "--seed", "7"]
    done = subprocess.run(
        [sys.executable, "-m", "chaos", *given], cwd=PROJECT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 2
    assert "--minutes must be above 0" in done.stderr


def test_without_postgresql_it_is_one_line(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(chaos, "installed", lambda: None)
    monkeypatch.setattr(sys, "argv", ["chaos"])
    assert chaos.main() == 2
    assert capsys.readouterr().err == f"make chaos: {MISSING}\n"
