"""ModelX in the platform: a dataset's model from other datasets, the model of a plain table, their learning curves."""

import math
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import pandas as pd

from perf_assets.core.catalogue import Catalogue, load_catalogue
from perf_assets.core.datasets import FILE_NAME, DatasetSettings, load_dataset_settings
from perf_assets.core.errors import BadInputError, listed
from perf_assets.core.manifest import digest_of
from perf_assets.core.tables.datasets import DATASET_VERDICTS
from perf_assets.features.tables.unpaired import TransferTable, kind_notes, transfer_table
from perf_assets.infra.leases import leased
from perf_assets.models.transfer.adapted import AdaptedTransfer, NamedTable, TransferSettings, adapt_transfer
from perf_assets.models.transfer.evaluation import ZERO_SHOT, UniformShotsError, evaluate_transfer
from perf_assets.models.transfer.model import LEAST_SHOTS
from perf_assets.models.transfer.promotion import compare_transfer, transfer_drift
from perf_assets.models.transfer.task import TransferTask
from perf_assets.registry.store import code_version
from perf_assets.registry.transfer import candidate_table, register_transfer, registered_name
from perf_assets.registry.versions import INPUTS, made_of, promote
from perf_assets.reports.datasets.page import DatasetCard, dataset_card
from perf_assets.reports.machine.figures import candidate_figure
from perf_assets.reports.site import picture
from perf_assets.storage.datasets import StoredDataset, stored_dataset, stored_names
from perf_assets.storage.lake import Lake
from perf_assets.storage.results import rows_of, store
from perf_assets.workflows.fleet import Fleet
from perf_assets.workflows.models.judge import Contest

Say = Callable[[str], None]
_FORM = "1"
"""Raised when models made by new code differ from those made by old."""
_LOCK_WAIT_SECONDS = 3600.0


@dataclass(frozen=True, eq=False)
class TransferInputs:
    """A dataset, and the datasets that its model is adapted from."""

    target: StoredDataset
    sources: tuple[StoredDataset, ...]
    settings: DatasetSettings
    source_settings: Mapping[str, DatasetSettings]
    catalogue: Catalogue
    seed: int

    @property
    def digest(self) -> str:
        """Changes when and only when a model made of this may become another."""
        parts = (
            _FORM,
            self.target.digest,
            [(source.name, source.digest, self._drop(source.name)) for source in self.sources],
            self.settings.model_dump_json(),
            self.seed,
        )
        return digest_of(repr(parts).encode())

    @property
    def is_simulated(self) -> bool:
        """Whether anything of it is not measured."""
        return any(dataset.is_simulated for dataset in (self.target, *self.sources))

    @cached_property
    def table(self) -> NamedTable:
        """The dataset, ready for transfer."""
        target = self.target
        named = named_table(
            target.name, target.frame, target.target_column, self.settings.drop, self.settings.log_target
        )
        if len(named.table) < LEAST_SHOTS:
            raise BadInputError(
                f"dataset {target.name!r} has {len(named.table)} rows, too few to choose a model: land at least "
                f"{LEAST_SHOTS}"
            )
        return named

    @cached_property
    def source_tables(self) -> tuple[TransferTable, ...]:
        """Sources that can be learned from; refuses where none can."""
        tables, problems = [], []
        for source in self.sources:
            try:
                tables.append(
                    transfer_table(
                        source.name,
                        source.frame,
                        source.target_column,
                        drop=self._drop(source.name),
                        is_log=self.settings.log_target,
                    )
                )
            except BadInputError as error:
                problems.append(str(error))
        if not tables:
            raise BadInputError(f"nothing can be learned from the other datasets: {'; '.join(problems)}")
        return tuple(tables)

    def notes(self) -> list[str]:
        """Notes on how the tables were read."""
        read = _reading_notes(self.table.table, self.source_tables)
        used = {table.name for table in self.source_tables}
        left = [source.name for source in self.sources if source.name not in used]
        unused = [f"nothing can be learned from {listed(left)}: left out"] if left else []
        return [*self.target.notes, *read, *unused]

    def _drop(self, source: str) -> tuple[str, ...]:
        own = self.source_settings.get(source)
        return tuple(dict.fromkeys([*self.settings.drop, *(own.drop if own else ())]))


def _reading_notes(target: TransferTable, sources: Sequence[TransferTable]) -> list[str]:
    """Notes on the use of columns and rows of a target and its sources."""
    notes = [note for table in (target, *sources) for note in table.notes]
    return notes + [note for source in sources for note in kind_notes(source, target)]


