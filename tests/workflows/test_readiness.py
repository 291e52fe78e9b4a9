"""The one sentence that says what a machine lacks for a model."""

import pandas as pd
import pytest

from perf_assets.core.manifest import SPEC_NAME
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
        ingest_machine(lake, machine, read_bundle)
        fleet.warehouse.load_machine(machine)
        fleet.warehouse.derive_machine(machine)
    ready = Readiness.of(fleet, "newbox")
    assert ready.landed.is_done
    assert " kernel runs: " in ready.kernels.says
    assert ready.runs.says == "no application run has landed"
    assert ready.missing == "there are no source models yet: run 'perf-assets train'"
    assert Readiness.of(fleet, "quartz").kernels.is_done
