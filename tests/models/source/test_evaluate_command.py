"""`perf-assets evaluate relative` on files as people have them."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from perf_assets.cli.main import cli
from perf_assets.core.errors import BadInputError
from tests.models.fleets import tables

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """The made-up fleet in four formats, with a level, a missing value and a text."""
    folder = tmp_path_factory.mktemp("tables")
    arguments = []
    for number, (machine, frame) in enumerate(tables(rows=6).items()):
        frame["pressure"] = [f"Low ({n % 4})" for n in range(len(frame))]
        frame["odd"] = ["?" if n == 3 else str(n) for n in range(len(frame))]
        frame["comment"] = "text"
        path = folder / f"{machine}.{('csv', 'tsv', 'parquet', 'csv', 'csv')[number]}"
        if path.suffix == ".parquet":
            frame.astype({"odd": str}).drop(columns=["odd", "pressure"]).assign(
                odd=range(len(frame)), pressure=[float(n % 4) for n in range(len(frame))]
            ).to_parquet(path)
        else:
            frame.to_csv(path, index=False, sep="\t" if path.suffix == ".tsv" else ",")
        arguments += ["--table", f"{machine}={path}"]
    return arguments


def run(files: list[str], *more: str) -> Result:
    roles = ["--key", "app,size", "--app-column", "app", "--time-column", "seconds"]
    benchmark = ["--benchmark-app", "stream", "--benchmark-app", "gemm"]
    return CliRunner().invoke(cli, ["evaluate", "relative", *files, *roles, *benchmark, *more])


def test_json_has_protocols_methods_and_scores(files: list[str]) -> None:
    done = run(files, "--methods", "raw_xgboost,bilinear", "--seeds", "2", "--json")
    assert done.exit_code == 0, done.output
    document = json.loads(done.stdout)
    assert list(document["protocols"]) == ["loao", "lomo"]
    score = document["protocols"]["lomo"]["bilinear"]
    assert {"mape", "mape_std", "mape_median", "log_rmse", "within_10", "within_25"} <= set(score)
    assert score["mape"] < document["protocols"]["lomo"]["raw_xgboost"]["mape"]
    assert document["counters"] == ["bytes", "flops", "pressure", "odd"]
    assert document["benchmark_applications"] == ["stream", "gemm"]
    assert "lomo without e, seed 1" in done.stderr
    assert any("clock" in note for note in document["notes"])


def test_specifications_are_one_more_baseline(files: list[str], tmp_path: Path) -> None:
    spec = tmp_path / "spec.csv"
    spec.write_text("machine,cores\n" + "".join(f"{m},{n + 2}\n" for n, m in enumerate("abcde")))
    done = run(files, "--methods", "spec_xgboost", "--protocols", "lomo", "--spec", str(spec), "--json")
    assert done.exit_code == 0, done.output
    assert list(json.loads(done.stdout)["protocols"]["lomo"]) == ["spec_xgboost"]


def test_a_person_sees_a_table(files: list[str]) -> None:
    done = run(files, "--methods", "benchmark_mean", "--protocols", "loao")
    assert done.exit_code == 0, done.output
    assert "benchmark_mean" in done.stdout
    assert "within 25%" in done.stdout


@pytest.mark.parametrize(
    ("more", "message"),
    [
        (("--methods", "magic"), "method magic"),
        (("--protocols", "kfold"), "use some of loao, lomo"),
        (("--downstream", "svm"), "use some of xgboost"),
        (("--drop", "("), "no regular expression"),
        (("--methods", "spec_xgboost"), "needs a table of machine specifications"),
        (("--benchmark-app", "nope"), "benchmark application nope"),
        (("--table", "x"), "write NAME=FILE"),
        (("--table", "a=other.csv"), "given twice"),
        (("--table", "x=/nowhere.csv"), "is not a file"),
        (("--time-column", "nope"), "no column nope"),
        (("--spec", "/nowhere.csv"), "is not a file"),
    ],
)
def test_wrong_input_is_one_clear_line(files: list[str], more: tuple[str, ...], message: str) -> None:
    done = run(files, *more)
    assert isinstance(done.exception, BadInputError)
    assert message in str(done.exception)
    assert "\n" not in str(done.exception)
    assert done.stdout == ""


def test_two_machines_are_told_what_cannot_be_left_out_and_get_the_rest(files: list[str]) -> None:
    two = files[:4]
    done = run(two, "--methods", "benchmark_mean,bilinear", "--json")
    assert done.exit_code == 0, done.output
    assert list(json.loads(done.stdout)["protocols"]) == ["loao"]
    said = [line for line in done.stderr.splitlines() if "loao" in line or "lomo" in line]
    assert "lomo cannot be computed" in said[0], "before the work"
    done = run(two, "--methods", "benchmark_mean", "--protocol", "lomo")
    assert isinstance(done.exception, BadInputError)
    assert "3 machines" in str(done.exception)


def test_the_time_that_is_left_is_said(files: list[str]) -> None:
    done = run(files, "--methods", "benchmark_mean,bilinear", "--protocol", "lomo")
    assert "10 of 10 models fitted, about 0 s left" in done.stderr
