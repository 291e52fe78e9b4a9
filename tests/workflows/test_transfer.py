"""Models of datasets: fitted, stored, asked, judged."""

import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from perf_assets.core.catalogue import load_catalogue
from perf_assets.core.errors import BadInputError
from perf_assets.models.transfer.adapted import AdaptedTransfer, TransferSettings
from perf_assets.models.transfer.plan import plan_rows
from perf_assets.models.transfer.promotion import compare_transfer, transfer_drift
from perf_assets.storage.datasets import assembled, store_dataset
from perf_assets.storage.lake import Lake
from perf_assets.workflows.models.datasets import PlainTable, adapt_tables, transfer_inputs
from perf_assets.workflows.models.unpaired_inputs import UnpairedInputs
from perf_assets.workflows.pages.dataset_pages import task_of
from tests.workflows.little_datasets import OTHER_NAMES, ingest, land_table, land_three, runs


@pytest.fixture(scope="module", autouse=True)
def _one_thread() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PERF_ASSETS_THREADS", "1")
        yield


@pytest.fixture(scope="module")
def adapted() -> AdaptedTransfer:
    """A slow machine, from a fast one with the same features."""
    source = PlainTable("old", runs(60, 1), "seconds")
    return adapt_tables(PlainTable("new", runs(24, 2, 9.0), "seconds"), [source])


def test_a_stored_model_says_the_same_of_few_rows_and_of_many(adapted: AdaptedTransfer, tmp_path: Path) -> None:
    adapted.save(tmp_path)
    assert not [path for path in tmp_path.iterdir() if path.suffix not in (".npz", ".json")], "no pickle"
    loaded = AdaptedTransfer.load(tmp_path)
    asked = runs(80, 5, 9.0)
    many = loaded.predict(asked).bounds
    few = loaded.predict(asked.iloc[:20]).bounds
    assert np.abs(np.exp(many[0]) / asked["seconds"] - 1).mean() < 0.1
    assert np.max(np.abs(many[0][:20] - few[0])) < 1e-9
    assert (many[1] < many[0]).all()
    assert np.mean((many[1] <= np.log(asked["seconds"])) & (np.log(asked["seconds"]) <= many[2])) > 0.7
    assert loaded.chosen == "product"
    assert (loaded.rows, loaded.held_out, loaded.scores) == (adapted.rows, adapted.held_out, adapted.scores)


def test_one_row_is_answered_within_a_millisecond(adapted: AdaptedTransfer) -> None:
    asked = runs(1, 5).drop(columns="seconds")
    adapted.predict(asked)
    seconds = []
    for _ in range(50):
        started = time.process_time()
        adapted.predict(asked)
        seconds.append(time.process_time() - started)
    assert np.median(seconds) < 2e-3, "of the processor's time, with room for busy machines"


def test_words_that_were_never_seen_and_columns_that_are_not_there_are_told(adapted: AdaptedTransfer) -> None:
    asked = runs(2, 5).drop(columns=["seconds", "bytes"])
    asked.loc[1, "solver"] = "never"
    predicted = adapted.predict(asked)
    notes = predicted.reasons
    assert notes[0] == "columns missing: bytes, taken as unknown"
    assert notes[1].endswith("solver 'never' was never seen: unlike all of amg, cg, gmres")
    assert np.isfinite(predicted.log_time).all()
    with pytest.raises(BadInputError, match="none of the columns that the model of new knows: flops, bytes"):
        adapted.predict(pd.DataFrame({"other": [1.0]}))


@pytest.mark.slow
def test_rows_beyond_the_shots_are_one_more_source() -> None:
    source = PlainTable("old", runs(40, 1), "seconds")
    found = adapt_tables(
        PlainTable("new", runs(60, 2, 9.0), "seconds"), [source], settings=TransferSettings(most_shots=10)
    )
    assert (found.shots, len(found.rows), len(found.held_out)) == (10, 60, 10)
    assert found.sources == ("old",)
    asked = runs(40, 6, 9.0)
    assert np.abs(np.exp(found.predict(asked).log_time) / asked["seconds"] - 1).mean() < 0.2


@pytest.mark.slow
def test_a_worse_model_does_not_replace_the_champion_and_drift_is_seen(adapted: AdaptedTransfer) -> None:
    rows = runs(24, 2, 9.0)
    rows.index = rows.index.map(str)
    assert compare_transfer(adapted, None, rows).is_promoted
    assert compare_transfer(adapted, adapted, rows).is_promoted
    assert transfer_drift(adapted, adapted, rows).new_runs == 0
    source = PlainTable("old", runs(60, 1), "seconds")
    # The same machine after an upgrade: everything takes a third of the time.
    later = pd.concat([runs(24, 2, 9.0), runs(20, 8, 3.0)], ignore_index=True)
    new = adapt_tables(PlainTable("new", later, "seconds"), [source])
    later.index = later.index.map(str)
    drifted = transfer_drift(adapted, new, later)
    assert (drifted.new_runs, drifted.has_drifted) == (20, True)
    assert 0.2 < drifted.worst[0][1] < 0.5


