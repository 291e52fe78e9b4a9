"""Machines compared for a portfolio: what the numbers are made of, in the shell and in Python."""

import csv
import io
import json
import math
from collections.abc import Iterator
from pathlib import Path
from statistics import fmean

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner, Result

from perf_assets.api import OpenLake, open_lake
from perf_assets.cli.main import cli
from perf_assets.core.errors import BadInputError, UnknownError
from perf_assets.features.counters.derivations import deriving
from perf_assets.readers.bundle import read_bundle
from perf_assets.serving.compare.workloads import Portfolio, WorkloadSheet
from perf_assets.serving.requests import Run
from perf_assets.storage.lake import Lake
from perf_assets.storage.warehouse import Warehouse
from perf_assets.workflows.landing.ingest import ingest_machine
from tests.features.fleet_tables import GPU, SPEEDS, WITHOUT_GPU
from tests.serving.conftest import MACHINE, Fleet

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("serving")]

SIZES = 4
"""Of each application; cedar ran one of Kripke, twice."""
PORTFOLIO = {"Kripke": 3.0, "miniVite": 1.0}
QUARTZ = Path(__file__).parents[2] / "perf_assets" / "demo" / "machines" / "quartz.yaml"
COUNTED = {"PAPI_LD_INS": "load_ratio", "PAPI_SR_INS": "store_ratio", "PAPI_BR_INS": "branch_ratio"}


def rows_of(
    fleet: Fleet, machine: str, sizes: int, apps: tuple[str, ...] = ("Kripke", "Laghos", "miniVite")
) -> pd.DataFrame:
    """Runs of the fleet as a table of samples with counters under the machine's own names."""
    samples = fleet.samples
    rows = []
    for row, (name, app) in enumerate(zip(samples.configurations, samples.apps.tolist(), strict=True)):
        size = int(name.split("-n ")[1].split()[0]) if app in apps else sizes + 1
        if size > sizes:
            continue
        on_gpus = machine in GPU and app not in WITHOUT_GPU
        seen_as = machine if machine not in GPU or on_gpus else f"{machine} (host)"
        here = samples.machines.index(seen_as)
        features = dict(zip(samples.counter_names, samples.counters[here, row].tolist(), strict=True))
        given = {"app": app, "args": f"-n {size}", "ranks": 1, "threads": 1, "nodes": 1, "gpus": int(on_gpus)}
        counters = {counter: 1e9 * features[ratio] for counter, ratio in COUNTED.items()}
        seconds = float(np.exp(samples.log_seconds[here, row]))
        rows.append({**given, "wall_seconds": seconds, "PAPI_TOT_INS": 1e9, **counters})
    return pd.DataFrame(rows)


def stock(lake: Lake, machine: str, rows: pd.DataFrame, *options: str) -> None:
    path = lake.root / f"{machine}.csv"
    rows.to_csv(path, index=False)
    land = ["land", str(path), "--machine", machine, "--kind", "samples", "--target", "wall_seconds", *options]
    done = CliRunner().invoke(cli, land)
    assert done.exit_code == 0, done.output
    ingest_machine(lake, machine, read_bundle)
    warehouse = Warehouse(lake, deriving([]))
    warehouse.load_machine(machine)
    warehouse.derive_machine(machine)


@pytest.fixture(scope="module")
def stocked(fleet: Fleet, tmp_path_factory: pytest.TempPathFactory) -> Iterator[OpenLake]:
    """A lake where the reference machine and elm ran everything, and cedar one configuration twice."""
    root = tmp_path_factory.mktemp("stocked")
    for machine in SPEEDS:
        (root / "landing" / machine).mkdir(parents=True)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PERF_ASSETS_LAKE", str(root))
        patch.setenv("MLFLOW_TRACKING_URI", fleet.tracking_uri)
        lake = Lake(root)
        sheet = root / "sheet.yaml"
        sheet.write_text(QUARTZ.read_text().replace("machine: quartz", f"machine: {MACHINE}"))
        stock(lake, fleet.reference, rows_of(fleet, fleet.reference, SIZES))
        stock(lake, "elm", rows_of(fleet, "elm", SIZES))
        once = rows_of(fleet, MACHINE, 1, ("Kripke",))
        twice = pd.concat([once, once.assign(wall_seconds=1.1 * once["wall_seconds"])])
        stock(lake, MACHINE, twice, "--spec", str(sheet), "--tag", "simulated=true")
        yield open_lake()


def run(*arguments: str) -> Result:
    return CliRunner().invoke(cli, ["compare", *arguments])


