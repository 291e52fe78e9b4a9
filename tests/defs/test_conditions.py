"""What is made again by itself when something changed: what depends on it, and nothing else."""

from collections.abc import Iterable, Iterator
from functools import cache

import dagster as dg
import pytest

from perf_assets.core.tables.datasets import DATASET_VERDICTS
from perf_assets.core.tables.health import HEALTH
from perf_assets.core.tables.landing import BUNDLES, RECORD_TABLES, SPECS, TIMINGS
from perf_assets.core.tables.models import AMMS, TRANSFER_SCORES
from perf_assets.core.tables.runs import DERIVED_TABLES, FEATURES, VECTOR_FEATURES_TABLE
from perf_assets.core.tables.schedule import TURNAROUND
from perf_assets.core.tables.vectors import VECTOR_VERDICTS
from perf_assets.core.tables.verdicts import VERDICTS
from perf_assets.defs.build import build_definitions
from perf_assets.defs.machines.assets import ENCODER, MAP
from perf_assets.defs.reports.fleet import FLEET_PAGE
from perf_assets.defs.sources.assets import WITH_AMM, WITHOUT_AMM
from perf_assets.defs.targets.assets import ADAPTED, PAGE
from perf_assets.defs.transfers.assets import ADAPTED as TRANSFER
from perf_assets.defs.vectors.assets import VECTOR
from perf_assets.storage.datasets import ROWS
from tests.dagster_events import evaluate_checks, plan_asset

MACHINES = ["quartz", "ruby"]
OF_TARGET = {ADAPTED, VERDICTS.name, TRANSFER_SCORES.name, PAGE}
CHECKED = (BUNDLES, *RECORD_TABLES, *DERIVED_TABLES)


@cache
def defined() -> dg.Definitions:
    """Put together once for all tests."""
    return build_definitions()


class Fleet:
    """Two machines through which everything went once."""

    def __init__(self, instance: dg.DagsterInstance) -> None:
        self.instance = instance
        self.definitions = defined()
        self.cursor = None
        instance.add_dynamic_partitions("machines", MACHINES)
        self.made([ENCODER, WITH_AMM, WITHOUT_AMM, MAP, FLEET_PAGE])
        for machine in MACHINES:
            names = [table.name for table in CHECKED]
            self.made([*names, "core_runs__counters_wide", AMMS.name, HEALTH.name, *OF_TARGET], machine)
        assert self.asked_for() == {}
        assert self.asked_for() == {}

    def made(self, assets: Iterable[str], machine: str | None = None) -> None:
        """Materialised, and where it has blocking checks, checked after that."""
        for name in assets:
            self.instance.report_runless_asset_event(dg.AssetMaterialization(name, partition=machine))
            if machine is not None and name in {table.name for table in CHECKED}:
                self.checked(name, machine, passed=True)

    def checked(self, asset: str, machine: str, *, passed: bool) -> None:
        """The blocking checks of what was materialised last, in a run of their own."""
        evaluate_checks(self.instance, asset, machine, ["schema", "key"], passed=passed)

    def asked_for(self) -> dict[str, set[str | None]]:
        """What one tick asks for: machines by asset."""
        result = dg.evaluate_automation_conditions(self.definitions, self.instance, cursor=self.cursor)
        self.cursor = result.cursor
        found = {}
        for key in self.definitions.resolve_asset_graph().get_all_asset_keys():
            partitions = result.get_requested_partitions(key)
            if partitions:
                found[key.to_user_string()] = set(partitions)
        return found


@pytest.fixture
def fleet() -> Iterator[Fleet]:
    with dg.DagsterInstance.ephemeral() as instance:
        yield Fleet(instance)


@pytest.mark.slow
def test_new_runs_of_a_machine_adapt_that_machine(fleet: Fleet) -> None:
    fleet.made([FEATURES.name], "ruby")
    asked = fleet.asked_for()
    assert {name: asked[name] for name in OF_TARGET} == {name: {"ruby"} for name in OF_TARGET}
    assert not {ENCODER, WITH_AMM, AMMS.name} & asked.keys()


@pytest.mark.slow
def test_new_benchmark_runs_describe_and_adapt_that_machine(fleet: Fleet) -> None:
    fleet.made([TIMINGS.name], "ruby")
    asked = fleet.asked_for()
    assert asked[AMMS.name] == asked[ADAPTED] == {"ruby"}
    assert not {ENCODER, WITH_AMM} & asked.keys()


@pytest.mark.slow
def test_new_source_models_adapt_all_machines(fleet: Fleet) -> None:
    fleet.made([WITH_AMM])
    asked = fleet.asked_for()
    assert asked[ADAPTED] == asked[VERDICTS.name] == set(MACHINES)
    assert AMMS.name not in asked
    assert fleet.asked_for() == {}, "asked for once"


