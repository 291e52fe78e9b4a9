"""Somebody lands a damaged bundle again, at the moment at which it is being refused."""

import pytest

from perf_assets.storage.lake import Lake, LandedBundle
from perf_assets.storage.quarantine import quarantine
from perf_assets.workflows.landing import ingest
from tests.conftest import profile_facts
from tests.storage.conftest import land_counters, read_counters


def test_what_is_mended_while_it_is_refused_is_taken_by_the_next_ingestion(
    lake: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    bundle = land_counters(lake, "b1", profile_facts(), {"INS": 1}).bundle
    (bundle.directory / "counters.json").write_text("{")

    def mended_first(lake: Lake, bundle: LandedBundle, reason: str) -> None:
        assert land_counters(lake, "b1", profile_facts(), {"INS": 1}).is_new
        quarantine(lake, bundle, reason)

    with monkeypatch.context() as patch:
        patch.setattr(ingest, "quarantine", mended_first)
        assert ingest.ingest_machine(lake, "quartz", read_counters).quarantined_count == 1
    assert ingest.pending(lake, "quartz").bundles == ["b1"]
    assert ingest.ingest_machine(lake, "quartz", read_counters).ingested_count == 1
    assert not (lake.quarantine / "quartz" / "b1").exists()
