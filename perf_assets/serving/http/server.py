"""Process of the service, until a signal ends it."""

import gc
import logging
import signal
import socket
import sys
from collections.abc import Callable

import uvicorn

from perf_assets.models.common.threads import keep_blas_to_one_thread
from perf_assets.serving.http.app import Limits, create_app
from perf_assets.serving.predictor import Predictor
from perf_assets.storage.lake import Lake

_KEEP_ALIVE_SECONDS = 30
_SHUTDOWN_SECONDS = 10
_MOST_CONNECTIONS = 1000


def serve(
    lake: Lake, host: str, listener: socket.socket, limits: Limits, token: str | None, say: Callable[[str], None]
) -> None:
    """Load all models, then answer on a bound socket until SIGTERM or Ctrl-C; requests under way are finished."""
    # The server ends in peace and then raises the signal again: that is an end, and no failure.
    signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(0))
    keep_blas_to_one_thread()
    logging.basicConfig(format="%(asctime)s %(message)s")
    predictor = Predictor(lake, say)
    say(f"Loading {len(predictor.models.machines())} champions and the source models ...")
    predictor.models.load_all()
    predictor.models.source()
    # What is loaded stays: the collector need not look at it again while requests wait.
    gc.collect()
    gc.freeze()
    config = uvicorn.Config(
        create_app(predictor, limits, token),
        log_level="warning",
        access_log=False,
        timeout_keep_alive=_KEEP_ALIVE_SECONDS,
        timeout_graceful_shutdown=_SHUTDOWN_SECONDS,
        limit_concurrency=_MOST_CONNECTIONS,
        server_header=False,
    )
    # From here on clients may come, even if the first has to wait a moment.
    listener.listen(config.backlog)
    port = listener.getsockname()[1]
    say(f"{len(predictor.models.machines())} champions; http://{host}:{port}/docs says what is answered")
    uvicorn.Server(config).run(sockets=[listener])
