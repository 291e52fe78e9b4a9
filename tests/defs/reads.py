"""Reads of assets while they are made: of the warehouse, of stored tables and of the registry."""

import json
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import dagster as dg
import pyarrow.parquet as pq
import pytest

from perf_assets.defs.build import build_definitions
from perf_assets.defs.specs import POOL
from perf_assets.registry import amm, source, target, versions
from perf_assets.storage import warehouse
from perf_assets.storage.warehouse import Warehouse
from perf_assets.workflows.fleet import Fleet
from perf_assets.workflows.machines.readiness import Readiness
from perf_assets.workflows.models import judge

MODELS = {
    "perf-amm": "model_amm__encoder",
    "perf-source": "model_source__with_amm",
    "perf-target-": "model_target__adapted",
    "perf-relative-vector": "model_vector__relative",
    "perf-transfer-": "model_transfer__adapted",
}
"""Assets by how the names of the models begin that they register."""


READS = "reads.json"
"""File of what the steps of the training read, beside the lake that was trained."""
READ_OTHERWISE = {
    ("out_report__fleet", "model_source__with_amm"),  # its versions and their tags
    ("out_report__fleet", "out_report__machine"),  # which pages there are
    ("out_report__fleet", "eval_vector__verdicts"),  # of a fleet that has a vector model
    ("out_report__fleet", "eval_machines__health"),  # of a machine with two RAJAPerf runs of one setting
    ("out_report__fleet", "core_runs__vector_features"),  # of a fleet that has a vector model
    # Of a machine whose runs pair with nothing: test_unpaired.py sees that they are read.
    ("model_target__adapted", "core_runs__counters_wide"),
    ("eval_target__verdicts", "core_runs__counters_wide"),
    ("eval_transfer__scores", "core_runs__counters_wide"),
    ("out_schedule__turnaround", "eval_target__verdicts"),  # which version is the champion
}
"""Edges that carry something, but no file that is read here."""


COVERED = {
    "trained_once": {
        "model_amm__encoder",
        "model_source__without_amm",
        "model_source__with_amm",
        "model_source__behaves_like",
        "model_source__feature_masks",
        "model_source__inputs",
        "out_amm__machines",
    },
    "training": {
        "raw_landing__bundles",
        "raw_rajaperf__timings",
        "raw_profiles__runs",
        "raw_profiles__counters",
        "core_machines__specs",
        "core_runs__environments",
        "core_runs__counters",
        "core_runs__features",
        "core_runs__vector_features",
        "core_runs__counters_wide",
        "core_pairs__unmatched",
        "model_amm__machines",
        "eval_machines__health",
        "model_target__adapted",
        "eval_target__verdicts",
        "eval_transfer__scores",
        "out_report__machine",
        "out_amm__machines",
        "out_report__fleet",
    },
    "pairs": {"eval_transfer__matrix"},
    "datasets": {
        "core_datasets__rows",
        "model_transfer__adapted",
        "eval_dataset__verdicts",
        "eval_dataset__scores",
        "out_report__dataset",
        "eval_modelx__table",
    },
    "vectors": {
        "model_vector__relative",
        "eval_vector__verdicts",
        "eval_vector__scores",
        "eval_vector__growth",
    },
    "experiments": {"eval_xamm__scores", "eval_xamm__embeddings", "eval_xamm__report"},
    "schedules": {"eval_scaling__widths", "out_schedule__turnaround"},
}
"""Assets whose steps the tests of each part run with their reads noted; every asset is in one of them."""


MADE_BESIDE = {"model_amm__encoder": "model_amm__machines"}
"""Assets that a step makes beside its own: a new encoder describes all machines at once, so that no step between finds
machines that the encoder in use has not described."""
WRITES_AT_ITS_END = {
    "model_amm__encoder": "describes all machines after the training",
    "train_source_models": "what the models look at",
    "eval_transfer__scores": "a learning curve",
    "eval_transfer__matrix": "hours of transfers",
    "eval_xamm__scores": "hours of experiments",
    "eval_xamm__embeddings": "pictures of embeddings",
    "score_vectors": "hours of trainings",
    "eval_dataset__scores": "a learning curve",
    "eval_modelx__table": "hours of transfers",
    "out_schedule__turnaround": "a simulation",
    "eval_scaling__widths": "a model of scaling per width, application and machine",
}
"""Steps that compute for minutes or hours and then write the warehouse for a moment, behind its lock file: in the pool,
each of them would hold up the ingestion of every machine all the while."""


