"""Extras of the installation: what works without any, and what is said where one is missing."""

import os
import subprocess
import sys
import tomllib
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest

from perf_assets.cli.main import _EXTRAS, missing_extra
from tests.docs.pages import PROJECT

WITHOUT_EXTRAS = """
import sys
class Missing:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {packages!r}:
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)
sys.meta_path.insert(0, Missing())
from perf_assets.cli.main import main
main()
"""


def without_extras(home: Path, *arguments: str) -> "subprocess.CompletedProcess[str]":
    """A command in a process that has the packages of the base alone."""
    script = WITHOUT_EXTRAS.format(packages={package for packages in _EXTRAS.values() for package in packages})
    command = [sys.executable, "-c", script, "-C", str(home), *arguments]
    # A lake that the environment names would count before the folder.
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("PERF_ASSETS_", "DAGSTER_", "MLFLOW_"))}
    return subprocess.run(command, capture_output=True, text=True, timeout=200, check=False, env=kept)


def test_every_distribution_of_an_extra_is_known() -> None:
    extras = tomllib.loads((PROJECT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    brings = packages_distributions()
    for extra in _EXTRAS:
        wanted = [line for line in extras[extra] if not line.startswith(("perf_assets[", "pandas", "protobuf"))]
        names = {line.split(">")[0].split("[")[0].lower().replace("_", "-") for line in wanted}
        known = {
            distribution.lower().replace("_", "-") for package in _EXTRAS[extra] for distribution in brings[package]
        }
        assert names <= known, f"{extra}: {names - known}"


@pytest.mark.slow
def test_without_extras_files_are_read_and_landed(tmp_path: Path) -> None:
    assert without_extras(tmp_path, "init", str(tmp_path)).returncode == 0
    runs = str(PROJECT / "tests" / "data" / "rajaperf")
    for arguments in (("read", runs), ("land", runs, "--machine", "epyc-vm"), ("probe", "epyc-vm")):
        done = without_extras(tmp_path, *arguments)
        assert done.returncode == 0, (arguments, done.stderr)
    assert list((tmp_path / "data_lake" / "landing").glob("**/manifest.json"))
    said = without_extras(tmp_path, "train")
    assert (said.returncode, said.stdout) == (2, "")
    assert said.stderr.strip().splitlines()[-1] == (
        "perf-assets: this needs dagster, which is not installed: pip install 'perf_assets[platform]'"
    )


def test_what_is_missing_otherwise_is_no_extra() -> None:
    assert missing_extra(ModuleNotFoundError("No module named 'x'", name="x")) is None
    assert missing_extra(ValueError()) is None
