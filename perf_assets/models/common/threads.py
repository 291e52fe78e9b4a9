"""PyTorch in the budget of threads."""


def keep_torch_in_budget() -> None:
    """Hold PyTorch to one thread: nets as small as ours take 2.3 times as long with two (measured on two cores)."""
    import torch

    torch.set_num_threads(1)
