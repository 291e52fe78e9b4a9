"""Runs of the warehouse as a model of scaling sees them."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from perf_assets.core.tables.schedule import SCALING
from perf_assets.features.counters.derivations import deriving
from perf_assets.models.scaling.runs import ScalingRuns
from perf_assets.readers.bundle import read_bundle
from perf_assets.storage.lake import Lake
from perf_assets.storage.results import stored
from perf_assets.storage.warehouse import Warehouse
from perf_assets.workflows.fleet import Fleet
from perf_assets.workflows.landing.ingest import ingest_machine
from perf_assets.workflows.models.scaling import scaling_runs, score_widths


def rows(widths: tuple[int, ...] = (1, 2, 4, 8, 16)) -> pd.DataFrame:
    """Two problems that scale by a power law, with 4 ranks of a node."""
    return pd.DataFrame(
        {"app": "wave", "args": f"--size {size}", "ranks": 4 * nodes, "threads": 1, "nodes": nodes,
         "wall_seconds": size * nodes**-0.8 * (1 + 0.01 * (nodes % 3))}
        for nodes in widths for size in (64, 256)
    )  # fmt: skip


def test_a_problem_on_a_width_that_nobody_ran() -> None:
    runs = ScalingRuns.of(rows())
    assert runs.width == "nodes"
    assert runs.widths.tolist() == [1, 2, 4, 8, 16]
    times = runs.predict(runs.fit(), "--size 256", [12, 64], [48, 256], [1, 1])
    assert times.seconds == pytest.approx(256 * np.array([12.0, 64.0]) ** -0.8, rel=0.1)
    width = np.log(times.upper / times.lower)
    assert width[1] > width[0]


def test_ranks_are_the_width_where_nodes_are_not_known() -> None:
    runs = ScalingRuns.of(rows().assign(nodes=np.nan))
    assert (runs.width, runs.widths.tolist()) == ("ranks", [4, 8, 16, 32, 64])
    times = runs.predict(runs.fit(), "--size 64", [np.nan], [24], [1])
    assert times.seconds == pytest.approx(64 * 6.0**-0.8, rel=0.1)


def test_every_width_is_left_out_beside_baselines(lake: Lake, tmp_path: Path) -> None:
    from click.testing import CliRunner

    from perf_assets.cli.main import cli

    path = tmp_path / "runs.csv"
    few = rows((1, 2, 4)).assign(app="few")
    pd.concat([rows(), few]).assign(PAPI_TOT_INS=1e9).to_csv(path, index=False)
    wanted = ["land", str(path), "--machine", "box", "--kind", "samples", "--target", "wall_seconds"]
    done = CliRunner().invoke(cli, wanted)
    assert done.exit_code == 0, done.output
    ingest_machine(lake, "box", read_bundle)
    warehouse = Warehouse(lake, deriving([]))
    warehouse.load_machine("box")
    warehouse.derive_machine("box")
    assert set(scaling_runs(Fleet(lake).warehouse, "box")) == {"wave", "few"}
    said: list[str] = []
    score_widths(Fleet(lake), said.append)
    (score,) = stored(lake, SCALING, "").to_dict("records")
    assert (score["machine"], score["app"], score["width"], score["widths_count"]) == ("box", "wave", "nodes", 5)
    assert score["mape_ratio"] < 0.1 < score["nearest_width_mape_ratio"]
    assert score["inside_ratio"] >= 0.8
    assert len(said) == 1
