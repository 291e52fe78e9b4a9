"""`perf-assets run`."""

from pathlib import Path
from typing import TYPE_CHECKING

import click

from perf_assets.cli.support.options import json_option
from perf_assets.cli.support.output import print_json, print_table, say
from perf_assets.cli.support.run_inputs import read_applications, read_benchmarks, read_pair_amms
from perf_assets.core.errors import BadInputError
from perf_assets.core.xamm_config import XammConfig, read_config

if TYPE_CHECKING:
    from perf_assets.features.tables.xamm_applications import ApplicationTable
    from perf_assets.models.xamm_tables.source import TableSource

_AMM_FILE = "amm.json"
_MODEL_FOLDER = "source_model"


@click.command()
@click.argument("config", type=click.Path(path_type=Path), metavar="CONFIG.yml")
@json_option
def command(config: Path, as_json: bool) -> None:
    """Run a configuration file of xAMM.

    Its fields are func (amm: describe machines by their benchmark runs; train: train a source model; test: score it on
    other runs), machine_data_path, app_train_data_path, app_test_data_path, src_model_path, src_machine_amm and
    target_machine_amm. Relative paths are relative to the file.
    """
    given = read_config(config)
    {"amm": _describe_machines, "train": _train, "test": _test}[given.func](given, as_json)


def _describe_machines(config: XammConfig, as_json: bool) -> None:
    assert config.machine_data is not None
    table = read_benchmarks(config.machine_data)
    references = [reference for reference in (config.source_amm, config.target_amm) if reference is not None]
    for reference in references:
        if reference.machine is not None and reference.machine not in table.machine_names:
            raise BadInputError(f"machine_data_path has no machine {reference.machine!r}, which an AMM path names")
    for note in table.notes:
        say(note)

    from perf_assets.models.xamm_tables.amm import table_amms
    from perf_assets.storage.amm_files import export_amms

    found = table_amms(table)
    learned = "time ratios between machines" if found.is_supervised else "its own inputs: no setting is shared"
    say(f"encoder {found.encoder_version}: learned {learned}, from {found.training_rows} of {len(table.times)} rows")
    files = sorted({reference.file for reference in references}) or [config.folder / _AMM_FILE]
    for file in files:
        export_amms(found.rows(), file)
        say(f"written: {file}")
    if as_json:
        print_json(
            {
                "func": "amm",
                "written": list(map(str, files)),
                "encoder_version": found.encoder_version,
                "is_supervised": found.is_supervised,
                "is_simulated": found.is_simulated,
                "rows": len(table.times),
                "kernels": len(table.kernels),
                "machines": {machine: vector.tolist() for machine, vector in found.vectors.items()},
            }
        )
    else:
        width = len(next(iter(found.vectors.values())))
        rows = [[machine, *(f"{value:.3f}" for value in vector)] for machine, vector in found.vectors.items()]
        print_table(f"AMMs{_of(found.is_simulated)}", ["machine", *map(str, range(width))], rows)


def _train(config: XammConfig, as_json: bool) -> None:
    folder = config.source_model or config.folder / _MODEL_FOLDER
    _check_replaceable(folder)
    _, model = _fit(config)

    from perf_assets.infra.files import replacing_folder

    with replacing_folder(folder) as temporary:
        model.save(temporary)
    say(f"written: {folder}")
    facts = {
        "func": "train",
        "model": str(folder),
        "rows": model.training_rows,
        "features": list(model.feature_names),
        "with_amm": model.encoder_version is not None,
        "encoder_version": model.encoder_version,
        "is_simulated": model.is_simulated,
    }
    if as_json:
        print_json(facts)
    else:
        machines = "with AMMs" if facts["with_amm"] else "without AMMs"
        click.echo(
            f"source model {machines}: {model.training_rows} rows{_of(model.is_simulated)}, "
            f"{len(model.feature_names)} features, in {folder}"
        )


def _test(config: XammConfig, as_json: bool) -> None:
    assert config.app_test_data is not None
    from perf_assets.models.xamm_tables.source import TableSource, score_table_source

    train: ApplicationTable | None = None
    if config.source_model is None:
        say("src_model_path is not set: training from app_train_data_path")
        train, model = _fit(config)
    else:
        if not config.source_model.is_dir():
            raise BadInputError(f"src_model_path: no model at {config.source_model}: make one with 'func: train'")
        model = TableSource.load(config.source_model)
        if config.app_train_data is not None:
            train = read_applications("app_train_data_path", config.app_train_data, model.feature_names)
    test = read_applications("app_test_data_path", config.app_test_data, model.feature_names)
    notes = [*test.notes]
    known = sorted(set(model.applications) & set(test.applications))
    if known:
        notes.append(f"the model was trained on {', '.join(known)} too: errors of new applications will be larger")
    scores = score_table_source(model, test, read_pair_amms(config, test), train)
    for note in notes:
        say(note)
    is_simulated = model.is_simulated or test.is_simulated
    if as_json:
        print_json(
            {
                "func": "test",
                "rows": len(test.features),
                "with_amm": model.encoder_version is not None,
                "is_simulated": is_simulated,
                "scores": scores,
                "notes": notes,
            }
        )
    else:
        _print_scores(f"{len(test.features)} rows of {test.name}{_of(is_simulated)}", scores)


def _fit(config: XammConfig) -> "tuple[ApplicationTable, TableSource]":
    if config.app_train_data is None:
        raise BadInputError("training needs app_train_data_path")
    table = read_applications("app_train_data_path", config.app_train_data)
    amms = read_pair_amms(config, table)
    for note in table.notes:
        say(note)
    if amms is None:
        say("src_machine_amm and target_machine_amm are not set: the source model has no AMMs")

    from perf_assets.models.xamm_tables.source import fit_table_source

    return table, fit_table_source(table, amms)


def _check_replaceable(folder: Path) -> None:
    """Refuse to put a model in the place of something else."""
    from perf_assets.models.xamm_tables.source import MODEL_FILE

    is_other = folder.is_dir() and any(folder.iterdir()) and not (folder / MODEL_FILE).is_file()
    if folder.is_file() or is_other:
        raise BadInputError(f"src_model_path: {folder} is there and is no source model: name another folder")


def _print_scores(title: str, scores: dict[str, dict[str, float]]) -> None:
    rows = [
        [name, 100 * s["mape"], f"{s['log_rmse']:.3f}", 100 * s["within_10"], 100 * s["within_25"]]
        for name, s in scores.items()
    ]
    print_table(title, ["method", "MAPE %", "log error", "within 10% %", "within 25% %"], rows)


def _of(is_simulated: bool) -> str:
    return " (simulated)" if is_simulated else ""