class Reads:
    """Assets whose stored values were read, by the step that read them."""

    def __init__(self) -> None:
        graph = build_definitions().resolve_asset_graph()
        self.parents = {
            key.to_user_string(): {parent.to_user_string() for parent in graph.get(key).parent_keys}
            for key in graph.get_all_asset_keys()
        }
        self._name = re.compile(rf"\b({'|'.join(self.parents)})\b")
        self.by_step: dict[frozenset[str], set[str]] = {}
        self.writers: set[str] = set()
        """Steps that wrote the warehouse."""
        self.is_paused = False

    def unnoted(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """A function whose reads are not noted."""

        def call(*arguments: Any, **options: Any) -> Any:
            before, self.is_paused = self.is_paused, True
            try:
                return function(*arguments, **options)
            finally:
                self.is_paused = before

        return call

    def note(self, text: str) -> None:
        """Note the assets that a text names: a query, a path."""
        if self.is_paused:
            return
        try:
            made = dg.AssetExecutionContext.get().selected_asset_keys
        except Exception:  # Not inside of a step.
            return
        step = frozenset(key.to_user_string() for key in made)
        self.by_step.setdefault(step, set()).update(self._name.findall(text))

    def note_writing(self) -> None:
        """Note that the step writes the warehouse."""
        with suppress(Exception):  # Not inside of a step.
            self.writers.add(dg.AssetExecutionContext.get().op_def.name)

    def note_model(self, name: str) -> None:
        """Note the asset that registers a model of this name."""
        self.note(next((asset for start, asset in MODELS.items() if name.startswith(start)), ""))

    def undeclared(self) -> list[str]:
        """Reads of what is no parent."""
        return sorted(
            f"{', '.join(sorted(step))} reads {name}, which is no parent"
            for step, read in self.by_step.items()
            for name in read - step - self._declared(step)
            if name not in {MADE_BESIDE.get(made) for made in step}
        )

    def unread(self, covered: set[str]) -> list[str]:
        """Parents of these assets that were not read."""
        return sorted(
            f"{', '.join(sorted(step))} does not read its parent {name}"
            for step, read in self.by_step.items()
            for name in self._declared(step) - read
            if step & covered and not {(made, name) for made in step} & READ_OTHERWISE
        )

    def _declared(self, step: frozenset[str]) -> set[str]:
        return set().union(*(self.parents[name] for name in step)) - step

    def save(self, path: Path) -> None:
        """Store for the tests of another process."""
        steps = [[sorted(step), sorted(read)] for step, read in self.by_step.items()]
        path.write_text(json.dumps({"steps": steps, "writers": sorted(self.writers)}))

    @classmethod
    def load(cls, path: Path) -> "Reads":
        """From the file that `save` wrote."""
        loaded = cls()
        noted = json.loads(path.read_text())
        loaded.by_step = {frozenset(step): set(read) for step, read in noted["steps"]}
        loaded.writers = set(noted["writers"])
        return loaded


class _Connection:
    """A connection of which queries are noted."""

    def __init__(self, connection: Any, note: Callable[[str], None]) -> None:
        self._connection, self._note = connection, note

    def execute(self, query: str, *arguments: Any) -> Any:
        self._note(query)
        return self._connection.execute(query, *arguments)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._connection, name)


@contextmanager
def recorded_reads() -> Iterator[Reads]:
    """Note what steps read that run in this process."""
    reads = Reads()
    with pytest.MonkeyPatch.context() as patch:
        for name in ("read", "_transaction"):
            wrote = reads.note_writing if name == "_transaction" else None
            patch.setattr(Warehouse, name, _noting(getattr(Warehouse, name), reads.note, wrote))
        whole = pq.read_table

        def read_table(source: Any, *arguments: Any, **options: Any) -> Any:
            reads.note(str(Path(source).parent if isinstance(source, str | Path) else ""))
            return whole(source, *arguments, **options)

        patch.setattr(pq, "read_table", read_table)
        # Numbers of rows, and what a value was made from and its unit, are shown beside it: nothing is made of them.
        patch.setattr(warehouse, "row_counts", reads.unnoted(warehouse.row_counts))  # type: ignore[attr-defined]
        for name in ("provenance", "is_simulated", "relative_times"):
            patch.setattr(Fleet, name, reads.unnoted(getattr(Fleet, name)))
        # What is missing is said to people, where nothing can be made.
        patch.setattr(Readiness, "of", reads.unnoted(Readiness.of))
        folder = versions.fitted_folder

        def fitted_folder(name: str, version: int) -> Path:
            reads.note_model(name)
            return folder(name, version)

        for module in (versions, judge, source, target):
            patch.setattr(module, "fitted_folder", fitted_folder)
        # A model that another step of this process has loaded is read all the same.
        patch.setattr(amm, "_frozen_encoder", amm._frozen_encoder.__wrapped__)
        yield reads


def _noting(
    opened: Callable[..., Any], note: Callable[[str], None], wrote: Callable[[], None] | None
) -> Callable[..., Any]:
    @contextmanager
    def open_noted(opening: Warehouse) -> Iterator[_Connection]:
        if wrote is not None:
            wrote()
        with opened(opening) as connection:
            yield _Connection(connection, note)

    return open_noted


def check_edges(reads: Reads, part: str) -> None:
    """Steps of a part of the graph were made, and read their parents and nothing else."""
    problems = [*reads.undeclared(), *reads.unread(COVERED[part])]
    assert not problems, "\n".join(problems)
    lacking = COVERED[part] - set().union(*reads.by_step)
    assert not lacking, f"not made: {', '.join(sorted(lacking))}"
    outside = reads.writers - _pooled() - set(WRITES_AT_ITS_END)
    assert not outside, f"writes the warehouse outside of its pool: {', '.join(sorted(outside))}"


def _pooled() -> set[str]:
    nodes = [asset.node_def for asset in build_definitions().assets or [] if isinstance(asset, dg.AssetsDefinition)]
    return {node.name for node in nodes if isinstance(node, dg.OpDefinition) and node.pool == POOL}
