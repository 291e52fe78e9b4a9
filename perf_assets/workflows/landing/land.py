"""Plan of a landing: the bundles that paths become, facts that the files give of each, and facts that are missing."""

import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from itertools import islice
from pathlib import Path, PurePosixPath
from typing import Any

from pydantic import ValidationError

from perf_assets.core.environment import ENVIRONMENT_TAG, environment_of
from perf_assets.core.errors import BadInputError, like, listed
from perf_assets.core.manifest import (
    MANIFEST_NAME,
    MAX_ARGS,
    BundleFacts,
    check_application,
    check_relative_path,
    parse_manifest,
)
from perf_assets.core.measurements import Profile, Reading
from perf_assets.core.text import first_problem, printable
from perf_assets.readers.bundle import has_target
from perf_assets.readers.caliper import read_stream
from perf_assets.readers.caliper_profile import ELAPSED, HOSTS, RANKS, THREADS, launched_at
from perf_assets.readers.files import SourceFile, scan, system_errors
from perf_assets.readers.formats import FileKind
from perf_assets.readers.read import PROFILE_KINDS, RAJAPERF_KINDS, kind_of_file, read_files
from perf_assets.readers.samples.table import texts_of
from perf_assets.storage.aliases import Aliases
from perf_assets.storage.lake import LandedBundle
from perf_assets.storage.landing import plain_files, verified_manifest

_COLLECTED = "collected_at"
_MACHINE, _PROGRAM, _LAUNCHED = ("cluster", "machine"), ("app", "program", "exec"), "launched_at"
_SOFTWARE = re.compile(r"(?:compiler|mpi|cuda|rocm|hip).?(?:name|version)?|(?:code.?)?version|hash", re.IGNORECASE)
_OF_ONE_RUN = ("args", "ranks", "wall_seconds")
_FLAG = "given"
_MAX_TAG = 200
_LOOKED_AT, _MOST_DOUBTS = 200, 5


@dataclass(frozen=True)
class Planned:
    """A bundle that would land."""

    path: Path
    """Folder or file that it is copied from."""
    files: tuple[str, ...] | None
    """Files of the folder that belong to it; None: all."""
    facts: BundleFacts
    origins: dict[str, str]
    """Origin of each fact."""
    name: str | None = None
    run: dict[str, tuple[Any, str]] = field(default_factory=dict)
    """Facts that reading the files will give (ranks, threads, nodes, run time, software), each with its origin."""
    warnings: tuple[str, ...] = ()

    @property
    def shown_path(self) -> str:
        """Path to display."""
        is_one = self.files is not None and len(self.files) == 1
        return str(self.path / self.files[0]) if is_one and self.files else str(self.path)


Progress = Callable[[Path], None]


def plan_landing(
    paths: Sequence[Path], given: Mapping[str, Any], aliases: Aliases, on_path: Progress = lambda path: None
) -> list[Planned]:
    """Look at everything; a path that says too little, or that cannot be read, is an error before anything lands."""
    planned: list[Planned] = []
    for path in paths:
        on_path(path)
        if not path.exists():
            raise BadInputError(f"{path} does not exist")
        with system_errors(printable(path.name or str(path))):
            planned += _plan_path(path, given, aliases)
    return [_with_slip(bundle, aliases) for bundle in planned]


def _with_slip(bundle: Planned, aliases: Aliases) -> Planned:
    """Bundle with a warning where its new machine's name resembles that of a known machine."""
    near = aliases.nearly_machine(bundle.facts.machine)
    if near is None:
        return bundle
    machine = bundle.facts.machine
    doubt = f"the machine {machine} is new; if it is {near}, say --machine {near}, or name it so in {aliases.path.name}"
    return replace(bundle, warnings=(*bundle.warnings, doubt))


