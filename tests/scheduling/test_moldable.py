"""ModelX's experiment: who runs on how many nodes, what happens then, and what the stock policy would need."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from perf_assets.core.errors import BadInputError
from perf_assets.scheduling.choices import Policy
from perf_assets.scheduling.events import event_log, replay
from perf_assets.scheduling.moldable import (
    NARROWEST,
    STOCK,
    TOLERANCES,
    MoldableExperiment,
    MoldableTable,
    policies,
    sweep,
)
from perf_assets.scheduling.simulate import Machine, simulate
from tests.scheduling.reference import Job, Option, Reference, fewest_nodes
from tests.scheduling.test_reference import events_of, reference_events
from tests.scheduling.traces import drawn_trace

pytestmark = pytest.mark.xdist_group("scheduling")  # one worker compiles the simulator

NODES = 32


def frame(seed: int = 0, rows: int = 60) -> pd.DataFrame:
    """Two applications that gain little from more nodes; predictions are right but for a few percent."""
    random = np.random.default_rng(seed)
    nodes = random.choice([2, 4, 8, 16, 32], rows)
    seconds = np.rint(random.uniform(60, 90, rows) * nodes**-0.1)
    return pd.DataFrame(
        {
            "app": random.choice(["wave", "heat"], rows),
            "nodes": nodes,
            "runtime_seconds": seconds,
            "net_predicted_seconds": seconds * np.exp(random.normal(0, 0.05, rows)),
            "twin_nodes": nodes,
            "twin_seconds": seconds,
        }
    )


@pytest.fixture(scope="module")
def experiment() -> MoldableExperiment:
    return MoldableExperiment(MoldableTable.of(frame(), NODES), drawn_trace(400, NODES, 0), NODES)


@pytest.mark.parametrize("seed", range(20))
def test_the_choice_is_that_of_the_slow_scheduler(seed: int) -> None:
    jobs = frame(seed, 40)
    table = MoldableTable.of(jobs, NODES)
    predicted = np.rint(table.predicted["net"])
    for tolerance in (0.0, 0.1, 1.0):
        rows = list(zip(jobs["app"], jobs["nodes"], predicted, strict=True))
        expected = [fewest_nodes(rows, row, tolerance) for row in range(len(rows))]
        chosen = table.chosen(predicted, tolerance)
        assert [rows[row][1:] for row in chosen] == [rows[row][1:] for row in expected]
        assert (table.asked.nodes[chosen] <= table.asked.nodes).all()


def test_modelx_chose_by_this_rule(shared_data: Path) -> None:
    jobs = pd.read_csv(shared_data / "modelx_apps" / "moldable_jobs.csv")
    table = MoldableTable.of(jobs, 256)
    for tolerance, name in ((0.1, "modelx10"), (0.2, "modelx20")):
        widths = table.run_as(table.chosen(table.predicted["modelx"], tolerance))
        assert (widths.nodes == table.choices[name].nodes).all()
        # Repeated runs have one prediction: which of them was taken, the table does not tell.
        assert np.mean(np.abs(widths.seconds - table.choices[name].seconds) < 1e-6) > 0.9
        assert widths.seconds.mean() == pytest.approx(table.choices[name].seconds.mean(), rel=0.005)
    for _, runs in jobs.groupby("app"):
        fast = runs["runtime_seconds"].to_numpy()[None] <= 1.1 * runs["modelx_predicted_seconds"].to_numpy()[:, None]
        fewest = np.where(fast, runs["nodes"].to_numpy()[None], 256).min(axis=1)
        assert np.mean(fewest == runs["oracle_nodes"]) > 0.92


def test_every_event_is_that_of_the_slow_scheduler(experiment: MoldableExperiment) -> None:
    drawn = experiment.draw(0.9, 3)
    few = replace(drawn, rows=drawn.rows[:25], submit=np.rint(drawn.submit[:25]), limit=np.rint(drawn.limit[:25]))
    table = experiment.table
    widths = table.run_as(table.chosen(table.predicted["net"], 0.1))
    jobs = few.jobs(widths)
    schedule = simulate((Machine("nodes", NODES),), jobs, Policy.EASY)
    slow = [
        Job(number, int(submit), [Option(0, int(nodes), int(run), int(limit), int(limit))])
        for number, (submit, nodes, run, limit) in enumerate(
            zip(jobs.submit, jobs.nodes, jobs.run, jobs.limit, strict=True)
        )
    ]
    Reference([NODES], "easy", slow).simulate()
    assert events_of(schedule) == reference_events(slow)


def test_all_policies_have_the_same_jobs_and_nobody_is_killed(experiment: MoldableExperiment) -> None:
    jobs = experiment.draw(1.0, 0)
    for widths, _ in policies(experiment, 1.0, 9).values():
        taken = jobs.jobs(widths)
        assert (taken.submit == jobs.submit).all()
        assert (taken.limit >= taken.run).all()
        schedule = simulate((Machine("nodes", NODES),), taken, Policy.EASY)
        assert replay(event_log(schedule), schedule.machines).min() >= 0
    span = jobs.submit[-1] - jobs.submit[0]
    asked = experiment.table.asked
    assert (asked.nodes * asked.seconds)[jobs.rows].sum() / (span * NODES) == pytest.approx(1.0, rel=0.15)


def test_the_sweep_says_what_narrower_jobs_are_worth(experiment: MoldableExperiment) -> None:
    rows = sweep(experiment, [0.6, 1.0], 2)
    every = {STOCK, "twin", "net, 10%", "net, 20%", "net, chosen tolerance", NARROWEST}
    assert len(rows) == 2 * 2 * len(every)
    assert {row["policy"] for row in rows} == every
    found = {(row["load"], row["repetition"], row["policy"]): row for row in rows}
    ours = "net, chosen tolerance"
    assert all(found[load, each, "twin"]["turnaround_ratio"] == 1 for load in (0.6, 1.0) for each in (0, 1))
    assert found[1.0, 0, ours]["turnaround_ratio"] < 0.8
    assert found[1.0, 0, ours]["nodes_per_job"] < found[1.0, 0, STOCK]["nodes_per_job"]
    assert found[1.0, 0, ours]["tolerance"] in TOLERANCES
    assert found[1.0, 0, NARROWEST]["nodes_per_job"] == 2
    assert found[1.0, 0, NARROWEST]["nodes_per_job"] <= found[1.0, 0, "net, 10%"]["nodes_per_job"]
    assert rows == sweep(experiment, [0.6, 1.0], 2)


def test_stock_jobs_end_earlier_on_more_nodes_and_where_they_are_narrower(experiment: MoldableExperiment) -> None:
    jobs, asked = experiment.draw(1.0, 1), experiment.table.asked
    turnaround = jobs.metrics(asked).turnaround.mean
    assert jobs.metrics(asked, nodes=2 * NODES).turnaround.mean < turnaround
    assert jobs.metrics(asked, factor=0.5).turnaround.mean < turnaround
    assert jobs.jobs(asked, 0.5).nodes.max() == asked.nodes[jobs.rows].max() / 2


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"nodes": 4}, "one number of nodes"),
        ({"nodes": 64}, "fits into 32 nodes"),
        ({"runtime_seconds": -1.0}, "positive numbers"),
        ({"app": None}, "positive numbers"),
    ],
)
def test_tables_without_a_choice_are_refused(change: dict[str, object], message: str) -> None:
    with pytest.raises(BadInputError, match=message):
        MoldableTable.of(frame().assign(**change), NODES)
    with pytest.raises(BadInputError, match="no column nodes"):
        MoldableTable.of(frame().drop(columns="nodes"), NODES)


def test_bad_rows_are_counted() -> None:
    jobs = frame()
    jobs.loc[0, "runtime_seconds"] = np.nan
    jobs.loc[1, "nodes"] = 512
    jobs.loc[jobs["app"] == "heat", "nodes"] = 4
    jobs["twin_nodes"] = 1
    table = MoldableTable.of(jobs, NODES)
    assert [note.split(" ", 1)[1] for note in table.notes][
        -1
    ] == "rows are of applications that ran on one number of nodes only"
    assert len(table) < len(jobs)
