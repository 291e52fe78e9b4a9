"""The profiles of a run, one per thread and GPU stream: who they are and what they counted in all."""

import zlib
from dataclasses import dataclass
from enum import IntEnum

import numpy as np
from numpy.typing import NDArray

from perf_assets.demo.simulated import ProfiledRun

FIRST_GPU_THREAD = 500
"""HPCToolkit numbers GPU streams as threads from here on."""


class ThreadKind(IntEnum):
    """Origin of a profile's samples."""

    MAIN = 0
    WORKER = 1
    GPU = 2


@dataclass(frozen=True)
class ThreadProfile:
    """Identity of one profile."""

    kind: ThreadKind
    rank: int
    thread: int
    """Thread of the rank; GPU streams count from `FIRST_GPU_THREAD`."""
    host: int
    """Index among the run's hosts."""


def invented(seed: int, what: str) -> int:
    """A 32-bit number that only depends on its arguments."""
    return zlib.crc32(f"{what}:{seed}".encode())


def is_seconds(metric: str) -> bool:
    """Whether a metric is a time in seconds; all others are counts."""
    return metric.endswith("(sec)")


def profiles_of(run: ProfiledRun) -> list[ThreadProfile]:
    """All profiles: threads by rank, then GPU streams, stream k on rank k."""
    hosts = [rank * run.hosts // run.ranks for rank in range(run.ranks)]
    profiles = [
        ThreadProfile(ThreadKind.WORKER if thread else ThreadKind.MAIN, rank, thread, hosts[rank])
        for rank in range(run.ranks)
        for thread in range(run.threads_per_rank)
    ]
    for stream in range(0 if run.gpu_streams is None else len(run.gpu_streams)):
        turn, rank = divmod(stream, run.ranks)
        profiles.append(ThreadProfile(ThreadKind.GPU, rank, FIRST_GPU_THREAD + turn, hosts[rank]))
    return profiles


def totals_of(run: ProfiledRun) -> NDArray[np.float64]:
    """Totals in the order of `profiles_of`, counts rounded to integers; shape (profiles, metrics)."""
    totals = run.values.reshape(-1, len(run.metrics))
    if run.gpu_streams is not None:
        totals = np.concatenate([totals, run.gpu_streams.reshape(-1, len(run.metrics))])
    counts = [not is_seconds(metric) for metric in run.metrics]
    return np.where(counts, np.rint(totals), totals)


def host_id(run: ProfiledRun, host: int) -> int:
    """The 32-bit id of a host, in the private network that hpcrun derives it from."""
    return 0xA8C00000 + (invented(run.seed, "host") % 0xFF00) + host


def process_id(run: ProfiledRun, profile: ThreadProfile) -> int:
    """The process id of a profile's rank on its host."""
    return 10_000 + invented(run.seed, f"process {profile.host}") % 150_000 + profile.rank
