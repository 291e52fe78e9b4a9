"""Tasks that workers import, and profiles that say where they run."""

import os
import resource
import signal
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import yaml

from perf_assets.infra.fanout import side_by_side
from perf_assets.infra.threads import thread_budget

LOCAL = {"workers": 2, "memory_per_worker": "2GB"}


def write_profile(folder: Path, cluster: Mapping[str, Any], **fields: object) -> Path:
    """A profile of a Dask cluster."""
    path = folder / "profile.yaml"
    settings = {"executor": "dask", "tasks_per_worker": 2, "retries": 2, "start_seconds": 60.0}
    path.write_text(yaml.safe_dump({**settings, "cluster": dict(cluster), **fields}))
    return path


def drawn(scale: float, seed: int) -> tuple[float, int, int]:
    """Numbers of a seed; the process and its budget."""
    return float(scale * np.random.default_rng(seed).normal(size=100).sum()), os.getpid(), thread_budget()


def noted(folder: Path, number: int) -> int:
    """The square of a number, with a trace of every try."""
    (folder / f"{number}-{time.monotonic_ns()}").touch()
    time.sleep(0.05)
    return number * number


def killing(folder: Path, number: int) -> int:
    """Ends its process, as a node does that fails: number 3 once, number 13 always."""
    if number == 13 or (number == 3 and not (folder / "died").exists()):
        (folder / "died").touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return number * number


def failing(folder: Path, number: int) -> int:
    """An error of the task itself, with a trace of every try."""
    if number == 2:
        (folder / f"tried-{time.monotonic_ns()}").touch()
        raise ValueError("two is refused")
    return number


def new_pages(size: int, count: int) -> int:
    """Pages that the system had to give for so many arrays of so many numbers, made one after the other."""
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    for _ in range(count):
        np.ones(size)
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before


def nested(scale: float, number: int) -> list[tuple[int, tuple[float, int, int]]]:
    """A task that has tasks."""
    return list(side_by_side(drawn, scale, range(number)))


def in_job(scale: float, seed: int) -> tuple[float, str, str]:
    """Numbers of a seed; the Slurm job, and what the prologue of its script set."""
    time.sleep(0.2)
    return drawn(scale, seed)[0], os.environ["SLURM_JOB_ID"], os.environ["MADE_BY"]
