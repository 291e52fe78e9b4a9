"""Predicted references in ReFrame itself."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

from perf_assets.cli.commands.answers.reference import reframe_module
from perf_assets.serving.answers import Prediction
from perf_assets.serving.listing import references

REFRAME = Path(sys.prefix) / "peers" / "bin" / "reframe"
_SETTINGS = """
site_configuration = {
    "systems": [{"name": "newbox", "hostnames": [".*"], "partitions": [
        {"name": "all", "scheduler": "local", "launcher": "local", "environs": ["builtin"]}]}],
    "environments": [{"name": "builtin"}],
}
"""
_TEST = """
import os, sys
sys.path.insert(0, os.path.dirname(__file__))
import reframe as rfm
import reframe.utility.sanity as sn
from references import PredictedReferences

@rfm.simple_test
class Kripke(rfm.RunOnlyRegressionTest, PredictedReferences):
    valid_systems = ["newbox:*"]
    valid_prog_environs = ["*"]
    predicted_app, predicted_args = "Kripke", {arguments!r}
    executable = "echo"
    seconds = parameter(["1.05", "3.0"])

    @run_before("run")
    def say(self):
        self.executable_opts = [self.seconds]

    @sanity_function
    def ran(self):
        return True

    @performance_function("s")
    def elapsed_seconds(self):
        return sn.extractsingle(r"(\\S+)", self.stdout, 1, float)
"""
ARGUMENTS = "--name 'a\"b' \\ -n 1"


def prediction() -> Prediction:
    return Prediction(
        source_machine="quartz",
        target_machine="newbox",
        app="Kripke",
        args=ARGUMENTS,
        ranks=1,
        threads=1,
        source_seconds=2.0,
        relative_time=0.5,
        predicted_seconds=1.0,
        lower_seconds=0.9,
        upper_seconds=1.2,
        model="perf-target-newbox",
        model_version=3,
        is_with_amm=True,
        observed_count=0,
        warnings=(),
    )


def test_the_dictionary_is_plain_python() -> None:
    module = reframe_module(references("newbox", [prediction()]))
    (assigned,) = [node for node in ast.parse(module).body if isinstance(node, ast.Assign)]
    assert ast.literal_eval(assigned.value) == {
        ("Kripke", ARGUMENTS, 1, 1): {"newbox": {"elapsed_seconds": (1.0, -0.1, 0.2, "s")}}
    }


@pytest.mark.skipif(not REFRAME.is_file(), reason=f"no {REFRAME}: make setup-tests")
def test_reframe_holds_runs_to_it(tmp_path: Path) -> None:
    (tmp_path / "references.py").write_text(reframe_module(references("newbox", [prediction()])))
    (tmp_path / "settings.py").write_text(_SETTINGS)
    (tmp_path / "kripke.py").write_text(_TEST.format(arguments=ARGUMENTS))
    command = [str(REFRAME), "-C", "settings.py", "-c", "kripke.py", "-r", "--prefix", str(tmp_path / "out")]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=tmp_path, timeout=100)
    assert "Ran 2/2 test case(s)" in done.stdout, done.stdout + done.stderr
    assert "1 failure(s)" in done.stdout, done.stdout
    assert "deprecated" not in done.stdout + done.stderr
