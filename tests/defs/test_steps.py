"""Rules of the steps that make assets: covered by a test of edges, called as their asset, short."""

import ast
from collections.abc import Iterator
from pathlib import Path

import click
import dagster as dg
import pytest

import perf_assets.defs
from perf_assets.cli.main import cli
from perf_assets.core.tables.landing import RECORD_TABLES
from perf_assets.core.tables.models import RESULT_TABLES
from perf_assets.core.tables.runs import DERIVED_TABLES
from perf_assets.defs.build import build_definitions
from perf_assets.defs.specs import POOL
from tests.defs.reads import COVERED, WRITES_AT_ITS_END

_FOLDER = Path(perf_assets.defs.__file__).parent
_MOST_LINES = 20
_NO_COMMAND = {"refresh", "describe", "assemble"}
"""First words of jobs that sensors and schedules start, and no command."""


def _steps() -> list[dg.AssetsDefinition]:
    return [asset for asset in build_definitions().assets or [] if isinstance(asset, dg.AssetsDefinition)]


def _operation(step: dg.AssetsDefinition) -> dg.OpDefinition:
    assert isinstance(step.node_def, dg.OpDefinition)
    return step.node_def


def _makes_assets(decorator: ast.expr) -> bool:
    return ast.unparse(decorator).startswith(("one_asset(", "dg.multi_asset("))


def _functions() -> Iterator[tuple[Path, ast.FunctionDef]]:
    """Functions that make assets, with their file."""
    for path in sorted(_FOLDER.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.FunctionDef) and any(map(_makes_assets, node.decorator_list)):
                yield path, node


@pytest.fixture(scope="module")
def definitions() -> dg.Definitions:
    return build_definitions()


@pytest.mark.slow
def test_the_edges_of_every_asset_are_tested(definitions: dg.Definitions) -> None:
    graph = definitions.resolve_asset_graph()
    keys = {key.to_user_string() for key in graph.get_all_asset_keys()}
    covered = set().union(*COVERED.values())
    assert keys == covered, f"in no test of edges: {sorted(keys - covered)}; no asset: {sorted(covered - keys)}"


@pytest.mark.parametrize("step", _steps(), ids=lambda step: step.node_def.name)
def test_a_step_is_called_as_the_asset_that_it_makes(step: dg.AssetsDefinition) -> None:
    operation = _operation(step)
    function = getattr(operation.compute_fn, "decorated_fn").__name__  # noqa: B009
    assert function == operation.name
    if len(step.keys) == 1:
        assert operation.name == step.key.to_user_string()


@pytest.mark.slow
def test_a_table_is_called_as_its_asset(definitions: dg.Definitions) -> None:
    graph = definitions.resolve_asset_graph()
    named = {
        key.to_user_string(): graph.get(key).metadata["dagster/table_name"]
        for key in graph.get_all_asset_keys()
        if "dagster/table_name" in graph.get(key).metadata
    }
    assert all(str(getattr(table, "value", table)) == asset for asset, table in named.items())
    assert {table.name for table in (*RECORD_TABLES, *DERIVED_TABLES, *RESULT_TABLES)} <= set(named)


def test_jobs_are_called_as_the_commands_that_run_them() -> None:
    jobs = {job.name for job in build_definitions().jobs or []}
    commands = set(cli.list_commands(click.Context(cli)))
    strange = {name for name in jobs if name.split("_")[0] not in commands | _NO_COMMAND}
    assert not strange


def test_steps_of_the_pool_write_the_warehouse_shortly() -> None:
    pooled = {_operation(step).name for step in _steps() if _operation(step).pool == POOL}
    assert {"load_warehouse", "derive_features", "model_amm__machines", "eval_target__verdicts"} <= pooled
    assert not pooled & set(WRITES_AT_ITS_END)


def test_bodies_of_assets_are_short() -> None:
    found = list(_functions())
    assert len(found) == len(_steps())
    for path, function in found:
        first = function.body[1] if ast.get_docstring(function) else function.body[0]
        lines = (function.end_lineno or 0) - first.lineno + 1
        assert lines <= _MOST_LINES, f"{path.name}: {function.name} has {lines} lines"
