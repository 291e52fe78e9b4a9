"""Fan-outs that go on where they were interrupted."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any, Protocol, TypeVar

from perf_assets.infra.fanout import side_by_side

Data = TypeVar("Data")
Work = TypeVar("Work")
Rows = list[dict[str, Any]]


class Kept(Protocol):
    """Results of tasks on the same samples, by task."""

    def get(self, task: str) -> Rows | None:
        """Rows of a task that was done before; None where it was not."""

    def put(self, task: str, rows: Rows) -> None:
        """Keep the rows of a task."""


class NothingKept:
    """No results: work is done again from the start."""

    def get(self, task: str) -> Rows | None:
        """None: no task was done before."""
        return None

    def put(self, task: str, rows: Rows) -> None:
        """Discard the result: nothing is kept."""


def resumed(
    do: Callable[[Data, Work], Rows], samples: Data, pieces: Sequence[Work], kept: Kept
) -> Iterator[tuple[Work, Rows]]:
    """Do tasks that make rows `side_by_side`: those done before come first and are not done again.

    A task is known by what its piece looks like (`repr`).
    """
    todo = []
    for piece in pieces:
        rows = kept.get(repr(piece))
        if rows is None:
            todo.append(piece)
        else:
            yield piece, rows
    for piece, rows in side_by_side(do, samples, todo):
        kept.put(repr(piece), rows)
        yield piece, rows
