"""What is promised of intervals on the machines that come late: more runs make them narrower, in the mean of draws."""

import numpy as np
import pytest

from perf_assets.demo.fleet import LATER_MACHINES, SOURCE_MACHINES, fleet_bundles
from perf_assets.features.counters.derivations import deriving
from perf_assets.features.fleet.samples import KERNELS_QUERY, RUNS_QUERY, SPECS_QUERY, FleetTables, fleet_samples
from perf_assets.features.samples import PairedSamples, physical
from perf_assets.models.target.evaluation import shuffled_runs
from perf_assets.models.target.model import PRIOR_COMPONENTS
from perf_assets.models.target.prior import PriorParts, fit_prior, reference_machine
from perf_assets.models.target.view import adapt_view
from perf_assets.readers.bundle import read_bundle
from perf_assets.storage.lake import Lake
from perf_assets.storage.landing import land
from perf_assets.storage.warehouse import Warehouse
from perf_assets.workflows.landing.ingest import ingest_machine

pytestmark = pytest.mark.slow
SCALE = 0.2
RUNS = (0, 5, 10, 20)
DRAWS = 5
LUCK = 1.05
"""Factor by which the logarithm of a width may rise for a single machine where the first runs are unlike the others."""


@pytest.fixture(scope="module")
def samples(tmp_path_factory: pytest.TempPathFactory) -> PairedSamples:
    lake = Lake(tmp_path_factory.mktemp("lake"))
    warehouse, machines = Warehouse(lake, deriving([])), (*SOURCE_MACHINES, *LATER_MACHINES)
    for bundle in fleet_bundles(SCALE, 0, machines):
        land(lake, bundle.facts, bundle.name, bundle.write)
    for machine in machines:
        ingest_machine(lake, machine, read_bundle)
        warehouse.load_machine(machine)
        warehouse.derive_machine(machine)
    tables = FleetTables(*(warehouse.frame(query) for query in (RUNS_QUERY, KERNELS_QUERY, SPECS_QUERY)))
    return fleet_samples(tables)


def of_late_machine(
    samples: PairedSamples, name: str, parts: PriorParts
) -> dict[int, tuple[float, float, float, float]]:
    """By number of runs: width (log of upper / lower, median over runs), coverage, error, and that of no change."""
    for other in LATER_MACHINES:
        if other != physical(name):
            samples = samples.hide_machine(samples.machines.index(other))
    target = samples.machines.index(name)
    source = reference_machine(samples, target)
    assert source is not None
    prior = fit_prior(samples, target, 0, parts, PRIOR_COMPONENTS, source)
    figures = {}
    for count in RUNS:
        draws = []
        for seed in range(DRAWS):
            order = shuffled_runs(samples, source, target, seed)
            test = order[max(RUNS) :]
            true, unchanged = samples.log_seconds[target, test], samples.log_seconds[source, test]
            mean, width = adapt_view(samples, source, target, order[:count], seed, prior).distribution(samples, test)
            errors = (np.abs(np.expm1(told - true)).mean() for told in (mean, unchanged))
            draws.append((2 * np.median(width), np.mean(np.abs(true - mean) <= width), *errors))
        figures[count] = tuple(np.mean(draws, axis=0).tolist())
    return figures


def test_more_runs_make_narrower_intervals_that_hold(samples: PairedSamples) -> None:
    """Of a single machine and a few draws only that runs help: these may be unlike all that come after them."""
    parts = PriorParts(0)
    late = [name for name in samples.machines if physical(name) in LATER_MACHINES]
    assert {physical(name) for name in late} == set(LATER_MACHINES)
    by_machine = {name: of_late_machine(samples, name, parts) for name in late}
    for name, figures in by_machine.items():
        assert all(figures[count][0] < LUCK * figures[0][0] for count in RUNS[1:]), f"{name}: {figures}"
        assert figures[0][2] <= 1.05 * figures[0][3], (
            f"{name} before any run: worse than the time on the reference machine"
        )
    widths, coverage, *_ = np.mean([[figures[count] for count in RUNS] for figures in by_machine.values()], axis=0).T
    assert (np.diff(widths) < 0).all(), widths
    assert np.exp(widths[0]) < 6, "before any run it is a factor that says something"
    assert ((coverage > 0.85) & (coverage < 0.995)).all(), coverage