def test_numbers_are_those_of_single_predictions(fleet: Fleet, stocked: OpenLake) -> None:
    found = stocked.compare(PORTFOLIO, [MACHINE, "fir"], fleet.reference, with_measured=False)
    by_app = {}
    for app in PORTFOLIO:
        answers = stocked.predict(stocked.runs(fleet.reference, app=app), to=MACHINE, with_measured=False)
        assert len(answers) == SIZES
        ends = ("predicted_seconds", "lower_seconds", "upper_seconds")
        logs = [fmean(math.log(getattr(one, end) / one.source_seconds) for one in answers) for end in ends]
        by_app[app] = [math.exp(value) for value in logs]
    cedar = next(one for one in found if one.machine == MACHINE)
    expected = [0.75 * kripke + 0.25 * mini for kripke, mini in zip(by_app["Kripke"], by_app["miniVite"], strict=True)]
    time = cedar.relative_time
    assert [time.value, time.lower, time.upper] == pytest.approx(expected)
    assert cedar.node_hours.value == pytest.approx(100 * expected[0]), "one node here and there"
    assert (cedar.configurations.champion, cedar.configurations.prior) == (2 * SIZES, 0)
    assert cedar.warnings[0] == "its champion was made of 6 runs of cedar: its intervals may be too narrow"
    assert cedar.warnings[1].startswith("counters missing for")
    assert cedar.warnings[1].endswith("(8 of 8 configurations)")


def test_prior_only_is_wide_and_said_so(fleet: Fleet, stocked: OpenLake) -> None:
    found = stocked.compare(["Kripke"], ["fir", fleet.reference], fleet.reference)
    today, fir = (next(one for one in found if one.machine == name) for name in (fleet.reference, "fir"))
    assert str(fir.configurations) == f"{SIZES} prior"
    said = " | ".join(fir.warnings)
    assert "fir has no champion yet" in said
    assert f"wide interval: the error of perf-source@with-amm on held-out machines ({SIZES} of {SIZES}" in said
    assert "fir has no data sheet: nodes are those that other machines needed" in said
    error = 0.3 * 1.645
    assert math.log(fir.relative_time.upper / fir.relative_time.lower) == pytest.approx(2 * error)
    assert today.relative_time.value == pytest.approx(1)
    assert today.configurations.measured == SIZES


def test_measured_runs_count_instead_of_predictions(fleet: Fleet, stocked: OpenLake) -> None:
    rows = rows_of(fleet, MACHINE, 1, ("Kripke",))
    reference = rows_of(fleet, fleet.reference, SIZES, ("Kripke",)).set_index("args")["wall_seconds"]
    kripke = stocked.compare(["Kripke"], [MACHINE], fleet.reference).applications[0]
    assert (kripke.configurations.measured, kripke.configurations.champion) == (1, SIZES - 1)
    answers = {one.args: one for one in stocked.predict(stocked.runs(fleet.reference, app="Kripke"), to=MACHINE)}
    seconds = {args: one.predicted_seconds for args, one in answers.items()}
    seconds["-n 1"] = 1.05 * rows["wall_seconds"].iloc[0]
    logs = [math.log(seconds[args] / reference[args]) for args in seconds]
    assert kripke.relative_time.value == pytest.approx(math.exp(fmean(logs)))
    assert kripke.seconds.value == pytest.approx(math.exp(fmean(map(math.log, seconds.values()))))
    spread = math.log(1.1) / math.sqrt(2)
    widths = [math.log(one.upper_seconds / one.predicted_seconds) for args, one in answers.items() if args != "-n 1"]
    expected = math.hypot(math.fsum(widths), 1.645 * spread) / SIZES
    assert math.log(kripke.relative_time.upper / kripke.relative_time.value) == pytest.approx(expected, rel=1e-3)


def test_the_truth_lies_in_the_intervals(fleet: Fleet, stocked: OpenLake, monkeypatch: pytest.MonkeyPatch) -> None:
    """With all counters: a champion does not know how far it is off where most are missing, and warns of it."""

    def with_all_counters(lake: Lake, machine: str, app: str, *, uses_gpus: bool | None) -> list[Run]:
        assert machine == fleet.reference
        rows = [row for row, name in enumerate(fleet.samples.apps.tolist()) if name == app]
        return [fleet.run(row, uses_gpus=uses_gpus) for row in rows]

    monkeypatch.setattr("perf_assets.serving.compare.portfolios.stored_runs", with_all_counters)
    apps = ["Kripke", "Laghos", "miniVite"]
    found = stocked.compare(apps, [MACHINE, "elm"], fleet.reference, with_measured=False)
    assert {str(one.configurations) for one in found} == {f"{3 * SIZES} champion", f"{3 * SIZES} prior"}
    for one in found.applications:
        true = rows_of(fleet, one.machine, SIZES, (one.app,))["wall_seconds"]
        assert one.seconds.lower < math.exp(np.log(true).mean()) < one.seconds.upper, one


