"""Can the paired target model lose? Families of machines, 0 to 50 shots, beside "unchanged" and "constant ratio".

Families: `nvprof_gpus` (seven real GPUs, each predicted from Tesla-K40 and from GTX-680; two programs are the
benchmark), `simulated_fleet` (every machine of the demo with applications, from its reference machine), `spechpc` (six
real codes on two CPUs, each predicted from the other; there is no benchmark and no third machine, so no prior).

`registered` is what `perf-target-<machine>` would be with so many shots (`adapt_view`, prior of the registered
components), with its own 90% interval. Shots are the first of a random order, one a seed; test rows are those after the
50th, the same for all methods and numbers of shots. Errors are MAPE in percent: median and mean over pairs and seeds.
`ratio` is the mean error of what is registered over that of the better baseline ("time on the source unchanged" and
"constant ratio of the shots", which is shrunk to no change as far as known machines say).

What is chosen for a family is chosen on the others: the sizes of corrections that are expected before any machine is
known (`trials.UNKNOWN`) are, for each family, the geometric mean over the OTHER families of their root mean
square offset and spread of log ratios (`expected_from`). All else that has a size is learned inside a family from known
machines, without the target. Other constants (a factor of two of freedom, three lengths, fifths of weights) were not
varied on any family.

Last line: one JSON object. Needs `../shared/data`, or PERF_ASSETS_SHARED_DATA. Takes some minutes; the fleet is
simulated into a temporary folder first (half a minute).
"""

import argparse
import json
import sys
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from paired_gpus import paired_gpus
from transfer_data import data_folder

from perf_assets.core.metrics import mape
from perf_assets.demo.fleet import fleet_bundles, fleet_machines
from perf_assets.features.counters.derivations import deriving
from perf_assets.features.fleet.samples import KERNELS_QUERY, RUNS_QUERY, SPECS_QUERY, FleetTables, fleet_samples
from perf_assets.features.samples import Floats, PairedSamples
from perf_assets.features.tables.paired import Roles, pair_tables
from perf_assets.models.common.threads import keep_blas_to_one_thread
from perf_assets.models.target.causes import Spreads
from perf_assets.models.target.evaluation import predict_shots, shuffled_runs
from perf_assets.models.target.model import PRIOR_COMPONENTS
from perf_assets.models.target.prior import Prior, PriorParts, expectation_unchanged, fit_prior, reference_machine
from perf_assets.models.target.view import adapt_view
from perf_assets.readers.bundle import read_bundle
from perf_assets.storage.lake import Lake
from perf_assets.storage.landing import land
from perf_assets.storage.warehouse import Warehouse
from perf_assets.workflows.landing.ingest import ingest_machine

SHOTS = (0, 5, 10, 20, 50)
METHODS = ("source_unchanged", "constant_ratio", "target_gp", "with_prior", "without_prior")
BASELINES = ("source_unchanged", "constant_ratio")
GPU_SOURCES = ("Tesla-K40", "GTX-680")
FLEET_SCALE = 0.3
LEAST_TEST_ROWS = 20
QUICK_PAIRS, QUICK_FAMILIES = 1, ("nvprof_gpus", "spechpc")
CPUS = ("icelake-8360y", "sapphirerapids-8470")
CPU_ROLES = Roles(("app", "ranks"), "app", "runtime_s", (), ("^mean_", "^sum_"))
"""Derived rates hold the answer; events are counters."""

Progress = Callable[[str], None]
Scores = dict[str, dict[str, float]]
"""By number of shots: figures by name."""


@dataclass(frozen=True)
class Family:
    """Machines that were measured in one way, and the pairs to be scored."""

    name: str
    samples: PairedSamples
    pairs: tuple[tuple[int, int], ...]
    """Source and target."""


def nvprof_gpus() -> Family:
    """Seven real GPUs."""
    samples = paired_gpus()
    sources = [samples.machines.index(name) for name in GPU_SOURCES]
    pairs = tuple((s, t) for s in sources for t in range(len(samples.machines)) if s != t)
    return Family("nvprof_gpus", samples, pairs)


