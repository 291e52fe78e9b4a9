"""The one sentence that says what a machine lacks for a model."""

import duckdb
import pandas as pd
import pytest

from perf_assets.core.manifest import SPEC_NAME, BundleFacts
from perf_assets.core.tables.landing import TIMINGS
from perf_assets.readers.bundle import read_bundle
from perf_assets.storage.lake import Lake
from perf_assets.storage.landing import land
from perf_assets.workflows.fleet import Fleet
from perf_assets.workflows.landing.ingest import ingest_machine
from perf_assets.workflows.machines.readiness import Readiness, _lacking
from tests.installation import bundles_of


def kernel_runs() -> pd.DataFrame:
    """Three kernels, whose sizes differ a little, in three sizes and two placements."""
    rows = [
        (kernel, size + off, placement)
        for kernel, off in (("DAXPY", 0), ("EOS", 0), ("JACOBI_2D", -8))
        for size in (100000, 1000000, 4000000)
        for placement in ("core", "share")
    ]
    return pd.DataFrame(rows, columns=["kernel", "problem_size", "placement"]).assign(is_there=True)


@pytest.mark.parametrize(
    ("gone", "words"),
    [
        ("problem_size < 0", ""),
        ("problem_size < 200000", "size 100000"),
        ("problem_size < 200000 or problem_size > 3000000", "sizes 100000 and 4000000"),
        ("placement == 'share'", "runs with all cores (or on GPUs)"),
        ("kernel == 'EOS'", "kernels such as EOS"),
        ("problem_size > 3000000 or placement == 'core'", "size 4000000 and runs with one thread"),
    ],
)
def test_what_is_missing_as_a_whole_is_named(gone: str, words: str) -> None:
    rows = kernel_runs()
    assert _lacking(rows.assign(is_there=~rows.eval(gone))) == words


def landed(lake: Lake, machine: str, name: str, *, only: str = "") -> None:
    """Let the RAJAPerf runs of a simulated machine land under a name: those of files whose text has this in it."""
    for bundle in bundles_of(machine)[0]:

        def write(folder, bundle=bundle):  # type: ignore[no-untyped-def]
            bundle.write(folder)
            (folder / SPEC_NAME).unlink(missing_ok=True)

        if only in bundle.name:
            land(lake, bundle.facts.model_copy(update={"machine": name}), bundle.name, write)


def ingested(fleet: Fleet, machine: str) -> None:
    """Read what landed for a machine into the tables."""
    ingest_machine(fleet.lake, machine, read_bundle)
    fleet.warehouse.load_machine(machine)
    fleet.warehouse.derive_machine(machine)


def test_a_machine_with_little_of_rajaperf_says_how_much_and_what_is_missing(lake: Lake) -> None:
    fleet = Fleet(lake)
    assert Readiness.of(fleet, "newbox").missing.startswith("nothing of it has landed: land its RAJAPerf runs")
    landed(lake, "quartz", "quartz")
    assert Readiness.of(fleet, "quartx").missing == "nothing of it has landed: did you mean quartz?"
    assert " to be ingested: run 'perf-assets ingest'" in Readiness.of(fleet, "quartz").missing
    (first, *others) = (bundle.name for bundle in bundles_of("ruby")[0])
    assert others
    landed(lake, "ruby", "newbox", only=first)
    for machine in ("quartz", "newbox"):
        ingested(fleet, machine)
    ready = Readiness.of(fleet, "newbox")
    assert ready.landed.is_done
    assert " kernel runs: " in ready.kernels.summary
    assert ready.runs.summary == "no application run has landed"
    # Training would refuse: no machine has runs of applications to learn from.
    assert ready.missing.startswith("no application run of another machine than newbox has landed: land RAJAPerf and ")
    assert Readiness.of(fleet, "quartz").kernels.is_done
    # As if no file had said how many threads there were: one thread alone is less than half of what others have.
    with duckdb.connect(str(lake.warehouse)) as tables:
        tables.execute(f"UPDATE {TIMINGS.name} SET threads = NULL WHERE machine = 'newbox' AND variant LIKE '%OpenMP'")
    assert " OpenMP timings lack a thread count" in Readiness.of(fleet, "newbox").kernels.summary


@pytest.mark.slow
def test_training_is_advised_only_where_it_can_succeed(lake: Lake) -> None:
    fleet = Fleet(lake)
    landed(lake, "quartz", "quartz")
    runs = pd.DataFrame({"app": "A", "args": "1", "ranks": 1, "threads": 1, "wall_seconds": [1.0], "cycles": [9.0]})
    for machine in ("quartz", "newbox"):
        facts = BundleFacts(machine=machine, kind="samples", target="wall_seconds", collected_at="2026-01-01T00:00:00Z")
        land(lake, facts, "table", lambda folder: runs.to_csv(folder / "samples.csv", index=False))
        ingested(fleet, machine)
    # Runs that are shared are enough for a model, and there is one machine with RAJAPerf only.
    ready = Readiness.of(fleet, "newbox")
    assert ready.sources.summary.endswith("no two machines with RAJAPerf ran the same configuration")
    assert ready.missing == "no model yet: run 'perf-assets adapt --machine newbox'"
    landed(lake, "ruby", "newbox")
    ingested(fleet, "newbox")
    assert Readiness.of(fleet, "newbox").missing == "there are no source models yet: run 'perf-assets train'"
