"""Runs of a lake as Thicket reads them, with Thicket itself."""

import json
import re
from pathlib import Path

import pytest
from click.testing import CliRunner

from perf_assets.cli.main import cli
from perf_assets.core.errors import UnknownError
from perf_assets.readers.bundle import read_bundle
from perf_assets.readers.read import read
from perf_assets.storage.lake import Lake
from perf_assets.workflows.exports.thicket import thicket_json
from perf_assets.workflows.fleet import open_warehouse
from perf_assets.workflows.landing.ingest import ingest_machine
from tests.peers import thicket_of_json
from tests.readers.test_caliper_profile import _ONE_REGION, stream

RAJAPERF = Path(__file__).parents[1] / "data" / "rajaperf" / "epyc-vm_2024" / "subset_t2_sizefact"


@pytest.fixture
def lake(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Lake:
    """A run with regions, one with counters alone, and one of RAJAPerf."""
    monkeypatch.setenv("PERF_ASSETS_LAKE", str(tmp_path / "lake"))
    told = "cluster=opal cmdline=[/home/ted/kripke,-n,1] jobsize=1 elapsed_time=3 user=ted compiler=gcc"
    inner = "__rec=node,id=51,attr=21,data=solve,parent=50\n__rec=ctx,ref=51,attr=40,data=1500000000\n"
    counted = tmp_path / "perf.csv"
    counted.write_text("5,,instructions,7,100.00,,\n")
    for arguments in (
        [stream(tmp_path, _ONE_REGION + inner, told)],
        [counted, "--machine", "opal", "--app", "amg", "--wall-seconds", "2"],
        [RAJAPERF, "--machine", "epyc-vm"],
    ):
        done = CliRunner().invoke(cli, ["land", *map(str, arguments)])
        assert done.exit_code == 0, done.output
    lake = Lake.default()
    warehouse = open_warehouse(lake)
    for machine in lake.machines():
        ingest_machine(lake, machine, read_bundle)
        warehouse.load_machine(machine)
        warehouse.derive_machine(machine)
    return lake


@pytest.mark.slow
def test_thicket_reads_regions_counters_and_kernels(lake: Lake, tmp_path: Path) -> None:
    out = tmp_path / "runs.json"
    done = CliRunner().invoke(cli, ["export", "thicket", "--out", str(out), "--json"])
    assert done.exit_code == 0, done.output
    assert not re.search(r"\bted\b|/home", out.read_text())
    rows, metadata = thicket_of_json(out)
    assert json.loads(done.stdout)["profiles"] == len(metadata)
    by_path = {path: row for (_, path), row in rows.items()}
    assert by_path["kripke"]["wall_seconds"] == 3
    assert by_path["kripke/main"]["time"] == 2.5
    assert by_path["kripke/main/solve"]["time"] == 1.5
    assert by_path["amg"]["instructions"] == 5
    kripke = next(facts for facts in metadata if facts["app"] == "kripke")
    assert (kripke["machine"], kripke["ranks"], kripke["args"], kripke["environment"]) == ("opal", 1, "-n 1", "gcc")
    kernels = {key: row for key, row in rows.items() if "seconds_per_rep" in row}
    timings = [timing for timing in read(RAJAPERF).timings if timing.is_valid]
    assert len(kernels) == len(timings)
    assert sorted(row["seconds_per_rep"] for row in kernels.values()) == pytest.approx(
        sorted(timing.seconds_per_rep or 0 for timing in timings)
    )


@pytest.mark.slow
def test_one_machine_or_one_application(lake: Lake) -> None:
    assert thicket_json(lake, "opal")[1] == 2
    assert thicket_json(lake, app="amg")[1] == 1
    valid = [timing for timing in read(RAJAPERF).timings if timing.is_valid]
    profiles = {(timing.run, timing.variant, timing.tuning) for timing in valid}
    assert len({timing.problem_size for timing in valid}) > 1, "kernels of one profile have sizes of their own"
    assert thicket_json(lake, app="RAJAPerf")[1] == thicket_json(lake, "epyc-vm")[1] == len(profiles)
    with pytest.raises(UnknownError, match="no runs of anything on nowhere"):
        thicket_json(lake, "nowhere")
