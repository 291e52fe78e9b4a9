"""The three functions of xAMM's configuration file on plain files: describe machines, train source models, answer."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import pandas as pd

from perf_assets.core.errors import BadInputError, listed
from perf_assets.core.text import csv_of
from perf_assets.core.xamm_config import AmmReference, XammConfig
from perf_assets.features.tables.xamm_applications import SOURCE, TARGET, ApplicationTable, application_table
from perf_assets.features.tables.xamm_benchmarks import BenchmarkTable
from perf_assets.features.tables.xamm_pairs import AmmSide, PairAmms, pair_amms
from perf_assets.infra.files import replacing, replacing_folder
from perf_assets.storage.amm_files import export_amms, read_amms

if TYPE_CHECKING:
    from perf_assets.features.samples import Floats
    from perf_assets.models.xamm_tables.amm import TableEncoder
    from perf_assets.models.xamm_tables.source import TableSource

AMM_FILE = "amm.json"
MODEL_FOLDER = "source_model"
ENCODER_FILE = "encoder.npz"
_ENCODER_ENDING = ".encoder.npz"
PREDICTED, WITH_AMM = "predicted_relative_time", "with_amm"
Say = Callable[[str], None]


@dataclass(frozen=True)
class Files:
    """Readers of the files that a configuration names."""

    table: Callable[[Path], pd.DataFrame]
    benchmarks: Callable[[str, Path], BenchmarkTable]
    """Reading by the name of the field, for messages, and its path."""


@dataclass(frozen=True)
class DescribedMachines:
    """AMMs as they were written."""

    encoder: "TableEncoder"
    vectors: "dict[str, Floats]"
    written: list[Path]
    tried: list[dict[str, object]]
    """Options that cross-validation compared, with their log errors; none where nothing was left to choose."""
    rows: int


@dataclass(frozen=True)
class Answered:
    """Result of func test."""

    predictions: pd.DataFrame
    """Rows of the table that was asked about, and what is predicted for them."""
    scores: dict[str, dict[str, float]]
    """Empty where the relative times are not known."""
    written: Path | None
    is_simulated: bool
    notes: list[str]


def describe_machines(config: XammConfig, files: Files, say: Say) -> DescribedMachines:
    """Train the encoder, choose its options, and write AMMs with the encoder beside them."""
    from perf_assets.models.xamm_tables.amm import fit_table_encoder, possible_options

    options = possible_options(config.amm_option, config.amm_normalize)
    assert config.machine_data is not None
    table = files.benchmarks("machine_data_path", config.machine_data)
    references = [reference for reference in (config.source_amm, config.target_amm) if reference is not None]
    for reference in references:
        if reference.machine is not None and reference.machine not in table.machine_names:
            raise BadInputError(f"machine_data_path has no machine {reference.machine!r}, which an AMM path names")
    runs = _applications(config, files) if len(options) > 1 else None
    for note in table.notes:
        say(note)
    encoder = fit_table_encoder(table, options[0])
    tried: list[dict[str, object]] = []
    if runs is not None:
        encoder, tried = _chosen(encoder, [encoder.with_options(o, table) for o in options], table, runs)
    vectors = encoder.describe(table)
    written = sorted({reference.file for reference in references}) or [config.folder / AMM_FILE]
    for file in written:
        export_amms(encoder.rows(vectors), file)
        with replacing(encoder_of(file)) as temporary:
            encoder.save(temporary)
    return DescribedMachines(encoder, vectors, written, tried, len(table.times))


def encoder_of(file: Path) -> Path:
    """Path of the encoder that made a file of AMMs."""
    return file.with_name(f"{file.stem}{_ENCODER_ENDING}")


def train_models(config: XammConfig, files: Files, say: Say) -> "tuple[TableSource, Path]":
    """Train and store the source models, with and without AMMs, and the encoder where it is there."""
    folder = config.source_model or config.folder / MODEL_FOLDER
    _check_replaceable(folder)
    _, model, encoder = _fit(config, files, say)
    with replacing_folder(folder) as temporary:
        model.save(temporary)
        if encoder is not None:
            encoder.save(temporary / ENCODER_FILE)
    return model, folder


def answer(config: XammConfig, files: Files, out: Path | None, say: Say) -> Answered:
    """Predict the runs of a table, score what is known of them, and write predictions where asked or where nothing is.

    Predictions are written to `out`; without it, beside the table when its relative times are not known.
    """
    from perf_assets.models.xamm_tables.source import TableSource, score_table_source

    assert config.app_test_data is not None
    train: ApplicationTable | None = None
    encoder: TableEncoder | None
    if config.source_model is None:
        say("src_model_path is not set: training from app_train_data_path")
        train, model, encoder = _fit(config, files, say)
    else:
        model = TableSource.load(_existing_model(config.source_model))
        encoder = _kept_encoder(config.source_model)
        if config.app_train_data is not None:
            train = _applications(config, files, model.feature_names)
    frame = _read("app_test_data_path", config.app_test_data, files)
    test = application_table(frame, config.app_test_data.name, model.feature_names, needs_targets=False)
    amms = _pair_amms(config, files, test, encoder, needs_all=False)
    answers = model.predict(test, amms)
    notes = [*test.notes, *_doubts(model, test, amms)]
    scores = score_table_source(model, test, amms, train) if test.has_targets else {}
    predictions = frame.assign(**{PREDICTED: answers.relative_time, WITH_AMM: answers.with_amm})
    if out is None and not test.has_targets:
        out = config.app_test_data.with_name(f"{config.app_test_data.stem}.predictions.csv")
    if out is not None:
        _write(predictions, out)
    return Answered(predictions, scores, out, model.is_simulated or test.is_simulated, notes)


def _doubts(model: "TableSource", test: ApplicationTable, amms: PairAmms | None) -> list[str]:
    """Warnings for a reader of the answers."""
    notes = []
    known = sorted(set(model.applications) & set(test.applications))
    if known:
        notes.append(f"the model was trained on {', '.join(known)} too: errors of new applications will be larger")
    if model.encoder_version is not None and amms is None:
        notes.append("src_machine_amm and target_machine_amm are not set: answered by the model without AMMs")
    if amms is not None and amms.unknown:
        count = int((~amms.is_known).sum())
        notes.append(f"no AMM of {listed(list(amms.unknown))}: {count} rows are answered by the model without AMMs")
    return notes


def _fit(config: XammConfig, files: Files, say: Say) -> "tuple[ApplicationTable, TableSource, TableEncoder | None]":
    from perf_assets.models.xamm_tables.source import fit_table_source

    table = _applications(config, files)
    encoder = _stored_encoder(config)
    amms = _pair_amms(config, files, table, encoder, needs_all=True)
    for note in table.notes:
        say(note)
    if amms is None:
        say("src_machine_amm and target_machine_amm are not set: the source model has no AMMs")
    return table, fit_table_source(table, amms), None if amms is None else encoder


def _chosen(
    encoder: "TableEncoder", candidates: "list[TableEncoder]", table: BenchmarkTable, runs: ApplicationTable
) -> "tuple[TableEncoder, list[dict[str, object]]]":
    """The encoder whose options have the smallest error on held-out application runs."""
    from perf_assets.models.xamm_tables.source import choose_amms

    described = []
    for candidate in candidates:
        vectors = {machine: vector.tolist() for machine, vector in candidate.describe(table).items()}
        sides = [
            AmmSide("machine_data_path", column, "the benchmark data", encoder.version, vectors, None)
            for column in (SOURCE, TARGET)
        ]
        described.append(pair_amms(runs, sides[0], sides[1]))
    best, errors = choose_amms(runs, described)
    tried: list[dict[str, object]] = [
        {"amm_option": c.options.weighting, "amm_normalize": c.options.normalize, "log_rmse": error}
        for c, error in zip(candidates, errors, strict=True)
    ]
    return candidates[best], tried


def _applications(config: XammConfig, files: Files, features: tuple[str, ...] | None = None) -> ApplicationTable:
    if config.app_train_data is None:
        raise BadInputError("training needs app_train_data_path")
    frame = _read("app_train_data_path", config.app_train_data, files)
    return application_table(frame, config.app_train_data.name, features)


def _read(field: str, path: Path, files: Files) -> pd.DataFrame:
    if not path.is_file():
        raise BadInputError(f"{field}: {path} is not a file")
    return files.table(path)


def _pair_amms(
    config: XammConfig, files: Files, table: ApplicationTable, encoder: "TableEncoder | None", *, needs_all: bool
) -> PairAmms | None:
    """AMMs of each row's machines; None where the configuration sets none."""

    def side(field: str, column: str, given: AmmReference) -> AmmSide:
        if given.is_stored:
            if not given.file.is_file():
                raise BadInputError(f"{field}: {given.file} is not a file: make it with 'func: amm'")
            stored = read_amms(given.file)
            return AmmSide(field, column, given.file.name, stored.encoder_version, stored.vectors, given.machine)
        benchmark = files.benchmarks(field, given.file)
        if encoder is None:
            raise BadInputError(
                f"{field}: {given.file.name} is benchmark data, and there is no stored encoder to turn it into an AMM: "
                "run func amm and func train again, which keep it"
            )
        vectors = {name: vector.tolist() for name, vector in encoder.describe(benchmark).items()}
        return AmmSide(field, column, given.file.name, encoder.version, vectors, given.machine)

    if config.amm_pair is None:
        return None
    source, target = config.amm_pair
    sides = side("src_machine_amm", SOURCE, source), side("target_machine_amm", TARGET, target)
    return pair_amms(table, *sides, needs_all=needs_all)


