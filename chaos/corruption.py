"""Spoiling bundles that have landed, and knowing what must become of them."""

import random
from collections.abc import Callable
from pathlib import Path

import pyarrow.compute as pc

from chaos.expected import Expected, Fate, Key
from perf_assets.core.manifest import MANIFEST_NAME
from perf_assets.infra.leases import leased
from perf_assets.storage.lake import Lake, LandedBundle
from perf_assets.storage.landing import plain_files
from perf_assets.storage.record import MachineRecord

_LOCK_SECONDS = 20.0


def _flip(file: Path, chance: random.Random) -> None:
    content = bytearray(file.read_bytes())
    for _ in range(3):
        content[chance.randrange(len(content))] ^= 1 + chance.randrange(255)
    _overwrite(file, bytes(content) if bytes(content) != file.read_bytes() else bytes(content) + b"\0")


def _truncate(file: Path, chance: random.Random) -> None:
    _overwrite(file, file.read_bytes()[: chance.randrange(file.stat().st_size)])


def _remove(file: Path, _: random.Random) -> None:
    file.unlink()


def _overwrite(file: Path, content: bytes) -> None:
    """In place, as a failing disk or a careless person does, and needing no more space than there is."""
    with file.open("r+b") as output:
        output.write(content)
        output.truncate(len(content))


_FILES: dict[str, Callable[[Path, random.Random], None]] = {
    "bytes flipped": _flip,
    "cut short": _truncate,
    "removed": _remove,
}
_MANIFEST = "manifest broken"
WAYS = (*_FILES, _MANIFEST)


def corrupt(lake: Lake, expected: Expected, key: Key, way: str, chance: random.Random) -> str:
    """Spoil a bundle that nobody has spoiled before; one line of what was done.

    While its machine's lock is held nobody ingests it: whether it is in the record already is certain, and with it
    what must become of it.
    """
    machine, name = key
    bundle = LandedBundle(lake.landing / machine / name)
    with expected.lock, leased(lake.locks / f"{machine}.lock", f"corrupting {name}", _LOCK_SECONDS):
        digest = bundle.digest
        held = MachineRecord(lake.record, machine).ledger_rows(pc.field("bundle") == name).get(name, {})
        ingested = held.get("bundle_digest") if held.get("status") == "ingested" else None
        spoiled = _spoil(bundle, way, chance)
        why = f"{spoiled}: {way}, {'after' if ingested == digest else 'before'} it was ingested"
        # Nobody looks again at files that were read; a changed manifest, or one that is new, is looked at.
        is_refused = way == _MANIFEST or ingested != digest
        expected.decide(key, Fate(ingested, is_refused, why))
    return f"{machine}/{name}: {why}"


def _spoil(bundle: LandedBundle, way: str, chance: random.Random) -> str:
    """Name of the file that was spoiled."""
    if way == _MANIFEST:
        manifest = bundle.directory / MANIFEST_NAME
        content = manifest.read_bytes()
        _overwrite(manifest, content[: 1 + chance.randrange(len(content) - 2)])
        return MANIFEST_NAME
    files = [path for path in plain_files(bundle.directory) if path != MANIFEST_NAME]
    filled = [path for path in files if (bundle.directory / path).stat().st_size]
    chosen = chance.choice(filled)
    _FILES[way](bundle.directory / chosen, chance)
    return chosen
