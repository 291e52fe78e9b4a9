"""A lake on a file system that several hosts share, and that has no locks of its own.

Hosts are processes that believe to run on different systems, and for which the operating system refuses to lock.
"""

import errno
import fcntl
import multiprocessing
import os
import random
import signal
import time
import traceback
from collections import Counter
from collections.abc import Callable
from multiprocessing.process import BaseProcess
from pathlib import Path

import duckdb
import pandas as pd
import pyarrow.dataset as ds
import pytest

from perf_assets.core.errors import BusyError
from perf_assets.core.manifest import Manifest
from perf_assets.core.tables.landing import BUNDLES, COUNTERS
from perf_assets.core.tables.models import BEHAVES_LIKE
from perf_assets.infra import leases
from perf_assets.infra.leases import leased
from perf_assets.storage.lake import Lake, LandedBundle, landed_digests
from perf_assets.storage.landing import verified_manifest
from perf_assets.storage.record import MachineRecord, RecordLimits
from perf_assets.storage.results import store
from perf_assets.storage.warehouse import Warehouse
from perf_assets.workflows.landing.ingest import ingest_machine
from tests.conftest import profile_facts
from tests.storage.conftest import Content, land_counters, read_counters

FORK = multiprocessing.get_context("fork")
MACHINES = ("quartz", "ruby")
FEW_PER_COMMIT = RecordLimits(bundles_per_commit=3)
LEASE_SECONDS = 1.5


lock_locally = fcntl.flock


def no_locks(descriptor: int, operation: int) -> None:
    """The lake is on a file system without locks; the disk of each host has them."""
    if "/lake/" in str(Path(f"/proc/self/fd/{descriptor}").readlink()):
        raise OSError(errno.ENOLCK, "No locks available")
    lock_locally(descriptor, operation)


def become(host: str, folder: Path) -> None:
    """Let this process run on another host."""
    (folder / host).mkdir(exist_ok=True)
    os.environ |= {
        "PERF_ASSETS_LAKE": str(folder / "lake"),
        "PERF_ASSETS_WAREHOUSE": str(folder / host / "warehouse.duckdb"),
        "TMPDIR": str(folder / host),
    }
    leases.kernel.cache_clear()
    leases.kernel = lambda: host
    leases.LEASE_SECONDS, leases.BEAT_SECONDS, leases._POLL_SECONDS = LEASE_SECONDS, 0.2, 0.01
    fcntl.flock = no_locks


def start(host: str, folder: Path, work: Callable[[Lake], None]) -> BaseProcess:
    def run() -> None:
        become(host, folder)
        try:
            work(Lake(folder / "lake"))
        except BaseException:
            traceback.print_exc()
            os._exit(1)
        os._exit(0)

    process = FORK.Process(target=run)
    process.start()
    return process


def ended(process: BaseProcess) -> int | None:
    process.join(90)
    return process.exitcode


def slowly(directory: Path, manifest: Manifest, digest: str, name: str) -> Content:
    time.sleep(0.002)
    return read_counters(directory, manifest, digest, name)


def land_and_ingest(seed: int) -> Callable[[Lake], None]:
    """Bundles of this host, and some that every host lands, now and then with other content."""

    def work(lake: Lake) -> None:
        chance = random.Random(seed)
        for number in range(30):
            machine = chance.choice(MACHINES)
            if chance.random() < 0.3:
                name = f"common{chance.randrange(4)}"
                land_counters(lake, name, profile_facts(machine), {"INS": chance.randrange(3)})
            else:
                land_counters(lake, f"own{seed}-{number}", profile_facts(machine), {"INS": 100 * seed + number})
            if chance.random() < 0.3:
                ingest_machine(lake, chance.choice(MACHINES), slowly, limits=FEW_PER_COMMIT)
            if chance.random() < 0.1:
                Warehouse(lake).load_machine(chance.choice(MACHINES))

    return work


def finish(lake: Lake) -> None:
    for machine in MACHINES:
        ingest_machine(lake, machine, read_counters, limits=FEW_PER_COMMIT)
        Warehouse(lake).load_machine(machine)