def _plan_path(path: Path, given: Mapping[str, Any], aliases: Aliases) -> Iterator[Planned]:
    folders = _prepared_folders(path)
    for folder in folders:
        yield _prepared(folder, given)
    if folders and folders[0] == path:
        return
    inside = tuple(f"{folder.relative_to(path)}/" for folder in folders)
    sources = [source for source in scan(path) if not source.name.startswith(inside)] if inside else scan(path)
    if not sources and path.is_dir():
        # A folder of links, which are never read, is not empty.
        tuple(plain_files(path))
    groups = _by_family(sources, given.get("kind"))
    if folders and not groups:
        return
    for family, group in groups or [(given.get("kind"), sources)]:
        is_all = len(groups) <= 1 and not folders
        for planned in _plan_group(_Group(path, group, family, is_all), given, aliases):
            # Links are never read; they are refused where everything in the folder is to be copied.
            for name in planned.files or (plain_files(path) if path.is_dir() else ()):
                _check_name(name)
            yield planned


def _check_name(name: str) -> None:
    try:
        check_relative_path(name)
    except ValueError as error:
        raise BadInputError(f"{error}: rename it") from None


@dataclass(frozen=True)
class _Group:
    """Files of a path that are read together."""

    path: Path
    sources: Sequence[SourceFile]
    family: str | None
    is_all: bool
    """Whether they are all files of the path."""

    def names(self, sources: Sequence[SourceFile] | None = None) -> tuple[str, ...] | None:
        """Files to copy: None for all."""
        chosen = self.sources if sources is None else sources
        return None if self.is_all and len(chosen) == len(self.sources) else tuple(source.name for source in chosen)


def _prepared_folders(path: Path) -> list[Path]:
    """Folders with a manifest of their own: the path itself, or those in it."""
    if not path.is_dir():
        return []
    prepared = []
    for folder, folders, files in os.walk(path):
        folders.sort()
        if MANIFEST_NAME in files:
            prepared.append(Path(folder))
            folders.clear()
    return prepared


def _prepared(path: Path, given: Mapping[str, Any]) -> Planned:
    """Bundle of a folder that has a manifest; refuses a manifest that does not match the files."""
    if given:
        raise BadInputError(f"{path} has a {MANIFEST_NAME}: leave out --{min(given).replace('_', '-')}, or remove it")
    bundle = LandedBundle(path.absolute())
    manifest = verified_manifest(bundle, parse_manifest(bundle.manifest_bytes).machine)
    facts = BundleFacts.model_validate(manifest.model_dump(exclude={"files", "version"}))
    origins = dict.fromkeys(facts.model_dump(exclude_defaults=True), MANIFEST_NAME)
    environment = environment_of(facts.tags)
    run = {ENVIRONMENT_TAG: (environment, f"tags in {MANIFEST_NAME}")} if environment else {}
    return Planned(path, None, facts, origins, name=path.absolute().name, run=run)


def _by_family(sources: Sequence[SourceFile], kind: str | None) -> list[tuple[str | None, list[SourceFile]]]:
    """RAJAPerf's files and those of profiles apart, where both are there."""
    if kind is not None:
        return []
    kinds = {source.name: kind_of_file(source) for source in sources}
    beside = RAJAPERF_KINDS | {FileKind.COMMAND}
    rajaperf = [source for source in sources if kinds[source.name] in beside]
    others = [source for source in sources if kinds[source.name] not in beside]
    has_rajaperf = any(kinds[source.name] in RAJAPERF_KINDS for source in rajaperf)
    has_profile = any(kinds[source.name] in PROFILE_KINDS for source in others)
    if has_rajaperf and has_profile:
        return [("rajaperf", rajaperf), ("profile", others)]
    return [(None, list(sources))] if sources else []


def _plan_group(group: _Group, given: Mapping[str, Any], aliases: Aliases) -> Iterator[Planned]:
    name = printable(group.path.name or str(group.path))
    reading = read_files(group.sources, name, group.family)
    if reading.timings:
        metadata = {
            source.name: read_stream(source, depth=-1).metadata
            for source in group.sources
            if kind_of_file(source) is FileKind.CALIPER
        }
        for machine, sources in _machines_of_rajaperf(group, metadata, given, aliases):
            part = reading if len(sources) == len(group.sources) else read_files(sources, name, "rajaperf")
            facts: dict[str, tuple[Any, str]] = {"kind": ("rajaperf", "")}
            if machine is not None:
                facts["machine"] = (machine, "cluster in .cali")
            dates = [launched_at(metadata[source.name]) for source in sources if source.name in metadata]
            if newest := max(filter(None, dates), default=None):
                facts[_COLLECTED] = (newest, "launch date in .cali")
            yield _planned(group, sources, part, facts, given)
    elif reading.format.startswith(("samples", "jobs")):
        yield _planned_samples(group, reading, given, aliases)
    else:
        for sources, profiles in _runs(group, reading, given):
            yield _planned_profile(group, sources, reading, profiles, given, aliases)


