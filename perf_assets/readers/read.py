"""Read whatever is in a file or a directory."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path

from perf_assets.core.errors import BadInputError, UnreadableFileError
from perf_assets.core.measurements import Profile, Reading
from perf_assets.core.text import printable
from perf_assets.readers import (
    caliper_profile,
    cross_modelling,
    job_records,
    likwid,
    nsight_compute,
    papi,
    perf_stat,
    rocprof,
    valgrind,
)
from perf_assets.readers.caliper import MAX_BYTES
from perf_assets.readers.files import SourceFile, read_bytes, scan, system_errors, unreadable
from perf_assets.readers.formats import UNDERSTOOD, FileKind, kind_of
from perf_assets.readers.hpctoolkit import v4 as hpctoolkit_v4
from perf_assets.readers.hpctoolkit import xml as hpctoolkit_xml
from perf_assets.readers.rajaperf.read import read_rajaperf
from perf_assets.readers.samples import csv as samples
from perf_assets.readers.samples.table import SampleTables

FilesByKind = dict[FileKind, list[SourceFile]]
"""Files by what they are."""

RAJAPERF_KINDS = frozenset(
    (
        FileKind.RAJAPERF_TIMING,
        FileKind.RAJAPERF_DETAILS,
        FileKind.RAJAPERF_RUN_DATA,
        FileKind.RAJAPERF_CHECKSUM,
        FileKind.RAJAPERF_OTHER,
        FileKind.RAJAPERF_LOG,
        FileKind.CALIPER,
    )
)
_JOB_READERS = {
    FileKind.SACCT: ("jobs-sacct", job_records.read_sacct),
    FileKind.SLURM_CSV: ("jobs-csv", job_records.read_accounting),
    FileKind.FLUX_JOBS: ("jobs-flux", job_records.read_flux),
}
_JOBS = frozenset(_JOB_READERS)
_TABLES = frozenset((FileKind.PARQUET, FileKind.TABLE)) | _JOBS
PROFILE_KINDS = frozenset(FileKind) - RAJAPERF_KINDS - _TABLES - {FileKind.COMMAND}
_FAMILIES = {"rajaperf": RAJAPERF_KINDS, "profile": PROFILE_KINDS, "samples": _TABLES}


def read(path: Path, kind: str | None = None) -> Reading:
    """Read a file or a directory tree; `kind` (rajaperf, profile, samples) says what to look for."""
    if kind is not None and kind not in _FAMILIES:
        raise BadInputError(f"kind {kind!r} is not known: use rajaperf, profile or samples")
    name = printable(path.name or str(path))
    with system_errors(name):
        return read_files(scan(path), name, kind)


def read_files(sources: Sequence[SourceFile], name: str, kind: str | None) -> Reading:
    """Read files that were listed already; `name` is what an error calls them together."""
    by_kind = _sorted(sources)
    family = kind or _family(by_kind, name)
    if family == "samples" and _JOBS.isdisjoint(by_kind):
        known = {source.name for files in by_kind.values() for source in files}
        tables = [s for s in sources if s.name not in known and samples.looks_like_table(s.head)]
        by_kind |= {FileKind.TABLE: tables} if tables else {}
    wanted = _FAMILIES.get(family, frozenset())
    if wanted.isdisjoint(by_kind):
        raise UnreadableFileError(_nothing_found(sources, name, kind, by_kind))
    if family == "rajaperf":
        return read_rajaperf(by_kind)
    if family == "samples":
        return _read_samples(by_kind)
    return _read_profiles(by_kind)


def kind_of_file(source: SourceFile) -> FileKind | None:
    """Kind of a file; for a Caliper profile, the application that wrote it may be named anywhere in the file."""
    kind = kind_of(source.head)
    is_other = kind is FileKind.CALIPER and not caliper_profile.is_rajaperf(source.head)
    if is_other and not caliper_profile.is_rajaperf(read_bytes(source, MAX_BYTES)):
        return FileKind.CALIPER_APPLICATION
    return kind


def _sorted(sources: Sequence[SourceFile]) -> FilesByKind:
    by_kind: FilesByKind = {}
    for source in sources:
        recognised = kind_of_file(source)
        if recognised is not None:
            by_kind.setdefault(recognised, []).append(source)
    return by_kind


def _family(files: FilesByKind, name: str) -> str:
    """The one of the three kinds that the files are of. Tables count only where there is nothing else."""
    present = [family for family in ("rajaperf", "profile") if not _FAMILIES[family].isdisjoint(files)]
    if len(present) > 1:
        raise UnreadableFileError(
            f"{name}: holds both RAJAPerf results and profiles: put them into two directories, or say which to read"
        )
    return present[0] if present else "samples"


def _nothing_found(sources: Sequence[SourceFile], name: str, kind: str | None, files: FilesByKind) -> str:
    looked_at = ", ".join(printable(source.name)[:80] for source in sources[:3])
    looked_at += f" and {len(sources) - 3} more" if len(sources) > 3 else ""
    if kind is not None and files:
        there = ", ".join(sorted(other.value for other in files))
        return f"{name}: holds nothing of kind {kind}, but: {there}"
    return f"{name}: no known format in {looked_at or 'an empty directory'}; understood are {UNDERSTOOD}"


def _read_jobs(files: FilesByKind) -> Reading:
    formats, profiles = [], []
    for kind, (name, reader) in _JOB_READERS.items():
        if kind in files:
            formats.append(name)
            profiles += [job for source in files[kind] for job in reader(source)]
    return Reading("+".join(formats), {"rows": str(len(profiles))}, profiles=profiles)


def _read_samples(files: FilesByKind) -> Reading:
    if not _JOBS.isdisjoint(files):
        return _read_jobs(files)
    tables = [samples.read_table(source) for source in files.get(FileKind.TABLE, ())]
    formats = ["samples-csv"] if tables else []
    if FileKind.PARQUET in files:
        # pyarrow costs a quarter of a second to import, and most readings need none of it.
        from perf_assets.readers.samples import parquet as samples_parquet

        tables += [samples_parquet.read_table(source) for source in files[FileKind.PARQUET]]
        formats.append("samples-parquet")
    profiles = SampleTables(tables)
    return Reading("+".join(formats), {"rows": str(len(profiles))}, profiles=profiles)


def _read_profiles(files: FilesByKind) -> Reading:
    readers: tuple[Callable[[FilesByKind], Iterator[tuple[str, Profile]]], ...] = (
        _hpctoolkit_xml,
        _hpctoolkit_v4,
        _papi,
        _rocprof,
        _single_files,
    )
    pairs = [pair for reader in readers for pair in reader(files)]
    if not pairs:
        some = next(sources[0] for kind, sources in files.items() if kind in PROFILE_KINDS)
        raise unreadable(some, "belongs to a database of which the other files are missing: copy all of it")
    profiles = [profile for _, profile in pairs]
    runs = [profile.run for profile in profiles]
    if len(set(runs)) != len(runs):
        twice = next(run for run in runs if runs.count(run) > 1)
        raise UnreadableFileError(f"{printable(twice)}: holds two profiles of one name; put them into two directories")
    return Reading("+".join(sorted({name for name, _ in pairs})), _shared_labels(profiles), profiles=profiles)


def _shared_labels(profiles: Sequence[Profile]) -> dict[str, str]:
    """Labels that are equal in all profiles."""
    first, *others = [profile.labels for profile in profiles]
    return {key: value for key, value in first.items() if all(labels.get(key) == value for labels in others)}


def _by_directory(sources: Sequence[SourceFile]) -> dict[str, list[SourceFile]]:
    grouped: dict[str, list[SourceFile]] = {}
    for source in sources:
        grouped.setdefault(source.directory, []).append(source)
    return grouped


def _hpctoolkit_xml(files: FilesByKind) -> Iterator[tuple[str, Profile]]:
    sparse = _by_directory(files.get(FileKind.HPCTOOLKIT_SPARSE, ()))
    for sources in sparse.values():
        raise unreadable(
            sources[0],
            "is of HPCToolkit's pre-v4 sparse generation (2021-2022), which is not read: "
            "run hpcprof of 2022.10 or later on the measurements again",
        )
    databases = _by_directory(files.get(FileKind.HPCTOOLKIT_METRIC_DB, ()))
    experiments = _by_directory(files.get(FileKind.HPCTOOLKIT_XML, ()))
    for directory in databases.keys() - experiments.keys():
        raise unreadable(databases[directory][0], "has no experiment.xml beside it: copy the whole database")
    for directory, sources in experiments.items():
        if len(sources) > 1:
            raise unreadable(sources[1], "is a second experiment.xml in one directory")
        metric_dbs = databases.get(directory, [])
        profile = hpctoolkit_xml.read_database(directory, sources[0], metric_dbs)
        yield ("hpctoolkit-xml-metricdb" if metric_dbs else "hpctoolkit-xml"), profile


def _hpctoolkit_v4(files: FilesByKind) -> Iterator[tuple[str, Profile]]:
    metas = _by_directory(files.get(FileKind.HPCTOOLKIT_V4_META, ()))
    profiles = _by_directory(files.get(FileKind.HPCTOOLKIT_V4_PROFILE, ()))
    for directory in metas.keys() ^ profiles.keys():
        some = (metas.get(directory) or profiles[directory])[0]
        raise unreadable(some, "needs both meta.db and profile.db of its database: copy the whole of it")
    for directory, sources in metas.items():
        if len(sources) > 1 or len(profiles[directory]) > 1:
            raise unreadable(sources[0], "stands beside a second database in one directory")
        yield "hpctoolkit-v4", hpctoolkit_v4.read_database(directory, sources[0], profiles[directory][0])


def _papi(files: FilesByKind) -> Iterator[tuple[str, Profile]]:
    groups = _by_directory(files.get(FileKind.PAPI, ()))
    for directory, sources in groups.items():
        parent = directory.removesuffix("papi_hl_output").rstrip("/") or "."
        run = directory if parent in groups else parent
        for profile in papi.read_outputs(run, sources):
            yield "papi-hl-json", profile


def _rocprof(files: FilesByKind) -> Iterator[tuple[str, Profile]]:
    counters = _by_directory(files.get(FileKind.ROCPROF_COUNTERS, ()))
    traces = _by_directory(files.get(FileKind.ROCPROF_TRACE, ()))
    for directory in dict.fromkeys([*counters, *traces]):
        yield (
            "rocprofv3-csv",
            rocprof.read_folder(directory, counters.get(directory, ()), traces.get(directory, ())),
        )


def _single_files(files: FilesByKind) -> Iterator[tuple[str, Profile]]:
    """Formats in which one file is one run: the run is its directory, or the file where there are several."""
    kinds = tuple(_SINGLE_FILES)
    groups = _by_directory([source for kind in kinds for source in files.get(kind, ())])
    kind_by_name = {source.name: kind for kind in kinds for source in files.get(kind, ())}
    for directory, sources in groups.items():
        for source in sources:
            run = directory if len(sources) == 1 else source.name
            yield from _single_file(run, source, kind_by_name[source.name])


def _single_file(run: str, source: SourceFile, kind: FileKind) -> Iterator[tuple[str, Profile]]:
    name, reader = _SINGLE_FILES[kind]
    if kind is FileKind.VALGRIND and b"callgrind" in source.head:
        name = "callgrind"
    profiles = reader(run, source)
    for profile in [profiles] if isinstance(profiles, Profile) else profiles:
        yield name, profile


_SINGLE_FILES: dict[FileKind, tuple[str, Callable[[str, SourceFile], Profile | Iterable[Profile]]]] = {
    FileKind.CALIPER_APPLICATION: ("caliper", caliper_profile.read_application),
    FileKind.LIKWID: ("likwid", likwid.read_output),
    FileKind.NSIGHT_COMPUTE: ("nsight-compute-csv", nsight_compute.read_report),
    FileKind.PERF_CSV: ("perf-stat-csv", perf_stat.read_csv),
    FileKind.PERF_JSON: ("perf-stat-json", perf_stat.read_json),
    FileKind.VALGRIND: ("cachegrind", valgrind.read_output),
    FileKind.CROSS_MODELLING: ("cross-modelling", cross_modelling.read_results),
}
