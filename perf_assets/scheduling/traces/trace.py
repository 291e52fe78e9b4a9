"""Jobs of a machine as its log tells them, and what can be done with such a log before it is scheduled again."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from perf_assets.core.errors import BadInputError
from perf_assets.scheduling.kernels.compiled import Floats, Integers, Mask

if TYPE_CHECKING:
    import pandas as pd

SHAKE_SECONDS = 10.0
"""Most seconds that submissions are moved by when a trace is shaken."""


@dataclass(frozen=True, eq=False)
class Trace:
    """Jobs in the order of submission; times in seconds."""

    name: str
    number: Integers
    """Numbers of jobs as the log counts them."""
    submit: Floats
    """Seconds from the first submission on."""
    run: Floats
    nodes: Integers
    request: Floats
    """Time that the user asked for; NaN where the log has none."""
    user: Integers
    application: Integers
    """Both -1 where the log does not tell."""
    application_names: tuple[str, ...] = ()
    """Names by number, where the log has names."""
    most_nodes: int | None = None
    """Nodes of the machine, where the log says so."""
    skipped: Mapping[str, int] = field(default_factory=dict)
    """Lines and jobs that were left out, by reason."""
    notes: tuple[str, ...] = ()
    """Notes on how the log was read."""
    is_simulated: bool = False
    epoch: float | None = None
    """Unix time of second 0; of a clock on the wall, as if it stood in UTC, where there is no zone."""
    zone: str | None = None
    """Time zone of the machine."""

    def __len__(self) -> int:
        return len(self.submit)

    @cached_property
    def work(self) -> float:
        """Node-seconds of all jobs."""
        return float((self.run * self.nodes).sum())

    def load(self, nodes: int) -> float:
        """Node-seconds that come in over node-seconds that there are, while jobs come."""
        span = float(self.submit[-1] - self.submit[0])
        return self.work / (nodes * span) if span else np.inf

    def has_requests(self) -> bool:
        """Whether users say how long their jobs take."""
        return bool(np.isfinite(self.request).mean() > 0.5)

    def where(self, chosen: Mask | Integers) -> "Trace":
        """Some of its jobs."""
        return replace(
            self,
            number=self.number[chosen],
            submit=self.submit[chosen],
            run=self.run[chosen],
            nodes=self.nodes[chosen],
            request=self.request[chosen],
            user=self.user[chosen],
            application=self.application[chosen],
        )

    def local_times(self) -> "pd.DatetimeIndex | None":
        """Submissions by the clock on the machine's wall; None where the log does not say when it begins."""
        if self.epoch is None:
            return None
        import pandas as pd

        times = pd.to_datetime(self.epoch + self.submit, unit="s", utc=True)
        return times.tz_convert(self.zone or "UTC").tz_localize(None)

    def window(self, text: str) -> "Trace":
        """Part of it, `FROM..TO`: dates, the last of them included, or numbers of jobs, counted from 0 to before TO."""
        first, dots, last = text.partition("..")
        if not dots or not (first or last):
            raise BadInputError(f"window {text!r}: give FROM..TO, dates (2019-01-01..2019-01-07) or numbers (0..70000)")
        is_number = all(part.isdigit() for part in (first, last) if part)
        chosen = self._numbered(first, last) if is_number else self._dated(text, first, last)
        if not chosen.any():
            raise BadInputError(f"{self.name} has no job in the window {text}: it has {self._described()}")
        part = self.where(chosen)
        begins = float(part.submit[0])
        return replace(
            part, submit=part.submit - begins, epoch=None if self.epoch is None else self.epoch + begins,
            name=f"{self.name} {text}",
        )  # fmt: skip

    def _numbered(self, first: str, last: str) -> Mask:
        place = np.arange(len(self))
        return np.asarray((place >= int(first or 0)) & (place < int(last or len(self))))

    def _dated(self, text: str, first: str, last: str) -> Mask:
        local = self.local_times()
        if local is None:
            raise BadInputError(f"{self.name} does not say when it begins: give a window by numbers of jobs")
        import pandas as pd

        try:
            begins = pd.Timestamp(first) if first else local[0]
            ends = pd.Timestamp(last) + pd.Timedelta(days=1) if last else local[-1] + pd.Timedelta(days=1)
            return np.asarray((local >= begins) & (local < ends))
        except (ValueError, TypeError):
            raise BadInputError(f"window {text!r}: {first!r} or {last!r} is no date such as 2019-01-31") from None

    def _described(self) -> str:
        local = self.local_times()
        dates = "" if local is None else f" from {local[0]:%Y-%m-%d} to {local[-1]:%Y-%m-%d}"
        return f"{len(self)} jobs{dates}"

    def that_fits(self, nodes: int) -> "Trace":
        """Trace without the jobs that need more nodes than there are."""
        fits = self.nodes <= nodes
        if fits.all():
            return self
        skipped = {**self.skipped, f"jobs of more than {nodes} nodes": int((~fits).sum())}
        return replace(self.where(fits), skipped=skipped)

    def at_load(self, load: float, nodes: int) -> "Trace":
        """Trace whose jobs come in faster or slower."""
        if not self.submit[-1] > self.submit[0]:
            raise BadInputError(f"all jobs of {self.name} come at once: they have no load that could be changed")
        return replace(self, submit=self.submit * (self.load(nodes) / load))

    def shaken(self, seed: int) -> "Trace":
        """Every job comes some seconds earlier or later."""
        moved = self.submit + np.random.default_rng(seed).uniform(-SHAKE_SECONDS, SHAKE_SECONDS, len(self))
        order = np.argsort(moved, kind="stable")
        return replace(self.where(order), submit=moved[order] - moved[order[0]])

    def repeated(self, times: int) -> "Trace":
        """The whole trace again and again, each time after its last submission; users are new ones each time."""
        span, users = float(self.submit[-1]) + 1.0, int(self.user.max()) + 1
        every = np.tile(np.arange(len(self)), times)
        which = np.repeat(np.arange(times), len(self))
        again = self.where(every)
        return replace(
            again, submit=again.submit + which * span, user=np.where(again.user < 0, -1, again.user + which * users)
        )
