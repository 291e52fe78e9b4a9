"""Datasets come out of the lake as the tables that went in."""

from pathlib import Path

import pandas as pd
import pyarrow.parquet as pq
import pytest

from perf_assets.core.datasets import load_dataset_settings
from perf_assets.core.errors import BadInputError, UnknownError
from perf_assets.core.manifest import OBSERVED_TAG, BundleFacts, parse_manifest
from perf_assets.storage.datasets import assembled, dataset_digests, store_dataset, stored_dataset, stored_names
from perf_assets.storage.lake import Lake
from perf_assets.storage.landing import landed_datasets
from perf_assets.storage.record import MachineRecord
from tests.conftest import COLLECTED_AT, profile_facts
from tests.workflows.little_datasets import OTHER_NAMES, ingest, land_table, land_three, runs


@pytest.mark.slow
def test_a_table_comes_back_as_it_was_given(lake: Lake) -> None:
    land_three(lake)
    assert landed_datasets(lake, "quartz") == {"new", "old"}
    warehouse = ingest(lake)
    assert set(dataset_digests(warehouse)) == {"new", "old", "spmv"}
    for name, given in (("old", runs(60, 1)), ("spmv", runs(30, 3, 2.0).rename(columns=OTHER_NAMES))):
        store_dataset(lake, assembled(warehouse, name))
        found = stored_dataset(lake, name)
        frame = found.frame.reset_index(drop=True)[list(given.columns)]
        pd.testing.assert_frame_equal(frame, given, check_dtype=False, check_exact=True)
        assert set(found.frame.columns) == set(given.columns)
        assert found.target_column == given.columns[-1]
    assert stored_names(lake) == ["old", "spmv"]
    with pytest.raises(UnknownError, match="dataset 'nobody' is not known; there are old, spmv"):
        stored_dataset(lake, "nobody")
    with pytest.raises(UnknownError, match="has no rows: there are new, old, spmv"):
        assembled(warehouse, "nobody")


@pytest.mark.slow
def test_rows_of_several_tables_are_put_together_and_count_once(lake: Lake) -> None:
    whole = runs(30, 1).assign(grade="7")
    land_table(lake, whole[:20], "quartz", "seconds", dataset="d")
    land_table(lake, whole.assign(grade="low"), "ruby", "seconds", dataset="d")
    land_table(lake, whole[:25], "quartz", "seconds", dataset="d")
    found = assembled(ingest(lake), "d")
    assert len(found.frame) == 25 + 30
    assert found.notes == ["20 rows landed more than once and count once"]
    assert found.frame["machine"].value_counts().to_dict() == {"ruby": 30, "quartz": 25}
    assert set(found.frame["grade"]) == {"7", "low"}, "numbers here, words there: words"
    before = found.digest
    land_table(lake, runs(5, 9), "ruby", "seconds", dataset="d")
    assert assembled(ingest(lake), "d").digest != before


def test_two_targets_in_one_dataset_are_refused(lake: Lake) -> None:
    land_table(lake, runs(5, 1), "quartz", "seconds", dataset="d")
    land_table(lake, runs(6, 2), "quartz", "bytes", dataset="d")
    with pytest.raises(BadInputError, match=r"its bundles predict different columns, .*seconds .*land them again"):
        assembled(ingest(lake), "d")


def test_only_tables_of_samples_have_a_dataset() -> None:
    given = {"machine": "quartz", "kind": "samples", "target": "y", "collected_at": COLLECTED_AT}
    assert BundleFacts.model_validate(given).dataset_name == "quartz"
    assert BundleFacts.model_validate({**given, "dataset": "d"}).dataset_name == "d"
    assert BundleFacts.model_validate({**given, "tags": {OBSERVED_TAG: "now"}}).dataset_name is None
    assert profile_facts().dataset_name is None
    with pytest.raises(ValueError, match="dataset belongs to samples, not to profile"):
        profile_facts(dataset="d")
    with pytest.raises(ValueError, match="dataset name 'A B' is not allowed"):
        BundleFacts.model_validate({**given, "dataset": "A B"})


def test_manifests_and_ledgers_of_before_are_read_on(lake: Lake) -> None:
    landing = land_table(lake, runs(5, 1), "quartz", "seconds")
    assert b"dataset" not in landing.bundle.manifest_bytes
    assert parse_manifest(landing.bundle.manifest_bytes).dataset_name == "quartz"
    ingest(lake)
    ledger = MachineRecord(lake.record, "quartz").ledger_file()
    pq.write_table(pq.read_table(ledger, partitioning=None).drop_columns("dataset"), ledger)
    land_table(lake, runs(6, 2), "quartz", "seconds")
    warehouse = ingest(lake)
    assert set(dataset_digests(warehouse)) == {"quartz"}
    assert len(assembled(warehouse, "quartz").frame) == 11
    assert warehouse.ledger_violations("quartz") == []


def test_settings_are_read_from_the_lake(tmp_path: Path) -> None:
    assert load_dataset_settings(tmp_path) == {}
    file = tmp_path / "datasets.yaml"
    file.write_text("datasets: {new: {sources: [old], drop: ['^cycles']}}")
    assert load_dataset_settings(tmp_path)["new"].sources == ("old",)
    file.write_text("datasets: {new: {drop: ['(']}}")
    with pytest.raises(BadInputError, match=r"datasets.yaml: datasets.new.drop.0: '\(' is no regular expression"):
        load_dataset_settings(tmp_path)