def check_exactly_once(lake: Lake, machine: str) -> None:
    """Ledger and rows are those of what stands in the landing zone."""
    landed = dict(landed_digests(lake, machine))
    record = MachineRecord(lake.record, machine)
    ledger = {row["bundle"]: row for row in record.ledger().to_pylist()}
    assert len(ledger) == len(record.ledger())
    assert {name: row["bundle_digest"] for name, row in ledger.items()} == landed
    assert {row["status"] for row in ledger.values()} <= {"ingested", "duplicate"}
    counting: Counter[str] = Counter()
    for part in record.live_parts(COUNTERS):
        for row in ds.dataset(part).to_table().to_pylist():
            if ledger[row["bundle"]]["record_part"] == part.stem:
                counting[row["bundle"]] += 1
                assert row["bundle_digest"] == landed[row["bundle"]]
    assert counting == {name: 1 for name, row in ledger.items() if row["status"] == "ingested"}
    held = [row["bundle_digest"] for row in ledger.values() if row["status"] == "ingested"]
    assert sorted(held) == sorted(set(landed.values())), "one bundle of each content counts"


def warehouse_rows(folder: Path, host: str) -> list[tuple[object, ...]]:
    with duckdb.connect(str(folder / host / "warehouse.duckdb"), read_only=True) as connection:
        ledger = connection.execute(f"SELECT machine, bundle, bundle_digest FROM {BUNDLES.name} ORDER BY ALL")
        rows = ledger.fetchall()
        counters = f"SELECT machine, bundle, counter, value_sum FROM {COUNTERS.name} ORDER BY ALL"
        return [*rows, *connection.execute(counters).fetchall()]


@pytest.mark.slow
@pytest.mark.parametrize("seed", [0, 3])
def test_hosts_that_land_and_ingest_at_once_lose_nothing(tmp_path: Path, seed: int) -> None:
    lake = Lake(tmp_path / "lake")
    hosts = {name: seed + number for number, name in enumerate(("one", "two", "three"))}
    processes = {name: start(name, tmp_path, land_and_ingest(number)) for name, number in hosts.items()}
    time.sleep(random.Random(seed).uniform(0.2, 0.6))
    processes["three"].kill()
    assert {name: ended(process) for name, process in processes.items()} == {
        "one": 0,
        "two": 0,
        "three": -signal.SIGKILL,
    }
    for host in ("one", "two"):
        assert ended(start(host, tmp_path, finish)) == 0
    for machine in MACHINES:
        check_exactly_once(lake, machine)
        own = [name for name in dict(landed_digests(lake, machine)) if name.startswith("own")]
        assert len(own) > 10
    assert warehouse_rows(tmp_path, "one") == warehouse_rows(tmp_path, "two")
    assert not (lake.root / "warehouse.duckdb").exists()
    assert not list(lake.record.rglob("*.tmp"))


def test_a_host_that_dies_while_ingesting_is_followed_by_another(tmp_path: Path) -> None:
    lake = Lake(tmp_path / "lake")
    for number in range(8):
        land_counters(lake, f"b{number}", profile_facts(), {"INS": number})

    def die(directory: Path, manifest: Manifest, digest: str, name: str) -> Content:
        if name == "b5":
            os.kill(os.getpid(), signal.SIGKILL)
        return read_counters(directory, manifest, digest, name)

    def ingest_and_die(shared: Lake) -> None:
        ingest_machine(shared, "quartz", die, limits=FEW_PER_COMMIT)

    assert ended(start("one", tmp_path, ingest_and_die)) == -signal.SIGKILL
    assert len(MachineRecord(lake.record, "quartz").ledger()) == 3, "what was committed before counts"
    begun = time.monotonic()
    assert ended(start("two", tmp_path, finish)) == 0
    assert time.monotonic() - begun >= LEASE_SECONDS, "another host's lease is not taken before it is old"
    check_exactly_once(lake, "quartz")


