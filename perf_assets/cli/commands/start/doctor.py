"""`perf-assets doctor`."""

import importlib.metadata
import os
import shutil
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path

import click

from perf_assets.cli.commands.operate.database import stores
from perf_assets.cli.support.options import json_option
from perf_assets.cli.support.output import print_json, print_table
from perf_assets.cli.support.services import free_port
from perf_assets.core.errors import BadInputError, BusyError
from perf_assets.core.paths import checkout, dagster_home, database_of, lake_root, mlflow_tracking_uri
from perf_assets.infra.leases import holder, leased
from perf_assets.infra.permissions import is_anybodys, open_places
from perf_assets.storage.lake import Lake, strays

_NEEDED_BYTES = 2 * 10**9
_NETWORK_FILE_SYSTEMS = {"nfs", "nfs4", "lustre", "gpfs", "beegfs", "cifs", "smb3", "fuse.sshfs"}


@dataclass(frozen=True)
class Diagnosis:
    """One thing that was looked at."""

    check: str
    state: str
    """ok, warning or problem."""
    found: str
    advice: str = ""


@click.command()
@json_option
def command(as_json: bool) -> None:
    """Check Python, disk, ports, locks, versions and the lake, and say what to do.

    Exits with 1 if something will not work; warnings do not count. With --json, for monitoring: 'state' is the worst of
    ok, warning and problem, 'counts' says how many there are of each, 'findings' has them all.
    """
    findings = [finding for check in _CHECKS for finding in check()]
    if as_json:
        states = Counter(finding.state for finding in findings)
        worst = next((state for state in ("problem", "warning") if states[state]), "ok")
        at = datetime.now(UTC).isoformat(timespec="seconds")
        print_json({"state": worst, "at": at, "counts": states, "findings": [asdict(finding) for finding in findings]})
    else:
        print_table("Doctor", ["check", "state", "found", "what to do"], [list(asdict(f).values()) for f in findings])
    if any(finding.state == "problem" for finding in findings):
        sys.exit(1)


def _python() -> Iterator[Diagnosis]:
    version = ".".join(str(part) for part in sys.version_info[:3])
    is_known = (3, 11) <= sys.version_info[:2] < (3, 13)
    yield Diagnosis("Python", "ok" if is_known else "problem", version, "" if is_known else "use Python 3.11 or 3.12")


def _versions() -> Iterator[Diagnosis]:
    root = checkout()
    if root is None:
        yield Diagnosis("versions", "ok", f"perf_assets {importlib.metadata.version('perf_assets')}, no checkout", "")
        return
    pins = dict(
        line.split("==")
        for line in (root / "constraints.txt").read_text().splitlines()
        if "==" in line and not line.startswith("#")
    )
    other = []
    for name in importlib.metadata.requires("perf_assets") or []:
        package = name.split(";")[0].split("<")[0].split(">")[0].split("=")[0].split("[")[0].strip()
        if package not in pins:
            continue
        try:
            installed = importlib.metadata.version(package)
        except importlib.metadata.PackageNotFoundError:
            if "extra ==" in name:
                continue
            installed = "missing"
        # A local build, as 2.13.0+cpu, is of the same version.
        if installed.partition("+")[0] != pins[package]:
            other.append(f"{package} {installed} (pinned {pins[package]})")
    state = ", ".join(other) or "as pinned in constraints.txt"
    yield Diagnosis("versions", "warning" if other else "ok", state, "run 'make setup'" if other else "")


def _profile() -> Iterator[Diagnosis]:
    from perf_assets.infra.profile import NAMES, VARIABLE, MultiprocessProfile, current_profile
    from perf_assets.infra.threads import process_count, thread_budget

    name = os.environ.get(VARIABLE) or NAMES[0]
    try:
        profile = current_profile()
        processes = process_count(profile.processes) if isinstance(profile, MultiprocessProfile) else 1
    except BadInputError as error:
        yield Diagnosis("profile", "problem", name, str(error))
        return
    threads = f"{processes} x {thread_budget()} threads" if profile.executor != "dask" else "workers as its file says"
    yield Diagnosis("profile", "ok", f"{name}: {profile.executor}, {threads}")


def _disk() -> Iterator[Diagnosis]:
    for name, folder in (("lake", lake_root()), ("Dagster home", dagster_home())):
        existing = next(path for path in (folder, *folder.parents) if path.exists())
        if not os.access(existing, os.W_OK):
            yield Diagnosis(f"{name} folder", "problem", str(existing), "make it writable, or move it")
            continue
        free = shutil.disk_usage(existing).free
        state = "ok" if free > _NEEDED_BYTES else "problem"
        yield Diagnosis(
            f"{name} disk", state, f"{free / 1e9:.1f} GB free at {existing}", "" if state == "ok" else "free space"
        )
    kind = _file_system(dagster_home())
    if kind in _NETWORK_FILE_SYSTEMS and database_of(dagster_home()) is None:
        yield Diagnosis(
            "Dagster home", "problem", f"on {kind}", "SQLite breaks there: set DAGSTER_HOME to a local disk"
        )
    yield from _shared_lake()


def _shared_lake() -> Iterator[Diagnosis]:
    """Problems of a lake on a file system that several hosts share."""
    lake, kind = Lake.default(), _file_system(lake_root())
    if kind not in _NETWORK_FILE_SYSTEMS:
        return
    if lake.warehouse.is_relative_to(lake.root):
        advice = "set PERF_ASSETS_WAREHOUSE to a file on a local disk"
        yield Diagnosis("warehouse", "problem", f"in a lake on {kind}", advice)
    if mlflow_tracking_uri().startswith("sqlite:"):
        advice = "SQLite breaks there: use 'perf-assets database postgresql://USER@HOST/DATABASE'"
        yield Diagnosis("MLflow state", "problem", f"SQLite in a lake on {kind}", advice)


