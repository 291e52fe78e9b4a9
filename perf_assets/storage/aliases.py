"""Names that a site gives to machines and applications, whatever files call them: `aliases.yaml` in the lake."""

import re
from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from difflib import get_close_matches
from functools import cached_property
from pathlib import Path
from typing import Annotated

import yaml
from pydantic import AfterValidator, BaseModel, ConfigDict, Field

from perf_assets.core.machines import check_machine_id
from perf_assets.core.manifest import check_application
from perf_assets.core.yaml_text import read_settings
from perf_assets.infra.files import write_bytes
from perf_assets.infra.locks import exclusive
from perf_assets.storage.lake import Lake

ALIASES_NAME = "aliases.yaml"
_ENDING = re.compile(r"(?:\.(?:exe|x|out|bin)|[-_]v?\d+(?:\.\d+)*|v?\d+(?:\.\d+)+)+$")
_LOCK_SECONDS = 60.0
_HEAD = (
    "# Names as files have them, and what they are called here. 'perf-assets land' adds to it; edit it as you like.\n"
)


class AliasFile(BaseModel):
    """Content of `aliases.yaml`."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    machines: dict[str, Annotated[str, AfterValidator(check_machine_id)]] = Field(default_factory=dict)
    applications: dict[str, Annotated[str, AfterValidator(check_application)]] = Field(default_factory=dict)


@dataclass
class Aliases:
    """A site's names, and those that are new since they were read."""

    path: Path
    file: AliasFile
    known_applications: frozenset[str] = frozenset()
    """Applications of what landed before."""
    known_machines: frozenset[str] = frozenset()
    learned: dict[str, str] = field(default_factory=dict)
    """Application by what files call it."""

    def machine(self, given_name: str) -> str:
        """Machine of a name in files; as an id, where the site has no name for it."""
        return self.file.machines.get(given_name) or re.sub(r"[^a-z0-9_-]+", "-", given_name.lower()).strip("-_")[:64]

    def application(self, given_name: str) -> str:
        """Application of a name in files: the site's name, or the one known application of nearly that name."""
        names = dict(self.file.applications) | self.learned
        if given_name in names:
            return names[given_name]
        alike = set(self._known_alike.get(same_name(given_name), ()))
        alike |= {name for name in names.values() if same_name(name) == same_name(given_name)}
        if given_name in alike or len(alike) != 1:
            return given_name
        (self.learned[given_name],) = alike
        return self.learned[given_name]

    def applications(self, given_names: Collection[str]) -> dict[str, str]:
        """Applications that a table calls otherwise, by its names; names that differ within a table stay different."""
        stems = Counter(map(same_name, given_names))
        named = {
            name: self.application(name) if stems[same_name(name)] == 1 else self.file.applications.get(name, name)
            for name in sorted(given_names)
        }
        return {name: application for name, application in named.items() if application != name}

    @cached_property
    def _known_alike(self) -> dict[str, list[str]]:
        """Known applications by what is left of their names."""
        alike: dict[str, list[str]] = {}
        for name in self.known_applications:
            alike.setdefault(same_name(name), []).append(name)
        return alike

    def learn(self, given_name: str, application: str) -> None:
        """Remember what an application is called here that files call otherwise."""
        if given_name != application:
            self.learned[given_name] = application

    def nearly(self, application: str) -> str | None:
        """Known application that a new name may be a typing error of."""
        return _near(application, self.known_applications)

    def nearly_machine(self, machine: str) -> str | None:
        """Known machine that a new name may be a typing error of."""
        return _near(machine, self.known_machines)

    def save(self) -> None:
        """Add what was learned to the file."""
        new = {
            given_name: name
            for given_name, name in self.learned.items()
            if self.file.applications.get(given_name) != name
        }
        if new:
            document = {
                "machines": dict(sorted(self.file.machines.items())),
                "applications": dict(sorted({**self.file.applications, **new}.items())),
            }
            with exclusive(self.path.parent / "locks" / "aliases.lock", f"writing {self.path}", _LOCK_SECONDS):
                write_bytes(self.path, _text(document))


def _near(name: str, known: Collection[str]) -> str | None:
    if name in known:
        return None
    return next(iter(get_close_matches(name, sorted(known), n=1, cutoff=0.75)), None)


def _text(document: Mapping[str, object]) -> bytes:
    return (_HEAD + yaml.safe_dump(document, allow_unicode=True, sort_keys=False)).encode()


def same_name(name: str) -> str:
    """Name of an application without case, ending and version: Kripke.exe and kripke-1.2 are alike."""
    stem = _ENDING.sub("", name.casefold())
    return re.sub(r"[-_ .]", "", stem) or name.casefold()


def load_aliases(lake: Lake, known_applications: Iterable[str] = ()) -> Aliases:
    """Names of a lake; none where it has no file of them."""
    path = lake.root / ALIASES_NAME
    return Aliases(path, read_settings(AliasFile, path), frozenset(known_applications), frozenset(lake.machines()))


def known_applications(lake: Lake) -> set[str]:
    """Applications of all bundles that were ingested, and of the rows of tables."""
    import pyarrow.parquet as pq

    from perf_assets.core.tables.landing import RUNS
    from perf_assets.storage.record import MachineRecord

    names: set[str | None] = set()
    for machine in lake.machines():
        record = MachineRecord(lake.record, machine)
        ledger = record.ledger(["app", "kind"])
        names |= set(ledger["app"].to_pylist())
        if "samples" in ledger["kind"].to_pylist():
            for part in record.live_parts(RUNS):
                names |= set(pq.read_table(part, columns=["app"])["app"].unique().to_pylist())
    return {name for name in names if name}
