"""Traces as files."""

from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np

from perf_assets.scheduling.traces.draw import drawn, simulated_trace
from perf_assets.scheduling.traces.trace import Trace

HEADER = "; Version: 2.2\n; MaxNodes: 4\n; MaxProcs: 8\n; Note: nobody\u2019s trace\n"


def line(
    number: int, submit: int, run: int, nodes: int, request: int = -1, user: int = 1, asked_nodes: int = -1
) -> str:
    """One job."""
    values = [number, submit, -1, run, nodes, -1, -1, asked_nodes, request, -1, 1, user, 1, -1, -1, -1, -1, -1]
    return " ".join(map(str, values))


def write(path: Path, *lines: str) -> Path:
    """A trace with a header."""
    path.write_text(HEADER + "\n".join(lines) + "\n")
    return path


SACCT = "JobID|User|Submit|Start|End|Timelimit|NNodes|State|JobName"


def sacct_line(number: int, day: int, minutes: int, nodes: int) -> str:
    """One job of `sacct -P`, in the first week of January 2019; it waits a minute."""
    submit, begins = f"2019-01-0{day}T{number % 24:02d}:10:00", f"2019-01-0{day}T{number % 24:02d}:11:00"
    ends = f"2019-01-0{day}T{number % 24:02d}:{11 + minutes}:00"
    return f"{number}|u{number % 3}|{submit}|{begins}|{ends}|01:00:00|{nodes}|COMPLETED|Kripke"


_simulated = cache(simulated_trace)


def drawn_trace(jobs: int, nodes: int, seed: int) -> Trace:
    """Jobs drawn from the simulated log, none of more than `nodes` nodes, at the load that this has."""
    window = _simulated().that_fits(nodes)
    times = -(-jobs // len(window))
    trace = drawn(window.repeated(times) if times > 1 else window, seed)
    return replace(trace.where(np.arange(jobs)), skipped={}).at_load(0.7, nodes)
