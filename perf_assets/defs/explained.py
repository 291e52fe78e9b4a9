"""Failures of steps in words: what is wrong and what to do come first, before any traceback."""

import errno
import functools
import inspect
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

import dagster as dg

from perf_assets.core.errors import BadInputError, BusyError
from perf_assets.core.places import lake_root

_Step = TypeVar("_Step", bound=Callable[..., Any])
_LOCKED = ("database is locked", "database table is locked")
AGAIN = "nothing is half written, and the landing sensor tries again by itself"


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
    except (BusyError, OSError) as error:
        raise dg.Failure(_advice(error)) from error
    except BadInputError as error:
        raise dg.Failure(str(error), allow_retries=False) from error
    except (dg.Failure, dg.DagsterError):
        raise
    except Exception as error:
        if any(words in str(error) for words in _LOCKED):
            raise dg.Failure(f"the MLflow database is locked by another process: {AGAIN}; or stop it") from error
        told = f"{type(error).__name__}: {' '.join(str(error).split())}"
        raise dg.Failure(f"a fault of perf_assets, report it with this run's log ({told}): {AGAIN}") from error


def _advice(error: Exception) -> str:
    if isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT):
        return f"the disk of {lake_root()} is full: free some space; {AGAIN}"
    return f"{' '.join(str(error).split())}: {AGAIN}"
