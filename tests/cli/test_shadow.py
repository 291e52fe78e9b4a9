"""`perf-assets shadow`: what predictions would have saved a centre, by its own log."""

import json
from pathlib import Path

import pandas as pd
import pytest
from click.testing import CliRunner, Result

from perf_assets.cli.main import cli
from perf_assets.core.errors import BadInputError
from perf_assets.features.counters.derivations import deriving
from perf_assets.readers.bundle import read_bundle
from perf_assets.scheduling.traces.read import read_trace
from perf_assets.storage.lake import Lake
from perf_assets.storage.warehouse import Warehouse
from perf_assets.workflows.landing.ingest import ingest_machine
from perf_assets.workflows.scheduling.shadow import ASSUMED, MODELLED, OF_MODELS, PLANS
from tests.scheduling.traces import drawn_trace, line, write

pytestmark = pytest.mark.xdist_group("scheduling")  # one worker compiles the simulator


@pytest.fixture(scope="module")
def log(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three hundred jobs on eight nodes; it says so, and when it begins."""
    trace = drawn_trace(300, 8, 0).at_load(0.95, 8)
    jobs = zip(trace.submit, trace.run, trace.nodes, trace.request, trace.user, strict=True)
    lines = [line(n, int(s), int(r), int(w), int(q), user=int(u)) for n, (s, r, w, q, u) in enumerate(jobs)]
    return write(tmp_path_factory.mktemp("log") / "centre.swf", "; UnixStartTime: 1735516800", *lines)


def run(*arguments: str | Path) -> Result:
    return CliRunner().invoke(cli, ["shadow", *map(str, arguments)])


def test_savings_are_relative_to_how_it_was(log: Path, tmp_path: Path) -> None:
    done = run(log, "--replays", "2", "--page", tmp_path / "page.html", "--json")
    assert done.exit_code == 0, done.output
    document = json.loads(done.stdout)
    assert (document["jobs"], document["nodes"], document["assumed"]) == (300, 8, list(ASSUMED))
    savings = {one["plan"]: one for one in document["savings"]}
    before, *_, best = (savings[plan] for plan in PLANS)
    assert before["saved_wait_hours"] == {"mean": 0, "low": 0, "high": 0}
    saved = best["saved_wait_hours"]
    assert 0 < saved["low"] <= saved["mean"] <= saved["high"]
    gain = (before["wait_hours_per_job"] - best["wait_hours_per_job"]) * 300
    assert saved["mean"] == pytest.approx(gain)
    page = (tmp_path / "page.html").read_text()
    assert "What this assumes" in page
    assert "centre.swf" in page


def test_people_see_a_table_and_what_is_assumed(log: Path) -> None:
    done = run(log, "--replays", "1", "--since", "2024-12-31")
    assert done.exit_code == 0, done.output
    assert "user statistics" in done.stdout
    assert ASSUMED[0] in done.stderr


@pytest.fixture
def named_log(log: Path, tmp_path: Path) -> Path:
    """The same jobs as Slurm tells them; every other one is of an application that the lake knows."""
    trace = read_trace(log)
    rows = ["JobID|JobName|User|Submit|Start|End|NNodes|Timelimit|State"]
    for number, (came, ran, nodes, asked) in enumerate(
        zip(trace.submit, trace.run, trace.nodes, trace.request, strict=True)
    ):
        submit, start, end = (
            pd.Timestamp(1735516800 + came + more, unit="s").isoformat() for more in (0, 60, 60 + ran)
        )
        limit = f"{int(asked) // 3600}:{int(asked) % 3600 // 60:02}:{int(asked) % 60:02}"
        app = "Wave" if number % 2 else "other"
        rows.append(f"{number}|{app}|u{number % 5}|{submit}|{start}|{end}|{nodes}|{limit}|COMPLETED")
    path = tmp_path / "sacct.txt"
    path.write_text("\n".join(rows) + "\n")
    return path


def test_jobs_of_modelled_applications_may_run_on_fewer_nodes(
    lake: Lake, log: Path, named_log: Path, tmp_path: Path
) -> None:
    runs = pd.DataFrame(
        {"app": "wave", "args": "--size 64", "ranks": nodes, "threads": 1, "nodes": nodes,
         "wall_seconds": 1000 * nodes**-0.2, "PAPI_TOT_INS": 1e9}
        for nodes in (1, 2, 4, 8)
    )  # fmt: skip
    runs.to_csv(tmp_path / "runs.csv", index=False)
    wanted = ["land", str(tmp_path / "runs.csv"), "--machine", "box", "--kind", "samples", "--target", "wall_seconds"]
    assert CliRunner().invoke(cli, wanted).exit_code == 0
    ingest_machine(lake, "box", read_bundle)
    warehouse = Warehouse(lake, deriving([]))
    warehouse.load_machine("box")
    warehouse.derive_machine("box")
    arguments = [named_log, "--nodes", "8", "--machine", "box", "--replays", "2"]
    done = run(*arguments, "--page", tmp_path / "page.html", "--json")
    assert done.exit_code == 0, done.output
    document = json.loads(done.stdout)
    assert document["modelled_jobs"] > 50
    assert document["assumed"] == [*ASSUMED, *OF_MODELS]
    savings = {one["plan"]: one for one in document["savings"]}
    ours, plain = savings[MODELLED], savings["user statistics"]
    # On fewer nodes jobs of this application need a fraction of the node-hours.
    assert ours["saved_node_hours"]["low"] > 0
    longer = ours["saved_wait_hours"]["mean"] - ours["saved_turnaround_hours"]["mean"]
    assert longer > 0
    assert plain["saved_turnaround_hours"] == pytest.approx(plain["saved_wait_hours"])
    assert ours["saved_wait_hours"]["mean"] > plain["saved_wait_hours"]["mean"]
    assert "wave: models of box know its widths" in (tmp_path / "page.html").read_text()
    for more, message in (
        ([named_log, "--nodes", "8", "--machines", "box=4"], "goes with --machine"),
        ([named_log, "--nodes", "8", "--machine", "bix"], "machine 'bix' is not known"),
        ([named_log, "--nodes", "8", "--machine", "box", "--machines", "x"], "give names with nodes"),
        ([log, "--machine", "box"], "has no names of applications"),
    ):
        refused = run(*more)
        assert isinstance(refused.exception, BadInputError), refused.output
        assert message in str(refused.exception)


def test_logs_that_cannot_be_replayed_are_said(log: Path, tmp_path: Path) -> None:
    plain = tmp_path / "plain.swf"
    plain.write_text("\n".join(line(n, n, 5, 2, 10) for n in range(4)))
    without = write(tmp_path / "without.swf", *(line(n, n, 5, 1) for n in range(4)))
    for arguments, message in (
        ([plain], "give --nodes"),
        ([plain, "--nodes", "1"], "no job"),
        ([without], "has no limits"),
        ([log, "--since", "2031-01-01"], "no job in the window"),
        ([plain, "--nodes", "4", "--since", "2031-01-01"], "does not say when it begins"),
    ):
        done = run(*arguments)
        assert isinstance(done.exception, BadInputError), done.output
        assert message in str(done.exception)


HEADER = "JobID|JobName|User|Submit|Start|End|NNodes|Timelimit|State"


def slurm_job(number: int, *, nodes: int = 2, limit: str = "01:00:00", minutes: int = 20) -> str:
    """A job every ten minutes, in the night in which clocks go forward in America."""
    submit = pd.Timestamp("2019-03-09T20:00:00") + pd.Timedelta(minutes=10 * number)
    start = submit + pd.Timedelta(minutes=1)
    end = start + pd.Timedelta(minutes=minutes)
    times = "|".join(time.isoformat() for time in (submit, start, end))
    return f"{number}|Kripke|u{number % 3}|{times}|{nodes}|{limit}|COMPLETED"


@pytest.mark.parametrize(
    ("jobs", "options", "kept", "said"),
    [
        ([slurm_job(n, nodes=64 if n % 5 == 0 else 2) for n in range(60)], [], 48, "left out: 12 jobs of more than 8"),
        ([slurm_job(n, minutes=-40 if n % 9 == 0 else 20) for n in range(60)], [], 53, "7 jobs that end before"),
        ([slurm_job(n) for n in range(60)], ["--zone", "America/Denver"], 52, "8 jobs at a local time that is"),
        ([slurm_job(n) for n in range(60)], [], 60, "local times without a zone are taken as they stand"),
        ([slurm_job(n, limit="Unknown" if n < 7 else "01:00:00") for n in range(60)], [], 60, "7 jobs have no limit"),
    ],
)  # fmt: skip
def test_what_is_wrong_with_jobs_is_counted_and_said(
    tmp_path: Path, jobs: list[str], options: list[str], kept: int, said: str
) -> None:
    path = tmp_path / "sacct.txt"
    path.write_text("\n".join([HEADER, *jobs]) + "\n")
    for command in (["shadow", "--replays", "1"], ["simulate", "--estimates", "user"]):
        done = CliRunner().invoke(cli, [command[0], str(path), "--nodes", "8", *command[1:], *options])
        assert done.exit_code == 0, done.output
        assert f"{kept} jobs on 8 nodes" in done.output
        assert said in done.stderr
