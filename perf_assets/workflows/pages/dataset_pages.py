"""Reports on models of datasets: learning curves, pages, cards, ModelX's table."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd

from perf_assets.core.catalogue import load_catalogue
from perf_assets.core.datasets import DatasetSettings, load_dataset_settings
from perf_assets.core.errors import BadInputError
from perf_assets.core.shots import Shots
from perf_assets.core.tables.datasets import DATASET_SCORES, DATASET_VERDICTS, MODELX_TABLE
from perf_assets.features.tables.unpaired import transfer_table
from perf_assets.models.transfer.adapted import AdaptedTransfer, TransferSettings
from perf_assets.models.transfer.alignment_table import AlignmentTable, alignment_tables
from perf_assets.models.transfer.modelx_table import Dataset, ModelxTable, modelx_table
from perf_assets.models.transfer.plan import plan_rows
from perf_assets.models.transfer.task import TransferTask
from perf_assets.registry.transfer import candidate_table, registered_name, shown_of
from perf_assets.reports.datasets.page import DatasetFacts, dataset_page
from perf_assets.reports.modelx.page import modelx_page
from perf_assets.storage.datasets import stored_dataset, stored_names
from perf_assets.storage.lake import Lake
from perf_assets.storage.pages import store_page
from perf_assets.storage.results import rows_of, store
from perf_assets.workflows.fleet import Fleet
from perf_assets.workflows.models.datasets import TransferInputs, curve_rows, transfer_inputs

Say = Callable[[str], None]
_COUNTS = (5, 10, 20, 50, 100)
_ALIGNED_SHOTS, _LEAST_ALIGNED = 50, 8
_PLANNED = 10
_LEAST_TARGET_ROWS = 16
"""Rows of a dataset from which on it can be a target of ModelX's table: half of them are test rows."""
_SHOWN_COLUMNS = 5


def task_of(inputs: TransferInputs, settings: TransferSettings | None = None) -> TransferTask:
    """The transfer to a dataset."""
    chosen = (settings or TransferSettings()).source
    return TransferTask.of(inputs.source_tables, inputs.table.table, inputs.catalogue, chosen)


def learning_curve(inputs: TransferInputs, seeds: int, say: Say = lambda line: None) -> pd.DataFrame:
    """Errors over the number of rows learned from; no rows where the dataset has too few to hold half of them out."""
    rows = curve_rows(task_of(inputs), _COUNTS, seeds, say, is_log=inputs.settings.log_target)
    frame = pd.DataFrame(rows, columns=["shots", "seed", "method", "mape_ratio", "log_rmse"])
    sources = " + ".join(table.name for table in inputs.source_tables)
    whole = frame.assign(dataset=inputs.target.name, sources=sources, is_simulated=inputs.is_simulated)
    return whole[DATASET_SCORES.column_names()]


def score_dataset(fleet: Fleet, name: str, seeds: int, say: Say = lambda line: None) -> pd.DataFrame:
    """Score a dataset over the number of its rows, and store the scores."""
    rows = learning_curve(transfer_inputs(fleet.lake, name), seeds, say)
    store(fleet.lake, fleet.warehouse, DATASET_SCORES, rows, name)
    return rows


def write_dataset_page(lake: Lake, name: str) -> Path:
    """Write the page of a dataset that has a model; its path."""
    facts = dataset_facts(lake, transfer_inputs(lake, name))
    return store_page(lake, f"dataset-{name}.html", dataset_page(facts))


def dataset_facts(lake: Lake, inputs: TransferInputs) -> DatasetFacts:
    """Facts that the page of a dataset shows."""
    name = inputs.target.name
    alias, version, adapted = shown_of(name)
    missing: dict[str, str] = {}
    curve = rows_of(lake, DATASET_SCORES, name)
    if curve is None or curve.empty:
        missing["curve"] = "the dataset has too few rows to hold half of them out"
        curve = pd.DataFrame()
    verdicts = rows_of(lake, DATASET_VERDICTS, name)
    task = task_of(inputs)
    aligned = _alignment(task, inputs.seed, missing)
    return DatasetFacts(
        dataset=name,
        target_column=adapted.target_column,
        sources=adapted.sources,
        is_simulated=inputs.is_simulated,
        is_log=adapted.is_log,
        registered_as=f"{registered_name(name)} version {version}, @{alias}",
        rows_count=len(adapted.rows),
        chosen=adapted.chosen,
        severity=adapted.severity,
        candidates=candidate_table(adapted),
        curve=curve.rename(columns={"dataset": "target", "sources": "source"}),
        alignment=_correspondences(aligned),
        weights=_weights(aligned),
        next_rows=_next_rows(adapted, task, inputs, missing),
        verdicts=pd.DataFrame(columns=DATASET_VERDICTS.column_names()) if verdicts is None else verdicts,
        notes=tuple(inputs.notes()),
        missing=missing,
    )


