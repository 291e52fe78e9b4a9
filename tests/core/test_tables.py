"""The vocabulary is consistent, and its documentation is the one in docs/."""

import re

import pytest
from click.testing import CliRunner

from perf_assets.cli.commands.operate.vocabulary import command
from perf_assets.core.machines import MachineSpec
from perf_assets.core.tables.landing import SPECS, TABLES
from perf_assets.core.tables.schema import Column, Table, Type
from tests.docs.pages import written_by_command

LAYERS = {"raw", "core", "model", "eval", "out"}


@pytest.mark.parametrize("table", TABLES, ids=lambda table: table.name)
def test_tables_keep_the_naming_law(table: Table) -> None:
    assert re.fullmatch(rf"({'|'.join(LAYERS)})_[a-z]+__[a-z_]+", table.name)
    names = table.column_names()
    assert len(set(names)) == len(names)
    assert set(table.key) <= set(names)
    assert "machine" in table.of_machine
    assert not any(column.nullable for column in table.columns if column.name in table.key)
    for column in table.columns:
        assert column.description
        for suffix in ("seconds", "bytes", "hertz"):
            if column.name.endswith(f"_{suffix}"):
                assert column.unit == suffix, column.name


def test_a_column_has_one_meaning_everywhere() -> None:
    shapes: dict[str, tuple[Type, str | None]] = {}
    for table in TABLES:
        for column in table.columns:
            assert shapes.setdefault(column.name, (column.type, column.unit)) == (column.type, column.unit), column.name


def test_rules_in_sql_and_in_words_agree() -> None:
    column = Column("x_seconds", Type.REAL, "time", unit="seconds", exclusive_minimum=0)
    assert column.violation() == '"x_seconds" IS NULL OR "x_seconds" <= 0 OR NOT isfinite("x_seconds")'
    assert column.rule() == "present, above 0, finite"
    assert Column("note", Type.TEXT, "note", nullable=True).violation() is None


def test_every_figure_of_a_data_sheet_has_a_column() -> None:
    fields = {"machine", "name", "microarchitecture", "sources"}
    for part, prefix in (
        ("cpu", "cpu_"),
        ("caches", ""),
        ("memory", "memory_"),
        ("gpu", "gpu_"),
        ("network", "network_"),
    ):
        annotation = MachineSpec.model_fields[part].annotation
        model = getattr(annotation, "__args__", (annotation,))[0]
        fields |= {f"{prefix}{name}" for name in model.model_fields}
    assert fields == set(SPECS.column_names()) - {"bundle", "bundle_digest", "run"}


def test_the_documentation_is_current() -> None:
    assert written_by_command("docs/tables.md") == CliRunner().invoke(command).output, "run 'make docs'"
