"""Numeric libraries in one thread: our nets and matrix products are small, and several threads mostly wait."""

from functools import cache


def keep_torch_in_budget() -> None:
    """Hold PyTorch to one thread: nets as small as ours take 2.3 times as long with two (measured on two cores)."""
    import torch

    torch.set_num_threads(1)


@cache
def keep_blas_to_one_thread() -> None:
    """Hold numpy's matrix products to one thread: on busy cores two took many times as long as one."""
    from threadpoolctl import threadpool_limits

    threadpool_limits(limits=1, user_api="blas")
