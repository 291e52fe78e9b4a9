"""Requests: runs to predict, and measured runs to learn from."""

import math
from typing import Annotated, Any, TypeVar

from pydantic import AfterValidator, AwareDatetime, BaseModel, ConfigDict, Field, ValidationError

from perf_assets.core.errors import BadInputError
from perf_assets.core.machines import check_machine_id
from perf_assets.core.manifest import MAX_APP, MAX_ARGS
from perf_assets.core.text import check_text, first_problem

MOST_COUNTERS = 10_000
"""Counters of a run."""
_LARGEST_COUNT = 2**31 - 1

_MOST_SECONDS = 1e10

_Model = TypeVar("_Model", bound=BaseModel)


def _check_finite(counters: dict[str, float | None]) -> dict[str, float | None]:
    for name, value in counters.items():
        if value is not None and math.isinf(value):
            raise ValueError(f"{name} is infinite: leave it out, or give null")
    return counters


MachineId = Annotated[str, AfterValidator(check_machine_id)]
_Text = Annotated[str, AfterValidator(check_text)]
_CounterName = Annotated[_Text, Field(min_length=1, max_length=300)]
_Counters = Annotated[dict[_CounterName, float | None], Field(max_length=MOST_COUNTERS), AfterValidator(_check_finite)]


class _Configured(BaseModel):
    """Configuration of a run: runs on two machines are the same workload where it is equal."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, use_attribute_docstrings=True)

    machine: MachineId
    """Machine on which it ran."""
    app: _Text = Field(min_length=1, max_length=MAX_APP)
    """Name of the application."""
    args: _Text = Field(default="", max_length=MAX_ARGS)
    """Its arguments."""
    ranks: int = Field(ge=1, le=_LARGEST_COUNT)
    """MPI ranks."""
    threads: int = Field(default=1, ge=1, le=_LARGEST_COUNT)
    """Threads per rank."""
    wall_seconds: float = Field(gt=0, le=_MOST_SECONDS, allow_inf_nan=False)
    """Measured run time."""
    counters: _Counters = Field(default_factory=dict)
    """Under the machine's own names (per rank), or canonical features; what is null or NaN was not measured."""

    @property
    def measured(self) -> dict[str, float]:
        """The counters that have a value."""
        return {name: value for name, value in self.counters.items() if value is not None and math.isfinite(value)}


class Run(_Configured):
    """A run of an application on a source machine."""

    uses_gpus: bool | None = None
    """Whether the program runs on GPUs where a machine has some; None: as its other runs do."""
    target_ranks: int | None = Field(default=None, ge=1, le=_LARGEST_COUNT)
    """MPI ranks on the other machine; None: as many as the run has. What nobody ran comes from a model of scaling."""

    @property
    def ranks_there(self) -> int:
        """Ranks on the target for which the time is asked."""
        return self.ranks if self.target_ranks is None else self.target_ranks


class Observation(_Configured):
    """A run that was measured on a machine that has a target model."""

    nodes: int | None = Field(default=None, ge=1, le=_LARGEST_COUNT)
    """Nodes used in all."""
    gpus: int | None = Field(default=None, ge=0, le=_LARGEST_COUNT)
    """GPUs used in all; needed on a machine that has some."""
    collected_at: AwareDatetime | None = Field(default=None, strict=False)
    """Time at which it was measured; by default now."""
    reference: Run | None = None
    """This run on the model's reference machine, where the model does not know it."""


def checked(kind: type[_Model], values: dict[str, Any], place: str = "") -> _Model:
    """An instance, or the first thing that is wrong with it."""
    try:
        return kind.model_validate(values)
    except ValidationError as error:
        raise BadInputError(f"{place}: {first_problem(error)}" if place else first_problem(error)) from None