def _machines_of_rajaperf(
    group: _Group, metadata: Mapping[str, Mapping[str, str]], given: Mapping[str, Any], aliases: Aliases
) -> Iterator[tuple[str | None, Sequence[SourceFile]]]:
    """Machine by what profiles say of their cluster, with the files in its folders; None where no file names one.

    `metadata` is that of the profiles, by their names.
    """
    if "machine" in given:
        yield None, group.sources
        return
    clusters: dict[str, dict[str, list[SourceFile]]] = {}
    for source in group.sources:
        if source.name in metadata:
            cluster = metadata[source.name].get("cluster", "")
            clusters.setdefault(cluster, {}).setdefault(source.directory, []).append(source)
    named = {cluster: folders for cluster, folders in clusters.items() if cluster}
    if len(named) <= 1:
        cluster = next(iter(named), "")
        yield (aliases.machine(cluster) if cluster else None), group.sources
        return
    by_folder = {folder: cluster for cluster, folders in named.items() for folder in folders}
    for cluster, folders in sorted(named.items()):
        beside = [s for s in group.sources if by_folder.get(s.directory) == cluster and s.name not in metadata]
        shared = [folder for folder in folders if sum(folder in other for other in named.values()) > 1]
        if shared and any(s.directory in shared for s in beside):
            raise BadInputError(
                f"{group.path / shared[0]} holds reports beside profiles of the machines {listed(sorted(named))}: "
                "put each machine's into a folder of its own, or say --machine"
            )
        own = [source for sources in folders.values() for source in sources]
        yield aliases.machine(cluster), [*own, *beside]


def _runs(
    group: _Group, reading: Reading, given: Mapping[str, Any]
) -> Iterator[tuple[Sequence[SourceFile], Sequence[Profile]]]:
    """Profiles with their files: each run its own bundle where the files say which run they are of.

    Of a tree of many runs only what is understood is taken, not the logs, programs and links of a workspace.
    """
    files = _files_of_runs([profile.run for profile in reading.profiles], group.sources)
    has_labels = [bool(profile.labels.keys() & {*_MACHINE, "args", _LAUNCHED}) for profile in reading.profiles]
    if len(has_labels) < 2 or not any(has_labels) or not all(files.values()):
        yield group.sources, reading.profiles
        return
    for field_name in _OF_ONE_RUN:
        if field_name in given:
            option = f"--{field_name.replace('_', '-')}"
            raise BadInputError(
                f"{option} is for one run, but {group.path} holds {len(has_labels)}: land that one alone"
            )
    for profile in reading.profiles:
        yield [source for source in files[profile.run] if kind_of_file(source) is not None], [profile]


def _files_of_runs(runs: Sequence[str], sources: Sequence[SourceFile]) -> dict[str, list[SourceFile]]:
    """Files by run, which is named after its file or its folder: a file belongs to the innermost."""
    files: dict[str, list[SourceFile]] = {run: [] for run in runs}
    for source in sources:
        place = PurePosixPath(source.name)
        run = next((name for name in map(str, (place, *place.parents)) if name in files), None)
        if run is not None:
            files[run].append(source)
    return files


def _planned_profile(
    group: _Group,
    sources: Sequence[SourceFile],
    reading: Reading,
    profiles: Sequence[Profile],
    given: Mapping[str, Any],
    aliases: Aliases,
) -> Planned:
    labels = _common([profile.labels for profile in profiles])
    facts: dict[str, tuple[Any, str]] = {"kind": ("profile", reading.format)}
    for key in _MACHINE:
        if key in labels and "machine" not in facts:
            facts["machine"] = (aliases.machine(labels[key]), key)
    program = _program(labels)
    if program and "app" in given:
        aliases.learn(program, given["app"])
    facts |= configuration_in(labels, aliases)
    if _LAUNCHED in labels:
        facts[_COLLECTED] = (labels[_LAUNCHED], "launch date")
    software = {key: value[:_MAX_TAG] for key, value in labels.items() if _SOFTWARE.fullmatch(key)}
    if software:
        facts["tags"] = (software, "metadata")
    _check_ranks(group, profiles, given)
    return _planned(
        group, sources, reading, facts, given, profiles, _doubts(group.path, profiles, given, aliases, facts)
    )