@dataclass(frozen=True, eq=False)
class MadeModelxTable:
    """ModelX's table on the datasets of a lake, stored, and its page."""

    rows: pd.DataFrame
    """Rows of `eval_modelx__table`."""
    notes: tuple[str, ...]
    page: Path


def make_modelx_table(
    fleet: Fleet, shots: Sequence[str], seeds: int, say: Say, targets: Sequence[str] = ()
) -> MadeModelxTable:
    """Make, store and draw ModelX's table; refuses where there are too few datasets."""
    table, rows = lake_modelx(fleet.lake, shots, seeds, say, targets)
    store(fleet.lake, fleet.warehouse, MODELX_TABLE, rows)
    origin = "simulated" if rows["is_simulated"].any() else "datasets of the lake"
    page = store_page(fleet.lake, "modelx.html", modelx_page(rows, origin=origin))
    return MadeModelxTable(rows, table.notes, page)


def lake_modelx(
    lake: Lake,
    shots: Sequence[str],
    seeds: int,
    say: Say = lambda line: None,
    targets: Sequence[str] = (),
) -> tuple[ModelxTable, pd.DataFrame]:
    """ModelX's table on the datasets of a lake, and as rows of `eval_modelx__table`.

    Datasets that cannot be learned from are left out with a note; small ones are sources only.
    """
    settings = load_dataset_settings(lake.root)
    datasets, notes, large, simulated = [], [], [], set()
    for name in stored_names(lake):
        stored, own = stored_dataset(lake, name), settings.get(name, DatasetSettings())
        try:
            if not own.log_target:
                raise BadInputError(f"{name} has log_target: false, and this table compares errors of logarithms")
            table = transfer_table(name, stored.frame, stored.target_column, drop=own.drop)
        except BadInputError as error:
            notes.append(f"left out: {error}")
            continue
        kept = [table.level_columns.get(feature, feature) for feature in table.counter_names]
        frame = stored.frame[[*dict.fromkeys(kept), stored.target_column]]
        datasets.append(Dataset(name, frame, stored.target_column))
        large += [name] if len(table) >= _LEAST_TARGET_ROWS else []
        simulated |= {name} if stored.is_simulated else set()
    for note in notes:
        say(note)
    if len(datasets) < 2 or not large:
        raise BadInputError(
            f"ModelX's table needs two datasets, one with {_LEAST_TARGET_ROWS} rows at least; there are "
            f"{len(datasets)}: land samples with --dataset"
        )
    catalogue = load_catalogue(lake.site_catalogues())
    wanted = [Shots.parse(text) for text in shots]
    made_table = modelx_table(datasets, wanted, seeds, targets=targets or large, catalogue=catalogue, progress=say)
    rows = made_table.to_frame().assign(is_simulated=bool(simulated))
    return ModelxTable(made_table.rows, (*notes, *made_table.notes)), rows[MODELX_TABLE.column_names()]


def _alignment(task: TransferTask, seed: int, missing: dict[str, str]) -> list[AlignmentTable]:
    shots = np.random.default_rng(seed).permutation(len(task.target))[:_ALIGNED_SHOTS]
    if len(shots) < _LEAST_ALIGNED:
        missing["alignment"] = f"an alignment of features needs at least {_LEAST_ALIGNED} rows"
        return []
    return alignment_tables(task, shots, seed)


def _correspondences(aligned: Sequence[AlignmentTable]) -> pd.DataFrame:
    columns = ["source_counter", "target_counter", "source", "weight", "importance", "stability"]
    rows = [{column: getattr(row, column) for column in columns} for table in aligned for row in table.rows]
    return pd.DataFrame(rows, columns=columns).sort_values("importance", ascending=False)


def _weights(aligned: Sequence[AlignmentTable]) -> pd.DataFrame:
    if not aligned:
        return pd.DataFrame()
    first = aligned[0]
    return pd.DataFrame(first.weights, index=list(first.source_counters), columns=list(first.target_counters))


def _next_rows(
    adapted: AdaptedTransfer, task: TransferTask, inputs: TransferInputs, missing: dict[str, str]
) -> pd.DataFrame:
    try:
        planned = plan_rows(adapted, task, _PLANNED)
    except BadInputError as error:
        missing["next_rows"] = str(error)
        return pd.DataFrame()
    frames = {source.name: source.frame for source in inputs.sources}
    masks = {table.name: table.rows for table in inputs.source_tables}
    rows = []
    for rank, row in enumerate(planned, 1):
        kept = frames[row.source][masks[row.source]]
        cells = kept.iloc[row.row]
        shared = [column for column in adapted.columns if column in kept.columns][:_SHOWN_COLUMNS]
        rows.append(
            {
                "rank": str(rank),
                "source": row.source,
                "row": str(kept.index[row.row]),
                "what": ", ".join(f"{column} {_cell(cells[column])}" for column in shared),
                "error_before": row.error_before,
                "error_after": row.error_after,
            }
        )
    return pd.DataFrame(rows)


def _cell(value: object) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)
