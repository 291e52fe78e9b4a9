"""Our definitions inside of another Dagster project: merged in Python, and as a component."""

import sys
from collections.abc import Iterator
from pathlib import Path

import dagster as dg
import pytest

from perf_assets.core.errors import BadInputError
from perf_assets.core.site import load_site
from perf_assets.core.tables.landing import RUNS
from perf_assets.defs.build import build_definitions
from perf_assets.defs.component import part_of_another_project
from perf_assets.defs.resources import LakeResource
from perf_assets.storage.lake import Lake
from perf_assets.workflows.fleet import Fleet
from tests.defs.conftest import land_perf_stat

pytestmark = pytest.mark.slow


@dg.asset(deps=[RUNS.name], automation_condition=dg.AutomationCondition.eager())
def runs_of_the_centre() -> dg.MaterializeResult[None]:
    """What a centre makes of our tables."""
    counted = Fleet(Lake.default()).warehouse.frame(f"SELECT count(*) AS runs FROM {RUNS.name}")
    return dg.MaterializeResult(metadata={"runs": int(counted["runs"].iloc[0])})


@pytest.fixture
def centre(lake: Lake) -> dg.Definitions:
    own = dg.Definitions(
        assets=[runs_of_the_centre], executor=dg.in_process_executor, resources={"storage": "something of theirs"}
    )
    return dg.Definitions.merge(own, part_of_another_project(lake.root))


def test_an_asset_of_theirs_follows_a_table_of_ours(
    centre: dg.Definitions, instance: dg.DagsterInstance, lake: Lake
) -> None:
    land_perf_stat(lake, "quartz", "b1", 7)
    instance.add_dynamic_partitions("machines", ["quartz"])
    ingested = centre.resolve_job_def("ingest_machine").execute_in_process(instance=instance, partition_key="quartz")
    assert ingested.success
    job = dg.Definitions.merge(centre, dg.Definitions(jobs=[dg.define_asset_job("own", [runs_of_the_centre])]))
    done = job.resolve_job_def("own").execute_in_process(instance=instance)
    (made,) = done.get_asset_materialization_events()
    assert made.materialization.metadata["runs"].value == 1


def test_our_automation_leaves_their_assets_alone(centre: dg.Definitions) -> None:
    (sensor,) = [s for s in centre.sensors or [] if isinstance(s, dg.AutomationConditionSensorDefinition)]
    graph = centre.resolve_asset_graph()
    watched = sensor.asset_selection.resolve(graph)
    assert dg.AssetKey(RUNS.name) in watched
    assert dg.AssetKey("runs_of_the_centre") not in watched
    assert len(watched) == len(list(graph.get_all_asset_keys())) - 1


@pytest.fixture
def project(tmp_path: Path, lake: Lake) -> Iterator[Path]:
    """A project of `dg` with one component: ours."""
    module = tmp_path / "centre_project"
    folder = module / "defs" / "perf"
    folder.mkdir(parents=True)
    for path in (module, module / "defs"):
        (path / "__init__.py").touch()
    (tmp_path / "pyproject.toml").write_text(
        '[tool.dg]\ndirectory_type = "project"\n[tool.dg.project]\nroot_module = "centre_project"\n'
    )
    (folder / "defs.yaml").write_text(
        f"type: perf_assets.defs.component.PerfAssets\nattributes:\n  lake: {lake.root}\n"
    )
    sys.path.insert(0, str(tmp_path))
    yield tmp_path
    sys.path.remove(str(tmp_path))
    for name in [name for name in sys.modules if name.startswith("centre_project")]:
        del sys.modules[name]


def test_a_project_has_us_as_a_component(project: Path) -> None:
    loaded = dg.load_from_defs_folder(path_within_project=project / "centre_project")
    assert dg.AssetKey(RUNS.name) in loaded.resolve_asset_graph().get_all_asset_keys()
    assert loaded.resolve_job_def("refresh_machine").name == "refresh_machine"


def test_owners_are_those_of_the_site(lake: Lake) -> None:
    def owners() -> set[str]:
        assets = build_definitions(LakeResource(root=str(lake.root))).resolve_asset_graph().asset_nodes
        return {owner for asset in assets for owner in asset.owners}

    assert owners() == {"team:performance"}
    lake.root.mkdir()
    (lake.root / "site.yaml").write_text("owners: [team:hpc, ada@example.org]")
    assert owners() == {"team:hpc", "ada@example.org"}
    (lake.root / "site.yaml").write_text("owners: [hpc]")
    assert owners() == {"team:performance"}, "the definitions load all the same"
    with pytest.raises(BadInputError, match=r"site.yaml: owners.0: 'hpc' is no owner: give team:NAME or NAME@HOST"):
        load_site(lake.root)


def test_a_process_has_one_lake(lake: Lake, tmp_path: Path) -> None:
    with pytest.raises(BadInputError, match="a process has one lake"):
        part_of_another_project(tmp_path / "another")
