"""What the profiling runs of an execution leave behind: files of counters, or rows of a table."""

from collections.abc import Mapping
from zlib import crc32

import numpy as np

from perf_assets.core.machines import MachineSpec
from perf_assets.demo.execution import Execution
from perf_assets.demo.simulated import ProfiledRun
from perf_assets.demo.tools.counter_tables import PERF_STAT_SOFTWARE
from perf_assets.demo.tools.counters import EVENT_SETS
from perf_assets.demo.tools.observation import generator, observe

TARGET_COLUMN = "wall_seconds"
"""Column of a table of samples that is to be predicted."""
_LIVE_SHARE = 0.6
"""Six hardware counters for ten events."""
_MULTIPLEXING_SPREAD = 0.015


def arguments(execution: Execution) -> str:
    """The command line's arguments on this machine, with the back end where there is a choice."""
    gpu = execution.spec.gpu
    if gpu is None or not execution.placement.gpus:
        return execution.configuration.args
    return f"{execution.configuration.args} -d {'cuda' if 'NVIDIA' in gpu.model else 'hip'}"


def profiled_runs(execution: Execution, seed: int) -> dict[str, ProfiledRun]:
    """The profiling runs of a configuration by name (`set1`, `set2` …), each a run of its own."""
    configuration, placement = execution.configuration, execution.placement
    runs = {}
    for number, events in enumerate(EVENT_SETS[execution.spec.machine], start=1):
        if events.device and not placement.gpus:
            continue
        name = f"set{number}"
        observation = observe(execution, name, seed)
        runs[name] = ProfiledRun(
            program=execution.application.program,
            ranks=configuration.ranks,
            threads_per_rank=configuration.threads,
            hosts=placement.nodes,
            wall_seconds=observation.wall_seconds,
            metrics=events.names,
            values=events.of_host(observation),
            gpu_streams=events.of_device(observation) if events.device else None,
            seed=crc32(f"{seed}|{execution.spec.machine}|{configuration.key}|{name}".encode()),
        )
    return runs


def multiplexed(run: ProfiledRun, spec: MachineSpec, seed: int) -> tuple[ProfiledRun, dict[str, float]]:
    """A run whose hardware counters took turns: values estimated by the tool, and the share each was live."""
    random = generator(seed, (spec.machine, "multiplexing", str(run.seed)))
    shares = {}
    values = run.values.copy()
    for column, name in enumerate(run.metrics):
        if name.endswith("(sec)") or name in PERF_STAT_SOFTWARE:
            continue
        shares[name] = round(float(np.clip(random.normal(_LIVE_SHARE, 0.01), 0.5, 0.7)), 4)
        values[:, :, column] *= np.exp(random.normal(0.0, _MULTIPLEXING_SPREAD))
    estimated = ProfiledRun(
        run.program, run.ranks, run.threads_per_rank, run.hosts, run.wall_seconds, run.metrics, values, None, run.seed
    )
    return estimated, shares


def sample(execution: Execution, seed: int) -> Mapping[str, str | float]:
    """One row of a machine's table of samples; counters are summed over ranks, threads and devices."""
    configuration, placement = execution.configuration, execution.placement
    row: dict[str, str | float] = {
        "app": configuration.app,
        "args": arguments(execution),
        "ranks": configuration.ranks,
        "threads": configuration.threads,
        "nodes": placement.nodes,
        "gpus": placement.gpus,
    }
    for events in EVENT_SETS[execution.spec.machine]:
        measured = events if placement.gpus else events.without_device
        observation = observe(execution, "samples", seed)
        totals = measured.of_host(observation).sum(axis=(0, 1)) + measured.of_device(observation).sum(axis=0)
        row[TARGET_COLUMN] = observation.wall_seconds
        row |= dict(zip(measured.names, np.rint(totals).tolist(), strict=True))
    return row
