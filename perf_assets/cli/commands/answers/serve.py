"""`perf-assets serve`."""

import os
import socket
from pathlib import Path

import click

from perf_assets.cli.support.output import say
from perf_assets.core.errors import BadInputError
from perf_assets.infra.permissions import check_private_places, check_secret_file
from perf_assets.storage.lake import Lake

_VARIABLE = "PERF_ASSETS_TOKEN"
_LEAST_LETTERS = 16


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
    check_private_places()
    from perf_assets.serving.http.guard import is_loopback

    if token is None and not is_loopback(host):
        raise BadInputError(f"--host {host} lets others in: give a token with --token-file or PERF_ASSETS_TOKEN")
    # Before what takes seconds to import.
    listener = _listen(host, port)
    from perf_assets.serving.http.app import Limits
    from perf_assets.serving.http.server import serve

    serve(Lake.default(), host, listener, Limits(max_body_bytes, max_rows, timeout), token, say)


def _token(file: Path | None) -> str | None:
    """The token; no error shows any of it. What the environment held is taken out, so that no child gets it."""
    if file is None:
        token, place = os.environ.pop(_VARIABLE, "").strip(), _VARIABLE
        if not token:
            return None
    else:
        place = f"the token file {file}"
        try:
            token = file.read_text().strip()
        except OSError as error:
            raise BadInputError(f"{place} cannot be read ({error.strerror})") from None
        except UnicodeDecodeError:
            raise BadInputError(f"{place} cannot be read: it is no text") from None
        check_secret_file(file)
    if not token or not token.isascii() or any(letter.isspace() for letter in token):
        raise BadInputError(f"{place} must hold one word of ASCII letters")
    if len(token) < _LEAST_LETTERS:
        raise BadInputError(f"{place} holds fewer than {_LEAST_LETTERS} letters, which can be guessed: take more")
    return token


def _listen(host: str, port: int) -> socket.socket:
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        listener = socket.socket(family, kind, protocol)
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(address)
    except (OSError, OverflowError) as error:
        reason = getattr(error, "strerror", None) or error
        raise BadInputError(f"{host}:{port} cannot be used ({reason}): choose another --port or --host") from None
    return listener
