"""Who may import whom, and what loading costs."""

import ast
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

PACKAGE = Path(__file__).resolve().parents[2] / "perf_assets"

ALLOWED = {
    "core": set(),
    "infra": {"core"},
    "readers": {"core", "infra"},
    "features": {"core", "infra"},
    "scheduling": {"core", "infra"},
    "demo": {"core", "infra"},
    "reports": {"core"},
    "storage": {"core", "infra"},
    "models": {"core", "infra", "features"},
    "registry": {"core", "infra", "features", "models"},
    "serving": {"core", "infra", "readers", "features", "storage", "models", "registry", "workflows"},
    "workflows": {"core", "infra", "readers", "features", "models", "registry", "storage", "reports", "scheduling"},
}
EVERYTHING = {*ALLOWED, "defs", "cli", "api"}
SHELLS = {"defs", "cli", "api"}
LOADED_LATE = {"models", "registry", "serving"}
"""By shells, inside of functions."""
HOMES = {
    "cli": {"click", "rich"},
    "defs": {"dagster", "dagster_dask"},
    "infra": {"dask", "dask_jobqueue", "distributed"},
    "models": {"ot", "pytorch_tabnet", "scipy", "sklearn", "torch", "xgboost"},
    "registry": {"mlflow"},
    "reports": {"jinja2", "matplotlib"},
    "scheduling": {"numba"},
    "serving": {"fastapi", "starlette", "uvicorn"},
    "storage": {"duckdb"},
}
"""The one package that imports each of these libraries; all others may be imported anywhere."""
HOME_OF = {library: package for package, libraries in HOMES.items() for library in libraries}
HEAVY = ["torch", "xgboost", "sklearn", "mlflow", "matplotlib", "fastapi", "distributed"]


def imports(file: Path) -> Iterator[tuple[str, bool]]:
    """Imported modules, and whether the import is at the top level of the file."""
    tree = ast.parse(file.read_text())
    top = set(map(id, tree.body))
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from ((alias.name, id(node) in top) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{file}: relative import"
            assert node.module is not None
            yield node.module, id(node) in top
            yield from ((f"{node.module}.{alias.name}", id(node) in top) for alias in node.names)


def package_files() -> list[Path]:
    return sorted(path for path in PACKAGE.rglob("*.py") if path.parent != PACKAGE or path.stem == "api")


def home_of(file: Path) -> str:
    return file.relative_to(PACKAGE).parts[0].removesuffix(".py")


def test_the_rules_cover_every_package() -> None:
    found = {path.name for path in PACKAGE.iterdir() if (path / "__init__.py").is_file()}
    assert found <= EVERYTHING
    assert {"core", "storage", "defs"} <= found


@pytest.mark.parametrize("file", package_files(), ids=lambda path: str(path.relative_to(PACKAGE)))
def test_packages_import_only_what_they_may(file: Path) -> None:
    home = home_of(file)
    for module, is_top in imports(file):
        parts = module.split(".")
        if parts[0] == "perf_assets" and len(parts) > 1 and parts[1] in EVERYTHING:
            if home in SHELLS:
                assert parts[1] in {home, *ALLOWED} or (home == "cli" and parts[1] in SHELLS), module
                assert home != "defs" or parts[1] != "serving", f"{module}: only cli and api may"
                is_operated = home != "cli" or parts[1] != "defs" or parts[2:3] == ["operate"]
                assert is_operated, f"{module}: cli operates Dagster by defs/operate alone"
                assert not (is_top and parts[1] in LOADED_LATE), f"{module} at the top of {file}"
            else:
                assert parts[1] == home or parts[1] in ALLOWED[home], f"{home} imports {module}"
        assert home == HOME_OF.get(parts[0], home), f"{home} imports {module}"


def test_the_warehouse_is_opened_in_one_place() -> None:
    """A host with a warehouse of its own would answer from an old one that is opened otherwise."""
    opening = [path for path in package_files() if " Warehouse(" in path.read_text().replace("class Warehouse", "")]
    assert opening == [PACKAGE / "workflows" / "fleet.py"]


def test_init_files_are_empty() -> None:
    assert [path for path in PACKAGE.rglob("__init__.py") if path.read_text().strip()] == []


def loaded_after(statement: str) -> set[str]:
    code = f"import sys\n{statement}\nprint(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return set(done.stdout.split())


@pytest.mark.slow
def test_loading_the_definitions_is_light() -> None:
    loaded = loaded_after("import perf_assets.definitions")
    assert "dagster" in loaded
    assert loaded.isdisjoint(HEAVY)


def test_the_command_line_answers_without_loading_anything() -> None:
    loaded = loaded_after("from perf_assets.cli.main import cli; cli(['--help'], standalone_mode=False)")
    assert loaded.isdisjoint([*HEAVY, "dagster", "duckdb", "pandas", "pyarrow", "numpy", "pydantic", "rich"])


@pytest.mark.slow
def test_predictions_in_python_need_no_dagster() -> None:
    assert loaded_after("from perf_assets.api import open_lake").isdisjoint([*HEAVY, "dagster", "pandas"])
    everything = "; ".join(
        f"import perf_assets.{'.'.join(path.relative_to(PACKAGE).with_suffix('').parts)}"
        for path in (PACKAGE / "serving").rglob("[a-z]*.py")
    )
    assert "dagster" not in loaded_after(everything)


def test_the_entry_point_stays_small() -> None:
    assert len((PACKAGE / "definitions.py").read_text().splitlines()) <= 15


@pytest.mark.slow
def test_dagster_accepts_the_definitions() -> None:
    project = PACKAGE.parent
    done = subprocess.run(
        [Path(sys.executable).with_name("dg"), "check", "defs"],
        capture_output=True,
        text=True,
        cwd=project,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "All definitions loaded successfully" in done.stdout


def test_the_workspace_names_the_same_definitions() -> None:
    project = PACKAGE.parent
    target = tomllib.loads((project / "pyproject.toml").read_text())["tool"]["dg"]["project"]
    workspace = yaml.safe_load((project / "workspace.yaml").read_text())
    assert workspace == {"load_from": [{"python_module": target["code_location_target_module"]}]}