def simulated_fleet() -> Family:
    """The machines of the demo, in every way programs see them, each with its reference machine."""
    with tempfile.TemporaryDirectory() as folder:
        lake = Lake(Path(folder))
        warehouse = Warehouse(lake, deriving([]))
        for bundle in fleet_bundles(FLEET_SCALE, 0):
            land(lake, bundle.facts, bundle.name, bundle.write)
        for machine in fleet_machines():
            ingest_machine(lake, machine, read_bundle)
            warehouse.load_machine(machine)
            warehouse.derive_machine(machine)
        tables = FleetTables(*(warehouse.frame(query) for query in (RUNS_QUERY, KERNELS_QUERY, SPECS_QUERY)))
        samples = fleet_samples(tables)
    found = [(reference_machine(samples, int(target)), int(target)) for target in samples.training_machines]
    pairs = [(source, target) for source, target in found if source is not None]
    enough = [pair for pair in pairs if len(shuffled_runs(samples, *pair, 0)) >= max(SHOTS) + LEAST_TEST_ROWS]
    return Family("simulated_fleet", samples, tuple(enough))


def spechpc() -> Family:
    """Six SPEChpc codes on two CPUs; ends with a line where the measurements are not there."""
    folder = data_folder("spechpc")
    tables = {name: pd.read_csv(folder / f"{name}.csv") for name in CPUS}
    return Family("spechpc", pair_tables(tables, CPU_ROLES), ((0, 1), (1, 0)))


FAMILIES: dict[str, Callable[[], Family]] = {
    "nvprof_gpus": nvprof_gpus,
    "simulated_fleet": simulated_fleet,
    "spechpc": spechpc,
}


def paired_families(
    seeds: int, names: Sequence[str] = tuple(FAMILIES), *, quick: bool = False, progress: Progress = lambda _: None
) -> dict[str, Scores]:
    """Scores of families by name and number of shots; `quick` looks at one pair of each only.

    All families are read, whichever are scored: what is expected for one comes from the others. For `quick`, these are
    the other ones that are scored.
    """
    keep_blas_to_one_thread()
    families = {name: make() for name, make in FAMILIES.items() if not quick or name in names}
    scored = {}
    for name in names:
        others = [family for other, family in families.items() if other != name]
        expected = expected_from(others)
        progress(f"{name}: expected offset {expected.offset:.2f}, run {expected.run:.2f}, from the other families")
        scored[name] = score_family(families[name], expected, seeds, quick=quick, progress=progress)
    return scored


def expected_from(families: Sequence[Family]) -> Spreads:
    """How much machines differ as a whole, and runs around that: root mean square over pairs, geometric mean of all."""
    sizes = []
    for family in families:
        times = family.samples.log_seconds
        ratios = [times[t, rows] - times[s, rows] for s, t, rows in _shared(family)]
        offset = np.sqrt(np.mean([ratio.mean() ** 2 for ratio in ratios]))
        run = np.sqrt(np.mean([ratio.var() for ratio in ratios]))
        sizes.append((offset, run))
    return Spreads(*(float(value) for value in np.exp(np.mean(np.log(sizes), axis=0))))