def _program(labels: Mapping[str, str]) -> str | None:
    return next((labels[key] for key in _PROGRAM if key in labels), None)


def configuration_in(labels: Mapping[str, str], aliases: Aliases) -> dict[str, tuple[str, str]]:
    """Application and arguments that a profile says, each with what says it; the application by the site's name."""
    facts = {}
    program = _program(labels)
    if program:
        app = aliases.application(program)
        facts["app"] = (app, "program" if app == program else f"{program}, known as {app}")
    if "args" in labels:
        facts["args"] = (labels["args"], labels.get("args_from", "command line"))
    return facts


def _check_ranks(group: _Group, profiles: Sequence[Profile], given: Mapping[str, Any]) -> None:
    for profile in profiles:
        label = next((key for key in RANKS if key in profile.labels), None)
        if label and given.get("ranks") not in (None, profile.ranks):
            raise BadInputError(
                f"--ranks {given['ranks']} contradicts {group.path / profile.run}, which is of "
                f"{profile.ranks} ranks ({label}): leave it out"
            )


def _doubts(
    path: Path,
    profiles: Sequence[Profile],
    given: Mapping[str, Any],
    aliases: Aliases,
    facts: Mapping[str, tuple[Any, str]],
) -> Iterator[str]:
    if "wall_seconds" not in given and all(profile.wall_seconds is None for profile in profiles):
        yield f"{path}: no run time in the files: give --wall-seconds, or it cannot be compared with other machines"
    app = given.get("app") or facts.get("app", (None,))[0]
    nearly = aliases.nearly(app) if app else None
    if nearly:
        yield f"{path}: the application {app} is new; if it is {nearly}, give --app {nearly}, and it is remembered"


def _planned_samples(group: _Group, reading: Reading, given: Mapping[str, Any], aliases: Aliases) -> Planned:
    facts: dict[str, tuple[Any, str]] = {"kind": ("samples", reading.format)}
    if reading.format.startswith("jobs"):
        facts["target"] = ("wall_seconds", "job records")
        clusters = {profile.labels["cluster"] for profile in reading.profiles if "cluster" in profile.labels}
        if len(clusters) > 1 and "machine" not in given:
            raise BadInputError(f"{group.path} has jobs of the clusters {listed(sorted(clusters))}: export one each")
        if clusters:
            facts["machine"] = (aliases.machine(clusters.pop()), "cluster")
    elif "target" not in given and any(profile.wall_seconds is not None for profile in reading.profiles):
        facts["target"] = ("wall_seconds", "its column")
    names = texts_of(reading.profiles, "app")
    _check_names(group.path, names)
    known = aliases.applications(names)
    if known:
        facts["app_names"] = (known, aliases.path.name)
    is_table = not reading.format.startswith("jobs")
    doubts = _slips_of_names(group.path, names - known.keys(), aliases) if is_table else ()
    planned = _planned(group, group.sources, reading, facts, given, doubts=doubts)
    target = planned.facts.target
    if target is not None and not has_target(reading, target):
        columns = sorted({name for profile in reading.profiles[:1] for name in (*profile.metrics, *profile.labels)})
        near = like(target, columns)
        raise BadInputError(
            f"{group.path}: no row has a number in the column {target[:80]!r}, which --target names; "
            + (f"did you mean {near}?" if near else f"there are {listed(columns)}")
        )
    return planned


def _check_names(path: Path, names: Iterable[str]) -> None:
    """Refuse a table with an application that no bundle could be of."""
    try:
        for name in names:
            check_application(name)
    except ValueError as error:
        raise BadInputError(f"{path}: {error}: correct the column app") from None


def _slips_of_names(path: Path, names: Iterable[str], aliases: Aliases) -> Iterator[str]:
    """Doubts about the first few names of a table's rows; jobs are called anything."""
    slips = ((name, near) for name in sorted(names)[:_LOOKED_AT] if (near := aliases.nearly(name)))
    for name, near in islice(slips, _MOST_DOUBTS):
        yield f"{path}: the application {name} is new; if it is {near}, name it so in {aliases.path.name}"


