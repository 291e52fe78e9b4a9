"""`perf-assets transfer` and `severity` on files as people have them."""

import json
from pathlib import Path

import pandas as pd
import pytest
from click.testing import CliRunner, Result

from perf_assets.cli.main import cli
from perf_assets.core.errors import BadInputError
from tests.models.fleets import tables
from tests.models.transfers import machine

METHODS = {
    *("product", "ma", "ma_mr", "paired", "source_zero_shot", "linear_probe", "fine_tune", "target_ridge"),
    *("target_gp", "target_xgboost", "target_best", "oracle_100x", "oracle_all"),
}


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """Source as CSV; target as a table between blanks, with a level, a missing value and a text."""
    folder = tmp_path_factory.mktemp("transfer")
    source, target = folder / "old.csv", folder / "new.txt"
    machine("old", seed=1).to_csv(source, index=False)
    frame = machine("new", rows=120, seed=2, slowness=20.0).drop(columns="c3")
    frame = frame.rename(columns={"seconds": "duration"}).astype({"c1": str}).assign(note="new")
    frame.loc[3, "c1"] = "?"
    frame.to_csv(target, index=False, sep="\t")
    return source, target


def run(command: str, files: tuple[Path, Path], *more: str) -> Result:
    source, target = files
    columns = ["--target-column", "duration", "--source-target-column", "seconds"]
    return CliRunner().invoke(cli, [command, "--source", str(source), "--target", str(target), *columns, *more])


@pytest.mark.slow
def test_json_has_all_methods_or_reasons(files: tuple[Path, Path]) -> None:
    done = run("transfer", files, "--shots", "10%", "--seeds", "1", "--json")
    assert done.exit_code == 0, done.output
    document = json.loads(done.stdout)
    assert document["shots"] == 12
    assert set(document["methods"]) >= METHODS
    assert document["methods"]["paired"] == {"absent": "runs are not paired: give --pair-key"}
    product = document["methods"]["product"]
    assert {"median", "mean"} == set(product["log_mse"])
    assert set(product) == {"mape", "mse", "log_mse", "r2"}
    assert len(document["chosen"]) == 1
    assert document["adapt_seconds"] > 0
    assert document["predict_seconds_per_row"] > 0
    assert any("note" in note for note in document["notes"])
    assert "seed 0" in done.stderr


@pytest.mark.slow
def test_severity_has_floor_and_ceiling(files: tuple[Path, Path]) -> None:
    done = run("severity", files, "--json")
    assert done.exit_code == 0, done.output
    document = json.loads(done.stdout)
    assert 0 <= document["floor"] < document["severity"] < document["ceiling"]
    # The target is 20 times slower: a source that is taken as it is is far off.
    assert 0.7 < document["rescaled"] < 1
    assert document["measure"] == "functions"
    assert "rescaled" in run("severity", files).stdout


@pytest.mark.slow
def test_a_table_is_no_hard_transfer_to_its_own_kind(files: tuple[Path, Path], tmp_path: Path) -> None:
    machine("again", rows=120, seed=5).rename(columns={"seconds": "duration"}).to_csv(tmp_path / "again.csv")
    document = json.loads(run("severity", (files[0], tmp_path / "again.csv"), "--json").stdout)
    assert document["rescaled"] < 0.3


def test_pairs_need_no_shots(tmp_path: Path) -> None:
    arguments = []
    for name, frame in list(tables(rows=6).items())[:3]:
        frame.to_csv(tmp_path / f"{name}.csv", index=False)
        arguments += ["--source", str(tmp_path / f"{name}.csv")]
    arguments[-2] = "--target"
    roles = ["--target-column", "seconds", "--pair-key", "app,size", "--app-column", "app"]
    benchmark = ["--benchmark-app", "stream", "--benchmark-app", "gemm", "--seeds", "1", "--json"]
    done = CliRunner().invoke(cli, ["transfer", *arguments, *roles, *benchmark, "--shots", "0"])
    assert done.exit_code == 0, done.output
    document = json.loads(done.stdout)
    assert document["chosen"] == ["paired"]
    assert document["methods"]["product"]["mape"]["mean"] < 1
    assert document["methods"]["ma"] == {"absent": "needs at least 4 shots"}


@pytest.mark.parametrize(
    ("more", "message"),
    [
        (("--shots", "many"), "give a number of rows or a share"),
        (("--shots", "3"), "give at least 4"),
        (("--shots", "100"), "more than half"),
        (("--shots", "10", "--drop", "("), "no regular expression"),
        (("--shots", "10", "--target-column", "nope"), "no column 'nope'"),
        (("--shots", "10", "--benchmark-app", "a"), "go with --pair-key"),
        (("--shots", "10", "--pair-key", "c0"), "needs --app-column"),
        (("--shots", "10", "--source", "/nowhere.csv"), "is not a file"),
    ],
)
def test_wrong_input_is_one_clear_line(files: tuple[Path, Path], more: tuple[str, ...], message: str) -> None:
    done = run("transfer", files, *more)
    assert isinstance(done.exception, BadInputError)
    assert message in str(done.exception)
    assert done.stdout == ""


def test_levels_are_numbers(tmp_path: Path) -> None:
    from perf_assets.cli.support.tables import read_table

    pd.DataFrame({"use": ["Low (3)", "High (8)"], "x": [1, 2]}).to_csv(tmp_path / "t.csv", index=False)
    assert read_table(tmp_path / "t.csv")["use"].tolist() == [3.0, 8.0]


@pytest.mark.slow
@pytest.mark.usefixtures("own_registry")
def test_a_model_of_two_tables_is_registered_and_asked(files: tuple[Path, Path]) -> None:
    done = run("transfer", files, "--register", "mine", "--json")
    assert done.exit_code == 0, done.output
    made = json.loads(done.stdout)
    assert (made["name"], made["version"], made["rows"]) == ("mine", 1, 120)
    assert "new: 1 columns hold ids, free text or nothing and are ignored: note" in done.stderr
    asked = CliRunner().invoke(cli, ["predict", "--model", "mine", str(files[1]), "--json"])
    assert asked.exit_code == 0, asked.output
    assert len(json.loads(asked.stdout)["answers"]) == 120
    for options, line in {
        ("--register", "perf-mine"): "begin with perf- are made by the platform",
        ("--register", "A b"): "dataset name 'A b' is not allowed",
        ("--register", "mine", "--shots", "5"): "leave out --shots",
        (): "--shots is missing",
    }.items():
        refused = run("transfer", files, *options)
        assert isinstance(refused.exception, BadInputError)
        assert line in str(refused.exception)
    both = CliRunner().invoke(cli, ["predict", "--model", "mine", "--from", "a", str(files[1])])
    assert "--model takes one TABLE and no --from" in str(both.exception)
    neither = CliRunner().invoke(cli, ["predict", str(files[1])])
    assert "say --from and --to (a machine, or all), or --model NAME and a TABLE" in str(neither.exception)