def _stored_encoder(config: XammConfig) -> "TableEncoder | None":
    """The encoder beside a file of AMMs that the configuration names."""
    from perf_assets.models.xamm_tables.amm import TableEncoder

    for given in config.amm_pair or ():
        path = encoder_of(given.file)
        if given.is_stored and path.is_file():
            return TableEncoder.load(path)
    return None


def _kept_encoder(folder: Path) -> "TableEncoder | None":
    """The encoder that a source model was stored with."""
    from perf_assets.models.xamm_tables.amm import TableEncoder

    path = folder / ENCODER_FILE
    return TableEncoder.load(path) if path.is_file() else None


def _existing_model(folder: Path) -> Path:
    if not folder.is_dir():
        raise BadInputError(f"src_model_path: no model at {folder}: make one with 'func: train'")
    return folder


def _check_replaceable(folder: Path) -> None:
    """Refuse to put a model in the place of something else."""
    from perf_assets.models.xamm_tables.source import TableSource

    is_other = folder.is_dir() and any(folder.iterdir()) and not (folder / TableSource.FILE).is_file()
    if folder.is_file() or is_other:
        raise BadInputError(f"src_model_path: {folder} is there and is no source model: name another folder")


def _write(predictions: pd.DataFrame, path: Path) -> None:
    if path.suffix not in (".csv", ".parquet"):
        raise BadInputError(f"{path.name}: predictions are written to a .csv or a .parquet file")
    with replacing(path) as temporary:
        if path.suffix == ".parquet":
            predictions.to_parquet(temporary, index=False)
        else:
            temporary.write_text(csv_of(predictions))