def test_programs_use_gpus_as_they_did(stocked: OpenLake) -> None:
    portfolio = Portfolio(Lake.default(), {"Kripke": 1.0, "miniVite": 1.0})
    assert portfolio.uses_gpus("Kripke") is True
    assert portfolio.uses_gpus("miniVite") is False, "it ran without on elm, where Kripke ran with"
    assert Portfolio(Lake.default(), {"Kripke": 1.0}, ["Kripke"]).uses_gpus("Kripke") is False
    assert portfolio.simulated == {MACHINE}
    assert portfolio.nodes(MACHINE, ("Kripke", "-n 1", 1, 1)) == 1
    assert portfolio.nodes(MACHINE, ("Kripke", "-n 9", 40, 2)) == 3, "36 cores"
    assert portfolio.nodes("fir", ("Kripke", "-n 9", 40, 2)) == 1


def test_nodes_are_whole_nodes() -> None:
    sheet = WorkloadSheet(cores=48, gpus=4, has_network=True)
    assert sheet.nodes(8, 1, uses_gpus=True) == 2
    assert sheet.nodes(8, 1, uses_gpus=False) == 1
    assert sheet.nodes(4, 20, uses_gpus=True) == 2, "two ranks of 20 threads fit on 48 cores"
    assert sheet.nodes(49, 1, uses_gpus=False) == 2
    alone = WorkloadSheet(cores=2, gpus=0, has_network=False)
    assert [alone.holds(threads, nodes) for threads, nodes in ((1, 1), (1, 2), (4, 1))] == [True, False, False]


def test_the_command_prints_and_writes_the_same_numbers(fleet: Fleet, stocked: OpenLake, tmp_path: Path) -> None:
    given = ("Kripke=3", "miniVite", "--machines", f"{MACHINE},fir,{fleet.reference}", "--from", fleet.reference)
    costs = ("--price", f"{MACHINE}=2", "--price", "fir=3", "--price", f"{fleet.reference}=0.5")
    costs += ("--power", f"{MACHINE}=500", "--power", "fir=250", "--power", f"{fleet.reference}=1000")
    done = run(*given, *costs, "--json")
    assert done.exit_code == 0, done.output
    answer = json.loads(done.stdout)
    assert (answer["baseline"], answer["ranked_by"]) == (fleet.reference, "price")
    machines = {one["machine"]: one for one in answer["machines"]}
    for name, price, watts in ((MACHINE, 2, 500), ("fir", 3, 250), (fleet.reference, 0.5, 1000)):
        for end in ("value", "lower", "upper"):
            node_hours = machines[name]["node_hours"][end]
            assert machines[name]["price"][end] == pytest.approx(price * node_hours)
            assert machines[name]["energy_kwh"][end] == pytest.approx(watts / 1000 * node_hours)
    assert [one["is_simulated"] for one in machines.values() if one["machine"] == MACHINE] == [True]
    in_python = stocked.compare(PORTFOLIO, [MACHINE, "fir", fleet.reference], fleet.reference)
    assert {one.machine: one.relative_time.value for one in in_python} == pytest.approx(
        {name: one["relative_time"]["value"] for name, one in machines.items()}
    )
    rows = list(csv.DictReader(io.StringIO(run(*given, "--csv").stdout)))
    assert len(rows) == 3 + 3 * 2
    out = tmp_path / "page.html"
    assert run(*given, *costs, "--out", str(out)).exit_code == 0
    page = out.read_text()
    assert "prior only" in page
    assert "simulated machines are marked" in page
    assert "http" not in page.replace("http-equiv", "")
    shown = run(*given)
    assert f"{MACHINE} (simulated)" in shown.stdout
    assert "By time" in shown.stdout
    assert "warning: fir: fir has no champion yet" in shown.stderr
    assert json.loads(run(*given, "--json").stdout)["ranked_by"] == "relative_time"


def test_a_notebook_shows_machines_applications_and_findings(stocked: OpenLake) -> None:
    found = stocked.compare(["Kripke"], [MACHINE, "fir"])
    html = found._repr_html_()
    assert html.count("<table>") == 2
    assert str(found[0].relative_time) in html
    assert found.comparison.findings()[0] in html
    assert len(found.to_frame()) == 4


