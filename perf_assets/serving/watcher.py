"""Looks every moment whether models or observed runs are new."""

import logging
import threading
import time

from perf_assets.serving.champions import Models

OBSERVED_SECONDS = 0.3
"""Between two looks at the landing zone: a run that somebody hands in counts within a second."""
ALIAS_SECONDS = 2.0
"""Between two looks at the registry."""
_log = logging.getLogger("perf_assets.serve")


class Watcher:
    """A thread that brings models up to date. What goes wrong is logged, and the present models stay in use."""

    def __init__(self, models: Models) -> None:
        self._models = models
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="watcher", daemon=True)
        self._last_problem = ""

    def start(self) -> None:
        """Begin to look."""
        self._thread.start()

    def stop(self) -> None:
        """Look no more."""
        self._ended.set()
        self._thread.join()

    def _watch(self) -> None:
        looked = time.monotonic()
        while not self._ended.wait(OBSERVED_SECONDS):
            try:
                self._models.catch_up()
                if time.monotonic() - looked >= ALIAS_SECONDS:
                    self._models.refresh()
                    looked = time.monotonic()
                self._last_problem = ""
            except Exception as error:
                if str(error) != self._last_problem:
                    self._last_problem = str(error)
                    _log.warning("models stay as they are: %s", " ".join(str(error).split()))