@pytest.mark.slow
def test_a_new_encoder_has_described_all_machines_itself(fleet: Fleet) -> None:
    fleet.made([ENCODER])
    assert not fleet.asked_for()
    for machine in MACHINES:
        fleet.made([AMMS.name], machine)
    assert fleet.asked_for()[ADAPTED] == set(MACHINES)


@pytest.mark.slow
def test_a_new_machine_trains_no_source_models(fleet: Fleet) -> None:
    fleet.instance.add_dynamic_partitions("machines", ["dane"])
    fleet.made([BUNDLES.name, TIMINGS.name, FEATURES.name], "dane")
    assert not {ENCODER, WITH_AMM, WITHOUT_AMM} & fleet.asked_for().keys()


@pytest.mark.slow
def test_a_blocking_check_that_fails_holds_up_its_machine_only(fleet: Fleet) -> None:
    fleet.made([FEATURES.name], "ruby")
    fleet.checked(FEATURES.name, "ruby", passed=False)
    assert "ruby" not in {machine for machines in fleet.asked_for().values() for machine in machines}
    fleet.made([WITH_AMM])
    assert fleet.asked_for()[ADAPTED] == {"quartz"}
    fleet.checked(FEATURES.name, "ruby", passed=True)
    assert fleet.asked_for()[ADAPTED] == {"ruby"}


@pytest.mark.slow
def test_a_landed_machine_joins_the_vector_model_and_new_verdicts_follow(fleet: Fleet) -> None:
    fleet.instance.add_dynamic_partitions("machines", ["dane"])
    fleet.made([BUNDLES.name, TIMINGS.name, SPECS.name, VECTOR_FEATURES_TABLE.name], "dane")
    asked = fleet.asked_for()
    assert {VECTOR, VECTOR_VERDICTS.name} <= asked.keys()
    assert FLEET_PAGE not in asked, "the step that makes no vector model would skip it in the same run"
    assert fleet.asked_for().keys() == {FLEET_PAGE}
    assert fleet.asked_for() == {}, "asked for once"


@pytest.mark.slow
def test_rows_of_a_dataset_ask_for_a_model_and_only_a_model_for_a_verdict(fleet: Fleet) -> None:
    fleet.instance.add_dynamic_partitions("datasets", ["alone"])
    fleet.made([ROWS], "alone")
    assert DATASET_VERDICTS.name not in fleet.asked_for(), "a dataset without a model has nothing to judge"
    fleet.made([TRANSFER], "alone")
    assert fleet.asked_for()[DATASET_VERDICTS.name] == {"alone"}


@pytest.mark.slow
def test_the_scheduling_experiment_follows_verdicts_once_it_was_made(fleet: Fleet) -> None:
    fleet.made([VERDICTS.name], "ruby")
    assert TURNAROUND.name not in fleet.asked_for()
    fleet.made([TURNAROUND.name])
    assert TURNAROUND.name not in fleet.asked_for()
    fleet.made([VERDICTS.name], "ruby")
    assert TURNAROUND.name in fleet.asked_for()


def page_is_planned(fleet: Fleet, machine: str) -> dg.DagsterRun:
    """A run that is to write the page of a machine."""
    run = fleet.instance.add_run(dg.DagsterRun("refresh_machine", status=dg.DagsterRunStatus.STARTED))
    plan_asset(fleet.instance, run, PAGE, machine)
    return run


@pytest.mark.slow
def test_what_follows_waits_for_the_end_of_the_run_that_a_landing_started(fleet: Fleet) -> None:
    run = page_is_planned(fleet, "ruby")
    # The model of the machine is made; its verdict is about to be.
    fleet.made([AMMS.name, FEATURES.name, ADAPTED], "ruby")
    assert fleet.asked_for() == {}
    fleet.made([VERDICTS.name, TRANSFER_SCORES.name, PAGE], "ruby")
    fleet.instance.report_run_canceled(run)
    asked = fleet.asked_for()
    assert not OF_TARGET & asked.keys(), "made by that run"
    assert MAP in asked
    assert FLEET_PAGE in {*asked, *fleet.asked_for()}


@pytest.mark.slow
def test_a_page_that_a_run_has_left_is_asked_for_a_tick_later(fleet: Fleet) -> None:
    run = page_is_planned(fleet, "ruby")
    fleet.made([TRANSFER_SCORES.name], "ruby")
    assert fleet.asked_for() == {}
    fleet.instance.report_run_canceled(run)
    assert PAGE not in fleet.asked_for(), "where the run had made it, this tick might not have seen that"
    assert fleet.asked_for()[PAGE] == {"ruby"}


def test_rows_of_a_dataset_ask_for_no_verdict_before_there_is_a_model(fleet: Fleet) -> None:
    fleet.instance.add_dynamic_partitions("datasets", ["spechpc"])
    fleet.made(["core_datasets__rows"], "spechpc")
    assert fleet.asked_for() == {}
    fleet.made(["model_transfer__adapted"], "spechpc")
    assert fleet.asked_for() == {"eval_dataset__verdicts": {"spechpc"}}
