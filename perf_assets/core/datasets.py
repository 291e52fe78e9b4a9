"""Datasets: their names, and a site's settings for each in `datasets.yaml`."""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated

from pydantic import AfterValidator, BaseModel, ConfigDict, Field

from perf_assets.core.yaml_text import read_settings

FILE_NAME = "datasets.yaml"
_NAME = re.compile(r"[a-z0-9][a-z0-9_-]{0,63}")


def check_dataset_name(name: str) -> str:
    """Return `name` if a dataset can be called so; raise otherwise."""
    if not _NAME.fullmatch(name):
        raise ValueError(
            f"dataset name {name[:80]!r} is not allowed: use 1 to 64 of a-z 0-9 _ - and start with a letter or digit"
        )
    return name


def _check_pattern(pattern: str) -> str:
    try:
        re.compile(pattern)
    except re.error as error:
        raise ValueError(f"{pattern!r} is no regular expression: {error}") from None
    return pattern


_Name = Annotated[str, AfterValidator(check_dataset_name)]


class DatasetSettings(BaseModel):
    """Settings for learning a dataset."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    sources: tuple[_Name, ...] = ()
    """Datasets that its model is adapted from; all others where none is named."""
    drop: tuple[Annotated[str, AfterValidator(_check_pattern)], ...] = ()
    """Regular expressions of columns that are not features: those that hold the answer."""
    log_target: bool = True
    """Whether the logarithm is predicted; then only rows with a positive target count."""


class _DatasetFile(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)

    datasets: dict[_Name, DatasetSettings] = Field(default_factory=dict)


def load_dataset_settings(lake: Path) -> Mapping[str, DatasetSettings]:
    """Settings by dataset, from a lake's root folder; those that are not in the file have the defaults."""
    return read_settings(_DatasetFile, lake / FILE_NAME).datasets
