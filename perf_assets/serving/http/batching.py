"""Answers of target models in a thread of their own: whatever waits is answered at once, in one calculation."""

import queue
import threading
from collections.abc import Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field

from perf_assets.core.errors import BusyError
from perf_assets.serving.answers import Prediction
from perf_assets.serving.target import CheckedRun, ServedTarget

_MOST_ROWS = 512
"""Rows that are answered at once."""


@dataclass(frozen=True, eq=False)
class _Waiting:
    target: ServedTarget
    asked: Sequence[CheckedRun]
    answer: "Future[list[Prediction]]" = field(default_factory=Future)


class Lane:
    """A queue of questions with one thread that answers them. Each is answered by the model it was asked of."""

    def __init__(self, most_waiting: int) -> None:
        self._queue: queue.Queue[_Waiting | None] = queue.Queue(most_waiting)
        self._thread = threading.Thread(target=self._work, name="predictions", daemon=True)
        self._thread.start()

    def ask(self, target: ServedTarget, asked: Sequence[CheckedRun]) -> "Future[list[Prediction]]":
        """The answers, when they are there; refuses when too much is waiting."""
        waiting = _Waiting(target, asked)
        try:
            self._queue.put_nowait(waiting)
        except queue.Full:
            raise BusyError("too many predictions are waiting: try again later") from None
        return waiting.answer

    @property
    def waiting(self) -> int:
        """Number of questions that wait."""
        return self._queue.qsize()

    def close(self) -> None:
        """Answer what waits, then end."""
        self._queue.put(None)
        self._thread.join()

    def _work(self) -> None:
        while True:
            batch, is_last = self._next_batch()
            by_target: dict[int, list[_Waiting]] = {}
            for waiting in batch:
                if waiting.answer.set_running_or_notify_cancel():
                    by_target.setdefault(id(waiting.target), []).append(waiting)
            for group in by_target.values():
                _answer(group)
            if is_last:
                return

    def _next_batch(self) -> tuple[list[_Waiting], bool]:
        """All that waits, up to a limit; waits for the first."""
        batch: list[_Waiting] = []
        rows = 0
        try:
            item = self._queue.get()
            while item is not None:
                batch.append(item)
                rows += len(item.asked)
                if rows >= _MOST_ROWS:
                    return batch, False
                item = self._queue.get_nowait()
        except queue.Empty:
            return batch, False
        return batch, True


def _answer(group: Sequence[_Waiting]) -> None:
    try:
        predictions = group[0].target.predict([asked for waiting in group for asked in waiting.asked])
    except Exception as error:
        if len(group) == 1:
            group[0].answer.set_exception(error)
            return
        # One of them is to blame: the others get their answers.
        for waiting in group:
            _answer([waiting])
        return
    start = 0
    for waiting in group:
        waiting.answer.set_result(predictions[start : start + len(waiting.asked)])
        start += len(waiting.asked)
