"""Input and output of the simulator: flat arrays, because compiled code walks over them."""

from typing import NamedTuple

import numpy as np

from perf_assets.scheduling.kernels.compiled import Floats, Integers, Mask

LEAST_SECONDS = 1.0
"""Shortest run and shortest estimate: traces count in seconds."""


class Jobs(NamedTuple):
    """Jobs in the order of submission. Each has one or several options: as asked for, on fewer nodes, elsewhere.

    Those of job j are `first[j]` to `first[j + 1] - 1`; the first of them is what was asked for.
    """

    submit: Floats
    """Seconds."""
    first: Integers
    machine: Integers
    """Position of each option's machine in the cluster's list."""
    nodes: Integers
    run: Floats
    """Seconds that it takes if nobody stops it."""
    estimate: Floats
    """Seconds that the scheduler plans with."""
    limit: Floats
    """Seconds after which it is killed; infinite where it never is."""


class Outcome(NamedTuple):
    """Outcome of each job."""

    start: Floats
    end: Floats
    option: Integers
    """The option that was taken: a position in the arrays of options."""
    promised: Floats
    """Start that the job was first promised, when it led the queue (EASY) or came (conservative); NaN for others."""
    was_backfilled: Mask


def empty_outcome(count: int) -> Outcome:
    """Outcome that is to be filled."""
    return Outcome(
        np.full(count, np.nan),
        np.full(count, np.nan),
        np.full(count, -1, np.int64),
        np.full(count, np.nan),
        np.zeros(count, np.bool_),
    )
