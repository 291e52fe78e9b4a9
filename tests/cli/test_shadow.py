"""`perf-assets shadow`: what predictions would have saved a centre, by its own log."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from perf_assets.cli.main import cli
from perf_assets.core.errors import BadInputError
from perf_assets.workflows.scheduling.shadow import ASSUMED, PLANS
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
