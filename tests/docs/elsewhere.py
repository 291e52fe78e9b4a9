"""Commands of the documentation that other tests run, because they take long or start services."""

import ast
from dataclasses import dataclass

from tests.docs.pages import PROJECT, Command

RUN_HERE = ("perf-assets", "python", "curl")
"""Programs that tests/integration/test_documentation.py runs."""


@dataclass(frozen=True)
class Elsewhere:
    """Which test runs a command."""

    start: str
    """How the command begins."""
    file: str
    function: str
    """Test, fixture or script that runs it; empty where that is the whole file."""
    words: str
    """What must stand there."""

    def problem(self) -> str | None:
        """Why nobody runs it any more."""
        path = PROJECT / self.file
        if not path.is_file():
            return f"{self.file} is gone, which ran '{self.start}'"
        text = path.read_text()
        if self.function:
            defined = [node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.FunctionDef)]
            bodies = [ast.get_source_segment(text, node) or "" for node in defined if node.name == self.function]
            if not bodies:
                return f"{self.file} has no {self.function} any more, which ran '{self.start}'"
            text = bodies[0]
        return None if self.words in text else f"{self.file} {self.function} lacks {self.words} for '{self.start}'"


_DOCUMENTATION = "tests/integration/test_documentation.py"
ELSEWHERE = (
    Elsewhere("make demo", _DOCUMENTATION, "test_a_small_demo_says_what_to_do_next", '"demo"'),
    Elsewhere("make test", ".ci/run", "", "make test"),
    Elsewhere("make chaos", "tests/chaos/test_command.py", "test_what_make_asks_for_is_understood", '"chaos"'),
    Elsewhere("perf-assets up", "tests/installation.py", "start_up", '"up"'),
    Elsewhere("pip install perf_assets-", "tests/integration/test_wheel.py", "installed", '"install"'),
    Elsewhere("perf-assets init", "tests/integration/test_wheel.py", "test_a_folder_of_init_takes_a_machine", '"init"'),
    Elsewhere(
        "perf-assets backup",
        "tests/serving/test_backup.py",
        "test_what_is_restored_elsewhere_answers_the_same",
        '"backup"',
    ),
    Elsewhere(
        "perf-assets restore",
        "tests/serving/test_backup.py",
        "test_what_is_restored_elsewhere_answers_the_same",
        '"restore"',
    ),
    Elsewhere(
        "perf-assets alerts", "tests/workflows/test_alerts.py", "test_the_command_tries_the_addresses", '"--test"'
    ),
    Elsewhere(
        "perf-assets prune",
        "tests/registry/test_retention.py",
        "test_the_command_removes_files_and_what_is_kept_answers",
        '"prune"',
    ),
    Elsewhere("perf-assets -C", "tests/integration/test_wheel.py", "test_a_folder_of_init_takes_a_machine", '"-C"'),
    Elsewhere("perf-assets train", "tests/installation.py", "train_quickly", '"train"'),
    Elsewhere("perf-assets vectors --add", "tests/defs/test_vectors.py", "a_machine_joins_by_command", '"--add"'),
    Elsewhere(
        "perf-assets shadow sacct.txt",
        "tests/cli/test_shadow.py",
        "test_jobs_of_modelled_applications_may_run_on_fewer_nodes",
        '"--machine"',
    ),
    Elsewhere("perf-assets run config-", "tests/cli/test_run.py", "example", "config-{func}.yml"),
)


def elsewhere(command: Command) -> Elsewhere | None:
    """The test that runs a command in the place of test_documentation.py, if it is one of those."""
    text = " ".join(command.words)
    return next((one for one in ELSEWHERE if text.startswith(one.start)), None)
