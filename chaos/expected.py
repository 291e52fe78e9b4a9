"""What was landed, and what must have become of each bundle when all is quiet again."""

import threading
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field

from perf_assets.core.errors import BadInputError
from perf_assets.readers.bundle import read_bundle
from perf_assets.storage.lake import LandedBundle
from perf_assets.storage.landing import verified_manifest

Key = tuple[str, str]
"""Machine, and name of a bundle."""
Rows = Mapping[str, int]
"""Number of rows by table."""


@dataclass(frozen=True)
class Fate:
    """What must become of the bundle of one name."""

    digest: str | None
    """Of the version whose rows must be there, once; None: no rows of it."""
    is_refused: bool
    """Whether the quarantine must say why it, or a newer version of it, was refused."""
    why: str = ""
    """What was done to it here; empty for one that is as it was landed."""


@dataclass
class Expected:
    """All that landed; several threads use it."""

    fates: dict[Key, Fate] = field(default_factory=dict)
    rows: dict[str, Rows] = field(default_factory=dict)
    """Rows that a bundle has, by its digest, as the readers find them in files that nobody has touched yet."""
    lock: threading.RLock = field(default_factory=threading.RLock)

    def landed(self, bundle: LandedBundle) -> None:
        """Read a bundle that has just landed: what is in it must be ingested, or refused if that cannot be read."""
        key = (bundle.directory.parent.name, bundle.name)
        rows = rows_of(bundle)
        with self.lock:
            if rows is None:
                # A run of the fleet that failed where it was measured.
                self.fates[key] = Fate(None, is_refused=True)
            else:
                self.rows[bundle.digest] = rows
                self.fates[key] = Fate(bundle.digest, is_refused=False)

    def decide(self, key: Key, fate: Fate) -> None:
        """Something was done to a landed bundle."""
        with self.lock:
            self.fates[key] = fate

    def machines(self) -> list[str]:
        """Those that landed something, sorted."""
        with self.lock:
            return sorted({machine for machine, _ in self.fates})

    def of_machine(self, machine: str) -> dict[str, Fate]:
        """Fates by name of the bundle."""
        with self.lock:
            return {name: fate for (owner, name), fate in self.fates.items() if owner == machine}

    def counts(self) -> tuple[int, int]:
        """Bundles that must be in the record, and that must be refused."""
        with self.lock:
            every = list(self.fates.values())
        return sum(fate.digest is not None for fate in every), sum(fate.is_refused for fate in every)


def rows_of(bundle: LandedBundle) -> Rows | None:
    """Number of rows by table of a bundle as it stands; None where it cannot be read."""
    try:
        manifest = verified_manifest(bundle, bundle.directory.parent.name)
        content = read_bundle(bundle.directory, manifest, bundle.digest, bundle.name)
        return Counter({table: sum(1 for _ in rows) for table, rows in content.rows.items()})
    except BadInputError:
        return None
