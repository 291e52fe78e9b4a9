"""Tables that transfer cannot learn from, or hardly: one clear line, or a sound model, never a traceback."""

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner, Result

from perf_assets.cli.main import cli
from perf_assets.core.errors import BadInputError

ROWS = 40


def good(seed: int) -> pd.DataFrame:
    generator = np.random.default_rng(seed)
    size, solver = generator.integers(1, 50, ROWS), generator.choice(["cg", "gmres"], ROWS)
    seconds = np.exp(0.05 * size + (solver == "cg") + 0.02 * generator.normal(size=ROWS))
    return pd.DataFrame({"size": size, "solver": solver, "seconds": seconds})


def transfer(folder: Path, source: pd.DataFrame, target: pd.DataFrame, shots: str = "8") -> Result:
    for name, frame in (("old", source), ("new", target)):
        frame.to_csv(folder / f"{name}.csv", index=False)
    files = ["--source", str(folder / "old.csv"), "--target", str(folder / "new.csv")]
    options = ["--target-column", "seconds", "--shots", shots, "--seeds", "1", "--json"]
    return CliRunner().invoke(cli, ["transfer", *files, *options])


@pytest.mark.parametrize(
    ("spoiled", "said"),
    [
        (lambda frame: frame[["seconds"]].assign(id=[f"run-{i}" for i in range(ROWS)]), "no column beside seconds"),
        (lambda frame: frame.assign(seconds=3.0), "all rows have the same value of seconds"),
        (lambda frame: frame.assign(seconds=-1.0 * frame["seconds"]), "no row has a positive value of seconds"),
        (lambda frame: frame.assign(size=np.nan, solver=np.nan), "no column beside seconds"),
        (lambda frame: frame.assign(seconds=np.nan), "no column 'seconds', or nothing in it"),
    ],
    ids=["ids only", "one value", "no positive target", "missing everywhere", "target missing"],
)
@pytest.mark.parametrize("which", ["source", "target"])
def test_what_cannot_be_learned_from_is_one_line(tmp_path: Path, spoiled: object, said: str, which: str) -> None:
    frames = [good(1), good(2)]
    place = 0 if which == "source" else 1
    frames[place] = spoiled(frames[place])  # type: ignore[operator]
    done = transfer(tmp_path, *frames)
    assert isinstance(done.exception, BadInputError)
    assert said in str(done.exception)
    assert "\n" not in str(done.exception)


@pytest.mark.slow
@pytest.mark.parametrize(
    "spoiled",
    [
        lambda frame: frame.assign(solver=np.where(np.arange(ROWS) % 2, "cg", "new word")),
        lambda frame: frame.assign(solver=np.arange(ROWS) % 3),
        lambda frame: frame.assign(size=[7] * (ROWS - 1) + [8]).drop(columns="solver"),
        lambda frame: frame.assign(**{f"more{i}": np.random.default_rng(i).normal(size=ROWS) for i in range(60)}),
        lambda frame: frame.rename(columns={"size": "other", "solver": "method"}),
        lambda frame: frame.assign(size=frame["size"].where(frame.index % 3 > 0)),
    ],
    ids=["level never seen", "text and number", "shots alike", "more columns than rows", "nothing shared", "holes"],
)
def test_what_is_odd_still_gives_a_sound_model(tmp_path: Path, spoiled: object) -> None:
    done = transfer(tmp_path, good(1), spoiled(good(2)))  # type: ignore[operator]
    assert done.exit_code == 0, done.output
    methods = json.loads(done.stdout)["methods"]
    assert np.isfinite(methods["product"]["log_mse"]["mean"])
    assert methods["product"]["log_mse"]["mean"] < 1.5 * methods["target_mean"]["log_mse"]["mean"] + 1e-6


@pytest.mark.slow
def test_a_column_that_is_text_in_one_table_only_is_not_matched(tmp_path: Path) -> None:
    done = transfer(tmp_path, good(1), good(2).assign(solver=np.arange(ROWS) % 3))
    assert "old: 1 of 2 target features are the same" in done.stderr
    assert "1 columns hold words in old and numbers in new and are not matched: solver" in done.stderr