@pytest.mark.slow
def test_what_to_measure_next_is_what_ran_elsewhere(lake: Lake) -> None:
    land_three(lake)
    warehouse = ingest(lake)
    for name in ("old", "new"):
        store_dataset(lake, assembled(warehouse, name))
    inputs = transfer_inputs(lake, "new")
    model = adapt_tables(PlainTable("new", inputs.target.frame, "seconds"), [PlainTable("old", runs(60, 1), "seconds")])
    planned = plan_rows(model, task_of(inputs), 3)
    assert [row.source for row in planned] == ["old"] * 3
    assert len({row.row for row in planned}) == 3
    assert all(row.error_after < row.error_before for row in planned)


def test_what_cannot_be_adapted_says_why(lake: Lake) -> None:
    land_table(lake, runs(20, 1), "quartz", "seconds", dataset="old")
    store_dataset(lake, assembled(ingest(lake), "old"))
    with pytest.raises(BadInputError, match="'old' is the only dataset: land a second one"):
        transfer_inputs(lake, "old")
    land_table(lake, runs(3, 2), "quartz", "seconds", dataset="tiny")
    land_table(lake, runs(20, 3).assign(seconds=1.0), "quartz", "seconds", dataset="flat")
    warehouse = ingest(lake)
    for name in ("tiny", "flat"):
        store_dataset(lake, assembled(warehouse, name))
    with pytest.raises(BadInputError, match="'tiny' has 3 rows, too few to choose a model: land at least 4"):
        _ = transfer_inputs(lake, "tiny").table
    (lake.root / "datasets.yaml").write_text("datasets: {old: {sources: [nobody]}, tiny: {sources: [flat]}}")
    with pytest.raises(BadInputError, match="names the source 'nobody', which is no other dataset; there are flat"):
        transfer_inputs(lake, "old")
    with pytest.raises(BadInputError, match="nothing can be learned from the other datasets: flat: all rows have the"):
        _ = transfer_inputs(lake, "tiny").source_tables


def test_settings_choose_sources_and_change_what_a_model_is_made_of(lake: Lake) -> None:
    land_three(lake)
    warehouse = ingest(lake)
    for name in ("old", "new", "spmv"):
        store_dataset(lake, assembled(warehouse, name))
    every = transfer_inputs(lake, "new")
    assert [source.name for source in every.sources] == ["old", "spmv"]
    (lake.root / "datasets.yaml").write_text("datasets: {new: {sources: [spmv], drop: ['^bytes$']}}")
    chosen = transfer_inputs(lake, "new")
    assert [source.name for source in chosen.sources] == ["spmv"]
    assert "bytes" not in chosen.table.table.counter_names
    assert chosen.digest != every.digest


@pytest.mark.slow
def test_a_machine_that_pairs_with_nothing_is_adapted_from_tables_of_runs() -> None:
    def wide(rows: int, seed: int, slowness: float) -> pd.DataFrame:
        frame = runs(rows, seed, slowness).rename(columns={**OTHER_NAMES, "seconds": "wall_seconds"})
        return frame.assign(app="a", args=[f"run {row}" for row in range(rows)], wall_seconds_min=frame["wall_seconds"])

    others = {"quartz": wide(60, 1, 1.0), "empty": wide(60, 1, 1.0).assign(wall_seconds=np.nan)}
    found = UnpairedInputs.of("dane", wide(24, 2, 9.0), others, load_catalogue()).adapt(print)
    assert (found.dataset, found.sources, found.target_column) == ("dane", ("quartz",), "wall_seconds")
    assert "wall_seconds_min" not in found.columns
    asked = wide(30, 6, 9.0)
    assert np.abs(np.exp(found.predict(asked).log_time) / asked["wall_seconds"] - 1).mean() < 0.2
    with pytest.raises(BadInputError, match="no other machine has runs that dane could be adapted from: empty: no row"):
        UnpairedInputs.of("dane", wide(24, 2, 9.0), {"empty": others["empty"]}, load_catalogue())
    with pytest.raises(BadInputError, match="dane has 3 timed runs: land at least 4"):
        UnpairedInputs.of("dane", wide(3, 2, 9.0), others, load_catalogue())
