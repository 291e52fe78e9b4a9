"""`perf-assets evaluate vector` on plain tables."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from perf_assets.cli.commands.tables.evaluate import command
from perf_assets.core.errors import BadInputError
from tests.models.fleets import tables

ROLES = ["--key", "app,size", "--app-column", "app", "--time-column", "seconds"]


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    monkeypatch.setenv("PERF_ASSETS_THREADS", "1")
    given = []
    for name, table in tables(6).items():
        table.to_csv(tmp_path / f"{name}.csv", index=False)
        given += ["--table", f"{name}={tmp_path / f'{name}.csv'}"]
    return given


def evaluate(*arguments: str) -> str:
    result = CliRunner().invoke(command, ["vector", *arguments], catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return result.stdout


@pytest.mark.slow
def test_the_document_has_both_protocols_and_all_scores(files: list[str], tmp_path: Path) -> None:
    figures = tmp_path / "figures"
    chosen = ["--methods", "xgboost,majority", "--relative-to", "c", "--json", "--figures", str(figures)]
    found = json.loads(evaluate(*files, *ROLES, *chosen))
    assert set(found["protocols"]) == {"sample", "app"}
    for methods in found["protocols"].values():
        assert set(methods) == {"xgboost", "majority"}
        for scores in methods.values():
            assert {"r2", "mae", "mape", "same_order", "top1", "regret", "auc"} <= set(scores)
    assert found["protocols"]["sample"]["xgboost"]["r2"] > found["protocols"]["sample"]["majority"]["r2"]
    assert sorted(found["majority_order"]) == ["a", "b", "c", "d", "e"]
    assert found["configurations"] == 36
    assert len(list(figures.glob("*.png"))) == 6


def test_the_table_is_for_people(files: list[str]) -> None:
    text = evaluate(*files, *ROLES, "--methods", "majority")
    assert "unseen application" in text
    assert "Majority order, fast to slow" in text


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--relative-to", "nowhere"], "min .fastest., max .slowest. or one of a, b"),
        (["--methods", "guess"], "method guess is not known"),
        (["--drop", "("], "no regular expression"),
        (["--key", "app,nothing"], "no column nothing"),
    ],
)
def test_bad_input_is_one_line(files: list[str], arguments: list[str], message: str) -> None:
    with pytest.raises(BadInputError, match=message):
        evaluate(*files, *ROLES, *arguments)


def test_one_table_is_not_enough(files: list[str]) -> None:
    with pytest.raises(BadInputError, match="at least 2 machines"):
        evaluate(*files[:2], *ROLES)