def transfer_inputs(lake: Lake, name: str, seed: int = 0) -> TransferInputs:
    """A dataset of a lake with its sources: all others, or those that `datasets.yaml` names."""
    target = stored_dataset(lake, name)
    every = load_dataset_settings(lake.root)
    settings = every.get(name, DatasetSettings())
    others = [other for other in stored_names(lake) if other != name]
    unknown = [source for source in settings.sources if source not in others]
    if unknown:
        raise BadInputError(
            f"{lake.root / FILE_NAME}: dataset {name!r} names the source {unknown[0]!r}, which is no other dataset; "
            f"there are {listed(others) or 'none yet'}"
        )
    if not others:
        raise BadInputError(f"{name!r} is the only dataset: land a second one, which it can be adapted from")
    return TransferInputs(
        target=target,
        sources=tuple(stored_dataset(lake, source) for source in settings.sources or others),
        settings=settings,
        source_settings=every,
        catalogue=load_catalogue(lake.site_catalogues()),
        seed=seed,
    )


def adapt_dataset(
    inputs: TransferInputs, say: Say = lambda line: None, settings: TransferSettings | None = None
) -> AdaptedTransfer:
    """Fit and choose the model of a dataset, from all of its rows."""
    table, sources = inputs.table, inputs.source_tables
    for note in inputs.notes():
        say(note)
    say(f"{inputs.target.name}: {len(table.table)} rows, adapted from {', '.join(one.name for one in sources)}")
    return adapt_transfer(
        table,
        sources,
        is_log=inputs.settings.log_target,
        catalogue=inputs.catalogue,
        settings=settings,
        seed=inputs.seed,
    )


def dataset_tags(inputs: TransferInputs) -> dict[str, str]:
    """Tags of a version: which data and settings it comes from."""
    manifests = sorted({digest for one in (inputs.target, *inputs.sources) for digest in one.bundles})
    return {
        INPUTS: inputs.digest,
        "seed": str(inputs.seed),
        "manifests_count": str(len(manifests)),
        "manifests_digest": digest_of("".join(manifests).encode()),
        "is_simulated": str(inputs.is_simulated).lower(),
    }


def papers(adapted: AdaptedTransfer, provenance: Mapping[str, str], name: str | None = None) -> dict[str, bytes]:
    """Files to register with a model: its card, and a picture of its candidates."""
    candidates = candidate_table(adapted)
    card = DatasetCard(
        name=name or registered_name(adapted.dataset),
        dataset=adapted.dataset,
        target_column=adapted.target_column,
        sources=adapted.sources,
        is_simulated=provenance.get("is_simulated") == "true",
        rows_count=len(adapted.rows),
        chosen=adapted.chosen,
        severity=adapted.severity,
        columns=adapted.columns,
        candidates=candidates,
        provenance={**provenance, "code_version": code_version()},
    )
    files = {"model_card.md": dataset_card(card).encode()}
    if not candidates.empty:
        files["candidates.png"] = picture(lambda target: candidate_figure(candidates, target))
    return files


@dataclass(frozen=True)
class MadeTransfer:
    """A registered version of a dataset's model."""

    name: str
    version: int
    digest: str
    """Digest of what the model was made of."""
    is_kept: bool
    facts: Mapping[str, str | int | float]
    """Report of a model that was fitted now."""


def make_transfer(
    lake: Lake, name: str, run_tags: Mapping[str, str], say: Say, *, seed: int = 0, only_if_changed: bool = True
) -> MadeTransfer:
    """Adapt and register the model of a dataset; or keep the version that was made of the same data."""
    inputs = transfer_inputs(lake, name, seed)
    with _alone(lake, name):
        kept = made_of(registered_name(name), inputs.digest) if only_if_changed else None
        if kept is not None:
            return MadeTransfer(registered_name(name), kept, inputs.digest, is_kept=True, facts={})
        adapted = adapt_dataset(inputs, say)
        tags = {**dataset_tags(inputs), **run_tags}
        version = register_transfer(adapted, tags, papers(adapted, tags)).version
    facts: dict[str, str | int | float] = {
        "rows_count": len(adapted.rows),
        "chosen": adapted.chosen,
        "sources": " + ".join(adapted.sources),
    }
    return MadeTransfer(registered_name(name), version, inputs.digest, is_kept=False, facts=facts)


