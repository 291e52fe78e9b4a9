"""Runs of RAJAPerf from their CSV reports: files are grouped by run and read together."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from perf_assets.core.measurements import KernelTiming
from perf_assets.readers.files import SourceFile, unreadable
from perf_assets.readers.rajaperf.reports import (
    Details,
    Key,
    RunData,
    Timing,
    read_checksums,
    read_details,
    read_run_data,
    read_timing,
)
from perf_assets.readers.rajaperf.threads import threads_of

NO_REPETITION = "no repetition was run (Reps 0)"
CHECKSUM_FAILED = "checksum FAILED"
TOO_SHORT = "time below the resolution of the report"
NO_MEAN = "the run reported no mean time"

_ENDING = re.compile(
    r"-(?:(?:timing|speedup)-\w+\.csv|kernels\.csv|kernel-details\.csv|kernel-run-data\.csv|fom\.csv|checksum\.txt)$"
)


@dataclass(slots=True)
class ReportSet:
    """The reports of one run."""

    run: str
    """Path and prefix that the reports share."""
    directory: str
    timing: list[SourceFile] = field(default_factory=list)
    details: list[SourceFile] = field(default_factory=list)
    run_data: list[SourceFile] = field(default_factory=list)
    checksum: list[SourceFile] = field(default_factory=list)

    @property
    def is_aborted(self) -> bool:
        """Whether the run ended before its times were written."""
        return not self.timing and not self.run_data

    def one_file(self) -> SourceFile:
        """Any of its files, to name the set in an error."""
        return next(iter([*self.timing, *self.run_data, *self.details, *self.checksum]))


def report_sets(files: Mapping[str, Sequence[SourceFile]]) -> list[ReportSet]:
    """Group report files, given by what they are (timing, details, run_data, checksum), into runs.

    What a file is was seen in its content; only the prefix that distinguishes the runs in one directory is in
    the names.
    """
    sets: dict[str, ReportSet] = {}
    for kind in ("timing", "details", "run_data", "checksum"):
        for source in files.get(kind, ()):
            prefix = _ENDING.sub("", source.name)
            run = source.directory if prefix == source.name else prefix
            if run not in sets:
                sets[run] = ReportSet(run, source.directory)
            getattr(sets[run], kind).append(source)
    return [sets[run] for run in sorted(sets)]


@dataclass(frozen=True, slots=True)
class RunContext:
    """Facts about the run from files beside the reports."""

    omp_threads: int | None = None
    counters: Mapping[Key, dict[str, float]] = field(default_factory=dict)
    environment: str | None = None


@dataclass(frozen=True, slots=True)
class _Reports:
    """The parsed files of one set."""

    details: Details | None
    run_data: RunData | None
    mean: Timing | None
    smallest: Timing | None
    largest: Timing | None
    checksums: dict[Key, bool]

    def executed(self) -> Iterable[Key]:
        """Kernels and variants that were run, in the order of the reports."""
        named = dict.fromkeys(self.run_data.rows if self.run_data else ())
        timing = self.mean or self.smallest or self.largest
        if timing:
            named |= dict.fromkeys(key for key in timing.seconds if self._was_run(timing, key))
        return named

    def _was_run(self, timing: Timing, key: Key) -> bool:
        """Whether a kernel was run, by its checksum: the 2024 reports print 0.000000 also for kernels that were not."""
        return timing.generation == "2026" or timing.seconds[key] > 0 or key in self.checksums


def read_report_set(reports: ReportSet, context: RunContext) -> list[KernelTiming]:
    """Kernel times of one run."""
    parsed = _parse(reports)
    ranks = parsed.details.ranks if parsed.details else parsed.run_data.ranks if parsed.run_data else None
    return [_timing(reports, parsed, key, ranks, context) for key in parsed.executed()]


def generation_of(reports: ReportSet) -> str:
    """Generation of RAJAPerf that wrote the set: 2024 or 2026."""
    return "2026" if reports.run_data or b"BytesMoved/rep" in b"".join(s.head for s in reports.details) else "2024"


def _parse(reports: ReportSet) -> _Reports:
    if reports.is_aborted:
        raise unreadable(
            reports.one_file(), "has no timing report beside it: the run was aborted before it wrote any; run it again"
        )
    timings: dict[str, Timing] = {}
    for source in reports.timing:
        timing = read_timing(source)
        if timing.statistic in timings:
            raise unreadable(source, f"is a second {timing.statistic} timing report of the run {reports.run}")
        timings[timing.statistic] = timing
    details = [read_details(source) for source in reports.details]
    if not details and not reports.run_data:
        raise unreadable(
            reports.one_file(), "needs the kernels.csv of its run: it holds times of all repetitions together"
        )
    if len(details) > 1 or len(reports.run_data) > 1:
        raise unreadable(reports.one_file(), f"belongs to a run {reports.run} that has the same report twice")
    for source, timing in zip(reports.timing, timings.values(), strict=True):
        missing = sorted(set(details[0].kernels) - timing.kernels) if details else ()
        if missing:
            raise unreadable(source, f"lacks the kernel {missing[0][:60]!r} of its run, it is cut off: copy it again")
    return _Reports(
        details=details[0] if details else None,
        run_data=read_run_data(reports.run_data[0]) if reports.run_data else None,
        mean=timings.get("Mean"),
        smallest=timings.get("Min"),
        largest=timings.get("Max"),
        checksums={key: ok for source in reports.checksum for key, ok in read_checksums(source).items()},
    )


def _timing(reports: ReportSet, parsed: _Reports, key: Key, ranks: int | None, context: RunContext) -> KernelTiming:
    kernel, variant, tuning = key
    detail = parsed.details.kernels.get(kernel) if parsed.details else None
    datum = parsed.run_data.rows.get(key) if parsed.run_data else None
    if detail is None and datum is None:
        raise unreadable(reports.one_file(), f"has no details of the kernel {kernel[:60]!r}: copy the reports again")
    reps = detail.reps if detail else None
    mean = _mean(parsed, key, reps)
    reason = _why_invalid(parsed, key, reps, mean)
    return KernelTiming(
        run=reports.run,
        kernel=kernel,
        variant=variant,
        tuning=tuning,
        problem_size=(datum.problem_size if datum else detail.problem_size if detail else None) or None,
        reps=reps,
        ranks=ranks,
        threads=threads_of(variant, context.omp_threads),
        seconds_per_rep=None if reps == 0 else mean,
        seconds_per_rep_min=_per_rep(parsed.smallest, key, reps),
        seconds_per_rep_max=_per_rep(parsed.largest, key, reps),
        bytes_per_rep=float(detail.bytes_per_rep) if detail else None,
        flops_per_rep=float(detail.flops_per_rep) if detail else None,
        is_valid=reason is None,
        invalid_reason=reason,
        counters=context.counters.get(key, {}),
        environment=context.environment,
    )


def _mean(parsed: _Reports, key: Key, reps: int | None) -> float | None:
    """Mean seconds of a repetition: of the run data, whose times have six digits at any length, where they have it.

    The timing report, which also has the fastest and the slowest pass, is in whole microseconds.
    """
    datum = parsed.run_data.rows.get(key) if parsed.run_data else None
    if datum is not None and datum.seconds_per_rep is not None:
        return datum.seconds_per_rep
    return _per_rep(parsed.mean, key, reps)


def _per_rep(timing: Timing | None, key: Key, reps: int | None) -> float | None:
    seconds = timing.seconds.get(key) if timing else None
    return seconds / reps if seconds is not None and reps else None


def _why_invalid(parsed: _Reports, key: Key, reps: int | None, mean: float | None) -> str | None:
    if reps == 0:
        return NO_REPETITION
    datum = parsed.run_data.rows.get(key) if parsed.run_data else None
    if (datum is not None and not datum.is_checksum_ok) or not parsed.checksums.get(key, True):
        return CHECKSUM_FAILED
    if mean is None:
        return NO_MEAN
    return None if mean > 0 else TOO_SHORT
