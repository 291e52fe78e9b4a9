import numpy as np
import pytest

from perf_assets.demo.applications.design import Application, Grid
from perf_assets.demo.execution import Execution, execute
from perf_assets.demo.fleet import APPLICATIONS
from perf_assets.demo.fleet_machines import load_machines
from perf_assets.demo.hardware.placement import place
from perf_assets.demo.tools.observation import observe

MACHINES = load_machines()
COUNTS = {"Laghos": 154, "Kripke": 106, "miniVite": 289, "SW4lite": 15, "TESTDFFT": 85}
PROFILED = ("quartz", "ruby", "corona", "lassen", "dane", "tioga", "h100", "epyc-vm")


def by_name(name: str) -> Application:
    return next(application for application in APPLICATIONS if application.name == name)


def executions(machine: str, application: Application, scale: float = 1.0) -> dict[str, Execution]:
    spec = MACHINES[machine]
    found = {}
    for configuration in application.configurations(scale):
        placement = place(spec, application, configuration)
        if placement is not None:
            found[configuration.key] = execute(spec, application, configuration, placement)
    return found


def seconds(execution: Execution) -> float:
    return execution.compute_seconds + execution.communication_seconds


def test_a_grid_is_walked_completely_and_evenly() -> None:
    grid = Grid(((1, 2, 3), ("a", "b"), (0.1, 0.2, 0.3, 0.4)))
    points = list(grid.walk())
    assert len(points) == len(set(points)) == 24
    assert {point[0] for point in points[:6]} == {1, 2, 3}
    assert {point[2] for point in points[:8]} == {0.1, 0.2, 0.3, 0.4}


@pytest.mark.parametrize("application", APPLICATIONS, ids=lambda application: application.name)
def test_configuration_counts(application: Application) -> None:
    assert len(list(application.configurations(1))) == COUNTS[application.name]
    assert len(list(application.configurations(0.1))) == max(3, round(COUNTS[application.name] / 10))


@pytest.mark.parametrize("application", APPLICATIONS, ids=lambda application: application.name)
def test_a_smaller_fleet_is_the_beginning_of_a_larger_one(application: Application) -> None:
    large = [configuration.key for configuration in application.configurations(3)]
    assert len(set(large)) == len(large)
    for scale in (0.1, 1.0):
        small = [configuration.key for configuration in application.configurations(scale)]
        assert large[: len(small)] == small


@pytest.mark.slow
@pytest.mark.parametrize("application", APPLICATIONS, ids=lambda application: application.name)
def test_a_hundredfold_fleet_has_distinct_configurations(application: Application) -> None:
    keys = {configuration.key for configuration in application.configurations(100)}
    assert len(keys) == 100 * COUNTS[application.name]


def test_ranks_are_moderate() -> None:
    ranks = [configuration.ranks for app in APPLICATIONS for configuration in app.configurations(1)]
    assert max(ranks) <= 64
    assert 8 <= np.mean(ranks) <= 13
    assert np.mean(np.array(ranks) <= 16) > 0.75


@pytest.mark.parametrize("name", [name for name in COUNTS if name != "SW4lite"])
def test_enough_runs_fit_the_virtual_machine(name: str) -> None:
    assert len(executions("epyc-vm", by_name(name))) >= 15


@pytest.mark.parametrize("application", APPLICATIONS, ids=lambda application: application.name)
def test_every_configuration_runs_on_every_large_machine(application: Application) -> None:
    for machine in PROFILED[:-1]:
        placements = [place(MACHINES[machine], application, c) for c in application.configurations(1)]
        assert None not in placements


def test_gpus_are_used_where_there_is_a_back_end() -> None:
    for application in APPLICATIONS:
        for configuration in application.configurations(0.1):
            placement = place(MACHINES["lassen"], application, configuration)
            assert placement is not None
            assert placement.gpus == (configuration.ranks if application.has_gpu_back_end else 0)
            assert placement.nodes * 4 >= placement.gpus


@pytest.mark.slow
@pytest.mark.parametrize("machine", PROFILED)
def test_run_times_are_sane(machine: str) -> None:
    for application in APPLICATIONS:
        for execution in executions(machine, application).values():
            assert 0.1 < observe(execution, "set1", seed=3).wall_seconds < 3600


@pytest.mark.parametrize("gpu_machine", ["lassen", "corona", "tioga", "h100"])
def test_devices_pay_for_large_problems_only(gpu_machine: str) -> None:
    on_host, on_device = executions("quartz", by_name("Laghos")), executions(gpu_machine, by_name("Laghos"))
    large = sorted(on_host, key=lambda key: seconds(on_host[key]))[-8:]
    small = sorted(on_host, key=lambda key: seconds(on_host[key]))[:8]
    assert np.median([seconds(on_device[key]) / seconds(on_host[key]) for key in large]) < 0.7
    assert np.median([seconds(on_device[key]) / seconds(on_host[key]) for key in small]) > 1


def test_devices_do_nothing_for_minivite() -> None:
    on_host, elsewhere = executions("quartz", by_name("miniVite")), executions("lassen", by_name("miniVite"))
    ratio = np.median([seconds(elsewhere[key]) / seconds(on_host[key]) for key in on_host])
    assert 0.5 < ratio < 2
    assert all(execution.device_seconds == 0 for execution in elsewhere.values())


@pytest.mark.slow
def test_the_layout_of_kripke_matters() -> None:
    times: dict[str, list[float]] = {}
    for execution in executions("quartz", by_name("Kripke"), scale=20).values():
        layout = execution.configuration.args.split("--layout ")[1].split()[0]
        times.setdefault(layout, []).append(execution.parallel_seconds / execution.configuration.core_operations)
    medians = [float(np.median(values)) for values in times.values()]
    assert len(medians) == 6
    assert max(medians) > 1.3 * min(medians)
