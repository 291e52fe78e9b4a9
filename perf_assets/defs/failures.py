"""Failures of steps in words: what is wrong and what to do come first, before any traceback."""

import errno
import functools
import inspect
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

import dagster as dg

from perf_assets.core.errors import BadInputError, BusyError, RegistryError
from perf_assets.core.paths import lake_root

_Step = TypeVar("_Step", bound=Callable[..., Any])
_LOCKED = ("database is locked", "database table is locked")
AGAIN = "nothing is half written; what a landing started is tried again by itself, else re-execute this run"


def explained(step: _Step) -> _Step:
    """A step whose errors begin with what to do."""
    if inspect.isgeneratorfunction(step):

        @functools.wraps(step)
        def generating(*arguments: Any, **named: Any) -> Iterator[Any]:
            with _in_words():
                yield from step(*arguments, **named)

        return generating  # type: ignore[return-value]

    @functools.wraps(step)
    def returning(*arguments: Any, **named: Any) -> Any:
        with _in_words():
            return step(*arguments, **named)

    return returning  # type: ignore[return-value]


@contextmanager
def _in_words() -> Iterator[None]:
    try:
        yield
    except (dg.Failure, dg.DagsterError):
        raise
    except Exception as error:
        raise dg.Failure(_advice(error)) from error


def _advice(error: Exception) -> str:
    message = " ".join(str(error).split())
    if isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT):
        return f"the disk of {lake_root()} is full: free some space; {AGAIN}"
    if any(words in message for words in _LOCKED):
        return f"the MLflow database is locked by another process: stop that; {AGAIN}"
    if "psycopg2.OperationalError" in message:
        return f"PostgreSQL went away: start it, see 'perf-assets doctor'; {AGAIN}"
    if isinstance(error, BusyError | OSError | RegistryError):
        return f"{message}: {AGAIN}"
    if isinstance(error, BadInputError):
        return message
    return f"a fault of perf_assets, report it with this run's log ({type(error).__name__}: {message}): {AGAIN}"
