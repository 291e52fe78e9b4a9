"""Every command of the documentation, in reading order, in one folder, on the small fleet that other tests trained."""

import json
import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pandas as pd
import pytest
from click.testing import CliRunner

from perf_assets.cli.main import cli
from perf_assets.registry.versions import CHAMPION, versions
from perf_assets.storage.lake import Lake
from perf_assets.storage.landing import land
from perf_assets.workflows.fleet import Fleet, open_warehouse
from perf_assets.workflows.machines.readiness import Readiness
from tests.docs.elsewhere import elsewhere
from tests.docs.newbox import TWIN, copy_lake, write_files
from tests.docs.pages import Command, commands, pages
from tests.docs.running import Documented, with_little_work
from tests.docs.stand_ins import measure, without_measurements
from tests.installation import Installation, bundles_of, install

pytestmark = [pytest.mark.integration, pytest.mark.timeout(1800), pytest.mark.xdist_group("documentation")]
BENCHMARKED = "icelake-8375c"


@pytest.fixture(scope="module")
def documented(trained_once: Installation, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Documented]:
    """A folder with a lake, a Dagster home, and the files that pages name."""
    folder = tmp_path_factory.mktemp("documentation")
    copy_lake(trained_once.lake.root, folder / "data_lake")
    shutil.copytree(trained_once.home, folder / "dagster_home")
    write_files(folder)
    without_measurements(folder)
    measure(folder, tmp_path_factory.mktemp("machine"))
    # Dane has a champion in the demo, and pages ask it; of the other machine only RAJAPerf is known.
    benchmark, runs = bundles_of(TWIN)
    for bundle in (*benchmark, *runs, *bundles_of(BENCHMARKED)[0]):
        land(Lake(folder / "data_lake"), bundle.facts, bundle.name, bundle.write)
    with pytest.MonkeyPatch.context() as patch:
        _enter(patch, folder)
        with_little_work(patch)
        session = Documented(folder)
        for machine in (TWIN, BENCHMARKED):
            for line in (f"perf-assets ingest --machine {machine}", f"perf-assets adapt --machine {machine}"):
                session.run(Command("before the first page", 0, line))
        yield session
        session.stop()


def _enter(patch: pytest.MonkeyPatch, folder: Path) -> None:
    patch.chdir(folder)
    patch.setenv("PERF_ASSETS_LAKE", str(folder / "data_lake"))
    patch.setenv("DAGSTER_HOME", str(folder / "dagster_home"))
    patch.setenv("MLFLOW_TRACKING_URI", f"sqlite:///{folder / 'data_lake' / 'mlflow' / 'mlflow.db'}")
    patch.setenv("PERF_ASSETS_THREADS", os.environ.get("PERF_ASSETS_THREADS", "1"))


@pytest.mark.parametrize("page", [page for page in pages() if any(commands(page))])
def test_every_command_of_a_page_works(documented: Documented, page: str) -> None:
    for command in commands(page):
        if command.info != "machine" and elsewhere(command) is None:
            documented.run(command)
    documented.stop()


def test_get_started_arrives_at_a_champion_that_is_described(documented: Documented) -> None:
    assert CHAMPION in versions("perf-target-newbox")
    ready = Readiness.of(Fleet(Lake(documented.folder / "data_lake")), "newbox")
    assert ready.missing == ""
    # Other pages land more of it, which nobody has ingested yet.
    needed = (ready.kernels, ready.runs, ready.sources, ready.model)
    assert [item.sentence for item in needed if not item.is_done] == []


def test_a_small_demo_says_what_to_do_next(tmp_path: Path) -> None:
    made = install(tmp_path / "demo")
    with pytest.MonkeyPatch.context() as patch:
        _enter(patch, made.root)
        done = CliRunner().invoke(cli, ["demo", "--scale", "0.02", "--machine", "quartz"])
    assert done.exit_code == 0, done.output
    assert "quartz" in done.stdout
    # One machine is enough to look at, not to compare.
    assert "Not all models were made: source models: source models need two machines with RAJAPerf" in done.stderr
    assert "perf-assets predict --from quartz --to dane" in done.stderr


@pytest.mark.long
def test_a_late_machine_is_scored_on_runs_that_never_landed(tmp_path: Path) -> None:
    made = install(tmp_path / "demo")
    lake = Lake(made.root / "data_lake")
    machines = [word for name in ("quartz", "ruby", "dane", "xeonmax") for word in ("--machine", name)]
    with pytest.MonkeyPatch.context() as patch:
        _enter(patch, made.root)
        done = CliRunner().invoke(cli, ["demo", "--scale", "0.06", *machines, "--json"])
        assert done.exit_code == 0, done.output
        runs = open_warehouse(lake).frame("SELECT * FROM raw_profiles__runs WHERE machine = 'xeonmax'")
        landed = set(runs[["app", "args", "ranks", "threads"]].itertuples(index=False, name=None))
        more = CliRunner().invoke(cli, ["demo", "--next", "--json"])
    assert len(landed) == 10
    (row,) = json.loads(done.stdout)["late_machines"]
    assert (row["machine"], row["shots"]) == ("xeonmax", 10)
    assert row["kept_aside"] > 10
    assert row["ours"] < min(row["target_only"], row["unchanged"])
    truth = pd.read_parquet(lake.root / "demo" / "kept_aside" / "xeonmax.parquet")
    assert len(truth) >= row["kept_aside"]
    keys = ["app", "args", "ranks", "threads"]
    assert not landed & set(truth[keys].itertuples(index=False, name=None))
    page = (lake.reports / "index.html").read_text()
    assert page.index("What a few runs are worth") < page.index("Fleet status")
    assert (lake.reports / "few_runs.png").is_file()
    # A fleet of this scale has fewer than ten runs left.
    assert json.loads(more.stdout) == {"machine": "xeonmax", "runs_before": 10, "runs": 18}
