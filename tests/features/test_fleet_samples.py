from dataclasses import replace

import numpy as np
import pytest

from perf_assets.core.errors import BadInputError
from perf_assets.features.fleet.samples import (
    KERNEL_COLUMNS,
    RUN_COLUMNS,
    benchmark_samples,
    configuration_name,
    configuration_of,
    fleet_samples,
    uses_device,
)
from perf_assets.features.folds import leave_one_machine_out
from tests.features.fleet_tables import APPS, GPU, KERNELS, SPEEDS, fleet_tables, seconds, with_half_of_the_threads


def test_a_machine_with_gpus_is_two_machines() -> None:
    samples = fleet_samples(fleet_tables())
    assert samples.machines == (*SPEEDS, "elm (host)")
    assert uses_device(samples).tolist() == [name in GPU for name in samples.machines]
    elm, host = samples.machines.index("elm"), samples.machines.index("elm (host)")
    on_host = np.isfinite(samples.log_seconds[host]) & ~samples.is_benchmark
    assert set(samples.apps[on_host]) == {"miniVite"}
    on_gpu = np.isfinite(samples.log_seconds[elm]) & ~samples.is_benchmark
    assert set(samples.apps[on_gpu]) == set(APPS) - {"miniVite"}
    assert samples.specification is not None
    assert (samples.specification[elm] != samples.specification[host]).any()


def test_a_share_of_a_node_is_a_gpu_where_there_is_one() -> None:
    samples = fleet_samples(fleet_tables())
    row = samples.configurations.index("Stream_TRIAD 1000000 share")
    times = dict(zip(samples.machines, np.exp(samples.log_seconds[:, row]), strict=True))
    assert times["elm"] == pytest.approx(seconds(1e-3, 1.0, GPU["elm"]))
    busy = (SPEEDS["elm"][0] / 2, SPEEDS["elm"][1])
    assert times["elm (host)"] == pytest.approx(seconds(1e-3, 1.0, busy))
    assert samples.benchmark_settings is not None
    assert samples.benchmark_settings[row] == "share, size 2"


def test_half_of_the_threads_is_a_setting_of_amms_and_of_nothing_else() -> None:
    tables = fleet_tables()
    kernels = with_half_of_the_threads(tables.kernels, {"ash": 1.6, "elm": 1.3})
    assert benchmark_samples(kernels).configurations == benchmark_samples(tables.kernels).configurations
    samples = benchmark_samples(kernels, with_scaling=True)
    rows = [samples.configurations.index(f"Poly_GEMM 1000000 {place}") for place in ("share", "half_share")]
    gains = np.exp(-np.diff(samples.log_seconds[:, rows], axis=1)[:, 0])
    found = dict(zip(samples.machines, gains, strict=True))
    assert found["ash"] == pytest.approx(1.6)
    assert found["elm (host)"] == pytest.approx(1.3)
    assert found["elm"] == found["birch"] == 1.0, "a GPU, and a machine that was not run so, are there as with all"


def test_kernels_and_runs_have_columns_of_their_own() -> None:
    samples = fleet_samples(fleet_tables())
    assert samples.counter_names == (*RUN_COLUMNS, *KERNEL_COLUMNS)
    assert np.isnan(samples.counters[:, samples.is_benchmark][:, :, : len(RUN_COLUMNS)]).all()
    assert np.isnan(samples.counters[:, ~samples.is_benchmark][:, :, len(RUN_COLUMNS) :]).all()
    assert not samples.learns_from_benchmark
    assert samples.is_benchmark.sum() == 2 * 2 * len(KERNELS)


def test_a_machine_without_applications_is_known_by_its_benchmark() -> None:
    samples = fleet_samples(fleet_tables())
    fir = samples.machines.index("fir")
    assert fir in samples.encoder_machines
    assert fir not in samples.training_machines


def test_leaving_a_machine_out_leaves_its_host_out() -> None:
    samples = fleet_samples(fleet_tables())
    folds = {fold.held_out: fold for fold in leave_one_machine_out(samples)}
    assert set(folds) == {"ash", "birch", "cedar", "elm"}
    hidden = folds["elm"].train
    names = [hidden.machines[machine] for machine in hidden.encoder_machines]
    assert "elm" not in names
    assert "elm (host)" not in names
    assert {samples.machines[target] for target in folds["elm"].test.target} == {"elm", "elm (host)"}


def test_machines_without_enough_rajaperf_are_left_out_with_a_note() -> None:
    tables = fleet_tables()
    kernels = tables.kernels
    few = kernels[(kernels["machine"] != "ash") | (kernels["kernel"] == "Stream_TRIAD")]
    samples = fleet_samples(replace(tables, kernels=few))
    assert "ash" not in samples.machines
    assert samples.notes == ("ash has no RAJAPerf runs, or too few, and is left out",)
    assert samples.is_benchmark.sum() == 2 * 2 * len(KERNELS)


def test_without_rajaperf_nothing_describes_machines() -> None:
    tables = fleet_tables()
    with pytest.raises(BadInputError, match="no RAJAPerf run"):
        benchmark_samples(tables.kernels.iloc[:0])


def test_of_many_configurations_some_are_learned_from() -> None:
    """The same ones on all machines; a machine that ran few keeps those, with what they took elsewhere."""
    tables = fleet_tables()
    whole = fleet_samples(tables)
    of_ash = tables.runs[(tables.runs["machine"] == "ash") & (tables.runs["app"] == "Kripke")]
    few = tables.runs.drop(index=of_ash.index[2:])
    samples = fleet_samples(replace(tables, runs=few), most_configurations=2)
    ran = np.isfinite(samples.log_seconds)
    kept = {name: ran[m] & ~samples.is_benchmark for m, name in enumerate(samples.machines)}
    assert kept["ash"][samples.apps == "Kripke"].sum() == 2
    drawn = [kept[name] & (samples.apps == "Laghos") for name in ("ash", "birch", "cedar")]
    assert [mask.sum() for mask in drawn] == [2, 2, 2]
    assert (drawn[0] == drawn[1]).all()
    assert (drawn[0] == drawn[2]).all()
    count, every = (int((~found.is_benchmark).sum()) for found in (samples, whole))
    assert samples.notes == (
        f"{every - count} of {every} configurations are left out: at most 2 of an application on a machine",
    )
    columns = [whole.configurations.index(name) for name in samples.configurations]
    birch = whole.machines.index("birch")
    assert np.array_equal(samples.counters[birch], whole.counters[birch, columns], equal_nan=True)
    assert whole.notes == ()


@pytest.mark.parametrize("args", ["", "-n 3", "--zones (4 x 2) x", " odd  blanks "])
def test_a_configuration_is_known_by_its_name(args: str) -> None:
    name = configuration_name(("App (new)", args, 8, 2))
    assert configuration_of(name, "App (new)") == (args, 8, 2)
