"""Machines on their way to a model: what one lacks is said by a check, on its page and by commands, in one sentence."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import dagster as dg
import pytest
from click.testing import CliRunner

from perf_assets.cli.main import cli
from perf_assets.core.manifest import SPEC_NAME
from perf_assets.demo.fleet_machines import load_machines
from perf_assets.demo.rajaperf import benchmark_runs
from perf_assets.demo.simulated import SimulatedBundle
from perf_assets.demo.writers.rajaperf_2026 import write_rajaperf_2026
from perf_assets.registry.target import load_target
from perf_assets.registry.versions import pin_of, tags_of, unpin, versions
from perf_assets.serving.predictor import Predictor
from perf_assets.storage.lake import Lake
from perf_assets.storage.landing import land
from perf_assets.workflows.fleet import Fleet
from perf_assets.workflows.machines.readiness import Readiness
from perf_assets.workflows.models.chains import promote
from perf_assets.workflows.models.target import judge_machine
from tests.defs.test_training import run
from tests.installation import Installation, bundles_of
from tests.trained_site import copy_of

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900), pytest.mark.xdist_group("unpaired")]
OLD, BARE = "oldbox", "barebox"
"""A machine that is gone, of which ten profiles are left; one with a fifth of RAJAPerf and nothing else."""


def land_as(lake: Lake, machine: str, bundle: SimulatedBundle) -> None:
    """Let a simulated bundle land for a machine, without data sheet."""

    def write(folder: Path) -> None:
        bundle.write(folder)
        (folder / SPEC_NAME).unlink(missing_ok=True)

    land(lake, bundle.facts.model_copy(update={"machine": machine}), bundle.name, write)


def land_some_kernels(lake: Lake, machine: str, bundle: SimulatedBundle) -> None:
    """Let a RAJAPerf run of every fifth kernel land for a machine."""
    run = next(benchmark_runs(load_machines()["dane"], 0.06, 0))
    names = sorted({kernel.kernel for kernel in run.kernels})[::5]
    some = replace(run, kernels=tuple(kernel for kernel in run.kernels if kernel.kernel in names))
    facts = bundle.facts.model_copy(update={"machine": machine})
    land(lake, facts, bundle.name, lambda folder: write_rajaperf_2026(folder, some))


@dataclass(frozen=True)
class Site:
    """A trained fleet that both machines have joined."""

    lake: Lake
    instance: dg.DagsterInstance

    def check(self, asset: str, name: str, machine: str) -> dg.AssetCheckEvaluation:
        """The last result of a check for a machine."""
        key = dg.AssetCheckKey(dg.AssetKey(asset), name)
        records = self.instance.event_log_storage.get_asset_check_execution_history(key, limit=20)
        found = [record.event.asset_check_evaluation for record in records if record.event is not None]
        return next(one for one in found if one is not None and one.partition == machine)


@pytest.fixture(scope="module")
def site(trained_once: Installation, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    copied = copy_of(trained_once, tmp_path_factory.mktemp("road") / "site")
    with pytest.MonkeyPatch.context() as patch, dg.DagsterInstance.from_config(str(copied.home)) as instance:
        patch.setenv("PERF_ASSETS_LAKE", str(copied.lake.root))
        patch.setenv("DAGSTER_HOME", str(copied.home))
        patch.setenv("MLFLOW_TRACKING_URI", f"sqlite:///{copied.lake.root}/mlflow/mlflow.db")
        patch.setenv("PERF_ASSETS_THREADS", "1")
        benchmark, runs = (list(part) for part in bundles_of("dane"))
        for bundle in runs[:10]:
            land_as(copied.lake, OLD, bundle)
        land_some_kernels(copied.lake, BARE, benchmark[0])
        instance.add_dynamic_partitions("machines", [OLD, BARE])
        for machine in (OLD, BARE):
            # As a landing does it, in one run: a step that leaves something out must not hold up what can do without.
            steps = {"eval_transfer__scores": {"config": {"seeds": 1, "shots": [0, 5]}}}
            run(instance, copied.lake, "refresh_machine", (machine,), steps)
        yield Site(copied.lake, instance)


def test_profiles_alone_give_a_model_that_starts_from_a_machine_that_shares_runs(site: Site) -> None:
    assert versions(f"perf-target-{OLD}") == {"champion": 1}
    assert tags_of(f"perf-target-{OLD}", 1)["kind"] == "target"
    adapted, _ = load_target(OLD, 1)
    (view,) = adapted.views.values()
    assert view.shots == 10
    assert view.source in ("quartz", "ruby")
    assert view.model.prior is None
    answers, left_out = Predictor(site.lake).predict_everywhere([_run_of(site.lake, view.source)])
    assert OLD in {answer.target_machine for answer in answers}
    assert not any(OLD in line for line in left_out)


def _run_of(lake: Lake, machine: str):  # type: ignore[no-untyped-def]
    from perf_assets.api import open_lake

    return open_lake(lake.root).runs(machine)[0]


def test_what_is_missing_is_one_sentence_everywhere(site: Site) -> None:
    kernels = Readiness.of(Fleet(site.lake), BARE).kernels
    assert not kernels.is_done
    assert " of " in kernels.summary
    assert "are missing" in kernels.summary
    described, made = (
        site.check("model_amm__machines", "is_described", BARE),
        site.check("model_target__adapted", "is_made", BARE),
    )
    assert not described.passed
    assert described.description == kernels.sentence
    assert not made.passed
    assert kernels.summary in str(made.description)
    page = (site.lake.reports / f"machine-{BARE}.html").read_text()
    assert kernels.summary in page
    for words in (["plan", BARE], ["amm", "--machine", BARE], ["predict", "--from", "quartz", "--to", BARE]):
        refused = CliRunner().invoke(cli, words)
        assert refused.exit_code != 0
        assert kernels.summary in str(refused.exception), words
    doctor = CliRunner().invoke(cli, ["doctor", "--json"])
    assert kernels.summary in doctor.output
    (known,) = (one for one in Predictor(site.lake).machines() if one.machine == BARE)
    assert kernels.summary in known.next_step


def test_checks_pass_where_nothing_is_missing(site: Site) -> None:
    assert site.check("model_target__adapted", "is_made", OLD).passed
    assert not site.check("model_amm__machines", "is_described", OLD).passed, "it has no RAJAPerf"


def test_what_a_person_chose_stays_until_it_is_unpinned(site: Site) -> None:
    name = f"perf-target-{OLD}"
    promote(site.lake, name, 1)
    assert pin_of(name).startswith("version 1 by ")
    for bundle in list(bundles_of("dane")[1])[10:14]:
        land_as(site.lake, OLD, bundle)
    run(site.instance, site.lake, "ingest_machine", (OLD,))
    run(
        site.instance,
        site.lake,
        "adapt_machine",
        (OLD,),
        {"eval_transfer__scores": {"config": {"seeds": 1, "shots": [0]}}},
    )
    assert versions(name) == {"champion": 1, "challenger": 2}
    assert f"perf-assets unpin {name}" in str(judge_machine(Fleet(site.lake), OLD)["reason"].iloc[-1])
    pinned = pin_of(name)
    assert unpin(name) == [f"champion: {pinned}"]
    assert not pin_of(name)
