"""Jobs of a machine as its log tells them, and what can be done with such a log before it is scheduled again."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np

from perf_assets.core.errors import BadInputError
from perf_assets.scheduling.kernels.compiled import Floats, Integers, Mask
from perf_assets.scheduling.kernels.jobs import LEAST_SECONDS

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
    most_nodes: int | None = None
    """Nodes of the machine, where the log says so."""
    skipped: Mapping[str, int] = field(default_factory=dict)
    """Lines and jobs that were left out, by reason."""
    notes: tuple[str, ...] = ()
    """What a person should know of it."""
    is_simulated: bool = False

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


_USERS, _HABITS = 40, 4
"""Users, and kinds of jobs that each submits."""
_DAY = 86_400.0
_GAP_SECONDS = 600.0
"""Mean seconds between submissions, before they are spread to the load."""
_LOAD = 0.7
_ROUND_REQUESTS = np.array([600.0, 1800.0, 3600.0, 4 * 3600.0, 12 * 3600.0, _DAY])


def synthetic_trace(jobs: int, nodes: int, seed: int) -> Trace:
    """Jobs of 1 to `nodes` nodes, powers of two, mostly small; requests are round and up to ten times too long."""
    random = np.random.default_rng(seed)
    habit = random.integers(0, _USERS * _HABITS, jobs)
    widths = 2 ** np.floor(random.beta(1.0, 2.0, _USERS * _HABITS) * (np.log2(nodes) + 1)).astype(np.int64)
    typical = np.exp(random.normal(np.log(1500.0), 1.6, _USERS * _HABITS))
    run = np.clip(typical[habit] * np.exp(random.normal(0.0, 0.5, jobs)), LEAST_SECONDS, _DAY)
    slack = random.uniform(1.0, 10.0, _USERS * _HABITS)
    wanted = np.minimum(np.maximum(typical[habit] * slack[habit], run), _DAY)
    arrivals = np.cumsum(random.exponential(_GAP_SECONDS, jobs))
    # Twice as dense by day as by night: time runs slower then.
    arrivals += _DAY / (6 * np.pi) * np.sin(2 * np.pi * arrivals / _DAY)
    trace = Trace(
        name=f"synthetic, seed {seed}",
        number=np.arange(1, jobs + 1),
        submit=arrivals - arrivals[0],
        run=np.rint(run),
        nodes=widths[habit].astype(np.int64),
        request=_ROUND_REQUESTS[np.searchsorted(_ROUND_REQUESTS, wanted)],
        user=habit // _HABITS,
        application=habit % _HABITS,
        most_nodes=nodes,
        is_simulated=True,
    )
    return trace.at_load(_LOAD, nodes)
