"""The lock of what 'make setup' installs, and what of Dagster is not public."""

import importlib.util
import re

from tests.installation import PROJECT

LINE = re.compile(r"^(\S+==\S+) \\\n(?:    --hash=sha256:[0-9a-f]{64}(?: \\)?\n)+", re.MULTILINE)
PRIVATE_IMPORT = re.compile(r"^\s*from (?:dagster|mlflow)[\w.]*\._[\w.]+ import ([^\n(]+)", re.MULTILINE)
PRIVATE = {
    "perf_assets/defs/jobs.py": {"UnresolvedAssetJobDefinition"},
    "perf_assets/defs/operate/dead_runs.py": {"SqliteRunStorage"},
    "perf_assets/defs/operate/launch.py": {
        *("InMemoryJob", "execute_run", "merge_run_tags", "instance_concurrency_context", "REPOSITORY_LABEL_TAG"),
        *("ManagedGrpcPythonEnvCodeLocationOrigin", "RemoteRepositoryOrigin", "LoadableTargetOrigin"),
    },
}
"""Names of Dagster that are not public, by module: what runs of commands need to be runs of the code location (its
page, the timeline, "Re-execute"), and to wait less than a second for a pool. Dagster is pinned for their sake."""


def test_the_lock_has_what_is_installed_as_it_is_pinned() -> None:
    place = PROJECT / "deploy" / "lock.py"
    spec = importlib.util.spec_from_file_location("lock", place)
    assert spec is not None
    assert spec.loader is not None
    lock = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(lock)
    pinned = lock.pins()
    wanted = [lock.requirement_line(name, extras, pinned[name]) for name, extras in lock.needed().items()]
    assert LINE.findall((PROJECT / "requirements.lock").read_text()) == wanted, "run 'make lock'"


def test_what_is_private_of_dagster_and_mlflow_becomes_no_more() -> None:
    found: dict[str, set[str]] = {}
    for file in sorted((PROJECT / "perf_assets").rglob("*.py")):
        for _, names in re.findall(
            r"^\s*from ((?:dagster|mlflow)[\w.]*\._[\w.]+) import ([^\n(]+)", file.read_text(), re.MULTILINE
        ):
            imported = {name.split(" as ")[0].strip() for name in names.split(",")}
            found.setdefault(str(file.relative_to(PROJECT)), set()).update(imported)
    assert found == PRIVATE
