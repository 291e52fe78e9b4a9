"""`perf-assets vocabulary`."""

import click

_INTRODUCTION = """\
# Tables

Made by `make docs` from `perf_assets/core/tables/`; do not edit. Every asset of the same name is the table in
`data_lake/warehouse.duckdb`. Units are in the column names where a column has one unit.
"""


@click.command()
def command() -> None:
    """Print every table with its columns, units and keys, as Markdown."""
    # Imported here: tables bring pydantic, which help does without.
    from perf_assets.core.tables.landing import TABLES
    from perf_assets.core.tables.models import RESULT_TABLES

    click.echo("\n".join([_INTRODUCTION, *(table.markdown() for table in (*TABLES, *RESULT_TABLES))]), nl=False)
