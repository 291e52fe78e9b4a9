"""Rows of a job log, of any batch system, to a trace: jobs that count, their run times, and notes on all others.

Rules. Jobs that never ran (cancelled or failed while they waited), that still run, or whose times contradict each other
are left out and counted. Jobs that ran and were then cancelled, failed or hit their limit held their nodes: they
stay, as long as they ran, and are counted. A run of less than a second is one second. A log says how long a job ran
in a column of its own, or by its start and end; where both disagree, the column counts.
"""

from collections import Counter
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd

from perf_assets.core.errors import UnreadableFileError
from perf_assets.scheduling.kernels.compiled import Floats, Mask
from perf_assets.scheduling.kernels.jobs import LEAST_SECONDS
from perf_assets.scheduling.traces.clock import Times, in_order, not_after, not_before, times_of
from perf_assets.scheduling.traces.trace import Trace

_DISAGREE_SECONDS = 60.0


@dataclass(frozen=True, eq=False)
class LogRows:
    """Columns of a log, a row per job."""

    path: Path
    number: "pd.Series[str]"
    submit: "pd.Series[str]"
    start: "pd.Series[str]"
    end: "pd.Series[str]"
    seconds: Floats
    """Run times of jobs in seconds; NaN where the log lacks them."""
    nodes: Floats
    limit: Floats
    """Seconds that users asked for; NaN where they did not, or without limit."""
    state: "pd.Series[str]"
    """Final states of jobs, in upper case; empty where the log lacks them."""
    user: "pd.Series[str]"
    application: "pd.Series[str] | None" = None
    starts_in_order: bool = False
    """Whether rows stand in the order of their starts: this tells the hour that is repeated in autumn."""
    skipped: "tuple[tuple[str, int], ...]" = ()
    """Number of jobs that were left out before, by reason."""
    zone: str | None = None
    """Zone of local times; None where it is not known."""


@dataclass(frozen=True, eq=False)
class _JobTimes:
    submit: Floats
    start: Floats
    end: Floats
    never_was: Mask
    guessed: int
    is_local: bool


def trace_of(rows: LogRows) -> Trace:
    """Trace of a log's rows, with all that was left out or changed."""
    clock = _clock(rows)
    measured = clock.end - clock.start
    run = np.where(np.isfinite(rows.seconds), rows.seconds, measured)
    skipped: Counter[str] = Counter(dict(rows.skipped))
    keep = np.ones(len(run), bool)
    for reason, wrong in _wrong(rows, clock, run):
        skipped[reason] += int((wrong & keep).sum())
        keep &= ~wrong
    skipped = Counter({reason: count for reason, count in skipped.items() if count})
    if not keep.any():
        why = ", ".join(f"{count} {reason}" for reason, count in skipped.items()) or "it is empty"
        raise UnreadableFileError(f"{rows.path} holds no job that can be scheduled: {why}")
    order = np.flatnonzero(keep)[np.argsort(clock.submit[keep], kind="stable")]
    begins = float(clock.submit[order[0]])
    return Trace(
        name=rows.path.name,
        number=_numbers(rows.number)[order],
        submit=clock.submit[order] - begins,
        run=np.maximum(run, LEAST_SECONDS)[order],
        nodes=rows.nodes[order].astype(np.int64),
        request=np.where(rows.limit > 0, rows.limit, np.nan)[order],
        user=_codes(rows.user)[order],
        application=(np.full(len(run), -1) if rows.application is None else _codes(rows.application))[order],
        application_names=() if rows.application is None else _names(rows.application),
        skipped=dict(skipped),
        notes=_notes(rows, clock, run, keep),
        epoch=begins,
        zone=rows.zone,
    )


def _clock(rows: LogRows) -> _JobTimes:
    submit, start, end = (times_of(column, rows.zone) for column in (rows.submit, rows.start, rows.end))
    if rows.starts_in_order:
        started, open_start = in_order(start)
    else:
        started, open_start = _start_by_end(start, end, rows.seconds)
    ended, open_end = not_before(end, started, rows.seconds)
    submitted, open_submit = not_after(submit, started)
    return _JobTimes(
        submit=submitted,
        start=started,
        end=ended,
        never_was=submit.never_was | start.never_was | end.never_was,
        guessed=int((open_start | open_end | open_submit).sum()),
        is_local=submit.is_local,
    )


