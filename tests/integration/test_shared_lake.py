"""Two hosts on one lake, each with a Dagster home, a temporary folder and a warehouse of its own."""

import json
import subprocess
from pathlib import Path

import pytest

from perf_assets.storage.record import MachineRecord
from tests.defs.conftest import land_perf_stat
from tests.installation import PROGRAM, Installation, install

pytestmark = pytest.mark.integration
BUNDLES = 6


class Host(Installation):
    """One of them."""

    @property
    def warehouse(self) -> Path:
        return self.root / "warehouse.duckdb"

    def environment(self) -> dict[str, str]:
        (self.root / "tmp").mkdir(exist_ok=True)
        own = {"PERF_ASSETS_WAREHOUSE": str(self.warehouse), "TMPDIR": str(self.root / "tmp")}
        return super().environment() | own | {"PERF_ASSETS_LAKE": str(self.root.parent / "lake")}


def counts(machines: list[dict[str, object]]) -> list[dict[str, object]]:
    return [{key: value for key, value in row.items() if key != "seconds"} for row in machines]


def test_two_hosts_ingest_at_once_and_each_has_everything(tmp_path: Path) -> None:
    hosts = [Host(install(tmp_path / name).root) for name in ("one", "two")]
    lake = Installation(tmp_path).lake
    for number in range(BUNDLES):
        land_perf_stat(lake, "quartz", f"b{number}", 1000 + number)
    both = [
        subprocess.Popen(
            [PROGRAM, "ingest", "--json"],
            env=host.environment(),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for host in hosts
    ]
    answers = [process.communicate(timeout=500) for process in both]
    assert [process.returncode for process in both] == [0, 0], answers
    first, second = (counts(json.loads(out)["machines"]) for out, _ in answers)
    assert first == second
    assert first[0]["bundles"] == first[0]["runs"] == BUNDLES
    assert len(MachineRecord(lake.record, "quartz").ledger()) == BUNDLES
    assert not lake.warehouse.exists()
    assert all(host.warehouse.is_file() for host in hosts)

    land_perf_stat(lake, "ruby", "b1", 5)
    hosts[0].json("ingest")
    seen = {row["machine"] for row in hosts[1].json("counters")["counters"]}
    assert seen == {"quartz", "ruby"}, "the second host's warehouse follows the record when it is opened"