def judge_dataset(fleet: Fleet, name: str) -> pd.DataFrame:
    """All verdicts on a dataset's models, with that on the newest, stored; it is promoted, or stays a challenger."""
    with _alone(fleet.lake, name):
        dataset = stored_dataset(fleet.lake, name)
        facts = {"dataset": name, "is_simulated": dataset.is_simulated}
        contest = transfer_contest(registered_name(name), dataset.frame, facts)
        rows = contest.judge_newest(rows_of(fleet.lake, DATASET_VERDICTS, name))
        store(fleet.lake, fleet.warehouse, DATASET_VERDICTS, rows, name)
    return rows


def _alone(lake: Lake, dataset: str) -> AbstractContextManager[object]:
    """Alone among all processes that make or judge models of a dataset."""
    lock = lake.locks / f"transfer-{dataset}.lock"
    return leased(lock, f"adaptation of the dataset {dataset}", _LOCK_WAIT_SECONDS)


def transfer_contest(name: str, rows: pd.DataFrame, facts: Mapping[str, object]) -> Contest[AdaptedTransfer]:
    """Versions of a registered model of a table; `rows` are those of the table, by their names."""
    return Contest(
        name=name,
        load=AdaptedTransfer.load,
        compare=lambda new, champion: compare_transfer(new, champion, rows),
        drift=lambda champion, new: transfer_drift(champion, new, rows),
        facts=lambda new: {"shots": len(new.rows), "severity_ratio": new.severity, **facts},
        drift_text="is {:.1f} times what was predicted",
    )


@dataclass(frozen=True, eq=False)
class PlainTable:
    """A table that somebody gave, outside of any lake."""

    name: str
    frame: pd.DataFrame
    target_column: str


def adapt_tables(
    target: PlainTable,
    sources: Sequence[PlainTable],
    *,
    drop: Sequence[str] = (),
    is_log: bool = True,
    catalogue: Catalogue | None = None,
    settings: TransferSettings | None = None,
    seed: int = 0,
    say: Say = lambda line: None,
) -> AdaptedTransfer:
    """The model of a plain table from others, fitted to all of its rows."""
    theirs = [transfer_table(one.name, one.frame, one.target_column, drop=drop, is_log=is_log) for one in sources]
    ours = named_table(target.name, target.frame, target.target_column, drop, is_log)
    for note in _reading_notes(ours.table, theirs):
        say(note)
    return adapt_transfer(ours, theirs, is_log=is_log, catalogue=catalogue, settings=settings, seed=seed)


def register_tables(adapted: AdaptedTransfer, name: str) -> int:
    """Register the model of plain tables under a name of its own, for use at once; its version."""
    tags = {"origin": "plain tables", "is_simulated": "unknown"}
    version = register_transfer(adapted, tags, papers(adapted, tags, name), name=name).version
    promote(name, version)
    return version


def curve_rows(
    task: TransferTask, counts: Sequence[int], seeds: int, say: Say, *, is_log: bool = True
) -> list[dict[str, Any]]:
    """Learning curve of a transfer: errors over the number of rows learned from, half of the target are test rows."""
    most = len(task.target) // 2
    rows = []
    for count in (count for count in counts if LEAST_SHOTS <= count <= most):
        try:
            evaluated = evaluate_transfer(task, count, seeds, is_log=is_log, methods=ZERO_SHOT, progress=say)
        except UniformShotsError as error:
            say(str(error))
            continue
        rows += [
            {
                "shots": count,
                "seed": seed,
                "method": method,
                "mape_ratio": scores["mape"][place],
                "log_rmse": math.sqrt(scores["log_mse"][place]),
                "coverage_90_ratio": evaluated.coverage[place] if method == "product" else math.nan,
            }
            for method, scores in evaluated.scores.items()
            for place, seed in enumerate(evaluated.seeds)
        ]
    return rows


def named_table(name: str, frame: pd.DataFrame, target: str, drop: Sequence[str], is_log: bool = True) -> NamedTable:
    """A table ready for transfer, with the names of its rows and a few of them as examples."""
    table = transfer_table(name, frame, target, drop=drop, is_log=is_log)
    kept = frame[table.rows]
    columns = list(dict.fromkeys(table.level_columns.get(feature, feature) for feature in table.counter_names))
    head = kept[columns].head(3).astype(object)
    examples: list[dict[str, Any]] = [
        {str(column): None if pd.isna(value) else value for column, value in row.items()}
        for row in head.to_dict("records")
    ]
    return NamedTable(table, [str(label) for label in kept.index], target, examples)
