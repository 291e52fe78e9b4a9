"""`perf-assets run`: a configuration file of xAMM, with the tables and RAJAPerf outputs that it names."""

from pathlib import Path
from typing import TYPE_CHECKING

import click

from perf_assets.cli.support.options import json_option
from perf_assets.cli.support.output import print_json, print_table, say
from perf_assets.cli.support.tables import read_table
from perf_assets.core.errors import BadInputError

if TYPE_CHECKING:
    from perf_assets.core.measurements import KernelTiming
    from perf_assets.core.xamm_config import XammConfig
    from perf_assets.features.tables.xamm_benchmarks import BenchmarkTable

_TABLE_ENDINGS = (".csv", ".tsv", ".txt", ".parquet")


@click.command()
@click.argument("config", type=click.Path(path_type=Path), metavar="CONFIG.yml")
@click.option(
    "--out",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE",
    help="func test: write the predictions there (.csv or .parquet).",
)
@json_option
def command(config: Path, out: Path | None, as_json: bool) -> None:
    """Run a configuration file of xAMM.

    Its fields are func (amm: describe machines by their benchmark runs; train: train source models with and without
    AMMs; test: predict other runs, and score the predictions where their relative times are known), machine_data_path,
    app_train_data_path, app_test_data_path, src_model_path, src_machine_amm, target_machine_amm, amm_option and
    amm_normalize. Relative paths are relative to the file. Predictions of runs whose relative times are not known are
    written beside their table unless --out says where.
    """
    from perf_assets.core.xamm_config import read_config

    given = read_config(config)
    if out is not None and given.func != "test":
        raise BadInputError("--out is for func test: the other functions write where the configuration says")
    if given.func == "amm":
        _describe(given, as_json)
    elif given.func == "train":
        _train(given, as_json)
    else:
        _test(given, out, as_json)


def _describe(config: "XammConfig", as_json: bool) -> None:
    from perf_assets.workflows.exports.xamm_file import Files, describe_machines

    described = describe_machines(config, Files(read_table, read_benchmarks), say)
    encoder = described.encoder
    learned = "time ratios between machines" if encoder.is_supervised else "its own inputs: no setting is shared"
    say(f"encoder {encoder.version}: learned {learned}, from {encoder.training_rows} of {described.rows} rows")
    if described.tried:
        say(f"chosen by cross-validation: amm_option {encoder.options.weighting}, {encoder.options.normalize}")
    for file in described.written:
        say(f"written: {file}")
    if as_json:
        print_json(
            {
                "func": "amm",
                "written": list(map(str, described.written)),
                "encoder_version": encoder.version,
                "amm_option": encoder.options.weighting,
                "amm_normalize": encoder.options.normalize,
                "tried": described.tried,
                "is_supervised": encoder.is_supervised,
                "is_simulated": encoder.is_simulated,
                "rows": described.rows,
                "kernels": len(encoder.kernels),
                "machines": {machine: vector.tolist() for machine, vector in described.vectors.items()},
            }
        )
    else:
        width = len(next(iter(described.vectors.values())))
        rows = [[machine, *(f"{value:.3f}" for value in vector)] for machine, vector in described.vectors.items()]
        print_table(f"AMMs{_of(encoder.is_simulated)}", ["machine", *map(str, range(width))], rows)


def _train(config: "XammConfig", as_json: bool) -> None:
    from perf_assets.workflows.exports.xamm_file import Files, train_models

    model, folder = train_models(config, Files(read_table, read_benchmarks), say)
    say(f"written: {folder}")
    names = ["without_amm", *(["with_amm"] if model.with_amm is not None else [])]
    if as_json:
        print_json(
            {
                "func": "train",
                "model": str(folder),
                "models": names,
                "rows": model.training_rows,
                "features": list(model.feature_names),
                "with_amm": model.with_amm is not None,
                "encoder_version": model.encoder_version,
                "is_simulated": model.is_simulated,
            }
        )
    else:
        made = "source models with and without AMMs" if len(names) > 1 else "source model without AMMs"
        click.echo(
            f"{made}: {model.training_rows} rows{_of(model.is_simulated)}, {len(model.feature_names)} features, "
            f"in {folder}"
        )


def _test(config: "XammConfig", out: Path | None, as_json: bool) -> None:
    from perf_assets.workflows.exports.xamm_file import WITH_AMM, Files, answer

    answered = answer(config, Files(read_table, read_benchmarks), out, say)
    say(*answered.notes)
    if answered.written is not None:
        say(f"written: {answered.written}")
    rows, with_amm = len(answered.predictions), int(answered.predictions[WITH_AMM].sum())
    if as_json:
        print_json(
            {
                "func": "test",
                "rows": rows,
                "rows_with_amm": with_amm,
                "with_amm": with_amm == rows,
                "is_simulated": answered.is_simulated,
                "scores": answered.scores,
                "predictions": None if answered.written is None else str(answered.written),
                "notes": answered.notes,
            }
        )
    elif answered.scores:
        _print_scores(f"{rows} rows{_of(answered.is_simulated)}, {with_amm} of them with AMMs", answered.scores)
    else:
        click.echo(
            f"{rows} rows predicted{_of(answered.is_simulated)}, {with_amm} of them with AMMs: {answered.written}"
        )


def _print_scores(title: str, scores: dict[str, dict[str, float]]) -> None:
    rows = [
        [name, 100 * s["mape"], f"{s['log_rmse']:.3f}", 100 * s["within_10"], 100 * s["within_25"]]
        for name, s in scores.items()
    ]
    print_table(title, ["method", "MAPE %", "log error", "within 10% %", "within 25% %"], rows)


def _of(is_simulated: bool) -> str:
    return " (simulated)" if is_simulated else ""


def read_benchmarks(field: str, path: Path) -> "BenchmarkTable":
    """Benchmark runs of one machine or of many: tables, or RAJAPerf outputs; the field's name is for messages."""
    from perf_assets.features.tables.xamm_benchmarks import benchmark_table, suite_tables

    if not path.exists():
        raise BadInputError(f"{field}: {path} does not exist")
    timings: dict[str, list[KernelTiming]] = {}
    tables = {}
    for entry in _entries(path):
        name = entry.stem if entry.is_file() else entry.name
        if name in timings or name in tables:
            raise BadInputError(f"{field}: two entries of {path.name} are named {name!r}")
        if _is_rajaperf(entry):
            from perf_assets.readers.read import read

            timings[name] = read(entry, "rajaperf").timings
        elif entry.is_file():
            tables[name] = read_table(entry)
        else:
            raise BadInputError(f"{field}: no RAJAPerf results in the folder {entry}")
    if not timings and not tables:
        raise BadInputError(f"{field}: no table and no RAJAPerf results in {path}")
    return benchmark_table({**tables, **(suite_tables(timings) if timings else {})})


def _entries(path: Path) -> list[Path]:
    """One entry per machine: the file, a folder with RAJAPerf reports in it, or tables and sub-folders of a folder."""
    if path.is_file():
        return [path]
    entries = sorted(entry for entry in path.iterdir() if not entry.name.startswith("."))
    files = [entry for entry in entries if entry.is_file()]
    if any(_is_rajaperf(file) for file in files):
        return [path]
    return [entry for entry in entries if entry.is_dir() or entry.suffix.lower() in _TABLE_ENDINGS]


def _is_rajaperf(path: Path) -> bool:
    """Whether a file is an output of RAJAPerf, or a folder holds some."""
    from perf_assets.readers.files import scan
    from perf_assets.readers.read import RAJAPERF_KINDS, kind_of_file

    return any(kind_of_file(source) in RAJAPERF_KINDS for source in scan(path))
