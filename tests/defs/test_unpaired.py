"""A machine whose runs pair with none of another: its target model comes from the counters of the other machines."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import dagster as dg
import pandas as pd
import pytest
from click.testing import CliRunner, Result

from perf_assets.cli.main import cli
from perf_assets.core.errors import BadInputError
from perf_assets.core.tables.models import TRANSFER_SCORES
from perf_assets.core.tables.runs import COUNTERS_WIDE
from perf_assets.core.tables.verdicts import VERDICTS
from perf_assets.registry.lineage import chain
from perf_assets.registry.versions import load, tags_of, versions
from perf_assets.serving.predictor import Predictor
from perf_assets.storage.lake import Lake
from perf_assets.storage.results import rows_of
from perf_assets.workflows.fleet import Fleet
from perf_assets.workflows.models.target import TargetRequest, target_inputs
from perf_assets.workflows.models.unpaired_inputs import UnpairedInputs
from tests.defs.reads import Reads, recorded_reads
from tests.defs.test_training import run
from tests.installation import Installation
from tests.trained_site import MACHINES, copy_of
from tests.workflows.little_datasets import FACTORS, land_table, runs

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900), pytest.mark.xdist_group("unpaired")]
ODD = "odd"
"""Machine without RAJAPerf, whose counters have names that the catalogue does not know."""
NAME = "perf-target-odd"
ALIEN = {"flops": "alien.work", "bytes": "alien.traffic", "seconds": "wall_seconds"}


def own_runs(rows: int, seed: int) -> pd.DataFrame:
    """Runs of an application that no other machine has."""
    frame = runs(rows, seed, 9.0)
    seconds = frame["seconds"] * frame["ranks"] ** 0.8 / frame["solver"].map(FACTORS)
    named = {"app": "own", "args": [f"--size {seed}{row}" for row in range(rows)], "ranks": 1, "threads": 1}
    return frame.drop(columns="solver").assign(seconds=seconds, **named).rename(columns=ALIEN)


@dataclass(frozen=True)
class Site:
    """A trained fleet that the machine has joined."""

    lake: Lake
    instance: dg.DagsterInstance
    reads: Reads


@pytest.fixture(scope="module")
def site(trained_once: Installation, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    copied = copy_of(trained_once, tmp_path_factory.mktemp("unpaired") / "site")
    with pytest.MonkeyPatch.context() as patch, dg.DagsterInstance.from_config(str(copied.home)) as instance:
        patch.setenv("PERF_ASSETS_LAKE", str(copied.lake.root))
        patch.setenv("MLFLOW_TRACKING_URI", f"sqlite:///{copied.lake.root}/mlflow/mlflow.db")
        patch.setenv("PERF_ASSETS_THREADS", "1")
        land_table(copied.lake, own_runs(24, 2), ODD, "wall_seconds", tags={"simulated": "true"})
        instance.add_dynamic_partitions("machines", [ODD])
        with recorded_reads() as reads:
            run(instance, copied.lake, "ingest_machine", (ODD,))
            steps = {"eval_transfer__scores": {"config": {"seeds": 1, "shots": [0, 5]}}}
            run(instance, copied.lake, "adapt_machine", (ODD,), steps)
        yield Site(copied.lake, instance, reads)


def invoke(*arguments: str) -> Result:
    return CliRunner().invoke(cli, list(arguments))


def test_its_target_model_is_made_from_the_counters_of_the_others_and_has_no_prior(site: Site) -> None:
    assert versions(NAME) == {"champion": 1}
    tags = tags_of(NAME, 1)
    assert (tags["machine"], tags["is_simulated"]) == (ODD, "true")
    assert set(tags["sources"].split(" + ")) == set(MACHINES)
    assert tags["why_unpaired"] == "odd is not described (no RAJAPerf run has landed)"
    assert [link.name for link in chain(NAME)] == [NAME], "no source model is behind it"
    verdicts = rows_of(site.lake, VERDICTS, ODD)
    assert verdicts is not None
    assert verdicts[["version", "decision", "shots"]].to_numpy().tolist() == [[1, "promoted", 24]]
    assert verdicts["mape_ratio"].iloc[0] < 0.5
    scores = rows_of(site.lake, TRANSFER_SCORES, ODD)
    assert scores is not None
    assert {"product", "target_gp"} <= set(scores["method"])
    assert set(scores["shots"]) == {5}


def test_it_answers_tables_with_an_interval(site: Site, tmp_path: Path) -> None:
    asked = own_runs(30, 6)
    answers = load(NAME, "champion").predict(asked.drop(columns="wall_seconds"))
    assert (answers["lower"] < answers["predicted"]).all()
    assert (answers["predicted"] < answers["upper"]).all()
    assert (answers["predicted"] / asked["wall_seconds"] - 1).abs().median() < 0.5
    asked.to_csv(tmp_path / "ask.csv", index=False)
    done = invoke("predict", "--model", NAME, str(tmp_path / "ask.csv"), "--json")
    assert done.exit_code == 0, done.output
    told = pd.DataFrame(json.loads(done.stdout)["answers"])
    assert told["predicted"].to_numpy() == pytest.approx(answers["predicted"].to_numpy(), rel=1e-9)


def test_what_needs_a_reference_machine_says_what_to_ask_instead(site: Site) -> None:
    refused = invoke("predict", "--from", "quartz", "--to", ODD)
    assert isinstance(refused.exception, BadInputError)
    assert "pair with those of no other machine" in str(refused.exception)
    assert f"perf-assets predict --model {NAME} TABLE" in str(refused.exception)
    planned = invoke("plan", ODD)
    assert isinstance(planned.exception, BadInputError)
    assert "predicts from counters measured on odd itself" in str(planned.exception)
    (known,) = (machine for machine in Predictor(site.lake).machines() if machine.machine == ODD)
    assert NAME in known.next_step


def test_its_page_shows_the_model_and_says_what_is_not_there(site: Site) -> None:
    page = (site.lake.reports / f"machine-{ODD}.html").read_text()
    assert f"{NAME} version 1" in page
    assert "none of its configurations ran on another machine" in page
    assert "no run of" not in page, "shots that a fit did not see are shown beside what was measured"


def test_the_same_runs_are_kept_and_runs_that_pair_bring_the_source_model_back(site: Site) -> None:
    run(site.instance, site.lake, "adapt_machine", (ODD,), {"eval_transfer__scores": {"config": {"seeds": 1}}})
    assert max(versions(NAME).values()) == 1, "the same data makes no other version"
    fleet = Fleet(site.lake)
    assert isinstance(target_inputs(fleet, ODD, "1", TargetRequest()), UnpairedInputs)
    paired = target_inputs(fleet, "quartz", "1", TargetRequest())
    assert not isinstance(paired, UnpairedInputs)
    assert paired.pairs_count > 5


def test_too_few_runs_and_no_benchmark_say_both_reasons(site: Site) -> None:
    land_table(site.lake, own_runs(3, 9), "tiny", "wall_seconds")
    site.instance.add_dynamic_partitions("machines", ["tiny"])
    run(site.instance, site.lake, "ingest_machine", ("tiny",))
    with pytest.raises(
        BadInputError, match=r"tiny is not described \(no RAJAPerf .*; nor can it be adapted .* has 3 timed runs"
    ):
        target_inputs(Fleet(site.lake), "tiny", "1", TargetRequest())


def test_its_steps_read_the_counters_of_all_machines_and_nothing_that_is_no_parent(site: Site) -> None:
    problems = site.reads.undeclared()
    assert not problems, "\n".join(problems)
    for asset in ("model_target__adapted", "eval_target__verdicts", "eval_transfer__scores"):
        assert COUNTERS_WIDE in site.reads.by_step[frozenset({asset})]
