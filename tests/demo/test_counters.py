import numpy as np
import pytest

from perf_assets.demo.execution import Execution, execute
from perf_assets.demo.fleet import APPLICATIONS
from perf_assets.demo.fleet_machines import load_machines
from perf_assets.demo.hardware.placement import place
from perf_assets.demo.hardware.quantities import DEVICE, HOST
from perf_assets.demo.tools.observation import observe
from perf_assets.demo.tools.profiles import EVENT_SETS, arguments, multiplexed, profiled_runs, sample

MACHINES = load_machines()
INSTRUCTION_MIX = {
    "quartz": ("PAPI_TOT_INS", ("PAPI_BR_INS", "PAPI_LD_INS", "PAPI_SR_INS")),
    "ruby": ("PAPI_TOT_INS", ("PAPI_BR_INS", "PAPI_LD_INS", "PAPI_SR_INS")),
    "corona": (
        "PAPI_TOT_INS",
        (
            "PAPI_BR_INS",
            "amd64_fam17h_zen2::LS_DISPATCH:LD_DISPATCH",
            "amd64_fam17h_zen2::LS_DISPATCH:STORE_DISPATCH",
        ),
    ),
    "lassen": ("perf::INSTRUCTIONS", ("perf::BRANCH-INSTRUCTIONS", "power9::PM_LD_CMPL", "power9::PM_ST_CMPL")),
    "dane": ("PAPI_TOT_INS", ("PAPI_BR_INS", "PAPI_LD_INS", "PAPI_SR_INS")),
}
"""Total, and branches, loads and stores; all are of the first set."""


def executions(machine: str, scale: float = 0.1) -> list[Execution]:
    spec = MACHINES[machine]
    found = []
    for application in APPLICATIONS:
        for configuration in application.configurations(scale):
            placement = place(spec, application, configuration)
            if placement is not None:
                found.append(execute(spec, application, configuration, placement))
    return found


@pytest.mark.parametrize("machine", sorted(EVENT_SETS))
def test_counters_are_sums_of_modelled_quantities(machine: str) -> None:
    for events in EVENT_SETS[machine]:
        assert len(set(events.names)) == len(events.names)
        for amounts in events.host.values():
            assert set(amounts) <= set(HOST)
        for amounts in events.device.values():
            assert set(amounts) <= set(DEVICE)


def counter_names(machine: str) -> frozenset[str]:
    """All that the tools of a machine can count."""
    return frozenset(name for events in EVENT_SETS[machine] for name in events.names)


def test_machines_name_their_counters_differently() -> None:
    names = {machine: counter_names(machine) for machine in EVENT_SETS}
    assert {name for name in names["quartz"] - names["ruby"] if not name.startswith("bdw_ep::")} == set()
    assert {name for name in names["ruby"] - names["quartz"] if not name.startswith("clx::")} == set()
    assert not names["tioga"] & names["corona"]
    assert names["h100"] & names["tioga"] == {"page_faults", "read_bytes", "write_bytes"}
    assert names["xeonmax"] == names["dane"]
    assert len({frozenset(found) for found in names.values()}) == len(names) - 1


def test_what_cannot_be_measured_is_absent() -> None:
    corona, lassen, dane = (counter_names(machine) for machine in ("corona", "lassen", "dane"))
    for part in ("FP_ARITH", "FP_INS", "ARITH", "EPT", "L1_STM", "L2_LDM", "INT_INS"):
        assert not [name for name in corona if part in name]
    for part in ("EPT", "SINGLE", "MEM_WCY"):
        assert not [name for name in lassen if part in name]
    assert not [name for name in dane if "EPT" in name]
    assert not [name for name in counter_names("epyc-vm") if "backend" in name or "IO" in name]
    for machine in ("quartz", "ruby", "dane", "epyc-vm"):
        assert not [name for name in counter_names(machine) if name.startswith(("GPU", "GKER", "GXCOPY"))]
    for machine in ("corona", "lassen"):
        assert {"GPUOPS (sec)", "GXCOPY:H2D (B)", "GXCOPY:D2H (B)", "GKER:COUNT"} <= counter_names(machine)


@pytest.mark.parametrize("machine", ["quartz", "ruby", "corona", "lassen", "dane"])
def test_every_profiling_run_counts_instructions(machine: str) -> None:
    assert len(EVENT_SETS[machine]) == 3
    for events in EVENT_SETS[machine]:
        assert {"PAPI_TOT_INS", "perf::INSTRUCTIONS"} & set(events.names)
        assert machine == "dane" or "REALTIME (sec)" in events.names


