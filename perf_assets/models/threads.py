"""One budget of threads for everything that computes."""

import os

from perf_assets.core.errors import BadInputError

VARIABLE = "PERF_ASSETS_THREADS"
"""Environment variable that sets it."""
_DEFAULT = 2


def thread_budget() -> int:
    """Threads a model may use: PERF_ASSETS_THREADS, or at most 2."""
    given = os.environ.get(VARIABLE)
    if not given:
        return min(_DEFAULT, os.cpu_count() or 1)
    if not given.isdigit() or int(given) < 1:
        raise BadInputError(f"{VARIABLE} is {given!r}: give a whole number of threads, 1 or more")
    return int(given)


def keep_torch_in_budget() -> None:
    """Hold PyTorch to one thread: nets as small as ours take 2.3 times as long with two (measured on two cores)."""
    import torch

    torch.set_num_threads(1)
