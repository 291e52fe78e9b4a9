"""Quarantine: a file per refused bundle, with the reason and what to do."""

import hashlib
import json
import os
import shutil
from datetime import UTC, datetime
from pathlib import Path

from perf_assets.core.errors import BadInputError
from perf_assets.infra.files import sha256_of, write_bytes
from perf_assets.infra.leases import leased
from perf_assets.storage.lake import Lake, LandedBundle, strays
from perf_assets.storage.landing import plain_files

_HASHED_BYTES = 64 * 2**20
_STRAYS = "_strays"
"""Folder for what belongs to no machine; no machine id starts with an underscore."""


def quarantine(lake: Lake, bundle: LandedBundle, reason: str) -> None:
    """Write down why a bundle was refused; the bundle itself stays untouched in the landing zone."""
    files_digest = _files_digest(bundle.directory)
    _write(_folder(lake, bundle), bundle.directory, reason, bundle.digest, files_digest)


def is_refused(lake: Lake, bundle: LandedBundle) -> bool:
    """Whether a bundle was refused as it stands now: to read it again would change nothing."""
    note = _read(_folder(lake, bundle))
    return note.get("bundle_digest") == bundle.digest and note.get("files_digest") == _files_digest(bundle.directory)


def release(lake: Lake, bundle: LandedBundle) -> None:
    """Forget an earlier refusal."""
    shutil.rmtree(_folder(lake, bundle), ignore_errors=True)


def quarantine_strays(lake: Lake) -> list[str]:
    """Write down what in the landing zone cannot be a bundle; return one line for each."""
    listed = list(strays(lake))
    if listed:
        with leased(lake.locks / "strays.lock", "the list of strays", wait_seconds=60):
            for stray in listed:
                _write(lake.quarantine / _STRAYS / stray.safe_name, stray.path, stray.reason)
    return [f"{str(stray.path)!a}: {stray.reason}" for stray in listed]


def _folder(lake: Lake, bundle: LandedBundle) -> Path:
    return lake.quarantine / bundle.directory.parent.name / bundle.name


def _read(folder: Path) -> dict[str, str]:
    file = folder / "reason.json"
    note: dict[str, str] = json.loads(file.read_bytes()) if file.is_file() else {}
    return note


def _write(folder: Path, refused: Path, reason: str, bundle_digest: str = "", files_digest: str = "") -> None:
    earlier = _read(folder)
    note = {
        "refused": os.fsencode(refused).decode(errors="backslashreplace"),
        "reason": reason,
        "bundle_digest": bundle_digest,
        "files_digest": files_digest,
    }
    if earlier | note == earlier:
        return
    note["refused_at"] = datetime.now(UTC).isoformat(timespec="seconds")
    write_bytes(folder / "reason.json", (json.dumps(note, indent=1) + "\n").encode())


def _files_digest(directory: Path) -> str:
    """Changes when a file of a bundle does; a huge file counts by its size, so that looking stays cheap."""
    seen = hashlib.sha256()
    try:
        for path in plain_files(directory):
            size = (directory / path).stat().st_size
            content = sha256_of(directory / path) if size <= _HASHED_BYTES else ""
            seen.update(repr((path, size, content)).encode())
    except (BadInputError, OSError) as error:
        seen.update(repr(error).encode())
    return seen.hexdigest()
