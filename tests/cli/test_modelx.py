"""`perf-assets evaluate modelx` on files as people have them."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from perf_assets.cli.main import cli
from perf_assets.core.errors import BadInputError
from tests.models.transfers import machine
from tests.reports.site_checks import check_page

COLUMNS = {
    *("sources", "target", "shots", "severity", "product", "zero_shot", "linear_probe", "fine_tune", "target_best"),
    *("oracle_100x", "improvement", "winner", "mape", "coverage_90", "matches_oracle", "features"),
}
ERRORS = ("product", "zero_shot", "linear_probe", "fine_tune", "target_best")


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three machines; the file of one has a colon in its name, and its time another name."""
    folder = tmp_path_factory.mktemp("modelx")
    machine("old", rows=240, seed=1).to_csv(folder / "old.csv", index=False)
    machine("new", rows=60, seed=2, slowness=3.0).to_csv(folder / "new.csv", index=False)
    other = machine("other", rows=60, seed=3, prefix="d").rename(columns={"seconds": "time:s"})
    other.to_csv(folder / "a:b.csv", index=False)
    return folder


def run(*words: str) -> Result:
    return CliRunner().invoke(cli, ["evaluate", "modelx", *words])


def given(folder: Path, *places: str) -> list[str]:
    return [word for place in places for word in ("--dataset", place.replace("=", f"={folder}/"))]


@pytest.mark.slow
def test_json_has_a_row_for_each_target_and_number_of_shots(files: Path) -> None:
    places = given(files, "old=old.csv:seconds", "new=new.csv", "other=a:b.csv:time:s")
    done = run(*places, "--target", "new", "--target", "other", "--shots", "5%,12,8", "--seeds", "1", "--json")
    assert done.exit_code == 0, done.output
    document = json.loads(done.stdout)
    rows = document["rows"]
    assert any("new: predicts seconds" in note for note in document["notes"])
    assert [(row["target"], row["shots"]) for row in rows] == [("new", 8), ("new", 12), ("other", 8), ("other", 12)]
    for row in rows:
        assert set(row) >= COLUMNS
        errors = {name: row[name] for name in ERRORS if row[name] is not None}
        assert errors[row["winner"]] == min(errors.values())
        best = min(errors[name] for name in ERRORS[1:4] if name in errors)
        assert row["improvement"] == pytest.approx(100 * (1 - row["product"] / best))
    assert rows[0]["sources"] == ["old", "other"]
    assert rows[0]["features"] == "shared"
    assert rows[2]["features"] == "not shared"
    assert rows[2]["zero_shot"] is None
    assert rows[0]["zero_shot"] is not None
    assert "new: predicts seconds" in done.stderr


@pytest.mark.slow
def test_a_page_is_written_beside_the_table(files: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PERF_ASSETS_LAKE", str(tmp_path / "lake"))
    out = tmp_path / "page.html"
    done = run(*given(files, "old=old.csv", "new=new.csv"), "--shots", "8", "--seeds", "1", "--out", str(out))
    assert done.exit_code == 0, done.output
    assert "old -> new" in done.stdout
    assert "new -> old" in done.stdout
    page = check_page(out.read_text())
    assert len(page.figures) == 2
    assert "index.html" not in page.links, "it is not in the site"


@pytest.mark.parametrize(
    ("places", "more", "message"),
    [
        (("old=old.csv",), (), "give at least two"),
        (("old=old.csv", "old=new.csv"), (), "two datasets are called 'old'"),
        (("old=old.csv:nope", "new=new.csv"), (), "old: no column 'nope'"),
        (("old=nowhere.csv:seconds", "new=new.csv"), (), "nowhere.csv is not a file"),
        (("old=nowhere.csv", "new=new.csv"), (), "nowhere.csv is not a file"),
        (("old=old.csv:note", "new=new.csv"), (), "target column 'note' holds text"),
        (("old=old.csv", "new=new.csv"), ("--drop", "^c"), "no column beside seconds is left"),
        (("old=old.csv", "new=new.csv"), ("--drop", "("), "no regular expression"),
        (("old=old.csv", "new=new.csv"), ("--target", "third"), "'third' is no dataset"),
        (("old=old.csv", "new=new.csv"), ("--shots", "x%"), "--shots 'x%': give a number of rows or a share"),
        (("old=old.csv", "new=new.csv"), ("--shots", ","), "no number of shots is given"),
        (("old=old.csv", "new=new.csv"), ("--shots", "3"), "too few"),
        (("old=old.csv", "new=new.csv"), ("--shots", "31"), "more than half"),
        (("old=old.csv", "new=new.csv"), ("--out", "page.txt"), "must end with .html"),
        (("old=old.csv", "new=new.csv"), ("--out", "nowhere/page.html"), "make the folder first"),
    ],
)
def test_wrong_input_is_one_clear_line(
    files: Path, places: tuple[str, ...], more: tuple[str, ...], message: str
) -> None:
    done = run(*given(files, *places), *more)
    assert isinstance(done.exception, BadInputError), done.output
    assert message in str(done.exception)
    assert done.output == "", "nothing but the error"


@pytest.mark.parametrize("text", ["old.csv", "=old.csv", "old="])
def test_a_dataset_has_a_name_and_a_file(text: str) -> None:
    done = run("--dataset", text)
    assert isinstance(done.exception, BadInputError)
    assert "write NAME=FILE" in str(done.exception)
