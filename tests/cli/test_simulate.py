"""`perf-assets simulate` as people use it."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from perf_assets.cli.main import cli
from perf_assets.core.errors import BadInputError
from tests.scheduling.traces import SACCT, line, sacct_line, write

pytestmark = pytest.mark.xdist_group("scheduling")  # one worker compiles the simulator

ASKED_FOR = {
    "turnaround_mean_s",
    "wait_mean_s",
    "bounded_slowdown_mean",
    "makespan_s",
    "utilisation",
    "killed",
}


@pytest.fixture
def trace(tmp_path: Path) -> Path:
    """Thirty jobs of up to 8 nodes, one bad line, and one job of 16."""
    jobs = [line(n, 60 * n, 100 + 7 * n, 1 + n % 8, 600, user=n % 3) for n in range(30)]
    return write(tmp_path / "t.swf", *jobs, "1 2 3", line(99, 100, 50, 16, 100))


def run(*arguments: str | Path) -> Result:
    return CliRunner().invoke(cli, ["simulate", *map(str, arguments)])


def test_json_has_what_was_agreed(trace: Path) -> None:
    done = run(trace, "--nodes", "8", "--policy", "easy", "--policy", "conservative", "--json")
    assert done.exit_code == 0, done.output
    document = json.loads(done.stdout)
    assert document["jobs"] == 30
    names = {f"{policy}/{e}" for policy in ("easy", "conservative") for e in ("user", "oracle", "predicted")}
    assert set(document["policies"]) == names
    assert all(set(values) >= ASKED_FOR for values in document["policies"].values())
    assert document["simulate_seconds"] > 0
    assert document["skipped"] == {
        "lines that are not 18 numbers (first: line 35)": 1,
        "jobs of more than 8 nodes": 1,
    }
    assert "left out: 1 jobs of more than 8 nodes" in done.stderr


def test_load_and_repetitions_are_shown(trace: Path) -> None:
    plain, loaded = (
        json.loads(run(trace, "--nodes", "8", "--estimates", "user", *more, "--json").stdout)
        for more in ([], ["--load", "1.5", "--repetitions", "3"])
    )
    assert loaded["load"] == pytest.approx(1.5)
    values = loaded["policies"]["easy/user"]
    assert values["wait_mean_s"] != plain["policies"]["easy/user"]["wait_mean_s"]
    shaken = values["turnaround_mean_s_shaken"]
    assert shaken["min"] <= shaken["mean"] <= shaken["max"]


def test_the_table_is_for_people(trace: Path) -> None:
    done = run(trace, "--estimates", "bound", "--kill-at", "bound", "--policy", "sjf")
    assert done.exit_code == 0, done.output
    assert "sjf/bound" in done.stdout


@pytest.mark.slow
@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--kill-at", "bound", "--estimates", "user"], "goes with"),
        (["--machines", "h100"], "give names with nodes"),
        (["--machines", "h100=4"], "no target model of 'h100'"),
        (["--machines", "h100=4", "--nodes", "4"], "leave --nodes out"),
        (["--moldable"], "no machine has a target model"),
    ],
)
def test_what_cannot_be_is_said_in_a_line(
    trace: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arguments: list[str], said: str
) -> None:
    monkeypatch.setenv("PERF_ASSETS_LAKE", str(tmp_path / "lake"))
    done = run(trace, *arguments)
    assert isinstance(done.exception, BadInputError)
    assert said in str(done.exception)


def test_events_are_written(trace: Path, tmp_path: Path) -> None:
    done = run(trace, "--nodes", "8", "--estimates", "oracle", "--events", tmp_path / "logs")
    assert done.exit_code == 0, done.output
    lines = (tmp_path / "logs" / "easy-oracle.csv").read_text().splitlines()
    assert lines[0] == "time_s,event,job,machine,nodes,free_nodes"
    assert lines[1:3] == ["0.0,submit,0,,0,8", "0.0,start,0,nodes,1,7"]
    assert len(lines) == 1 + 3 * 30


def test_a_log_of_slurm_is_known_and_drawn_from(tmp_path: Path) -> None:
    jobs = [sacct_line(n, 1 + n % 7, 1 + n % 9, 1 + n % 8) for n in range(40)]
    log = tmp_path / "sacct.txt"
    log.write_text("\n".join([SACCT, *jobs]) + "\n")
    wanted = ["--nodes", "8", "--zone", "America/Denver", "--window", "2019-01-02..2019-01-05", "--draw", "3"]
    done = run(log, *wanted, "--estimates", "user", "--json")
    assert done.exit_code == 0, done.output
    document = json.loads(done.stdout)
    assert document["jobs"] == sum(1 <= n % 7 <= 4 for n in range(40))
    assert document["trace"] == "sacct.txt 2019-01-02..2019-01-05, drawn with seed 3"
    assert {"window_mean", "drawn_mean", "distance", "expected"} == set(document["drawn"]["run, working hours"])
    assert "drawn jobs compare" in done.stderr


@pytest.fixture
def moldable_jobs(tmp_path: Path) -> Path:
    """Runs of two applications that gain nothing from more nodes, with right predictions."""
    rows = [f"{app},{nodes},{60 + nodes % 3},{60 + nodes % 3}" for app in ("wave", "heat") for nodes in (1, 2, 4, 8)]
    table = tmp_path / "jobs.csv"
    table.write_text("app,nodes,runtime_seconds,net_predicted_seconds\n" + "\n".join(rows) + "\n")
    return table


def test_jobs_of_a_table_run_on_fewer_nodes(trace: Path, moldable_jobs: Path) -> None:
    wanted = ["--jobs", moldable_jobs, "--nodes", "8", "--repetitions", "2"]
    done = run(trace, *wanted, "--load", "1.0", "--json")
    assert done.exit_code == 0, done.output
    document = json.loads(done.stdout)
    stock, *_, ours = document["policies"]
    names = ["stock", "fewest nodes, no prediction", "net, 10%", "net, 20%", "net, chosen tolerance"]
    assert [row["policy"] for row in document["policies"]] == names
    assert ours["turnaround_ratio_min"] <= ours["turnaround_ratio"] < 1 == stock["turnaround_ratio"]
    assert ours["nodes_per_job"] < stock["nodes_per_job"]
    assert len(document["rows"]) == 10
    people = run(trace, *wanted)
    assert people.exit_code == 0, people.output
    assert people.stdout.count("stock") >= 8


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--jobs", "{table}"], "needs --nodes"),
        (["--jobs", "{table}", "--nodes", "8", "--moldable"], "goes with"),
        (["--jobs", "{trace}", "--nodes", "8"], "no column"),
        (["--jobs", "{table}", "--nodes", "8", "--shots", "x"], "--shots 'x'"),
        (["--shots", "5%"], "goes with --jobs"),
        (["--gpu-only", "wave"], "with --speeds"),
        (["--speeds", "{table}"], "needs --machines"),
        (["--speeds", "{table}", "--machines", "c=8", "--moldable"], "goes with --machines"),
        (["--speeds", "{table}", "--machines", "c=8"], "no column c"),
        (["--speeds", "{table}", "--machines", "nodes=8", "--shots", "5%"], "--shots goes with --known"),
        (["--speeds", "{table}", "--machines", "nodes=8", "--shots", "5%", "--known", "d"], "--known d"),
        (["--jobs", "{table}", "--nodes", "8", "--speeds", "{table}"], "goes with"),
        (["--window", "nowhere"], "window"),
        (["--zone", "Mars"], "no time zone"),
    ],
)
def test_bad_options_of_jobs_and_logs_are_said(
    trace: Path, moldable_jobs: Path, arguments: list[str], message: str
) -> None:
    done = run(trace, *(one.format(table=moldable_jobs, trace=trace) for one in arguments))
    assert isinstance(done.exception, BadInputError), done.output
    assert message in str(done.exception)


@pytest.fixture
def speeds(tmp_path: Path) -> Path:
    """Workloads of two applications, of which one is quick on the first cluster and the other one on the second."""
    rows = [
        f"{app},{size},{1 + size / 50},{1 + size / 40},{one * (1 + size / 50)},{other * (1 + size / 50)}"
        for app, one, other in (("wave", 2.0, 0.5), ("heat", 0.5, 3.0))
        for size in range(20)
    ]
    table = tmp_path / "speeds.csv"
    table.write_text("\n".join(["app,size,old,older,new,gpus-gpu", *rows]) + "\n")
    return table


def test_jobs_go_to_the_cluster_that_is_predicted_to_end_them_first(trace: Path, speeds: Path) -> None:
    wanted = ["--speeds", speeds, "--machines", "new=8,gpus=8", "--load", "0.9"]
    done = run(trace, *wanted, "--known", "old", "--known", "older", "--shots", "10", "--repetitions", "2", "--json")
    assert done.exit_code == 0, done.output
    document = json.loads(done.stdout)
    assert document["clusters"] == {"new": 8, "gpus": 8}
    assert len(document["rows"]) == 2 * (2 + 2 * 4)
    rows = {(row["prediction"], row["rule"]): row for row in document["policies"]}
    names = {"ideal", "ours, 10", "application average, 10", "way average, 10"}
    assert {name for name, _ in rows} == names | {"random", "wait only"}
    assert rows["ideal", "turnaround"]["turnaround_mean_s"] < rows["wait only", "wait only"]["turnaround_mean_s"]
    assert rows["ideal", "turnaround"]["gain_kept_ratio"] == 1
    # Which application it is decides here: who knows that keeps most of the gain, and the average of all does not.
    assert rows["ours, 10", "turnaround"]["gain_kept_ratio"] > 0.8
    assert rows["way average, 10", "turnaround"]["gain_kept_ratio"] < 0.8
    assert rows["random", "random"]["gain_kept_ratio"] is None
    people = run(trace, *wanted, "--gpu-only", "heat")
    assert people.exit_code == 0, people.output
    assert "of the ideal's" in people.stdout


def test_a_log_without_limits_cannot_give_any(tmp_path: Path, moldable_jobs: Path) -> None:
    file = write(tmp_path / "no.swf", *(line(n, n, 5, 1) for n in range(5)))
    with pytest.raises(BadInputError, match="limits cannot be drawn"):
        CliRunner().invoke(
            cli, ["simulate", str(file), "--jobs", str(moldable_jobs), "--nodes", "8"], catch_exceptions=False
        )


def test_no_job_fits(tmp_path: Path) -> None:
    file = write(tmp_path / "wide.swf", line(1, 0, 5, 8))
    with pytest.raises(BadInputError, match="no job"):
        CliRunner().invoke(cli, ["simulate", str(file), "--nodes", "2"], catch_exceptions=False)
