"""Options that several commands take."""

from collections.abc import Callable
from typing import Any, TypeVar

import click

Function = TypeVar("Function", bound=Callable[..., Any])

json_option: Callable[[Function], Function] = click.option(
    "--json", "as_json", is_flag=True, help="Print one JSON document."
)

kind_option: Callable[[Function], Function] = click.option(
    "--kind", type=click.Choice(["rajaperf", "profile", "samples"]), help="Found out from the files if absent."
)

machine_option: Callable[[Function], Function] = click.option(
    "--machine", "chosen", multiple=True, metavar="ID", help="Only this machine; may be repeated."
)
