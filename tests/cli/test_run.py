"""`perf-assets run` on the example of xAMM's configuration file, and on files with something wrong in them."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
import yaml
from click.testing import CliRunner, Result

from perf_assets.cli.main import cli
from perf_assets.core.errors import BadInputError
from perf_assets.core.measurements import KernelTiming
from perf_assets.features.tables.xamm_benchmarks import benchmark_table, suite_tables
from perf_assets.infra.files import replacing_folder

pytestmark = pytest.mark.slow

EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "xamm"
TABLES = ("machines.csv", "app-train.csv", "app-test.csv")


def run(config: Path, *more: str) -> Result:
    return CliRunner().invoke(cli, ["run", str(config), *more])


def done(config: Path) -> dict[str, Any]:
    result = run(config, "--json")
    assert result.exit_code == 0, result.output + repr(result.exception)
    document: dict[str, Any] = json.loads(result.stdout)
    return document


def write(folder: Path, **fields: object) -> Path:
    path = folder / "config.yml"
    path.write_text(yaml.safe_dump(fields))
    return path


def contents(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.fixture(scope="module")
def example(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, dict[str, Any]]]:
    """The example after all three functions, and what they printed."""
    folder = tmp_path_factory.mktemp("example") / "xamm"
    shutil.copytree(EXAMPLE, folder, ignore=shutil.ignore_patterns("amm.json", "source_model", "__pycache__"))
    return folder, {func: done(folder / f"config-{func}.yml") for func in ("amm", "train", "test")}


@pytest.fixture
def folder(example: tuple[Path, dict[str, dict[str, Any]]], tmp_path: Path) -> Path:
    """A copy of the example with its AMMs and its model."""
    return Path(shutil.copytree(example[0], tmp_path / "copy"))


def test_the_example_is_small_simulated_and_shares_no_application() -> None:
    assert sum((EXAMPLE / name).stat().st_size for name in TABLES) < 300_000
    tables = {name: pd.read_csv(EXAMPLE / name) for name in TABLES}
    assert all((table["is_simulated"] == 1).all() for table in tables.values())
    assert not set(tables["app-train.csv"]["app"]) & set(tables["app-test.csv"]["app"])
    assert "simulated" in (EXAMPLE / "README.md").read_text()


def test_amm_describes_every_machine(example: tuple[Path, dict[str, dict[str, Any]]]) -> None:
    folder, printed = example
    stored = json.loads((folder / "amm.json").read_text())
    assert set(stored["machines"]) == set(pd.read_csv(folder / "machines.csv")["machine"])
    assert (stored["weighting"], stored["normalize"], stored["is_simulated"]) == ("mean", "own_max", True)
    assert all(max(vector) == 0 and min(vector) < 0 for vector in stored["machines"].values())
    assert len({tuple(vector) for vector in stored["machines"].values()}) == len(stored["machines"])
    assert printed["amm"]["is_supervised"]
    assert printed["amm"]["encoder_version"] == stored["encoder_version"]


def test_train_stores_both_models_and_the_encoder_without_pickle(
    example: tuple[Path, dict[str, dict[str, Any]]],
) -> None:
    folder, printed = example
    stored = sorted(str(path.relative_to(folder / "source_model")) for path in (folder / "source_model").rglob("*.*"))
    assert stored == ["encoder.npz", "table_source.npz"]
    assert printed["train"]["models"] == ["without_amm", "with_amm"]
    assert printed["train"]["with_amm"]
    assert printed["train"]["encoder_version"] == printed["amm"]["encoder_version"]
    assert len(printed["train"]["features"]) == 14


def test_test_scores_the_model_beside_its_baselines(example: tuple[Path, dict[str, dict[str, Any]]]) -> None:
    """On the split that the example ships; its README has the splits on which the model does not win."""
    printed = example[1]["test"]
    assert printed["is_simulated"]
    assert list(printed["scores"]) == ["source_model", "without_amm", "median_ratio", "raw_xgboost"]
    assert all(set(s) == {"mape", "log_rmse", "within_10", "within_25"} for s in printed["scores"].values())
    mape = {name: scores["mape"] for name, scores in printed["scores"].items()}
    assert mape["source_model"] < 0.2
    assert mape["source_model"] < mape["median_ratio"]
    assert mape["source_model"] < mape["raw_xgboost"]
    assert printed["notes"] == []


def test_without_model_and_amms_it_trains_first_and_says_so(folder: Path) -> None:
    config = write(folder, func="test", app_train_data_path="app-train.csv", app_test_data_path="app-train.csv")
    before = contents(folder)
    result = run(config)
    assert result.exit_code == 0, result.output
    assert "src_model_path is not set: training" in result.stderr
    assert "the source model has no AMMs" in result.stderr
    assert "trained on Kripke" in result.stderr
    assert "raw_xgboost" in result.stdout
    assert "(simulated)" in result.stdout
    assert contents(folder) == before


def test_runs_without_relative_time_are_predicted_beside_their_table(folder: Path) -> None:
    known = pd.read_csv(folder / "app-test.csv")
    known.drop(columns="relative_time").to_csv(folder / "asked.csv", index=False)
    fields = {"func": "test", "app_test_data_path": "asked.csv", "src_model_path": "source_model"}
    printed = done(write(folder, **fields, **AMMS))
    assert printed["predictions"] == str(folder / "asked.predictions.csv")
    assert (printed["scores"], printed["rows_with_amm"]) == ({}, len(known))
    found = pd.read_csv(folder / "asked.predictions.csv")
    assert found["with_amm"].all()
    wrong = (found["predicted_relative_time"] / known["relative_time"] - 1).abs().mean()
    known.to_csv(folder / "known.csv", index=False)
    scored = done(write(folder, **{**fields, "app_test_data_path": "known.csv"}, **AMMS))
    assert scored["scores"]["source_model"]["mape"] == pytest.approx(wrong)
    assert scored["predictions"] is None
    result = run(write(folder, **fields, **AMMS), "--out", str(folder / "out" / "mine.parquet"))
    assert result.exit_code == 0, result.output
    assert len(pd.read_parquet(folder / "out" / "mine.parquet")) == len(known)


def test_a_model_with_amms_answers_without_them_and_says_so(folder: Path) -> None:
    printed = done(write(folder, **TEST))
    assert (printed["rows_with_amm"], printed["with_amm"]) == (0, False)
    assert printed["notes"] == [
        "src_machine_amm and target_machine_amm are not set: answered by the model without AMMs"
    ]
    rows = pd.read_csv(folder / "app-test.csv")
    rows.loc[:4, "target_machine"] = "cray-1"
    rows.to_csv(folder / "some.csv", index=False)
    printed = done(write(folder, **{**TEST, "app_test_data_path": "some.csv"}, **AMMS))
    assert printed["rows_with_amm"] == len(rows) - 5
    assert printed["notes"] == ["no AMM of cray-1: 5 rows are answered by the model without AMMs"]


def test_benchmark_runs_of_a_machine_become_its_amm_by_the_stored_encoder(folder: Path) -> None:
    machines, rows = pd.read_csv(folder / "machines.csv"), pd.read_csv(folder / "app-test.csv")
    machines[machines["machine"] == "quartz"].to_csv(folder / "new.csv", index=False)
    rows[rows["target_machine"] == "quartz"].to_csv(folder / "to-quartz.csv", index=False)
    fields = {**TEST, "app_test_data_path": "to-quartz.csv", "src_machine_amm": "amm.json"}
    stored = done(write(folder, **fields, target_machine_amm="amm.json"))
    made = done(write(folder, **fields, target_machine_amm="new.csv:quartz"))
    assert made["with_amm"]
    assert made["scores"]["source_model"] == pytest.approx(stored["scores"]["source_model"])
    (folder / "amm.encoder.npz").unlink()
    assert done(write(folder, **fields, target_machine_amm="new.csv"))["scores"] == made["scores"]


def test_options_are_chosen_by_cross_validation_where_they_say_auto(folder: Path) -> None:
    fields = {**AMM, "app_train_data_path": "app-train.csv", "src_machine_amm": "chosen.json"}
    printed = done(write(folder, **fields, amm_option="auto", amm_normalize="auto"))
    assert len(printed["tried"]) >= 9
    best = min(printed["tried"], key=lambda row: row["log_rmse"])
    assert (printed["amm_option"], printed["amm_normalize"]) == (best["amm_option"], best["amm_normalize"])
    stored = json.loads((folder / "chosen.json").read_text())
    assert (stored["weighting"], stored["normalize"]) == (printed["amm_option"], printed["amm_normalize"])
    l2 = done(write(folder, **fields, amm_option="l2", amm_normalize="none"))
    assert (l2["amm_option"], l2["amm_normalize"], l2["tried"]) == ("l2", "none", [])
    assert l2["encoder_version"] != printed["encoder_version"] or best["amm_option"] == "l2"


def test_outputs_have_default_places_and_tables_may_lie_in_a_folder(folder: Path) -> None:
    (folder / "amm.json").unlink()
    shutil.rmtree(folder / "source_model")
    machines = pd.read_csv(folder / "machines.csv")
    (folder / "fleet").mkdir()
    (folder / "fleet" / "README.md").write_text("no table")
    for number, (machine, table) in enumerate(machines.groupby("machine")):
        path = folder / "fleet" / f"{machine}.{('csv', 'tsv', 'parquet')[number % 3]}"
        rows = table.drop(columns="machine")
        if path.suffix == ".parquet":
            rows.to_parquet(path)
        else:
            rows.to_csv(path, index=False, sep="\t" if path.suffix == ".tsv" else ",")
    printed = done(write(folder, func="amm", machine_data_path="fleet"))
    assert printed["written"] == [str(folder / "amm.json")]
    assert set(printed["machines"]) == set(machines["machine"])
    assert not done(write(folder, func="train", app_train_data_path="app-train.csv"))["with_amm"]
    assert (folder / "source_model" / "table_source.npz").is_file()
    refused = run(write(folder, **TEST, **AMMS)).exception
    assert isinstance(refused, BadInputError)
    assert "the source model was trained without AMMs: unset" in str(refused)


def test_one_machine_alone_is_learned_without_a_target(folder: Path) -> None:
    machines = pd.read_csv(folder / "machines.csv")
    rows = machines[machines["machine"] == "ruby"].drop(columns=["machine", "size"])
    pd.concat([rows] * 2).assign(size=range(2 * len(rows))).to_csv(folder / "ruby.csv", index=False)
    printed = done(write(folder, func="amm", machine_data_path="ruby.csv", src_machine_amm="a/ruby.json:ruby"))
    assert (printed["is_supervised"], list(printed["machines"])) == (False, ["ruby"])
    assert "size" not in printed
    assert printed["kernels"] == len(machines.columns) - 4
    assert (folder / "a" / "ruby.json").is_file()


def test_rajaperf_runs_become_settings() -> None:
    def timing(kernel: str, variant: str, threads: int, size: int, seconds: float) -> KernelTiming:
        return KernelTiming(
            "run", kernel, variant, "default", size, 10, 0, threads, seconds, None, None, None, None, seconds > 0
        )

    timings = {
        name: [
            timing(kernel, variant, threads if variant == "Base_OpenMP" else 1, size + odd, speed * size)
            for kernel, odd in (("TRIAD", 0), ("GEMM", 7))
            for variant in ("Base_Seq", "Base_OpenMP")
            for size in (1000, 100_000)
        ]
        + [timing("TRIAD", "Base_Seq", 1, 1000, -1.0)]
        for name, threads, speed in (("a", 8, 1.0), ("b", 64, 0.5))
    }
    table = benchmark_table(suite_tables(timings))
    assert table.machine_names == ["a", "b"]
    assert sorted(table.kernels) == ["GEMM", "TRIAD"]
    assert table.settings[table.machines == "a"].tolist() == table.settings[table.machines == "b"].tolist()
    assert len(table.settings) == 8
    assert (table.times[:4] == 2 * table.times[4:]).all()


def test_a_model_stays_as_it_is_when_writing_fails(tmp_path: Path) -> None:
    path = tmp_path / "model"
    for text in ("old", "new"):
        with replacing_folder(path) as temporary:
            (temporary / "file").write_text(text)

    def fail() -> None:
        with replacing_folder(path) as temporary:
            (temporary / "file").write_text("half")
            raise OSError("disk full")

    with pytest.raises(OSError, match="disk full"):
        fail()
    assert contents(tmp_path) == {"model/file": b"new"}


AMMS = {"src_machine_amm": "amm.json", "target_machine_amm": "amm.json"}
AMM = {"func": "amm", "machine_data_path": "machines.csv"}
TRAIN = {"func": "train", "app_train_data_path": "app-train.csv"}
TEST = {"func": "test", "app_test_data_path": "app-test.csv", "src_model_path": "source_model"}


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({}, "func is missing"),
        ({**AMM, "func": "predict"}, "func: Input should be 'amm', 'train' or 'test'"),
        ({**AMM, "machine_data": "x"}, "field 'machine_data' is not known: use func, machine_data_path"),
        ({"func": "amm"}, "func amm needs machine_data_path"),
        ({"func": "train"}, "func train needs app_train_data_path"),
        ({"func": "test"}, "func test needs app_test_data_path"),
        ({"func": "test", "app_test_data_path": "app-test.csv"}, "func test needs src_model_path, or app_train_data"),
        ({**AMM, "machine_data_path": 5}, "machine_data_path: Input should be a valid string"),
        ({**AMM, "machine_data_path": ""}, "machine_data_path: String should have at least 1 character"),
        ({**TRAIN, "app_train_data_path": ["a"]}, "app_train_data_path: Input should be a valid string"),
        ({**TEST, "app_test_data_path": 1.5}, "app_test_data_path: Input should be a valid string"),
        ({**TEST, "src_model_path": True}, "src_model_path: Input should be a valid string"),
        ({**TRAIN, "src_machine_amm": 1}, "src_machine_amm: Input should be a valid string"),
        ({**TRAIN, "target_machine_amm": 1}, "target_machine_amm: Input should be a valid string"),
        ({**AMM, "machine_data_path": "nowhere"}, "machine_data_path: "),
        ({**AMM, "machine_data_path": "empty"}, "no table and no RAJAPerf results in"),
        ({**AMM, "machine_data_path": "README.md"}, "README.md"),
        ({**AMM, "machine_data_path": "texts.csv"}, "no column with kernel times"),
        ({**AMM, "machine_data_path": "zero.csv"}, "kernel 'TRIAD' has the time 0"),
        ({**AMM, "machine_data_path": "short.csv"}, "an encoder needs 8 at least"),
        ({**AMM, "src_machine_amm": "amm.txt"}, "src_machine_amm 'amm.txt': write FILE.json or FILE.json:MACHINE"),
        ({**AMM, "target_machine_amm": "amm.json:cray-1"}, "has no machine 'cray-1'"),
        ({**TRAIN, "app_train_data_path": "nowhere.csv"}, "app_train_data_path: "),
        ({**TRAIN, "app_train_data_path": "machines.csv"}, "no column 'relative_time'"),
        ({**TRAIN, "app_train_data_path": "negative.csv"}, "relative_time is -1.0 in row 1"),
        ({**TRAIN, "app_train_data_path": "featureless.csv"}, "no numeric column is left for features"),
        ({**TRAIN, "src_model_path": "empty/.."}, "is no source model: name another folder"),
        ({**TRAIN, "src_machine_amm": "amm.json"}, "target_machine_amm is not set, but src_machine_amm is"),
        ({**TRAIN, "target_machine_amm": "amm.json"}, "src_machine_amm is not set, but target_machine_amm is"),
        ({**TRAIN, **AMMS, "src_machine_amm": "nowhere.json"}, "src_machine_amm: "),
        ({**TRAIN, **AMMS, "target_machine_amm": "broken.json"}, "broken.json is no file of AMMs"),
        ({**TRAIN, **AMMS, "target_machine_amm": "other.json"}, "make both in one run of func amm"),
        ({**TRAIN, **AMMS, "src_machine_amm": "amm.json:ruby"}, "src_machine_amm names 'ruby', but column source_m"),
        ({**TRAIN, **AMMS, "app_train_data_path": "nameless.csv"}, "no column source_machine: write amm.json:MACHINE"),
        ({**TRAIN, **AMMS, "app_train_data_path": "stranger.csv"}, "amm.json has no AMM of cray-1"),
        ({**TEST, **AMMS, "app_test_data_path": "nowhere.csv"}, "app_test_data_path: "),
        ({**TEST, **AMMS, "app_test_data_path": "negative.csv"}, "negative.csv: relative_time is -1.0"),
        ({**TEST, **AMMS, "app_test_data_path": "featureless.csv"}, "lacks the features (or has them empty) branch"),
        ({**TEST, **AMMS, "src_model_path": "nowhere"}, "src_model_path: no model at"),
        ({**TEST, **AMMS, "src_model_path": "empty"}, "table_source.npz is no saved model"),
        ({**TEST, **AMMS, "src_model_path": "cut"}, "table_source.npz is no saved model"),
        ({**TEST, **AMMS, "src_model_path": "damaged"}, "one of another release"),
        ({**AMM, "amm_option": "median"}, "amm_option 'median' is not known: use mean, l2, variance"),
        ({**AMM, "amm_normalize": "min"}, "amm_normalize 'min' is not known: use own_max, fleet_max, none or auto"),
        ({**AMM, "amm_option": "auto"}, "'auto' needs app_train_data_path"),
        ({**AMM, "src_machine_amm": "machines.csv"}, "src_machine_amm 'machines.csv': write FILE.json"),
        ({**TEST, **AMMS, "target_machine_amm": "nowhere.csv"}, "target_machine_amm: "),
        ({**TRAIN, "src_machine_amm": "machines.csv", "target_machine_amm": "machines.csv"}, "no stored encoder"),
        ({**TEST, **AMMS, "target_machine_amm": "foreign.csv"}, "64 of the 64 kernels of the encoder are not there"),
        (
            {**TEST, "src_machine_amm": "other.json", "target_machine_amm": "other.json"},
            "those given are of another: run func train again",
        ),
    ],
)
def test_wrong_fields_are_one_clear_line(wrong: Path, fields: dict[str, object], message: str) -> None:
    config = write(wrong, **fields)
    before = contents(wrong)
    result = run(config)
    assert isinstance(result.exception, BadInputError), repr(result.exception)
    assert message in str(result.exception)
    assert "\n" not in str(result.exception)
    assert result.stdout == ""
    assert contents(wrong) == before


@pytest.fixture(scope="module")
def wrong(example: tuple[Path, dict[str, dict[str, Any]]], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The example and files with something wrong in them."""
    folder = Path(shutil.copytree(example[0], tmp_path_factory.mktemp("wrong") / "xamm"))
    (folder / "empty").mkdir()
    for name, content in (
        ("cut", (folder / "source_model" / "table_source.npz").read_bytes()[:500]),
        ("damaged", (folder / "source_model" / "encoder.npz").read_bytes()),
    ):
        shutil.copytree(folder / "source_model", folder / name)
        (folder / name / "table_source.npz").write_bytes(content)
    (folder / "texts.csv").write_text("machine,variant,size\na,Base,1\nb,Base,2\n")
    (folder / "zero.csv").write_text("machine,variant,TRIAD\na,Base,1\nb,Base,0\n")
    (folder / "short.csv").write_text("machine,variant,TRIAD\na,Base,1\nb,Base,2\n")
    (folder / "foreign.csv").write_text("machine,variant,STRANGE\na,Base,1\nb,Base,2\n")
    (folder / "broken.json").write_text('{"machines": 5}')
    stored = json.loads((folder / "amm.json").read_text())
    (folder / "other.json").write_text(json.dumps({**stored, "encoder_version": "another"}))
    (folder / "featureless.csv").write_text("app,relative_time\na,1\nb,2\n")
    rows = pd.read_csv(folder / "app-train.csv").head(20)
    changes: dict[str, Callable[[pd.DataFrame], pd.DataFrame]] = {
        "negative": lambda table: table.assign(relative_time=[1.0, -1.0] * 10),
        "nameless": lambda table: table.drop(columns="source_machine"),
        "stranger": lambda table: table.assign(target_machine="cray-1"),
    }
    for name, change in changes.items():
        change(rows).to_csv(folder / f"{name}.csv", index=False)
    return folder


@pytest.mark.parametrize(
    ("text", "message"),
    [("func: [", "is not YAML"), ("- amm", "write one 'field: value' a line"), ("", "write one 'field: value' a line")],
)
def test_what_is_no_configuration_is_refused(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "config.yml"
    path.write_text(text)
    result = run(path)
    assert isinstance(result.exception, BadInputError)
    assert message in str(result.exception)
    assert isinstance(run(tmp_path / "nowhere.yml").exception, BadInputError)
