"""What the source never does: load pickles, run strings, unpack archives, listen to everybody, hold secrets."""

import ast
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from perf_assets.core.errors import UnreadableFileError
from perf_assets.models.common import archive
from perf_assets.models.common.trees import Forest

PROJECT = Path(__file__).resolve().parents[2]
PACKAGE = PROJECT / "perf_assets"
FORBIDDEN_MODULES = {
    *("pickle", "cPickle", "_pickle", "dill", "cloudpickle", "joblib", "shelve", "marshal", "tarfile", "telnetlib"),
    *("xml.etree", "xml.dom", "xml.sax", "lxml"),
}
FORBIDDEN_CALLS = {
    *("eval", "exec", "compile", "__import__", "os.system", "os.popen", "yaml.safe_load", "yaml.unsafe_load"),
    *(
        "yaml.full_load",
        "torch.load",
        "pd.read_pickle",
        "pandas.read_pickle",
        "shutil.unpack_archive",
        "zipfile.ZipFile",
    ),
    *("mlflow.pytorch.load_model", "mlflow.sklearn.load_model", "mlflow.xgboost.load_model", "tempfile.mktemp"),
}
ONLY_IN = {
    "mlflow.pyfunc.load_model": {"registry/versions.py"},
    "np.load": {"models/common/archive.py"},
    "yaml.load": {"core/yaml_text.py"},
    "subprocess.Popen": {"cli/support/services.py"},
    "subprocess.run": {
        *("registry/store.py", "registry/retention.py", "infra/clusters.py", "storage/snapshots.py"),
        *("workflows/landing/measure_node.py", "workflows/landing/probe.py"),
    },
}
PICKLES = "infra/on_dask.py"
"""What Dask workers get is pickled: our own samples, for processes that we started (docs/security.md)."""
SECRETS = {
    "private key": r"-----BEGIN (?:[A-Z]+ )?PRIVATE KEY",
    "AWS key": r"\b(?:AKIA|ASIA)[0-9A-Z]{16}\b",
    "GitHub token": r"\bgh[pousr]_[A-Za-z0-9]{36}\b|\bgithub_pat_[A-Za-z0-9_]{50,}",
    "GitLab token": r"\bglpat-[A-Za-z0-9_-]{20}",
    "Slack token": r"\bxox[abprs]-[A-Za-z0-9-]{10,}",
    "API key": r"\bsk-[A-Za-z0-9_-]{20,}|\bAIza[0-9A-Za-z_-]{35}\b",
    "JSON web token": r"\beyJ[A-Za-z0-9_-]{10,}\.eyJ[A-Za-z0-9_-]{10,}\.",
    "password in an address": r"\b[a-z+]{3,20}://[^\s:/@{}'\"<>*]+:(?!\*\*\*)[^\s:/@{}'\"<>]{3,}@[\w.-]+",
    "assigned secret": r"(?i)\b(?:password|passwd|secret|api_key|access_token)\s*[:=]\s*[\"'][^\"'\s{}<>$]{8,}[\"']",
}
MADE_UP = ("pa:ss@w/ord", "a-secret-of-many-letters")
"""Of these tests."""


def sources() -> list[Path]:
    return sorted(PACKAGE.rglob("*.py"))


def dotted(node: ast.AST) -> str:
    if isinstance(node, ast.Attribute):
        return f"{dotted(node.value)}.{node.attr}"
    return node.id if isinstance(node, ast.Name) else ""


def calls() -> Iterator[tuple[str, str, ast.Call]]:
    """File, dotted name and node of every call."""
    for file in sources():
        for node in ast.walk(ast.parse(file.read_text())):
            if isinstance(node, ast.Call):
                yield str(file.relative_to(PACKAGE)), dotted(node.func), node


@pytest.mark.slow
def test_no_module_that_runs_what_it_reads_is_imported() -> None:
    for file in sources():
        for node in ast.walk(ast.parse(file.read_text())):
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            names += [str(node.module)] if isinstance(node, ast.ImportFrom) else []
            for name in names:
                is_bad = any(name == bad or name.startswith(f"{bad}.") for bad in FORBIDDEN_MODULES)
                is_bad &= (name, str(file.relative_to(PACKAGE))) != ("pickle", PICKLES)
                assert not is_bad or name == "xml.sax.saxutils", (file, name)


@pytest.mark.slow
def test_no_call_runs_what_it_reads() -> None:
    for file, name, node in calls():
        assert name not in FORBIDDEN_CALLS, (file, name)
        assert file in ONLY_IN.get(name, {file}), (file, name)
        given = {keyword.arg: keyword.value for keyword in node.keywords}
        shell = given.get("shell")
        assert shell is None or (isinstance(shell, ast.Constant) and shell.value is False), (file, name)
        if name in ("np.load", "np.savez_compressed"):
            allowed = given["allow_pickle"]
            assert isinstance(allowed, ast.Constant)
            assert allowed.value is False, file


def test_a_model_file_with_a_pickle_in_it_is_refused(tmp_path: Path) -> None:
    class Evil:
        def __reduce__(self) -> tuple[object, tuple[str, ...]]:
            return Path.touch, (str(tmp_path / "evil"),)

    np.savez(tmp_path / "model.npz", x=np.array([Evil()], object), **{"description.json": np.zeros(2, np.uint8)})
    with pytest.raises(UnreadableFileError, match="no saved model"):
        archive.read(tmp_path / "model.npz", Forest)
    assert not (tmp_path / "evil").exists()


def test_what_init_copies_is_no_home_in_use() -> None:
    """The home of a checkout names its database once it was moved to PostgreSQL, where no other home belongs."""
    assert not (PACKAGE / "cli" / "site" / "dagster.yaml").is_symlink()


def test_nothing_listens_to_everybody() -> None:
    for file in [*sources(), PROJECT / "Makefile", PROJECT / "dagster_home" / "dagster.yaml"]:
        assert not re.search(r"0\.0\.0\.0|[\"']::[\"']", file.read_text()), file


@pytest.mark.slow
def test_no_secret_is_in_the_repository() -> None:
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=PROJECT, capture_output=True, text=True, check=False)
    if listed.returncode:
        pytest.skip("not a git checkout: which files are tracked is not known")
    names = [name for name in listed.stdout.split("\0") if name]
    assert len(names) > 100
    found = []
    for name in names:
        file = PROJECT / name
        assert file.suffix not in (".pem", ".key", ".p12", ".pkl", ".pickle", ".env"), name
        text = file.read_bytes().decode("utf-8", "ignore") if file.is_file() else ""
        for what, pattern in SECRETS.items():
            found += [
                (name, what, hit) for hit in re.findall(pattern, text) if not any(known in hit for known in MADE_UP)
            ]
    assert not found


@pytest.mark.parametrize(
    "text",
    [
        *("-----BEGIN RSA " + "PRIVATE KEY-----", "AKIA" + "ABCDEFGHIJKLMNOP", "ghp_" + "a1B2" * 9),
        *("postgresql://" + "user:hunter22@db/x", "password = " + '"correct-horse"', "xoxb-" + "1234567890-abc"),
    ],
)
def test_secrets_would_be_found(text: str) -> None:
    assert any(re.search(pattern, text) for pattern in SECRETS.values())