def score_family(family: Family, unknown: Spreads, seeds: int, *, quick: bool, progress: Progress) -> Scores:
    """Figures of one family by number of shots, `unknown` being what is expected before any machine is known."""
    errors: dict[tuple[int, str], list[list[float]]] = {}
    covered: dict[int, list[float]] = {}
    parts = PriorParts(0)
    for source, target in family.pairs[:: max(1, len(family.pairs) // QUICK_PAIRS)] if quick else family.pairs:
        prior = _prior(family.samples, source, target, parts, unknown)
        found = _score_pair(family.samples, source, target, prior, unknown, seeds)
        for key, values in found.items():
            if key[1] == "coverage":
                covered.setdefault(key[0], []).extend(values)
            else:
                errors.setdefault(key, []).append(values)
        machines = family.samples.machines
        told = ", ".join(f"{100 * np.mean(found[count, 'registered']):.1f}" for count in SHOTS)
        progress(f"{family.name}: {machines[source]} -> {machines[target]}: {told}% at {SHOTS} shots")
    return {str(count): _figures(errors, covered[count], count) for count in SHOTS}


def _shared(family: Family) -> list[tuple[int, int, Any]]:
    return [(source, target, shuffled_runs(family.samples, source, target, 0)) for source, target in family.pairs]


def _prior(samples: PairedSamples, source: int, target: int, parts: PriorParts, unknown: Spreads) -> Prior | None:
    if not samples.is_benchmark.any():
        return None
    return fit_prior(samples, target, 0, parts, PRIOR_COMPONENTS, source, unknown)


def _score_pair(
    samples: PairedSamples, source: int, target: int, prior: Prior | None, unknown: Spreads, seeds: int
) -> dict[tuple[int, str], list[float]]:
    """By number of shots and method: a value for each seed."""
    expected = prior.expected_unchanged if prior else expectation_unchanged(samples, source, target, unknown)
    found: dict[tuple[int, str], list[float]] = {}
    for seed in range(seeds):
        order = shuffled_runs(samples, source, target, seed)
        test = order[max(SHOTS) :]
        true = samples.log_seconds[target, test]
        for count in SHOTS:
            shots = order[:count]
            mean, width = adapt_view(samples, source, target, shots, seed, prior, expected).distribution(samples, test)
            found.setdefault((count, "registered"), []).append(_mape(true, mean))
            found.setdefault((count, "coverage"), []).append(float(np.mean(np.abs(true - mean) <= width)))
            for method in METHODS:
                # Without shots a constant ratio is no change.
                asked = "source_unchanged" if method == "constant_ratio" and not count else method
                said = predict_shots(asked, samples, source, target, shots, test, prior, expected)
                if said is not None:
                    found.setdefault((count, method), []).append(_mape(true, said[0]))
    return found


def _figures(errors: dict[tuple[int, str], list[list[float]]], covered: list[float], count: int) -> dict[str, float]:
    """Of one number of shots; errors are ratios, lists of seeds in lists of pairs."""
    registered = errors[count, "registered"]
    means = {method: float(np.mean(errors[count, method])) for method in METHODS if (count, method) in errors}
    mean = float(np.mean(registered))
    pairs = [
        np.mean(ours) / min(np.mean(errors[count, baseline][place]) for baseline in BASELINES)
        for place, ours in enumerate(registered)
    ]
    found = {
        "median": float(np.median(registered)),
        "mean": mean,
        "unchanged": means.pop("source_unchanged"),
        **means,
        "worst_ratio_to_baselines": mean / min(float(np.mean(errors[count, name])) for name in BASELINES),
        "worst_pair_ratio_to_baselines": float(np.max(pairs)),
        "coverage_90": float(np.mean(covered)),
    }
    return {name: round(value, 4) for name, value in found.items()}


def _mape(true: Floats, predicted: Floats) -> float:
    # A baseline may extrapolate to e^500 seconds; its error is then as good as infinite, and stays a number.
    return mape(np.exp(true), np.exp(np.clip(predicted, true - 20, true + 20)))


def print_scores(scores: dict[str, Scores]) -> None:
    """A row for each family and number of shots; errors in percent."""
    names = ("median", "mean", "unchanged", *METHODS[1:])
    print(f"{'family':16}{'shots':>6}" + "".join(f"{name:>16}" for name in (*names, "ratio", "worst pair", "coverage")))
    for family, rows in scores.items():
        for count, row in rows.items():
            shown = [f"{100 * row[name]:.1f}" if name in row else "-" for name in names]
            shown += [f"{row[name]:.2f}" for name in ("worst_ratio_to_baselines", "worst_pair_ratio_to_baselines")]
            print(f"{family:16}{count:>6}" + "".join(f"{s:>16}" for s in (*shown, f"{100 * row['coverage_90']:.0f}%")))


def main() -> None:
    """Print the table and the JSON line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--seeds", type=int, default=5, help="Random orders of the runs of each pair.")
    parser.add_argument("--families", nargs="+", choices=tuple(FAMILIES), default=tuple(FAMILIES))
    parser.add_argument(
        "--quick", action="store_true", help="One pair of each measured family and one seed, to see that it works."
    )
    given = parser.parse_args()
    scores = paired_families(
        1 if given.quick else given.seeds,
        QUICK_FAMILIES if given.quick else given.families,
        quick=given.quick,
        progress=lambda line: print(line, file=sys.stderr, flush=True),
    )
    print_scores(scores)
    print(json.dumps({"paired": scores}))


if __name__ == "__main__":
    main()
