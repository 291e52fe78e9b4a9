"""What was refused, and why, in a place where a person looks."""

import json
import os
import shutil
from datetime import UTC, datetime
from pathlib import Path

from perf_assets.storage.files import exclusive, write_bytes
from perf_assets.storage.lake import Lake, LandedBundle, strays

_STRAYS = "_strays"
"""Folder for what belongs to no machine; no machine id starts with an underscore."""


def quarantine(lake: Lake, machine: str, bundle: LandedBundle, reason: str) -> None:
    """Write down why a bundle was refused; the bundle itself stays untouched in the landing zone."""
    _write(_folder(lake, machine, bundle), bundle.directory, bundle.digest, reason)


def release(lake: Lake, machine: str, bundle: LandedBundle) -> None:
    """Forget an earlier refusal."""
    shutil.rmtree(_folder(lake, machine, bundle), ignore_errors=True)


def quarantine_strays(lake: Lake) -> list[str]:
    """Write down what in the landing zone cannot be a bundle; return one line for each."""
    found = list(strays(lake))
    if found:
        with exclusive(lake.locks / "strays.lock", "the list of strays", wait_seconds=60):
            for stray in found:
                _write(lake.quarantine / _STRAYS / stray.safe_name, stray.path, "", stray.reason)
    return [f"{str(stray.path)!a}: {stray.reason}" for stray in found]


def _folder(lake: Lake, machine: str, bundle: LandedBundle) -> Path:
    return lake.quarantine / machine / bundle.name


def _write(folder: Path, refused: Path, digest: str, reason: str) -> None:
    earlier = json.loads(file.read_bytes()) if (file := folder / "reason.json").is_file() else {}
    note = {
        "refused": os.fsencode(refused).decode(errors="backslashreplace"),
        "bundle_digest": digest,
        "reason": reason,
    }
    if earlier | note == earlier:
        return
    note["refused_at"] = datetime.now(UTC).isoformat(timespec="seconds")
    write_bytes(file, (json.dumps(note, indent=1) + "\n").encode())
