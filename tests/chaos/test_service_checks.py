"""Runs that are stuck and slots that are held are found."""

import dagster as dg
import psutil
import pytest
from mlflow import MlflowClient

from chaos import service_checks
from chaos.faults import WEIGHTS, plan
from tests.installation import Installation

POOL = "warehouse"


@pytest.mark.slow
def test_runs_that_have_ended_are_not_stuck_and_others_are() -> None:
    with dg.instance_for_test() as instance:
        instance.add_run(dg.DagsterRun("done", status=dg.DagsterRunStatus.SUCCESS))
        instance.add_run(dg.DagsterRun("failed", status=dg.DagsterRunStatus.FAILURE))
        assert list(service_checks.runs(instance)) == []
        for status in (dg.DagsterRunStatus.STARTED, dg.DagsterRunStatus.STARTING, dg.DagsterRunStatus.NOT_STARTED):
            run = instance.add_run(dg.DagsterRun("stuck", status=status, tags={"dagster/partition": "quartz"}))
            (line,) = service_checks.runs(instance)
            assert line.endswith(f"(stuck, quartz) is {status.value}")
            instance.delete_run(run.run_id)


@pytest.mark.slow
def test_a_slot_of_an_ended_run_is_a_zombie() -> None:
    with dg.instance_for_test() as instance:
        storage = instance.event_log_storage
        storage.set_concurrency_slots(POOL, 1)
        run = instance.add_run(dg.DagsterRun("holds", status=dg.DagsterRunStatus.STARTED))
        other = instance.add_run(dg.DagsterRun("waits", status=dg.DagsterRunStatus.STARTED))
        assert storage.claim_concurrency_slot(POOL, run.run_id, "load_warehouse").is_claimed
        assert not storage.claim_concurrency_slot(POOL, other.run_id, "load_warehouse").is_claimed
        assert list(service_checks.slots(instance)) == []
        for ended in (run, other):
            instance.report_run_failed(ended)
        told = list(service_checks.slots(instance))
        for ended, what in ((run, "holds a slot"), (other, "waits for a slot")):
            assert f"pool {POOL}: run {ended.run_id[:8]} {what}, but it is FAILURE" in told
        for ended in (run, other):
            storage.free_concurrency_slots_for_run(ended.run_id)
        assert list(service_checks.slots(instance)) == []


def test_services_that_do_not_run_and_processes_that_do() -> None:
    assert list(service_checks.services(None)) == ["perf-assets up does not run"]
    assert list(service_checks.stopped(0, [])) == []
    bad, left = service_checks.stopped(-9, [psutil.Process()])
    assert bad == "perf-assets up ended with -9"
    assert "still runs" in left


@pytest.mark.integration
def test_a_registry_without_a_champion_and_a_doctor_who_is_not_content(installation: Installation) -> None:
    assert list(service_checks.champions(installation)) == ["no machine has a champion"]
    client = MlflowClient(f"sqlite:///{installation.lake.root / 'mlflow' / 'mlflow.db'}")
    client.create_registered_model("perf-target-quartz")
    client.create_model_version("perf-target-quartz", str(installation.lake.root / "gone"))
    client.set_registered_model_alias("perf-target-quartz", "champion", "1")
    (line,) = service_checks.champions(installation)
    assert line.startswith("perf-target-quartz@champion: ")
    assert list(service_checks.doctor(installation)) == []
    (installation.lake.landing / "quartz" / ".incoming-x").mkdir(parents=True)
    assert any("1 unfinished landings" in line for line in service_checks.doctor(installation))


def test_the_plan_follows_its_seed_and_leaves_nothing_out() -> None:
    kinds = list(WEIGHTS)

    def first(seed: int, count: int) -> list[object]:
        return [planned for planned, _ in zip(plan(seed, kinds), range(count), strict=False)]

    assert first(7, 50) == first(7, 50) != first(8, 50)
    assert {planned.kind for planned in first(7, len(kinds))} == set(kinds)  # type: ignore[attr-defined]
