"""A made-up trace, for those who have none: users who submit the like of their jobs again and again, by day."""

import numpy as np

from perf_assets.scheduling.kernels.jobs import LEAST_SECONDS
from perf_assets.scheduling.traces.trace import Trace

_USERS, _HABITS = 40, 4
"""Users, and kinds of jobs that each submits."""
_DAY = 86_400.0
_GAP_SECONDS = 600.0
"""Between submissions, before they are spread to the load."""
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
        f"synthetic, seed {seed}",
        np.arange(1, jobs + 1),
        arrivals - arrivals[0],
        np.rint(run),
        widths[habit].astype(np.int64),
        _ROUND_REQUESTS[np.searchsorted(_ROUND_REQUESTS, wanted)],
        habit // _HABITS,
        habit % _HABITS,
        nodes,
        is_simulated=True,
    )
    return trace.at_load(_LOAD, nodes)
