"""Answers to people: rows that print as tables, in a notebook as well."""

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, fields
from html import escape
from typing import TYPE_CHECKING, Any, Generic, TypeVar, overload

from perf_assets.core.comparison import ComparedApplication, ComparedMachine, Comparison
from perf_assets.serving.requests import Run

if TYPE_CHECKING:
    import pandas as pd

_Row = TypeVar("_Row")
_DESCRIBED = {"use_attribute_docstrings": True}
"""For the service's description of its answers: what is said of a field here is said there."""
_STYLE = "text-align:left;font-variant-numeric:tabular-nums;padding:2px 8px"


@dataclass(frozen=True)
class Prediction:
    """Predicted time of a run on another machine."""

    __pydantic_config__ = _DESCRIBED

    source_machine: str
    target_machine: str
    app: str
    args: str
    ranks: int
    """Ranks on the target: those of the run, unless others were asked for."""
    threads: int
    source_seconds: float
    """Measured on the source."""
    relative_time: float
    """Predicted time on the target / time on the source: above 1 is slower on the target."""
    predicted_seconds: float
    lower_seconds: float
    """Lower end of the 90% interval."""
    upper_seconds: float
    model: str
    """Registered model that answered."""
    model_version: int
    is_with_amm: bool
    """Whether benchmarks of the machines went into the answer."""
    observed_count: int
    """Runs observed since the model was made that the answer takes into account."""
    warnings: tuple[str, ...]

    @classmethod
    def of_run(
        cls,
        run: Run,
        target: str,
        bounds: Sequence[float],
        model: tuple[str, int],
        *,
        is_with_amm: bool = False,
        observed_count: int = 0,
        warnings: Sequence[str] = (),
    ) -> "Prediction":
        """Answer about a run; `bounds` are its time and the ends of its interval, `model` a name and a version."""
        seconds, lower, upper = bounds
        return cls(
            source_machine=run.machine,
            target_machine=target,
            app=run.app,
            args=run.args,
            ranks=run.ranks_there,
            threads=run.threads,
            source_seconds=run.wall_seconds,
            relative_time=seconds / run.wall_seconds,
            predicted_seconds=seconds,
            lower_seconds=lower,
            upper_seconds=upper,
            model=model[0],
            model_version=model[1],
            is_with_amm=is_with_amm,
            observed_count=observed_count,
            warnings=tuple(warnings),
        )


@dataclass(frozen=True)
class KnownMachine:
    """A machine of the lake, and what can be predicted for it."""

    __pydantic_config__ = _DESCRIBED

    machine: str
    has_benchmark: bool
    """Whether RAJAPerf runs of it were ingested."""
    has_runs: bool
    """Whether runs of applications were ingested."""
    champion_version: int | None
    reference_machine: str | None
    """Machine whose runs the champion starts from."""
    shots: int | None
    """Runs of the machine that the champion was fitted to."""
    observed_count: int
    severity: float | None
    next_step: str
    """Advice on how to get predictions, or better ones."""


@dataclass(frozen=True)
class RegisteredModel:
    """A registered version that an alias points to."""

    __pydantic_config__ = _DESCRIBED

    name: str
    version: int
    aliases: tuple[str, ...]
    created_at: str
    """UTC."""
    is_simulated: bool
    """Whether it was made of simulated data."""


@dataclass(frozen=True)
class PlannedRun:
    """A run to do next."""

    seen_as: str
    """The machine, or its host where the program does not use its GPUs."""
    rank: int
    configuration: str
    app: str
    error_before_ratio: float
    """Expected error over all configurations."""
    error_after_ratio: float
    is_worth_it: bool
    """Whether it lowers the expected error by a share of it that is worth a run."""
    shots: int
    """Runs that the model knows."""
    node_hours: float | None
    args: str
    ranks: int
    threads: int
    nodes: int
    """Most nodes that it ever used, on any machine; 1 where nobody knows."""


@dataclass(frozen=True)
class Noted:
    """Outcome of handing in an observed run."""

    __pydantic_config__ = _DESCRIBED

    machine: str
    app: str
    args: str
    ranks: int
    threads: int
    measured_seconds: float
    predicted_seconds: float
    """Prediction before this run was known."""
    lower_seconds: float
    upper_seconds: float
    bundle: str
    """Name of its bundle in the landing zone."""
    is_new: bool
    """False where the same run had been handed in before."""
    observed_count: int
    """Runs that predictions for the machine now take into account beside its champion."""


class Rows(Sequence[_Row], Generic[_Row]):
    """Rows of one kind; a table in a notebook."""

    def __init__(self, rows: Sequence[_Row], notes: Sequence[str] = ()) -> None:
        self._rows = tuple(rows)
        self.notes = tuple(notes)
        """Runs that were left out, with reasons."""

    @overload
    def __getitem__(self, index: int) -> _Row: ...
    @overload
    def __getitem__(self, index: slice) -> "Rows[_Row]": ...
    def __getitem__(self, index: int | slice) -> "_Row | Rows[_Row]":
        return Rows(self._rows[index], self.notes) if isinstance(index, slice) else self._rows[index]

    def __len__(self) -> int:
        return len(self._rows)

    def __iter__(self) -> Iterator[_Row]:
        return iter(self._rows)

    def __repr__(self) -> str:
        return "\n".join(map(repr, self._rows)) or "nothing"

    def to_dicts(self) -> list[dict[str, Any]]:
        """One dictionary per row."""
        return [asdict(row) for row in self._rows]  # type: ignore[call-overload]

    def to_frame(self) -> "pd.DataFrame":
        """Rows as a data frame."""
        import pandas as pd

        return pd.DataFrame(self.to_dicts())

    def _repr_html_(self) -> str:
        if not self._rows:
            return "<p>nothing</p>"
        names = [field.name for field in fields(self._rows[0])]  # type: ignore[arg-type]
        head = "".join(f'<th scope="col" style="{_STYLE}">{escape(name.replace("_", " "))}</th>' for name in names)
        body = "".join(
            "<tr>"
            + "".join(f'<td style="{_STYLE}">{escape(shown(getattr(row, name)))}</td>' for name in names)
            + "</tr>"
            for row in self._rows
        )
        notes = "".join(f"<p>{escape(note)}</p>" for note in self.notes)
        return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>{notes}"


class Compared(Rows[ComparedMachine]):
    """Machines for a portfolio, best first; `notes` say which can be told apart, and what was left out."""

    def __init__(self, comparison: Comparison) -> None:
        super().__init__(comparison.machines, [*comparison.findings(), *comparison.notes])
        self.comparison = comparison

    @property
    def applications(self) -> Rows[ComparedApplication]:
        """Each application on each machine."""
        return Rows(self.comparison.applications)

    def to_frame(self) -> "pd.DataFrame":
        """A row for each machine, then one for each machine and application."""
        return self.comparison.to_frame()

    def _repr_html_(self) -> str:
        weights = ", ".join(f"{app} {weight:.0%}" for app, weight in self.comparison.weights.items())
        head = f"<p>{escape(weights)}; relative to {escape(self.comparison.baseline)}</p>"
        return head + super()._repr_html_() + self.applications._repr_html_()


def shown(value: object) -> str:
    """Value as a person reads it: four digits of a number, a dash for nothing."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:.4g}"
    if isinstance(value, tuple):
        return "; ".join(map(str, value)) or "-"
    return "-" if value is None or value == "" else str(value)
