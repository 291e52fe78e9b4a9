"""A schedule as a list of events, which can be written down, replayed and drawn."""

from dataclasses import dataclass
from enum import IntEnum

import numpy as np

from perf_assets.core.errors import BadInputError
from perf_assets.scheduling.kernels.compiled import Floats, Integers
from perf_assets.scheduling.simulate import Machine, Schedule


class EventKind(IntEnum):
    """Kinds of events; those at one time stand in this order."""

    END = 0
    KILL = 1
    SUBMIT = 2
    START = 3


@dataclass(frozen=True, eq=False)
class EventLog:
    """Events in the order of time, kind and job."""

    time: Floats
    kind: Integers
    job: Integers
    """Position in the order of submission."""
    machine: Integers
    """-1 for submissions."""
    nodes: Integers
    """0 for submissions."""

    def __len__(self) -> int:
        return len(self.time)


def event_log(schedule: Schedule) -> EventLog:
    """All events of a schedule."""
    count = len(schedule.jobs.submit)
    jobs = np.arange(count)
    nothing = np.zeros(count, np.int64)
    ends = np.where(schedule.was_killed, int(EventKind.KILL), int(EventKind.END))
    time = np.concatenate([schedule.jobs.submit, schedule.outcome.start, schedule.outcome.end])
    kind = np.concatenate([nothing + int(EventKind.SUBMIT), nothing + int(EventKind.START), ends])
    job = np.concatenate([jobs, jobs, jobs])
    machine = np.concatenate([nothing - 1, schedule.machine, schedule.machine])
    nodes = np.concatenate([nothing, schedule.nodes, schedule.nodes])
    order = np.lexsort((job, kind, time))
    return EventLog(time[order], kind[order], job[order], machine[order], nodes[order])


def replay(log: EventLog, machines: tuple[Machine, ...]) -> Integers:
    """Free nodes of each machine after each event; refuses a log that no scheduler can have written."""
    starts, ends = log.kind == EventKind.START, log.kind <= EventKind.KILL
    submitted, started, ended = (_times(log, chosen) for chosen in (log.kind == EventKind.SUBMIT, starts, ends))
    if (started < submitted).any() or (ended < started).any():
        raise BadInputError("the log starts a job before it was submitted, or ends it before it starts")
    free = np.empty((len(log), len(machines)), np.int64)
    for position, machine in enumerate(machines):
        here = log.machine == position
        taken = np.where(here & starts, log.nodes, 0) - np.where(here & ends, log.nodes, 0)
        free[:, position] = machine.nodes - np.cumsum(taken)
        if (free[:, position] < 0).any():
            raise BadInputError(f"the log takes more nodes of {machine.name} than it has")
    return free


def as_csv(log: EventLog, machines: tuple[Machine, ...], numbers: Integers) -> str:
    """A line per event, with the free nodes of all machines after it; `numbers` are those of jobs in their trace."""
    free = replay(log, machines).sum(axis=1)
    lines = ["time_s,event,job,machine,nodes,free_nodes"]
    for time, kind, job, machine, nodes, left in zip(
        log.time.tolist(), log.kind, log.job, log.machine, log.nodes, free, strict=True
    ):
        where = machines[machine].name if machine >= 0 else ""
        lines.append(f"{time!r},{EventKind(kind).name.lower()},{numbers[job]},{where},{nodes},{left}")
    return "\n".join(lines) + "\n"


def _times(log: EventLog, chosen: "np.ndarray[tuple[int], np.dtype[np.bool_]]") -> Floats:
    """Time of each job's event of a kind; refuses where a job has not just one."""
    jobs = log.job[chosen]
    if not np.array_equal(np.sort(jobs), np.arange(len(log) // 3)):
        raise BadInputError("the log must submit, start and end every job once")
    times = np.empty(len(jobs))
    times[jobs] = log.time[chosen]
    return times