def _planned(
    group: _Group,
    sources: Sequence[SourceFile],
    reading: Reading,
    from_files: Mapping[str, tuple[Any, str]],
    given: Mapping[str, Any],
    profiles: Sequence[Profile] = (),
    doubts: Iterable[str] = (),
) -> Planned:
    values: dict[str, Any] = {name: value for name, (value, _) in from_files.items()}
    origins = {name: origin or reading.format for name, (_, origin) in from_files.items()}
    if _COLLECTED not in values:
        values[_COLLECTED], origins[_COLLECTED] = _newest(sources), "newest file"
    if "tags" in values and "tags" in given:
        values["tags"] = values["tags"] | given["tags"]
    values |= {name: value for name, value in given.items() if name != "tags" or "tags" not in values}
    origins |= dict.fromkeys(given, _FLAG)
    if "dataset" in values and "machine" not in values:
        # Rows of an application, or of no known machine, have a landing folder of their own.
        values["machine"], origins["machine"] = values["dataset"], "the dataset's name"
    if "machine" not in values:
        raise BadInputError(f"{group.path} does not name its machine: name it with --machine")
    if len(values.get("args", "")) > MAX_ARGS and "args" not in given:
        raise BadInputError(
            f"{group.path}: its command line has {len(values['args'])} characters, more than {MAX_ARGS}: give --args"
        )
    try:
        facts = BundleFacts.model_validate(values)
    except ValidationError as error:
        raise BadInputError(f"{group.path}: {first_problem(error)} (see 'perf-assets land --help')") from None
    return Planned(
        path=group.path,
        files=group.names(sources),
        facts=facts,
        origins=origins,
        run=_run_of(profiles) | _software(reading, profiles, facts.tags),
        warnings=(*doubts, *without_threads(group.path, reading, facts.threads)),
    )


def without_threads(path: Path, reading: Reading, threads: int | None) -> Iterator[str]:
    """A warning, where OpenMP's timings do not say how many threads they are of."""
    openmp = [timing for timing in reading.timings if "OpenMP" in timing.variant and "Target" not in timing.variant]
    missing = sum(timing.threads is None for timing in openmp)
    if missing and threads is None:
        yield (
            f"{path}: {missing} OpenMP timings lack a thread count, so they cannot describe a machine: write "
            "OMP_NUM_THREADS=<threads> into a cmd.txt beside the reports, or give --threads"
        )


def _run_of(profiles: Sequence[Profile]) -> dict[str, tuple[Any, str]]:
    if len(profiles) != 1:
        return {}
    (profile,) = profiles
    values = {
        "ranks": profile.ranks,
        "threads": profile.threads_per_rank,
        "nodes": profile.hosts,
        "wall_seconds": profile.wall_seconds,
    }
    names = {"ranks": RANKS, "threads": THREADS, "nodes": (HOSTS,), "wall_seconds": ELAPSED}
    return {
        key: (value, next((name for name in names[key] if name in profile.labels), "the files"))
        for key, value in values.items()
        if value is not None
    }


def _software(reading: Reading, profiles: Sequence[Profile], tags: Mapping[str, str]) -> dict[str, tuple[Any, str]]:
    """Environments that runs will be of, by what files and tags say."""
    given = tags.get(ENVIRONMENT_TAG)
    lines = {given or timing.environment or environment_of(tags) for timing in reading.timings}
    lines |= {environment_of({**reading.metadata, **profile.labels, **tags}) for profile in profiles}
    known = sorted(line for line in lines if line)
    if not known:
        return {}
    text = known[0] if len(known) == 1 else f"{len(known)} different: {' | '.join(known)}"
    return {ENVIRONMENT_TAG: (text, "given" if given else "compiler, flags, libraries in the files")}


def _common(labels: Sequence[Mapping[str, str]]) -> dict[str, str]:
    """Labels that are equal in all profiles."""
    first, *others = labels
    return {key: value for key, value in first.items() if all(other.get(key) == value for other in others)}


def _newest(sources: Sequence[SourceFile]) -> datetime:
    newest = max((Path(source.path).stat().st_mtime for source in sources), default=0.0)
    return datetime.fromtimestamp(int(newest), UTC)
