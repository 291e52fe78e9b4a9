"""The lock of what 'make setup' installs, and imports of what its packages may change at any time."""

import importlib.util
import re

from tests.installation import PROJECT

LINE = re.compile(r"^(\S+==\S+) \\\n(?:    --hash=sha256:[0-9a-f]{64}(?: \\)?\n)+", re.MULTILINE)
PRIVATE_IMPORT = re.compile(r"^\s*(?:from|import) (?:dagster|mlflow)[\w.]*\._", re.MULTILINE)


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


def test_nothing_that_is_private_of_dagster_or_mlflow_is_imported() -> None:
    files = sorted((PROJECT / "perf_assets").rglob("*.py"))
    assert [str(file) for file in files if PRIVATE_IMPORT.search(file.read_text())] == []