def test_a_stalled_host_publishes_nothing_after_it_was_followed(tmp_path: Path) -> None:
    lake = Lake(tmp_path / "lake")
    for number in range(3):
        land_counters(lake, f"b{number}", profile_facts(), {"INS": number})

    def stall(directory: Path, manifest: Manifest, digest: str, name: str) -> Content:
        if name == "b2":
            os.kill(os.getpid(), signal.SIGSTOP)
        return read_counters(directory, manifest, digest, name)

    def ingest_and_stall(shared: Lake) -> None:
        with pytest.raises(BusyError, match=r"taken over by process \d+ on"):
            ingest_machine(shared, "quartz", stall, limits=FEW_PER_COMMIT)

    stalled = start("one", tmp_path, ingest_and_stall)
    assert stalled.pid is not None
    os.waitpid(stalled.pid, os.WUNTRACED)
    land_counters(lake, "b0", profile_facts(), {"INS": 77})
    assert ended(start("two", tmp_path, finish)) == 0
    before = MachineRecord(lake.record, "quartz").digest()
    os.kill(stalled.pid, signal.SIGCONT)
    assert ended(stalled) == 0
    assert MachineRecord(lake.record, "quartz").digest() == before
    check_exactly_once(lake, "quartz")


def test_a_killed_process_of_this_host_is_followed_at_once(lake: Lake) -> None:
    lock = lake.locks / "quartz.lock"

    def take_and_die() -> None:
        with leased(lock, "work", 0):
            os.kill(os.getpid(), signal.SIGKILL)

    process = FORK.Process(target=take_and_die)
    process.start()
    assert ended(process) == -signal.SIGKILL
    with leased(lock, "work", 0):
        pass


def test_who_holds_a_lease_is_told(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    lock = lake.locks / "quartz.lock"
    monkeypatch.setattr(fcntl, "flock", no_locks)
    with leased(lock, "work", 0) as lease:
        assert leases.holder(lock) == f"process {os.getpid()} on {os.uname().nodename}"
        with (
            pytest.raises(BusyError, match=r"work is busy: process \d+ on .* taken over after 40 s"),
            leased(lock, "work", 0),
        ):
            pass
        lease.check()
    assert leases.holder(lock) is None
    assert len(list((lake.locks / "quartz.leases").iterdir())) == 1


@pytest.mark.slow
def test_what_models_make_on_one_host_is_in_the_warehouse_of_another(
    lake: Lake, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PERF_ASSETS_LAKE", str(lake.root))
    land_counters(lake, "b1", profile_facts(), {"INS": 1})
    ingest_machine(lake, "quartz", read_counters)

    def shares(host: str) -> list[float]:
        monkeypatch.setenv("PERF_ASSETS_WAREHOUSE", str(tmp_path / host / "warehouse.duckdb"))
        warehouse = Warehouse(lake)
        warehouse.catch_up()
        return [float(value) for value in warehouse.frame(f"SELECT attention_ratio FROM {name}")["attention_ratio"]]

    name = BEHAVES_LIKE.name
    assert shares("one") == shares("two") == []
    row = {
        "machine": "quartz",
        "app": "Kripke",
        "kernel": "DAXPY",
        "attention_ratio": 0.5,
        "runs_count": 1,
        "is_simulated": False,
    }
    for share in (0.5, 0.25):
        monkeypatch.setenv("PERF_ASSETS_WAREHOUSE", str(tmp_path / "one" / "warehouse.duckdb"))
        store(lake, Warehouse(lake), BEHAVES_LIKE, pd.DataFrame([row | {"attention_ratio": share}]))
        assert shares("two") == shares("one") == [share]


def test_hosts_that_land_the_same_name_leave_one_whole_bundle(tmp_path: Path) -> None:
    def land_often(seed: int) -> Callable[[Lake], None]:
        def work(lake: Lake) -> None:
            for number in range(60):
                land_counters(lake, "b1", profile_facts(), {"INS": 1000 * seed + number})

        return work

    processes = [start(f"host{seed}", tmp_path, land_often(seed)) for seed in range(3)]
    assert [ended(process) for process in processes] == [0, 0, 0]
    folder = tmp_path / "lake" / "landing" / "quartz"
    assert [path.name for path in folder.iterdir()] == ["b1"]
    verified_manifest(LandedBundle(folder / "b1"), "quartz")
