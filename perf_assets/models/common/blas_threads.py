"""Hold numpy's matrix products to one thread: ours are small, and several threads mostly wait for each other."""

from functools import cache

from threadpoolctl import threadpool_limits


@cache
def keep_blas_to_one_thread() -> None:
    """From now on in this process. On busy cores two threads took many times as long as one."""
    threadpool_limits(limits=1, user_api="blas")
