"""Taking back what landed: a bundle, a machine, or the name of one. Who did it and why is noted in the lake.

Files of a bundle that is withdrawn stay in the landing zone; its rows count no more. What is forgotten is moved to the
lake's folder `withdrawn`, so that nothing is lost. Warehouse, models and pages are brought up to date by the callers.
"""

import json
import shutil
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from getpass import getuser
from pathlib import Path

import pyarrow.compute as pc

from perf_assets.core.errors import BadInputError, like
from perf_assets.core.manifest import SPEC_NAME, BundleFacts, parse_manifest
from perf_assets.infra.leases import leased
from perf_assets.storage.lake import Lake, LandedBundle, landed_digests
from perf_assets.storage.landing import copying, land
from perf_assets.storage.pages import machine_page_name
from perf_assets.storage.record import MachineRecord

_WAIT_SECONDS = 60.0
_FOLDER, _LOG = "withdrawn", "log.jsonl"


def bundle_machine(lake: Lake, bundle: str, machine: str | None = None) -> str:
    """The machine that a bundle is of; `machine` says which where several have one of this name."""
    names = {m: MachineRecord(lake.record, m).ledger(["bundle"])["bundle"].to_pylist() for m in lake.machines()}
    holders = [m for m, bundles in names.items() if bundle in bundles and machine in (None, m)]
    if len(holders) == 1:
        return holders[0]
    if holders:
        raise BadInputError(f"{', '.join(holders)} have a bundle {bundle}: say which with --machine")
    near = like(bundle, [one for m, bundles in names.items() if machine in (None, m) for one in bundles])
    advice = f"did you mean {near}?" if near else f"bundles are the folders in {lake.landing}/MACHINE"
    raise BadInputError(f"no bundle {bundle} was ingested{f' of {machine}' if machine else ''}: {advice}")


def withdraw(lake: Lake, machine: str, bundle: str, why: str) -> list[str]:
    """Let the rows of a bundle, and of all with the same content, count no more; their names."""
    with leased(lake.locks / f"{machine}.lock", f"ingestion of {machine}", _WAIT_SECONDS) as lease:
        record = MachineRecord(lake.record, machine, lease.check)
        rows = record.ledger_rows(pc.field("bundle") == bundle)
        same = record.ledger_rows(pc.field("bundle_digest") == rows[bundle]["bundle_digest"])
        if rows[bundle]["status"] == "withdrawn":
            raise BadInputError(f"bundle {bundle} of {machine} is withdrawn already: {rows[bundle]['reason']}")
        reason = f"withdrawn by {getuser()}: {why}"
        _note(lake, "withdraw", machine, why, {"bundles": sorted(same)})
        changed = [row | {"status": "withdrawn", "record_part": None, "reason": reason} for row in same.values()]
        record.commit(changed, record.batch())
    return sorted(same)


def forget(lake: Lake, machine: str, why: str) -> Path:
    """Move all that landed for a machine, its record and its pages out of the way; where they are now.

    A command that was ended half way is simply given again.
    """
    if machine not in lake.machines() and not any(_pages(lake, machine)):
        raise BadInputError(f"machine {machine!r} has nothing in {lake.root}{_guess(lake, machine)}")
    folder = _note(lake, "forget", machine, why, {})
    with (
        leased(lake.locks / f"{machine}.lock", f"ingestion of {machine}", _WAIT_SECONDS),
        leased(lake.locks / f"adapt-{machine}.lock", f"adaptation of {machine}", _WAIT_SECONDS),
    ):
        for path in _parts(lake, machine):
            aside = folder / path.relative_to(lake.root)
            aside.parent.mkdir(parents=True, exist_ok=True)
            shutil.move(path, aside)
    return folder


def rename(lake: Lake, machine: str, name: str, why: str) -> int:
    """Land all bundles of a machine under another name, which may have bundles already; how many there were.

    Refuses where a bundle of the same name and other content is there. The old name is still to be forgotten.
    """
    bundles = [LandedBundle(lake.landing / machine / bundle) for bundle, _ in landed_digests(lake, machine)]
    if not bundles:
        raise BadInputError(f"nothing of {machine!r} is in {lake.landing}{_guess(lake, machine)}")
    known = {bundle for bundle, _ in landed_digests(lake, name)}
    both = sorted(known & {bundle.name for bundle in bundles})
    if both:
        raise BadInputError(f"{name} has a bundle {both[0]} already: withdraw or rename that first")
    _note(lake, "rename", machine, why, {"new_name": name})
    for bundle in bundles:
        manifest = parse_manifest(bundle.manifest_bytes)
        facts = BundleFacts.model_validate({**manifest.model_dump(exclude={"files", "version"}), "machine": name})
        land(lake, facts, bundle.name, _renaming(bundle.directory, machine, name))
    return len(bundles)


def _renaming(source: Path, machine: str, name: str) -> Callable[[Path], None]:
    """A `write` for `land` that copies a bundle whose data sheet, if any, gets the new name."""
    copy = copying(source)

    def write(folder: Path) -> None:
        copy(folder)
        sheet = folder / SPEC_NAME
        if sheet.is_file():
            sheet.write_text(sheet.read_text().replace(f"machine: {machine}", f"machine: {name}", 1))

    return write


def _guess(lake: Lake, machine: str) -> str:
    near = like(machine, lake.machines())
    return f": did you mean {near}?" if near else ""


def _parts(lake: Lake, machine: str) -> list[Path]:
    """Files and folders of a machine in the lake."""
    folders = [lake.landing / machine, lake.quarantine / machine, *lake.record.glob(f"*/machine={machine}")]
    return [path for path in (*folders, *_pages(lake, machine)) if path.exists()]


def _pages(lake: Lake, machine: str) -> list[Path]:
    names = (machine_page_name(machine), f"catalogue-{machine}.yaml")
    return [path for name in names if (path := lake.reports / name).is_file()]


def _note(lake: Lake, what: str, machine: str, why: str, more: Mapping[str, object]) -> Path:
    """Note who takes back what; gives a folder for the files that are moved away."""
    now = datetime.now(UTC)
    folder = lake.root / _FOLDER
    folder.mkdir(parents=True, exist_ok=True)
    note = {"at": now.isoformat(timespec="seconds"), "by": getuser(), "what": what, "machine": machine, "why": why}
    with (folder / _LOG).open("a", encoding="utf-8") as log:
        log.write(json.dumps({**note, **more}) + "\n")
    return folder / f"{machine}-{now:%Y%m%dT%H%M%S}"
