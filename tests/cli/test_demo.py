"""The demo's late machines: what lands first, what lands next, what never does."""

from pathlib import Path

import pytest
from click.testing import CliRunner

from perf_assets.cli.main import cli
from perf_assets.cli.support.demo_fleet import DemoState, land_next
from perf_assets.core.errors import BadInputError
from perf_assets.storage.lake import Lake

SCALE = 0.05


def bundles(lake: Lake) -> set[str]:
    return {path.name for path in (lake.landing / "grace").glob("*") if path.is_dir()}


def test_the_next_ten_runs_land_until_only_those_kept_aside_are_left(tmp_path: Path) -> None:
    lake = Lake(tmp_path)
    state = DemoState(SCALE, 0, {"grace": 0})
    state.save(lake)
    landed: set[str] = set()
    runs = len(state.machine("grace").landing)
    for number in range(-(-runs // 10)):
        name, before, now = land_next(lake, None)
        assert (name, before, now) == ("grace", 10 * number, min(runs, 10 * (number + 1)))
        assert bundles(lake) > landed
        landed = bundles(lake)
    assert len(landed) == runs
    with pytest.raises(BadInputError, match="all runs of grace have landed but those that are kept aside"):
        land_next(lake, "grace")
    assert DemoState.load(lake).batches == {"grace": -(-runs // 10)}


def test_the_next_runs_need_a_demo_and_a_late_machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PERF_ASSETS_LAKE", str(tmp_path))
    done = CliRunner().invoke(cli, ["demo", "--next"])
    assert "there is no demo in" in str(done.exception)
    DemoState(SCALE, 0, {"grace": 1}).save(Lake(tmp_path))
    done = CliRunner().invoke(cli, ["demo", "--next", "--machine", "quartz"])
    assert "quartz did not arrive late in this demo: choose from grace" in str(done.exception)
    DemoState(SCALE, 0).save(Lake(tmp_path))
    with pytest.raises(BadInputError, match="no machine of this demo arrived late"):
        land_next(Lake(tmp_path), None)


def test_a_command_that_is_nearly_right_is_guessed() -> None:
    guesses = {
        "predit": "there is no command 'predit': did you mean predict?",
        "evaluate xam": "there is no command 'xam': did you mean xamm?",
        "report machine": "there is no command 'machine': there are fleet, xamm",
    }
    for line, guess in guesses.items():
        done = CliRunner().invoke(cli, line.split())
        assert done.exit_code == 2
        assert guess in done.output
