"""One budget of threads for everything that computes."""

import os
from contextvars import ContextVar

from perf_assets.core.errors import BadInputError
from perf_assets.infra.profile import DaskProfile, current_profile

VARIABLE = "PERF_ASSETS_THREADS"
"""Environment variable that sets it."""
is_task: ContextVar[bool] = ContextVar("is_task", default=False)
"""Whether the current work is one of several tasks: it has one thread, and its own fan-outs stay in its process."""


def thread_budget() -> int:
    """Threads that one process may use: PERF_ASSETS_THREADS, or what the profile says, at most all cores."""
    if is_task.get():
        return 1
    given = os.environ.get(VARIABLE)
    if given:
        if not given.isdigit() or int(given) < 1:
            raise BadInputError(f"{VARIABLE} is {given!r}: give a whole number of threads, 1 or more")
        return int(given)
    profile = current_profile()
    return 1 if isinstance(profile, DaskProfile) else min(profile.threads_per_process, core_count())


def core_count() -> int:
    """Cores that this process may use."""
    return len(os.sched_getaffinity(0))


def process_count(processes: int | None) -> int:
    """Processes that run at once, each with the budget of threads; by default, the number that the cores allow."""
    threads, cores = thread_budget(), core_count()
    if processes is None:
        return max(1, cores // threads)
    if processes * threads > cores:
        raise BadInputError(
            f"{processes} processes of {threads} threads are more than the {cores} cores here: "
            f"lower processes or threads_per_process in the profile (or {VARIABLE})"
        )
    return processes
