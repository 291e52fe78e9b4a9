from collections import Counter
from hashlib import sha256
from itertools import islice
from pathlib import Path

import pandas as pd
import pytest

from perf_assets.core.errors import BadInputError
from perf_assets.core.machines import parse_machine_spec
from perf_assets.core.manifest import check_bundle_name
from perf_assets.demo.fleet import LATER_MACHINES, SOURCE_MACHINES, fleet_bundles, fleet_machines
from perf_assets.demo.simulated import SimulatedBundle

PROFILED = ("quartz", "ruby", "corona", "lassen", "dane", "xeonmax")


def write(bundle: SimulatedBundle, directory: Path) -> Path:
    directory.mkdir(parents=True)
    bundle.write(directory)
    return directory


def digests(root: Path) -> dict[str, str]:
    files = sorted(path for path in root.rglob("*") if path.is_file())
    return {str(path.relative_to(root)): sha256(path.read_bytes()).hexdigest() for path in files}


@pytest.mark.slow
def test_the_same_seed_writes_the_same_bytes(tmp_path: Path) -> None:
    for side in ("one", "two"):
        for bundle in fleet_bundles(0.04, 5):
            write(bundle, tmp_path / side / bundle.facts.machine / bundle.name)
    one, two = digests(tmp_path / "one"), digests(tmp_path / "two")
    assert len(one) > 2000
    assert one == two
    again = [bundle.facts for bundle in fleet_bundles(0.1, 5)]
    assert again == [bundle.facts for bundle in fleet_bundles(0.1, 5)]


def test_another_seed_writes_other_bytes(tmp_path: Path) -> None:
    names = []
    for seed in (1, 2):
        bundle = next(b for b in fleet_bundles(0.1, seed, ["epyc-vm"]) if b.facts.kind == "profile")
        write(bundle, tmp_path / str(seed))
        names.append(bundle.name)
    assert names[0] == names[1]
    assert digests(tmp_path / "1") != digests(tmp_path / "2")


def test_a_bundle_does_not_depend_on_the_scale(tmp_path: Path) -> None:
    small = {b.name: b for b in fleet_bundles(0.1, 5, ["ruby"]) if b.facts.kind == "profile"}
    large = {b.name: b for b in fleet_bundles(0.3, 5, ["ruby"]) if b.facts.kind == "profile"}
    assert small.keys() < large.keys()
    for name in islice(small, 5):
        assert small[name].facts == large[name].facts
        assert digests(write(small[name], tmp_path / "s" / name)) == digests(write(large[name], tmp_path / "l" / name))


@pytest.mark.slow
def test_the_fleet_has_all_its_machines() -> None:
    machines = fleet_machines()
    assert len(machines) == len(set(machines)) == 18
    assert machines[:10] == (*SOURCE_MACHINES, *LATER_MACHINES)
    kinds = {machine: Counter(b.facts.kind for b in fleet_bundles(0.1, 5, [machine])) for machine in machines}
    assert all(count["rajaperf"] >= 2 for count in kinds.values())
    for machine in PROFILED:
        assert kinds[machine]["profile"] == 15 + 11 + 29 + 3 + 8
    for machine in ("tioga", "h100"):
        assert kinds[machine]["samples"] == 5
    assert kinds["epyc-vm"]["profile"] > 5
    assert kinds["grace"]["profile"] > 5
    assert all(set(kinds[machine]) == {"rajaperf"} for machine in machines[10:])


@pytest.mark.slow
def test_names_are_legal_and_unique_and_facts_complete() -> None:
    for machine in fleet_machines():
        bundles = list(fleet_bundles(0.1, 5, [machine]))
        assert len({bundle.name for bundle in bundles}) == len(bundles)
        for bundle in bundles:
            check_bundle_name(bundle.name)
            assert bundle.facts.machine == machine
            assert bundle.facts.is_simulated
            assert bundle.facts.tags["seed"] == "5"
            if bundle.facts.kind == "profile":
                assert None not in (bundle.facts.ranks, bundle.facts.threads, bundle.facts.nodes, bundle.facts.gpus)
            assert (bundle.facts.wall_seconds is not None) == (
                machine in ("epyc-vm", "grace") and bundle.facts.kind == "profile"
            )


@pytest.mark.slow
def test_configurations_pair_over_machines() -> None:
    def keys(machine: str) -> set[tuple[object, ...]]:
        facts = [b.facts for b in fleet_bundles(0.1, 5, [machine]) if b.facts.kind == "profile"]
        return {(f.app, f.args.removesuffix(" -d hip").removesuffix(" -d cuda"), f.ranks, f.threads) for f in facts}

    quartz = keys("quartz")
    assert all(keys(machine) == quartz for machine in PROFILED)
    assert keys("epyc-vm") < quartz
    assert keys("grace") <= quartz


def test_benchmark_bundles_carry_the_data_sheet(tmp_path: Path) -> None:
    for machine in ("quartz", "h100", "epyc-7742"):
        directory = write(next(iter(fleet_bundles(0.1, 5, [machine]))), tmp_path / machine)
        assert parse_machine_spec((directory / "machine.yaml").read_text()).machine == machine


@pytest.mark.parametrize(("machine", "name"), [("tioga", "samples.csv"), ("h100", "samples.parquet")])
def test_samples_are_tables(tmp_path: Path, machine: str, name: str) -> None:
    bundles = [b for b in fleet_bundles(0.2, 5, [machine]) if b.facts.kind == "samples"]
    for bundle in bundles:
        path = write(bundle, tmp_path / bundle.name) / name
        table = pd.read_csv(path) if name.endswith("csv") else pd.read_parquet(path)
        assert list(table.columns[:7]) == ["app", "args", "ranks", "threads", "nodes", "gpus", "wall_seconds"]
        assert bundle.facts.target == "wall_seconds"
        assert not table.isna().any().any()
        assert set(table["app"]) == {bundle.facts.app}


def test_profiling_runs_have_their_own_directories(tmp_path: Path) -> None:
    markers = {"quartz": "experiment.xml", "ruby": "profile.db", "dane": "papi_hl_output"}
    for machine, marker in markers.items():
        bundle = next(b for b in fleet_bundles(0.1, 5, [machine]) if b.facts.kind == "profile")
        directory = write(bundle, tmp_path / machine)
        assert sorted(path.name for path in directory.iterdir()) == ["set1", "set2", "set3"]
        assert all((path / marker).exists() for path in directory.iterdir())


def test_bad_requests_are_refused() -> None:
    with pytest.raises(BadInputError, match="no machine 'cray-1'"):
        fleet_bundles(1, 5, ["cray-1"])
    for scale in (0, -1, float("nan")):
        with pytest.raises(BadInputError, match="scale"):
            fleet_bundles(scale, 5)
