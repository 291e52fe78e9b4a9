"""Profile of where work runs, one file each; `PERF_ASSETS_PROFILE` names the one in use."""

import os
from functools import cache
from pathlib import Path
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError, model_validator

from perf_assets.core.errors import BadInputError
from perf_assets.core.text import first_problem
from perf_assets.core.yaml_text import parse_yaml

VARIABLE = "PERF_ASSETS_PROFILE"
NAMES = ("laptop", "workstation", "cluster")
FILES = Path(__file__).with_name("profiles")
"""Folder of the shipped profiles, one file for each name."""
_Count = Annotated[int, Field(ge=1)]
_Text = Annotated[str, Field(min_length=1)]


class _Settings(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


class InProcessProfile(_Settings):
    """Steps follow each other in one process."""

    executor: Literal["in_process"]
    threads_per_process: _Count


class MultiprocessProfile(_Settings):
    """A process for each step, several at once."""

    executor: Literal["multiprocess"]
    threads_per_process: _Count
    processes: _Count | None = None
    """Processes at once; by default, the number that the cores allow."""


class LocalCluster(_Settings):
    """Dask workers of this machine, reached over the loopback interface."""

    workers: _Count
    memory_per_worker: _Text
    dashboard: _Text = "127.0.0.1:0"
    """Address of Dask's page; port 0 is a free one."""


class ExistingCluster(_Settings):
    """A Dask scheduler that runs already."""

    address: _Text
    connect_seconds: Annotated[float, Field(gt=0)] = 30.0
    """Seconds to wait for its answer."""


class SlurmCluster(_Settings):
    """Dask workers in Slurm jobs."""

    queue: _Text
    jobs: _Count
    cores: _Count
    memory: _Text
    walltime: _Text
    account: _Text | None = None
    interface: _Text | None = None
    log_directory: _Text | None = None
    shared_directory: _Text = "~"
    directives: tuple[str, ...] = ()
    prologue: tuple[str, ...] = ()


class Clusters(_Settings):
    """The cluster that is used."""

    local: LocalCluster | None = None
    existing: ExistingCluster | None = None
    slurm: SlurmCluster | None = None

    @model_validator(mode="after")
    def _only_one(self) -> "Clusters":
        if sum(getattr(self, name) is not None for name in type(self).model_fields) != 1:
            raise ValueError(f"give exactly one of {', '.join(type(self).model_fields)}")
        return self


class DaskProfile(_Settings):
    """Steps and fan-outs on Dask workers of one thread."""

    executor: Literal["dask"]
    cluster: Clusters
    tasks_per_worker: _Count
    retries: Annotated[int, Field(ge=0)]
    start_seconds: Annotated[float, Field(gt=0)]


Profile = InProcessProfile | MultiprocessProfile | DaskProfile
_ADAPTER: TypeAdapter[Profile] = TypeAdapter(Annotated[Profile, Field(discriminator="executor")])


def current_profile() -> Profile:
    """The profile of `PERF_ASSETS_PROFILE`: a name, or the absolute path of a file; `laptop` where it is not set."""
    given = os.environ.get(VARIABLE) or NAMES[0]
    if given in NAMES:
        return read_profile(FILES / f"{given}.yaml")
    if not Path(given).is_absolute():
        raise BadInputError(f"{VARIABLE}={given}: use {', '.join(NAMES)}, or the absolute path of a profile file")
    return read_profile(Path(given))


@cache
def read_profile(path: Path) -> Profile:
    """Read and check a file; raise `BadInputError` with the first thing that is wrong. Read once in a process."""
    if not path.is_file():
        raise BadInputError(f"{VARIABLE}: {path} is not a file")
    try:
        text = path.read_text("utf-8")
    except UnicodeDecodeError as error:
        raise BadInputError(f"{path} is not YAML: {error}") from None
    document = parse_yaml(str(path), text)
    try:
        return _ADAPTER.validate_python(_with_tuples(document))
    except ValidationError as error:
        raise BadInputError(f"{path}: {first_problem(error)}") from None


def _with_tuples(value: object) -> object:
    if isinstance(value, dict):
        return {key: _with_tuples(inner) for key, inner in value.items()}
    return tuple(value) if isinstance(value, list) else value
