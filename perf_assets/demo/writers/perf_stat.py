"""Counters as `perf stat -x, -o FILE` writes them."""

import math
import time
from collections.abc import Mapping
from pathlib import Path

from perf_assets.demo.simulated import ProfiledRun
from perf_assets.demo.writers.thread_profiles import invented, is_seconds, totals_of

_FIRST_START = 1_790_000_000
_START_RANGE = 5_000_000
_RATES = ((1e9, "G/sec"), (1e6, "M/sec"), (1e3, "K/sec"), (1.0, "/sec"))


def write_perf_stat(path: Path, run: ProfiledRun, running_shares: Mapping[str, float]) -> None:
    """Write the counters of all ranks and threads together to `path`.

    `running_shares` says for which share of the run an event was counted, where that is not all of it. Events
    whose value is NaN are not supported by the machine. Run time stands as `duration_time`, processor time
    (`CPUTIME (sec)`, else all threads busy) as `task-clock`.
    """
    totals = {metric: float(total) for metric, total in zip(run.metrics, totals_of(run).sum(axis=0), strict=True)}
    busy = totals.get("CPUTIME (sec)", run.wall_seconds * run.ranks * run.threads_per_rank)
    started = time.asctime(time.gmtime(_FIRST_START + invented(run.seed, "start") % _START_RANGE))
    nanoseconds = round(run.wall_seconds * 1e9)
    lines = [
        f"# started on {started}",
        "",
        f"{busy * 1e3:.2f},msec,task-clock,{round(busy * 1e9)},100.00,{busy / run.wall_seconds:.3f},CPUs utilized",
        f"{nanoseconds},ns,duration_time,{nanoseconds},100.00,,",
    ]
    lines += [
        _line(event, value, busy, running_shares.get(event, 1.0), totals)
        for event, value in totals.items()
        if not is_seconds(event)
    ]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")


def _line(event: str, value: float, busy: float, share: float, totals: Mapping[str, float]) -> str:
    if math.isnan(value):
        return f"<not supported>,,{event},0,100.00,,"
    return f"{value:.0f},,{event},{round(busy * share * 1e9)},{share * 100:.2f},{_derived(event, value, busy, totals)}"


def _derived(event: str, value: float, busy: float, totals: Mapping[str, float]) -> str:
    """The metric that perf adds to an event, and its unit."""
    cycles = totals.get("cycles", math.nan)
    if event == "instructions" and cycles > 0:
        return f"{value / cycles:.2f},insn per cycle"
    if event == "cycles":
        return f"{value / busy / 1e9:.3f},GHz"
    rate = value / busy
    factor, unit = next(((factor, unit) for factor, unit in _RATES if rate >= factor), _RATES[-1])
    return f"{rate / factor:.3f},{unit}"
