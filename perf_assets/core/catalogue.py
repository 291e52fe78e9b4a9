"""The counter catalogue: which counters stand for which quantity. The data is in `counters.yaml` and a site's files."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import Annotated, Literal

import yaml
from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError

from perf_assets.core.errors import BadInputError
from perf_assets.core.validation import first_problem

_EVENT_TABLE = re.compile(r"^[a-z0-9_]+:::?(?=[^:])")


def plain_name(counter: str) -> str:
    """A counter's name as the catalogue compares it."""
    return _EVENT_TABLE.sub("", counter.strip().removesuffix("(I)").strip().lower())


def _check_pattern(pattern: str) -> str:
    re.compile(pattern)
    return pattern


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Quantity(_Strict):
    """Something that can be counted, whatever a machine calls it."""

    unit: str
    description: str


class Formula(_Strict):
    """One way to get a quantity: a sum of counters."""

    quantity: str
    counters: dict[str, float] = Field(min_length=1)
    """Coefficient by counter."""
    architectures: tuple[str, ...] = ()
    """Micro-architectures where it holds; empty is everywhere."""
    meaning: str
    """What exactly is counted: retired or dispatched, scalar or packed …"""

    def applies_to(self, microarchitecture: str | None) -> bool:
        """Whether it holds for a machine of this micro-architecture (None: not known)."""
        return not self.architectures or microarchitecture in self.architectures


class _File(_Strict):
    version: Literal[1]
    backend_arguments: tuple[Annotated[str, AfterValidator(_check_pattern)], ...] = ()
    quantities: dict[str, Quantity] = Field(default_factory=dict)
    formulas: tuple[Formula, ...] = ()


@dataclass(frozen=True)
class Resolved:
    """A formula over a machine's own counter names."""

    quantity: str
    counters: dict[str, float]
    meaning: str

    def text(self) -> str:
        """As a person writes it."""
        terms = [name if factor == 1 else f"{factor:g} {name}" for name, factor in self.counters.items()]
        return " + ".join(terms)


@dataclass(frozen=True)
class Catalogue:
    """All that is known of counters; formulas in order of preference."""

    backend_arguments: tuple[str, ...]
    quantities: dict[str, Quantity]
    formulas: tuple[Formula, ...]

    def resolve(self, counters: Iterable[str], microarchitecture: str | None) -> list[Resolved]:
        """Formulas that hold for a machine that has these counters, in order of preference."""
        own_name = {plain_name(counter): counter for counter in sorted(counters, reverse=True)}
        return [
            Resolved(
                formula.quantity,
                {own_name[plain_name(name)]: factor for name, factor in formula.counters.items()},
                formula.meaning,
            )
            for formula in self.formulas
            if formula.applies_to(microarchitecture) and all(plain_name(name) in own_name for name in formula.counters)
        ]


def load_catalogue(site_files: Sequence[Path] = ()) -> Catalogue:
    """The catalogue of this package with a site's files before it."""
    shipped = files("perf_assets.core").joinpath("counters.yaml").read_text()
    parsed = [_parse(str(path), path.read_text()) for path in site_files]
    parsed.append(_parse("counters.yaml", shipped))
    quantities = {name: quantity for file in reversed(parsed) for name, quantity in file.quantities.items()}
    formulas = tuple(formula for file in parsed for formula in file.formulas)
    for formula in formulas:
        if formula.quantity not in quantities:
            raise BadInputError(
                f"counter catalogue: quantity {formula.quantity!r} is not described: add it to quantities"
            )
    return Catalogue(tuple(pattern for file in parsed for pattern in file.backend_arguments), quantities, formulas)


def _parse(name: str, text: str) -> _File:
    try:
        return _File.model_validate(yaml.safe_load(text))
    except yaml.YAMLError as error:
        raise BadInputError(f"counter catalogue {name} is not YAML: {error}") from None
    except re.error as error:
        raise BadInputError(f"counter catalogue {name}: a pattern of backend_arguments is wrong: {error}") from None
    except ValidationError as error:
        raise BadInputError(f"counter catalogue {name}: {first_problem(error)}") from None
