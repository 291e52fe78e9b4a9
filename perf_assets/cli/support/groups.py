"""Groups of commands, which guess what a misspelt name stands for."""

import click

from perf_assets.core.errors import like, listed


class CommandGroup(click.Group):
    """Group that names the command most like an unknown one, or those that there are."""

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """The command of a name; refuses an unknown one."""
        name, known = args[0], self.list_commands(ctx)
        if name not in known and not name.startswith("-"):
            near = like(name, known)
            hint = f"did you mean {near}?" if near else f"there are {listed(known)}"
            raise click.UsageError(f"there is no command {name!r}: {hint}", ctx)
        return super().resolve_command(ctx, args)
