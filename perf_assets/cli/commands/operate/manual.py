"""`perf-assets manual`."""

from collections.abc import Iterator

import click

_INTRODUCTION = """\
# Commands

Made by `make docs` from `perf_assets/cli/`; do not edit. `perf-assets COMMAND --help` prints the same. Results go to
stdout, everything else to stderr; the exit code is 0, 2 where something was wrong with what was given (one line says
what), 130 after Ctrl-C, or 1 for a fault of the program.
"""


@click.command()
@click.pass_context
def command(ctx: click.Context) -> None:
    """Print every command with its arguments and options, as Markdown."""
    root = ctx.find_root()
    assert isinstance(root.command, click.Group)
    named = click.Context(root.command, info_name="perf-assets")
    click.echo("\n".join([_INTRODUCTION, *_sections(root.command, named)]), nl=False)


def _sections(group: click.Group, parent: click.Context) -> Iterator[str]:
    """A section for each command of a group, and for those of groups in it."""
    for name in group.list_commands(parent):
        command = group.get_command(parent, name)
        assert command is not None
        ctx = click.Context(command, info_name=name, parent=parent)
        if not isinstance(command, click.Group) or command.invoke_without_command:
            yield _section(command, ctx)
        if isinstance(command, click.Group):
            yield from _sections(command, ctx)


def _section(command: click.Command, ctx: click.Context) -> str:
    usage = " ".join([ctx.command_path, *command.collect_usage_pieces(ctx)])
    help_text = "\n\n".join(" ".join(part.split()) for part in (command.help or "").split("\n\n"))
    options = [option.get_help_record(ctx) for option in command.params if isinstance(option, click.Option)]
    lines = [f"## {ctx.command_path}", "", f"`{usage}`", "", help_text, ""]
    if options:
        rows = (f"| `{_cell(row[0])}` | {_cell(row[1])} |" for row in options if row is not None)
        lines += ["| option | |", "|---|---|", *rows, ""]
    return "\n".join(lines)


def _cell(text: str) -> str:
    """Text for a cell of a table."""
    return text.replace("|", "\\|")