def test_the_baseline_is_where_most_models_start_from(fleet: Fleet, stocked: OpenLake) -> None:
    assert stocked.compare(["Kripke"], [MACHINE, "fir"]).comparison.baseline == fleet.reference
    portfolio = Portfolio(Lake.default(), {"Kripke": 1.0, "Laghos": 1.0})
    assert portfolio.usual_baseline(["elm", "elm", fleet.reference]) == "elm"
    assert portfolio.usual_baseline([MACHINE]) != MACHINE, "it ran no Laghos"


def test_configurations_that_a_machine_has_no_answer_for_are_left_out_for_all(
    fleet: Fleet, stocked: OpenLake, monkeypatch: pytest.MonkeyPatch
) -> None:
    def nothing(*arguments: object) -> None:
        raise UnknownError("no source model is registered")

    monkeypatch.setattr("perf_assets.serving.predictor.Predictor._source_for", nothing)
    with pytest.raises(UnknownError, match="fir cannot be compared: no source model is registered"):
        stocked.compare(["Kripke"], ["fir"], fleet.reference)
    monkeypatch.setattr("perf_assets.serving.target.ServedTarget.reference_of", lambda self, run: "nowhere")
    monkeypatch.setattr("perf_assets.serving.target.ServedTarget.same_run", lambda self, run: None)
    found = stocked.compare(["Kripke"], [MACHINE, fleet.reference], fleet.reference)
    assert {str(one.configurations) for one in found} == {"1 measured"}
    assert found.notes[-1].startswith(f"{SIZES - 1} of {SIZES} configurations are left out: {MACHINE}: no source model")


def test_bad_input_is_one_line(fleet: Fleet, stocked: OpenLake, tmp_path: Path) -> None:
    machines = ("--machines", f"{MACHINE},fir")
    cases = {
        ("Kripke=0", *machines): "the weight of Kripke is 0: it must be above 0",
        ("Kripke=-2", *machines): "the weight of Kripke is -2: it must be above 0",
        ("Kripke=inf", *machines): "it must be above 0",
        ("Kripke=much", *machines): "must be NAME=NUMBER",
        ("Kripke", "Kripke=2", *machines): "Kripke: is named twice",
        ("Nonesuch", *machines): "application 'Nonesuch' is not known: there are Kripke, Laghos, miniVite",
        ("Kripkee", *machines): "application 'Kripkee' is not known: did you mean Kripke?",
        (
            "Kripke",
            "--machines",
            "nowhere",
        ): "machine 'nowhere' is not known: nothing of it has landed: land its RAJAPerf",
        ("Kripke", "--machines", "No/Where"): "machine id 'No/Where' is not allowed",
        ("Kripke", "--machines", ","): "name the machines to compare",
        ("Kripke", "--machines", "fir,fir"): "fir is named twice",
        ("Laghos", *machines, "--from", MACHINE): f"no run of Laghos on {MACHINE} is in the warehouse: name another",
        ("Kripke", *machines, "--from", "nowhere"): "machine 'nowhere' is not known",
        ("Kripke", *machines, "--price", "fir=2"): f"--price is missing for {MACHINE}",
        ("Kripke", *machines, "--power", "elm=2"): "--power elm: is none of the machines that are compared",
        ("Kripke", *machines, "--power", "fir=-2"): "--power fir=-2: must be above 0",
        ("Kripke", *machines, "--price", "fir"): "--price 'fir': must be NAME=NUMBER",
        ("Kripke", *machines, "--gpus", "Laghos=0"): "--gpus Laghos=0: is none of the applications",
        ("Kripke", *machines, "--no-gpus", "Laghos"): "--gpus Laghos=0: is none of the applications",
        ("Kripke", *machines, "--json", "--csv"): "exclude each other",
        ("Kripke", *machines, "--out", "page.pdf"): "must end with .html, .json or .csv",
        ("Kripke", *machines, "--out", str(tmp_path / "no" / "page.html")): "make the folder first",
    }
    for arguments, reason in cases.items():
        done = run(*arguments)
        assert isinstance(done.exception, BadInputError), (arguments, done.output)
        assert reason in str(done.exception)
        assert "\n" not in str(done.exception)
    with pytest.raises(BadInputError, match="named twice"):
        stocked.compare(["Kripke", "Kripke"], [MACHINE])
    (tmp_path / "landing").mkdir()
    with pytest.raises(BadInputError, match="no warehouse at"):
        Portfolio(Lake(tmp_path), {"Kripke": 1.0})
