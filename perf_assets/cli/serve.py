"""`perf-assets serve`."""

import os
from pathlib import Path

import click

from perf_assets.cli.output import say
from perf_assets.core.errors import BadInputError
from perf_assets.storage.lake import Lake

_VARIABLE = "PERF_ASSETS_TOKEN"


@click.command()
@click.option("--host", default="127.0.0.1", show_default=True, help="Address to listen on.")
@click.option("--port", type=click.IntRange(0, 65535), default=8000, show_default=True, help="0 takes a free one.")
@click.option("--token-file", type=click.Path(path_type=Path), help=f"Bearer token to ask for; or {_VARIABLE}.")
@click.option(
    "--max-body-bytes", type=click.IntRange(1000), default=4 * 2**20, show_default=True, help="Size of one question."
)
@click.option("--max-rows", type=click.IntRange(1), default=1000, show_default=True, help="Runs of one question.")
@click.option("--timeout", type=click.FloatRange(0.1), default=30.0, show_default=True, help="Seconds for an answer.")
def command(host: str, port: int, token_file: Path | None, max_body_bytes: int, max_rows: int, timeout: float) -> None:
    """Answer predictions over HTTP from the champions of the registry; /docs says how.

    Champions are loaded once and replaced when the alias moves. Ends with Ctrl-C or SIGTERM.
    """
    token = _token(token_file)
    from perf_assets.serving.http import Limits
    from perf_assets.serving.server import serve

    serve(Lake.default(), host, port, Limits(max_body_bytes, max_rows, timeout), token, say)


def _token(file: Path | None) -> str | None:
    if file is None:
        return os.environ.get(_VARIABLE) or None
    try:
        token = file.read_text().strip()
    except (OSError, UnicodeDecodeError) as error:
        raise BadInputError(f"the token file {file} cannot be read ({error})") from None
    if not token or not token.isascii() or any(letter.isspace() for letter in token):
        raise BadInputError(f"the token file {file} must hold one word of ASCII letters")
    return token
