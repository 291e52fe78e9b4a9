"""The pages that say what commands there are."""

import click
from click.testing import CliRunner

from perf_assets.cli.main import cli
from tests.docs.pages import written_by_command


def test_the_documentation_is_current() -> None:
    done = CliRunner().invoke(cli, ["manual"], prog_name="whatever it is called")
    assert done.exit_code == 0
    assert written_by_command("docs/cli.md") == done.output, "run 'make docs'"


def test_every_option_says_what_it_is_for() -> None:
    every = _options(cli, click.Context(cli, info_name="perf-assets"))
    assert [f"{path} {name}" for path, name, text in every if not text] == []


def _options(group: click.Group, ctx: click.Context) -> list[tuple[str, str, str | None]]:
    found = []
    for name in group.list_commands(ctx):
        command = group.get_command(ctx, name)
        assert command is not None
        inner = click.Context(command, info_name=name, parent=ctx)
        found += [(inner.command_path, p.opts[0], p.help) for p in command.params if isinstance(p, click.Option)]
        if isinstance(command, click.Group):
            found += _options(command, inner)
    return found
