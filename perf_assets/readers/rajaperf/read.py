"""Runs of RAJAPerf in a directory tree, from CSV reports, Caliper profiles, or both.

Where both lie in one directory they are of one run: the reports have the times and full integers, the
profiles have what no report says (threads, compiler, counters).
"""

import hashlib
import re
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from perf_assets.core.environment import environment_of
from perf_assets.core.measurements import KernelTiming, Reading
from perf_assets.readers.caliper import MAX_BYTES
from perf_assets.readers.caliper_profile import PERSONAL
from perf_assets.readers.files import SourceFile, read_bytes, unreadable
from perf_assets.readers.formats import FileKind
from perf_assets.readers.rajaperf.caliper import CaliperRun, read_caliper
from perf_assets.readers.rajaperf.csv import ReportSet, RunContext, generation_of, read_report_set, report_sets
from perf_assets.readers.rajaperf.reports import Key
from perf_assets.readers.rajaperf.threads import threads_in_command

_MAX_LABEL = 2000
_COMPILER = re.compile(rb"^Compiler: ([^\n]{1,200})", re.MULTILINE)


def read_rajaperf(files: Mapping[FileKind, Sequence[SourceFile]]) -> Reading:
    """All runs of a tree."""
    sets = report_sets(
        {
            "timing": files.get(FileKind.RAJAPERF_TIMING, ()),
            "details": files.get(FileKind.RAJAPERF_DETAILS, ()),
            "run_data": files.get(FileKind.RAJAPERF_RUN_DATA, ()),
            "checksum": files.get(FileKind.RAJAPERF_CHECKSUM, ()),
        }
    )
    finished = [reports for reports in sets if not reports.is_aborted]
    profiles = _read_profiles(files.get(FileKind.CALIPER, ()))
    if not finished and not profiles:
        raise _nothing_finished(sets, files)
    runs_in = Counter(reports.directory for reports in finished)
    beside = _beside(files, profiles)
    timings: list[KernelTiming] = []
    metadata: list[dict[str, str]] = []
    for reports in finished:
        # Where several runs share a directory, it is unknown to which of them another file belongs.
        is_alone = runs_in[reports.directory] == 1
        context, facts = _context(beside[reports.directory]) if is_alone else (RunContext(), {})
        timings += read_report_set(reports, context)
        metadata.append(facts)
    alone = [run for source, run in profiles if source.directory not in runs_in]
    for run in alone:
        timings += run.timings
        metadata.append(run.metadata)
    if not timings:
        raise unreadable(finished[0].one_file(), "reports no kernel that was run")
    formats = {f"rajaperf-csv-{generation_of(reports)}" for reports in finished} | ({"caliper"} if alone else set())
    shared = {name: text for name, text in _shared(metadata).items() if not PERSONAL.search(name)}
    aborted = [reports.run for reports in sets if reports.is_aborted and reports.directory not in runs_in]
    if aborted and finished:
        shared["aborted_runs"] = ", ".join(aborted)[:_MAX_LABEL]
    return Reading("+".join(sorted(formats)), shared, timings=timings)


def _nothing_finished(sets: Sequence[ReportSet], files: Mapping[FileKind, Sequence[SourceFile]]) -> Exception:
    some = sets[0].one_file() if sets else next(iter(files.values()))[0]
    return unreadable(
        some, "has no timing report beside it: the run was aborted before it wrote its times, or they were not copied"
    )


def _read_profiles(sources: Sequence[SourceFile]) -> list[tuple[SourceFile, CaliperRun]]:
    """Read Caliper files; of files with the same content only the first, as copies under several names occur."""
    sizes = Counter(source.size for source in sources)
    seen: set[bytes] = set()
    profiles = []
    for source in sources:
        if sizes[source.size] > 1:
            digest = hashlib.sha256(read_bytes(source, MAX_BYTES)).digest()
            if digest in seen:
                continue
            seen.add(digest)
        profiles.append((source, read_caliper(source.name, source)))
    return profiles


@dataclass(slots=True)
class _Beside:
    """Files beside the reports in one directory."""

    profiles: list[CaliperRun] = field(default_factory=list)
    commands: list[SourceFile] = field(default_factory=list)
    logs: list[SourceFile] = field(default_factory=list)


def _beside(
    files: Mapping[FileKind, Sequence[SourceFile]], profiles: Sequence[tuple[SourceFile, CaliperRun]]
) -> defaultdict[str, _Beside]:
    directories: defaultdict[str, _Beside] = defaultdict(_Beside)
    for source, run in profiles:
        directories[source.directory].profiles.append(run)
    for source in files.get(FileKind.COMMAND, ()):
        directories[source.directory].commands.append(source)
    for source in files.get(FileKind.RAJAPERF_LOG, ()):
        directories[source.directory].logs.append(source)
    return directories


def _context(beside: _Beside) -> tuple[RunContext, dict[str, str]]:
    """Facts about a run from the files beside its reports: threads and counters, and metadata."""
    facts: dict[str, str] = {}
    threads, command = threads_in_command(beside.commands)
    if command:
        facts["command"] = command[:_MAX_LABEL]
    for log in beside.logs:
        compiler = _COMPILER.search(log.head)
        if compiler:
            facts["compiler"] = compiler[1].decode("utf-8", "replace").strip()
    facts |= _shared([run.metadata for run in beside.profiles])
    thread_counts = {run.omp_threads for run in beside.profiles}
    if len(thread_counts) == 1:
        threads = thread_counts.pop() or threads
    counters: dict[Key, dict[str, float]] = {
        (timing.kernel, timing.variant, timing.tuning): timing.counters
        for run in beside.profiles
        for timing in run.timings
        if timing.counters
    }
    return RunContext(threads, counters, environment_of(facts)), facts


def _shared(metadata: Sequence[Mapping[str, str]]) -> dict[str, str]:
    """Metadata that is equal in all runs."""
    if not metadata:
        return {}
    first, *others = metadata
    return {
        key: value
        for key, value in first.items()
        if len(value) <= _MAX_LABEL and all(other.get(key) == value for other in others)
    }