@pytest.mark.parametrize("machine", sorted(INSTRUCTION_MIX))
def test_intensities_are_shares(machine: str) -> None:
    total, parts = INSTRUCTION_MIX[machine]
    for execution in executions(machine):
        run = profiled_runs(execution, seed=1)["set1"]
        sums = dict(zip(run.metrics, run.values.sum(axis=(0, 1)), strict=True))
        intensities = [sums[part] / sums[total] for part in parts]
        assert min(intensities) > 0.005
        assert sum(intensities) < 1


def test_stalls_and_misses_stay_below_what_they_are_part_of() -> None:
    for execution in executions("lassen") + executions("quartz"):
        observation = observe(execution, "set1", seed=1)
        sums = dict(zip(HOST, observation.host.sum(axis=(0, 1)), strict=True))
        assert sums["l3_load_misses"] <= 1.3 * sums["l2_load_misses"] <= 1.69 * sums["l1_load_misses"]
        assert sums["l1_load_misses"] < sums["loads"]
        assert sums["mispredicted_branches"] < 0.2 * sums["branches"]
        assert sums["frontend_stall_cycles"] + sums["backend_stall_cycles"] < 1.2 * sums["cycles"]
        assert 0.1 < sums["instructions"] / sums["cycles"] < 4


def test_applications_differ_in_what_they_do() -> None:
    fp, misprediction, misses = {}, {}, {}
    for execution in executions("quartz"):
        sums = dict(zip(HOST, execution.host, strict=True))
        name = execution.application.name
        fp.setdefault(name, []).append(sums["double_flops"] / sums["instructions"])
        misprediction.setdefault(name, []).append(sums["mispredicted_branches"] / sums["instructions"])
        misses.setdefault(name, []).append(sums["l2_load_misses"] / sums["instructions"])
    median = {
        kind: {name: np.median(values) for name, values in table.items()}
        for kind, table in {"fp": fp, "misprediction": misprediction, "misses": misses}.items()
    }
    assert min(median["fp"], key=median["fp"].__getitem__) == "miniVite"
    assert max(median["misprediction"], key=median["misprediction"].__getitem__) == "miniVite"
    assert min(median["misses"], key=median["misses"].__getitem__) == "Laghos"


def test_runs_of_one_configuration_differ_a_little() -> None:
    execution = executions("quartz")[0]
    runs = profiled_runs(execution, seed=1)
    times = [run.wall_seconds for run in runs.values()]
    assert len(set(times)) == 3
    assert max(times) / min(times) < 2.5
    first, second = (
        runs[name].values.sum(axis=(0, 1))[list(runs[name].metrics).index("PAPI_TOT_INS")] for name in ("set1", "set2")
    )
    assert first != second
    assert first == pytest.approx(second, rel=0.05)


def test_device_counters_come_from_devices_only() -> None:
    with_gpu = next(e for e in executions("lassen") if e.placement.gpus)
    run = profiled_runs(with_gpu, seed=1)["set3"]
    column = run.metrics.index("GKER:COUNT")
    assert run.gpu_streams is not None
    assert run.gpu_streams.shape == (with_gpu.configuration.ranks, len(run.metrics))
    assert run.gpu_streams[:, column].min() > 0
    assert run.values[:, :, column].max() == 0
    assert arguments(with_gpu).endswith(" -d cuda")
    without = next(e for e in executions("lassen") if not e.placement.gpus)
    assert set(profiled_runs(without, seed=1)) == {"set1", "set2"}
    assert arguments(without) == without.configuration.args


def test_samples_hold_what_the_run_used() -> None:
    rows = [sample(execution, seed=1) for execution in executions("h100")]
    for row in rows:
        assert ("sm__warps_launched.sum" in row) == (row["gpus"] != 0)
        assert row["inst_retired.any"] == int(row["inst_retired.any"])


def test_perf_stat_multiplexes_hardware_counters() -> None:
    execution = executions("epyc-vm")[0]
    (run,) = profiled_runs(execution, seed=1).values()
    estimated, shares = multiplexed(run, execution.spec, seed=1)
    assert "instructions" in shares
    assert "page-faults" not in shares
    assert all(0.5 <= share <= 0.7 for share in shares.values())
    assert estimated.values == pytest.approx(run.values, rel=0.1)
