"""A wheel is enough: `init`, landing, ingestion and `doctor` without a checkout."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.installation import PROJECT, bundles_of

pytestmark = [pytest.mark.integration]


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folder that holds nothing but what the wheel brings."""
    root = tmp_path_factory.mktemp("wheel")
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "--quiet"]
    # A copy: building leaves folders beside the sources.
    sources = root / "sources"
    parts = ["perf_assets", "dagster_home", "pyproject.toml", "README.md", "LICENSE", "workspace.yaml"]
    listing = ["git", "-C", str(PROJECT), "ls-files", "-z", *parts]
    listed = subprocess.run(listing, capture_output=True, text=True, check=True)
    for name in filter(None, listed.stdout.split("\0")):
        if (PROJECT / name).is_file():
            (sources / name).parent.mkdir(parents=True, exist_ok=True)
            (sources / name).write_bytes((PROJECT / name).read_bytes())
    build = [*pip, "wheel", "--no-deps", "--no-build-isolation", "--wheel-dir", str(root), str(sources)]
    subprocess.run(build, check=True, timeout=200, cwd=root)
    wheel = next(root.glob("*.whl"))
    subprocess.run([*pip, "install", "--no-deps", "--target", str(root / "site"), str(wheel)], check=True, timeout=200)
    return root / "site"


def run(installed: Path, *arguments: str) -> "subprocess.CompletedProcess[str]":
    """The installed command; nothing of the checkout is on its path or in its environment."""
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("PERF_ASSETS_", "DAGSTER_", "MLFLOW_"))}
    return subprocess.run(
        [sys.executable, "-c", "from perf_assets.cli.main import main; main()", *arguments],
        env={**kept, "PYTHONPATH": str(installed)},
        cwd=installed.parent,
        capture_output=True,
        text=True,
        timeout=200,
    )


def test_without_a_folder_it_says_how_to_make_one(installed: Path) -> None:
    done = run(installed, "models")
    assert done.returncode == 2
    assert "perf-assets init DIR" in done.stderr
    done = run(installed, "-C", str(installed), "models")
    assert done.returncode == 2
    assert f"perf-assets init {installed}" in done.stderr


def test_a_folder_of_init_takes_a_machine(installed: Path, tmp_path: Path) -> None:
    from perf_assets.storage.lake import Lake
    from perf_assets.storage.landing import land

    home = tmp_path / "centre"
    made = run(installed, "init", str(home), "--json")
    assert json.loads(made.stdout)["written"] == [
        *("workspace.yaml", "dagster_home/dagster.yaml", "data_lake/site.yaml")
    ], made.stderr
    assert json.loads(run(installed, "init", str(home), "--json").stdout)["written"] == [], "nothing is overwritten"
    for bundle in bundles_of("quartz")[1][:2]:
        land(Lake(home / "data_lake"), bundle.facts, bundle.name, bundle.write)
    ingested = run(installed, "-C", str(home), "ingest", "--json")
    assert ingested.returncode == 0, ingested.stderr
    doctor = run(installed, "-C", str(home), "doctor", "--json")
    found = {row["check"]: row for row in json.loads(doctor.stdout)["findings"]}
    assert found["versions"]["state"] == "ok"
    assert "no checkout" in found["versions"]["found"]
    assert str(home) in json.dumps(found)


def test_init_refuses_a_file(installed: Path, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    done = run(installed, "init", str(tmp_path / "file"))
    assert done.returncode == 2
    assert "is a file" in done.stderr
