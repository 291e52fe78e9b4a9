"""The scheduling asset: from a trace and problems of the fleet to a table and pictures."""

from pathlib import Path

import dagster as dg
import numpy as np
import pandas as pd
import pytest

from perf_assets.core.tables.schedule import TURNAROUND
from perf_assets.defs.resources import LakeResource
from perf_assets.defs.scheduling.assets import out_schedule__turnaround
from perf_assets.scheduling.fleet_jobs import Problem
from perf_assets.scheduling.strategies import STRATEGIES
from perf_assets.storage.lake import Lake
from perf_assets.storage.results import stored
from perf_assets.workflows.scheduling import scheduled_problems
from tests.scheduling.traces import line, write

pytestmark = pytest.mark.xdist_group("scheduling")  # one worker compiles the simulator


@pytest.mark.slow
def test_a_trace_becomes_a_table_and_pictures(
    lake: Lake,
    lake_resource: LakeResource,
    instance: dg.DagsterInstance,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    scaling = Problem(
        "wave", np.zeros(2, np.int64), np.array([1, 4]), *(np.array([9.0, 4.0]) * factor for factor in (1, 1.1, 1.3))
    )
    lake_resource.warehouse().rebuild()
    monkeypatch.setattr(scheduled_problems, "fleet_problems", lambda lake, machines: [scaling])
    monkeypatch.setenv("PERF_ASSETS_THREADS", "1")
    jobs = [line(n, 900 * n, 500 + 61 * (n % 9), 1 + n % 8, 3600, user=n % 3) for n in range(300)]
    champion = [3]
    monkeypatch.setattr(scheduled_problems, "champion_version", lambda machine: champion[0])
    config = {"trace": str(write(tmp_path / "t.swf", *jobs)), "machine": "box", "repetitions": 2}

    def simulate(config: dict[str, object]) -> dg.ExecuteInProcessResult:
        found = dg.materialize(
            [out_schedule__turnaround],
            resources={"lake": lake_resource},
            instance=instance,
            run_config={"ops": {"out_schedule__turnaround": {"config": {"loads": [0.6, 1.0], **config}}}},
        )
        assert found.success
        return found

    done = simulate(config)
    rows = stored(lake, TURNAROUND, "")
    assert len(rows) == 3 * len(STRATEGIES)
    assert set(rows["trace"]) == {"t.swf"}
    assert not rows["is_trace_simulated"].any()
    assert not rows.duplicated(list(TURNAROUND.key)).any()
    assert not (lake.root / "unfinished" / TURNAROUND.name).exists()
    (event,) = done.asset_materializations_for_node("out_schedule__turnaround")
    assert "measured" in str(event.metadata["what is measured, simulated and predicted"].value)
    assert "instead of 8" in str(event.metadata["nodes practice needs to match"].value)
    assert "break-even, predictor, moldable" in event.metadata
    assert (lake.reports / "schedule.html").read_text().count("<figure>") == 3
    # What the automation starts has no configuration: the same question, where the champion is another.
    assert not simulate({}).asset_materializations_for_node("out_schedule__turnaround")
    champion[0] = 4
    (event,) = simulate({}).asset_materializations_for_node("out_schedule__turnaround")
    assert event.metadata["champion"].value == "perf-target-box version 4"
    again = stored(lake, TURNAROUND, "")
    assert set(again["champion_version"]) == {4}
    same = [name for name in TURNAROUND.column_names() if name != "champion_version"]
    pd.testing.assert_frame_equal(again[same], rows[same])
    assert simulate({"only_if_changed": False}).asset_materializations_for_node("out_schedule__turnaround")
    assert simulate({"seed": 1}).asset_materializations_for_node("out_schedule__turnaround")