def _start_by_end(start: Times, end: Times, seconds: Floats) -> tuple[Floats, Mask]:
    """Starts that a known end and run time tell; the first of both hours where nothing does."""
    is_known = np.isfinite(seconds) & ~end.came_twice
    is_late = is_known & (np.abs(end.early - start.late - seconds) < np.abs(end.early - start.early - seconds))
    return np.where(is_late, start.late, start.early), start.came_twice & ~is_known


def _wrong(rows: LogRows, clock: _JobTimes, run: Floats) -> list[tuple[str, Mask]]:
    """Reasons to leave jobs out, in the order in which they are looked for."""
    state = rows.state
    runs_still = state.isin(["RUNNING", "SUSPENDED", "COMPLETING", "RUN"]).to_numpy()
    waits = state.isin(["PENDING", "REQUEUED", "CONFIGURING", "SCHED", "DEPEND", "PRIORITY"]).to_numpy()
    given_up = state.str.startswith(("CANCEL", "FAIL", "BOOT_FAIL", "NODE_FAIL", "DEADLINE", "REVOKED", "TIMEOUT"))
    return [
        ("jobs at a local time that is skipped in spring: another time zone?", clock.never_was),
        ("jobs that still run or wait", np.asarray(runs_still | waits)),
        ("jobs that were cancelled or failed before they ran", np.asarray(given_up.to_numpy() & ~(run > 0))),
        ("jobs without a time of submission", np.isnan(clock.submit)),
        ("jobs that end before they start", np.asarray((clock.end < clock.start) | (run < 0))),
        ("jobs that start before they are submitted", np.asarray(clock.start < clock.submit - 1)),
        ("jobs with an unknown run time", np.isnan(run)),
        ("jobs without nodes", ~(rows.nodes >= 1)),
    ]


def _notes(rows: LogRows, clock: _JobTimes, run: Floats, keep: Mask) -> tuple[str, ...]:
    state, measured = rows.state[keep], (clock.end - clock.start)[keep]
    kept, limit = run[keep], rows.limit[keep]
    counts = [
        (int((kept < LEAST_SECONDS).sum()), "jobs of less than a second are taken as one second long"),
        (int(state.str.startswith("CANCEL").sum()), "jobs were cancelled while they ran: kept, as long as they ran"),
        (
            int(state.str.startswith(("FAIL", "NODE_FAIL", "OUT_OF_ME", "PREEMPT")).sum()),
            "jobs failed while they ran: kept, as long as they ran",
        ),
        (int(state.str.startswith("TIMEOUT").sum()), "jobs were killed at their limit: they are as long as that"),
        (int((kept > limit).sum()), "jobs ran longer than their limit: they are killed there where requests kill"),
        (
            int((np.abs(measured - kept) > _DISAGREE_SECONDS).sum()),
            "jobs whose start and end are not as far apart as they ran (a clock was set, or a job suspended): "
            "the run time counts",
        ),
        (clock.guessed, "jobs in the hour that autumn repeats: nothing tells which of both, the nearer one is taken"),
        (int(np.isnan(limit).sum()), "jobs have no limit"),
    ]
    notes = [f"{count} {what}" for count, what in counts if count]
    if clock.is_local:
        notes.append("local times without a zone are taken as they stand: give --zone where clocks change")
    return tuple(notes)


def _numbers(texts: "pd.Series[str]") -> "np.ndarray[tuple[int], np.dtype[np.int64]]":
    """Numbers of jobs, where they are numbers (`123_4` is task 4 of job 123), else their place in the log."""
    numbers = pd.to_numeric(texts.str.extract(r"^(\d{1,15})", expand=False), errors="coerce").to_numpy(float)
    return np.where(np.isfinite(numbers), numbers, np.arange(1, len(texts) + 1)).astype(np.int64)


def _codes(words: "pd.Series[str]") -> "np.ndarray[tuple[int], np.dtype[np.int64]]":
    """A number per word, -1 where there is none."""
    return pd.factorize(words.where(words.str.len() > 0))[0].astype(np.int64)


def _names(words: "pd.Series[str]") -> tuple[str, ...]:
    """The words, by the numbers of `_codes`."""
    return tuple(map(str, pd.factorize(words.where(words.str.len() > 0))[1]))
