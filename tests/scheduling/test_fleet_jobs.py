"""Jobs that behave like problems of the fleet: rigid ones are those of the trace, others are narrower or elsewhere."""

from dataclasses import replace

import numpy as np
import pytest

from perf_assets.scheduling.choices import Estimates, Planning
from perf_assets.scheduling.experiment import Experiment, where_faster
from perf_assets.scheduling.fleet_jobs import FleetJobs, Freedom, Problem
from perf_assets.scheduling.metrics import measure
from perf_assets.scheduling.simulate import Machine
from perf_assets.scheduling.strategies import PRACTICE, PREDICTOR_MOLDABLE, STRATEGIES, better_loads, nodes_to_match
from tests.scheduling.traces import drawn_trace

pytestmark = pytest.mark.xdist_group("scheduling")  # one worker compiles the simulator

NODES = 32


def problem(app: str, machine: list[int], nodes: list[int], seconds: list[float], error: float = 1.0) -> Problem:
    predicted = np.array(seconds) * error
    return Problem(app, np.array(machine), np.array(nodes), np.array(seconds), predicted, predicted * 1.2)


PROBLEMS = [
    problem("wave", [0, 0, 0], [1, 4, 8], [9.0, 5.0, 4.0], 1.1),
    problem("heat", [0, 0], [1, 2], [1.5, 1.0], 0.9),
    problem("slower when wide", [0, 0], [1, 8], [1.0, 2.0]),
]


def test_rigid_jobs_are_those_of_the_trace() -> None:
    trace = drawn_trace(300, NODES, 0)
    jobs, _ = FleetJobs.mapped(trace, PROBLEMS, [NODES], 0).jobs(Planning(), Freedom())
    assert (jobs.run == trace.run).all()
    assert (jobs.nodes == trace.nodes).all()
    assert (jobs.estimate == trace.request).all()
    assert (np.diff(jobs.first) == 1).all()


def test_narrower_options_scale_as_the_problem_does() -> None:
    trace = replace(drawn_trace(200, NODES, 0), nodes=np.full(200, 16))
    fleet = FleetJobs.mapped(trace, PROBLEMS[:1], [NODES], 0)
    jobs, _ = fleet.jobs(Planning(), Freedom(nodes=True))
    assert jobs.nodes.reshape(-1, 3).tolist() == [[16, 8, 2]] * 200
    assert jobs.run.reshape(-1, 3) / trace.run[:, None] == pytest.approx(np.tile([1.0, 5 / 4, 9 / 4], (200, 1)))
    assert jobs.limit.reshape(-1, 3)[:, 2] == pytest.approx(trace.request * 9 / 4 * 1.2)


def test_users_ask_for_the_fastest_run() -> None:
    assert PROBLEMS[2].asked_for() == 0
    assert not PROBLEMS[2].narrower().any()


def test_machines_are_options() -> None:
    trace = replace(drawn_trace(50, NODES, 0), nodes=np.full(50, 4))
    both = problem("wave", [0, 0, 1], [1, 2, 1], [3.0, 2.0, 1.0])
    jobs, _ = FleetJobs.mapped(trace, [both], [NODES, 8], 0).jobs(Planning(), Freedom(machine=True))
    assert jobs.machine.tolist() == [0, 1] * 50
    assert jobs.nodes.tolist() == [4, 2] * 50
    assert jobs.run[1::2] == pytest.approx(np.maximum(trace.run / 2, 1.0))


def test_the_same_jobs_in_another_order_are_the_same_problems() -> None:
    trace = drawn_trace(300, NODES, 0)
    shaken = trace.shaken(4)
    ours, theirs = (FleetJobs.mapped(t, PROBLEMS, [NODES], 0).problem for t in (trace, shaken))
    assert dict(zip(trace.number, ours, strict=True)) == dict(zip(shaken.number, theirs, strict=True))


def test_the_bias_of_a_model_is_learned() -> None:
    trace = drawn_trace(2000, NODES, 0)
    jobs, _ = FleetJobs.mapped(trace, PROBLEMS[:1], [NODES], 0).jobs(Planning(), Freedom())
    fleet = FleetJobs.mapped(trace, PROBLEMS[:1], [NODES], 0)
    planned = STRATEGIES["predictor"].schedule(fleet, (Machine("box", NODES),)).jobs.estimate
    settled = slice(1000, None)
    assert planned[settled] / jobs.run[settled] == pytest.approx(1.0, abs=0.02)
    assert STRATEGIES["predictor"].planning.estimates is Estimates.PREDICTED


def test_the_experiment_says_where_predictions_help(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PERF_ASSETS_THREADS", "1")
    experiment = Experiment(drawn_trace(600, NODES, 1), PROBLEMS, Machine("box", NODES), 0)
    lines: list[str] = []
    rows = experiment.rows([0.7, 1.0], 2, lines.append)
    assert len(rows) == len(STRATEGIES) * 3
    assert [line.split(":")[0] for line in lines] == ["1 of 3", "2 of 3", "3 of 3"]
    means = {(row["strategy"], row["load_ratio"]): row["turnaround_mean_seconds"] for row in rows}
    assert means[PREDICTOR_MOLDABLE, 1.0] < means[PRACTICE, 1.0]
    assert "faster at all loads" in where_faster(means, PREDICTOR_MOLDABLE)
    needed = experiment.nodes_to_match(1.0)
    assert needed is not None
    assert needed > NODES


def test_nodes_to_match_are_the_fewest() -> None:
    fleet = FleetJobs.mapped(drawn_trace(300, NODES, 1).at_load(0.9, NODES), PROBLEMS, [NODES], 0)
    box = Machine("box", NODES)
    goal = 0.8 * measure(STRATEGIES[PRACTICE].schedule(fleet, (box,))).turnaround.mean
    needed = nodes_to_match(fleet, STRATEGIES[PRACTICE], box, goal)
    assert needed is not None

    def turnaround(nodes: int) -> float:
        wider = FleetJobs(fleet.trace, fleet.problems, [nodes], fleet.problem)
        return measure(STRATEGIES[PRACTICE].schedule(wider, (Machine("box", nodes),))).turnaround.mean

    assert turnaround(needed) <= goal < turnaround(needed - 1)
    assert nodes_to_match(fleet, STRATEGIES[PRACTICE], box, 0.0) is None


def test_break_even_is_between_loads() -> None:
    assert better_loads([0.5, 1.0, 1.5], [3, 1, 1], [1, 3, 2]) == [(0.75, 1.5)]
    assert better_loads([0.5, 1.0, 1.5], [1, 1, 3], [2, 2, 2]) == [(0.5, 1.25)]
    assert better_loads([0.5, 1.0], [2, 2], [1, 1]) == []
