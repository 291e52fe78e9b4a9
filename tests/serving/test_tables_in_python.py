"""Tables and queries of a lake in Python."""

from pathlib import Path

import pandas as pd
import pyarrow as pa
import pytest

from perf_assets.api import OpenLake, open_lake
from perf_assets.core.errors import BadInputError, UnknownError
from perf_assets.features.counters.derivations import deriving
from perf_assets.readers.bundle import read_bundle
from perf_assets.storage.lake import Lake
from perf_assets.storage.landing import copying, land
from perf_assets.storage.warehouse import Warehouse
from perf_assets.workflows.landing.ingest import ingest_machine
from tests.conftest import profile_facts


@pytest.fixture
def opened(lake: Lake, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> OpenLake:
    monkeypatch.setenv("PERF_ASSETS_LAKE", str(lake.root))
    file = tmp_path / "perf.csv"
    file.write_text("5,,instructions,7,100.00,,\n")
    land(lake, profile_facts(), "b1", copying(file))
    ingest_machine(lake, "quartz", read_bundle)
    warehouse = Warehouse(lake, deriving([]))
    warehouse.load_machine("quartz")
    warehouse.derive_machine("quartz")
    return open_lake(lake.root)


@pytest.mark.slow
def test_tables_are_data_frames_or_arrow(opened: OpenLake) -> None:
    frame = opened.table("raw_profiles__counters")
    assert isinstance(frame, pd.DataFrame)
    assert frame["counter"].tolist() == ["instructions"]
    arrow = opened.table("raw_profiles__counters", "quartz", as_arrow=True)
    assert isinstance(arrow, pa.Table)
    assert arrow.num_rows == 1
    assert len(opened.table("raw_profiles__counters", "ruby")) == 0
    with pytest.raises(UnknownError, match="raw_profiles__counters"):
        opened.table("raw_profile_counters")


@pytest.mark.slow
def test_queries_take_parameters_and_cannot_write(opened: OpenLake, tmp_path: Path) -> None:
    found = opened.sql("SELECT value_sum FROM raw_profiles__counters WHERE counter = ?", "instructions")
    assert found["value_sum"].tolist() == [5.0]
    for query in ("DELETE FROM raw_profiles__counters", "SELEC 1", "SELECT * FROM nowhere"):
        with pytest.raises(BadInputError, match="the query cannot be answered"):
            opened.sql(query)
    with pytest.raises(BadInputError, match="the query has no result"):
        opened.sql("")
    with pytest.raises(BadInputError, match="the query cannot be answered"):
        opened.sql(f"COPY raw_profiles__counters TO '{tmp_path / 'out.csv'}'")
    assert not (tmp_path / "out.csv").exists()
