"""The counter catalogue: which counters stand for which quantity. The data is in `counters.yaml` and a site's files."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from importlib.resources import files
from pathlib import Path
from typing import Annotated, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field

from perf_assets.core.errors import BadInputError
from perf_assets.core.yaml_text import parse_yaml, validated

_EVENT_TABLE = re.compile(r"^([a-z0-9_]+):::?(?=[^:])")
_PRIVILEGE = re.compile(r":[ukhgp]{1,4}$")
"""Modifier of perf events: instructions:u are those of the user level."""
_FLATTENED = "ev_"
"""Prefix of LIKWID's events in tables that were made of its output."""
_NOT_IN_RE2 = re.compile(r"\(\?(?:[=!<]|P=)|\\[1-9]")


def plain_name(counter: str) -> str:
    """A counter's name as the catalogue compares it."""
    return _PRIVILEGE.sub("", _EVENT_TABLE.sub("", _lowered(counter))).removeprefix(_FLATTENED)


def _lowered(counter: str) -> str:
    return counter.strip().removesuffix("(I)").strip().lower()


def _check_pattern(pattern: str) -> str:
    if _NOT_IN_RE2.search(pattern):
        raise ValueError(f"pattern {pattern!r} looks around or back, which DuckDB cannot: write it without")
    try:
        re.compile(pattern)
    except re.error as error:
        raise ValueError(f"pattern {pattern!r} is wrong: {error}") from None
    return pattern


class _CatalogueModel(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Quantity(_CatalogueModel):
    """Something that can be counted, whatever a machine calls it."""

    unit: str
    description: str


class Formula(_CatalogueModel):
    """One way to get a quantity: a sum of counters."""

    quantity: str
    counters: dict[str, float] = Field(min_length=1)
    """Coefficient by counter."""
    architectures: tuple[str, ...] = ()
    """Micro-architectures where it holds; empty is everywhere."""
    meaning: str
    """Exact meaning: retired or dispatched, scalar or packed …"""

    def applies_to(self, microarchitecture: str | None) -> bool:
        """Whether the mapping applies to a machine of this micro-architecture (None: not known)."""
        return not self.architectures or microarchitecture in self.architectures


class _CatalogueFile(_CatalogueModel):
    version: Literal[1]
    backend_arguments: tuple[Annotated[str, AfterValidator(_check_pattern)], ...] = ()
    event_tables: dict[str, str] = Field(default_factory=dict)
    quantities: dict[Annotated[str, Field(pattern=r"^[a-z][a-z0-9_]*$")], Quantity] = Field(default_factory=dict)
    formulas: tuple[Formula, ...] = ()


@dataclass(frozen=True)
class Resolved:
    """A formula over a machine's own counter names."""

    quantity: str
    terms: tuple[tuple[tuple[str, ...], float], ...]
    """Names that a counter has on this machine (tools spell it differently), and its coefficient."""
    meaning: str

    @property
    def counters(self) -> list[str]:
        """All counters in it."""
        return [name for names, _ in self.terms for name in names]

    def text(self) -> str:
        """Formula as a person writes it."""
        named = [(" or ".join(names), factor) for names, factor in self.terms]
        return " + ".join(name if factor == 1 else f"{factor:g} {name}" for name, factor in named)


@dataclass(frozen=True)
class Catalogue:
    """All that is known of counters; formulas in order of preference."""

    backend_arguments: tuple[str, ...]
    event_tables: dict[str, str]
    """Micro-architecture by prefix of its events."""
    quantities: dict[str, Quantity]
    formulas: tuple[Formula, ...]

    def resolve(self, counters: Iterable[str], microarchitecture: str | None) -> list[Resolved]:
        """Formulas that hold for a machine that has these counters, in order of preference."""
        own_names: dict[str, tuple[str, ...]] = {}
        for counter in sorted(counters):
            own_names[plain_name(counter)] = (*own_names.get(plain_name(counter), ()), counter)
        architecture = microarchitecture or self._architecture_of(counters)
        return [
            Resolved(
                formula.quantity,
                tuple((own_names[plain_name(name)], factor) for name, factor in formula.counters.items()),
                formula.meaning,
            )
            for formula in self.formulas
            if formula.applies_to(architecture) and all(plain_name(name) in own_names for name in formula.counters)
        ]

    def comparable_args(self, args: str) -> str:
        """Arguments as configurations are compared: without those that select the back end, blanks folded."""
        # Twice: of two neighbours the first takes the blank between them.
        for pattern in (*self.backend_arguments, *self.backend_arguments):
            args = re.sub(pattern, " ", " ".join(args.split()))
        return " ".join(args.split())

    def _architecture_of(self, counters: Iterable[str]) -> str | None:
        """Micro-architecture by the prefixes of a machine's own events, where no data sheet names it."""
        prefixes = {match[1] for counter in counters if (match := _EVENT_TABLE.match(_lowered(counter)))}
        architectures = {self.event_tables[prefix] for prefix in prefixes & self.event_tables.keys()}
        return architectures.pop() if len(architectures) == 1 else None


def load_catalogue(site_files: Sequence[Path] = ()) -> Catalogue:
    """The catalogue of this package with a site's files before it."""
    shipped = files("perf_assets.core").joinpath("counters.yaml").read_text()
    parsed = [_parse(str(path), path.read_text(errors="replace")) for path in site_files]
    parsed.append(_parse("counters.yaml", shipped))
    event_tables = {prefix: name for file in reversed(parsed) for prefix, name in file.event_tables.items()}
    quantities = {name: quantity for file in reversed(parsed) for name, quantity in file.quantities.items()}
    formulas = tuple(formula for file in parsed for formula in file.formulas)
    for formula in formulas:
        if formula.quantity not in quantities:
            raise BadInputError(
                f"counter catalogue: quantity {formula.quantity!r} is not described: add it to quantities"
            )
    patterns = tuple(pattern for file in parsed for pattern in file.backend_arguments)
    return Catalogue(patterns, event_tables, quantities, formulas)


@lru_cache(maxsize=16)
def _parse(name: str, text: str) -> _CatalogueFile:
    name = f"counter catalogue {name}"
    return validated(_CatalogueFile, name, parse_yaml(name, text))