def _file_system(folder: Path) -> str:
    import psutil

    holding = [part for part in psutil.disk_partitions(all=True) if folder.is_relative_to(part.mountpoint)]
    return max(holding, key=lambda part: len(part.mountpoint)).fstype if holding else "unknown"


def _permissions() -> Iterator[Diagnosis]:
    places = open_places()
    for what, path in places:
        yield Diagnosis(what, "problem", f"everybody may change {path}", f"services refuse that: chmod o-w {path}")
    landing = lake_root() / "landing"
    if is_anybodys(landing):
        yield Diagnosis(
            "landing zone", "warning", f"everybody may change and remove all in {landing}", "chmod o-w or +t"
        )
    if not places:
        yield Diagnosis("permissions", "ok", "only owner and group may change the homes")


def _databases() -> Iterator[Diagnosis]:
    for store in stores():
        advice = "see 'perf-assets database --help'" if store.problem else ""
        yield Diagnosis(
            f"{store.what} state", "problem" if store.problem else "ok", store.problem or store.where, advice
        )


def _ports() -> Iterator[Diagnosis]:
    wanted = (("Dagster", 3000, "--port"), ("MLflow", 5000, "--mlflow-port"), ("pages", 4000, "--pages-port"))
    for name, port, option in wanted:
        try:
            free_port(port, option)
            yield Diagnosis(f"{name} port", "ok", f"{port} is free")
        except BadInputError:
            yield Diagnosis(
                f"{name} port", "warning", f"{port} is taken", f"'perf-assets up' may run; else use {option}"
            )


def _locks() -> Iterator[Diagnosis]:
    held = []
    for lock in sorted(lake_root().glob("locks/*.lock")):
        try:
            with leased(lock, lock.stem, wait_seconds=0):
                pass
        except OSError:
            # A lake that may only be read: nothing of it is held by us, and nothing can be.
            continue
        except BusyError:
            held.append(f"{lock.stem} by {holder(lock) or f'process {lock.read_text().strip()}'}")
    state = ", ".join(held) or "none held"
    yield Diagnosis("locks", "warning" if held else "ok", state, "wait for the process, or stop it" if held else "")


def _site() -> Iterator[Diagnosis]:
    """Channels by which people are alerted when something goes wrong."""
    from perf_assets.core.site import load_site
    from perf_assets.workflows.operate.alerts import channels_of

    try:
        channels = channels_of(load_site(lake_root()).alerts)
    except BadInputError as error:
        yield Diagnosis("alerts", "problem", str(error), "see 'perf-assets alerts --help'")
        return
    yield Diagnosis("alerts", "ok", f"by {', '.join(channels)}" if channels else "site.yaml names nobody to tell")


def _landing() -> Iterator[Diagnosis]:
    from perf_assets.workflows.landing.ingest import pending

    lake = Lake(lake_root())
    waiting = {machine: len(pending(lake, machine).bundles) for machine in lake.machines()}
    todo = {machine: count for machine, count in waiting.items() if count}
    state = ", ".join(f"{machine} {count}" for machine, count in todo.items()) or "nothing waits"
    yield Diagnosis("landing zone", "warning" if todo else "ok", state, "run 'perf-assets ingest'" if todo else "")
    odd = [str(stray.path) for stray in strays(lake)]
    if odd:
        yield Diagnosis("landing zone", "warning", f"not bundles: {odd!a}", "see quarantine/_strays")
    abandoned = sorted(lake.landing.glob("*/.incoming-*"))
    if abandoned:
        yield Diagnosis("landing zone", "warning", f"{len(abandoned)} unfinished landings", f"remove {abandoned[0]} …")


def _warehouse() -> Iterator[Diagnosis]:
    from perf_assets.workflows.fleet import open_warehouse

    lake = Lake(lake_root())
    if not lake.root.is_dir():
        advice = "use 'perf-assets land' or 'perf-assets demo'"
        yield Diagnosis("lake", "warning", f"there is none at {lake.root}", advice)
        return
    try:
        behind = [machine for machine in lake.machines() if open_warehouse(lake, wait_seconds=5).is_behind(machine)]
    except BadInputError as error:
        yield Diagnosis("warehouse", "problem", str(error), "run 'perf-assets ingest --rebuild'")
        return
    state = f"behind the record for {', '.join(behind)}" if behind else "holds the record"
    yield Diagnosis("warehouse", "warning" if behind else "ok", state, "run 'perf-assets ingest'" if behind else "")


def _machines() -> Iterator[Diagnosis]:
    """Machines without a model, each with what it lacks."""
    lake = Lake(lake_root())
    names = lake.machines() if lake.warehouse.is_file() else []
    if not names:
        return
    from perf_assets.workflows.fleet import Fleet
    from perf_assets.workflows.machines.readiness import Readiness

    try:
        missing = {name: problem for name in names if (problem := Readiness.of(Fleet(lake), name).missing)}
    except BadInputError as error:
        yield Diagnosis("models", "problem", str(error), "see the lines above")
        return
    for name, problem in missing.items():
        what, _, advice = problem.rpartition(": ")
        yield Diagnosis("models", "warning", f"{name}: {what}", advice)
    if not missing:
        yield Diagnosis("models", "ok", f"all {len(names)} machines have one")


_CHECKS = (
    _python,
    _versions,
    _profile,
    _disk,
    _permissions,
    _databases,
    _ports,
    _locks,
    _site,
    _landing,
    _warehouse,
    _machines,
)
