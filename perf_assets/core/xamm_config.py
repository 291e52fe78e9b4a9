"""xAMM's configuration file: which data, which models, and which of its three functions to run."""

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

from perf_assets.core.errors import BadInputError
from perf_assets.core.yaml_text import parse_yaml, validated

Function = Literal["amm", "train", "test"]
AUTO = "auto"
"""Value of an AMM field that is chosen by cross-validation."""
_REFERENCE = re.compile(r"(?P<file>[^:]*[^/:])(?::(?P<machine>.+))?")
_NEEDS = {"amm": "machine_data_path", "train": "app_train_data_path", "test": "app_test_data_path"}


@dataclass(frozen=True)
class AmmReference:
    """Path of AMMs, or of benchmark runs to make them of; and one of its machines, if one is named."""

    file: Path
    machine: str | None

    @property
    def is_stored(self) -> bool:
        """Whether it is a JSON file of AMMs; otherwise it is a benchmark dataset."""
        return self.file.suffix == ".json"


class _Fields(BaseModel):
    """Fields as they stand in the file; what is absent or empty is unset."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    func: Function
    machine_data_path: str | None = Field(None, min_length=1)
    app_train_data_path: str | None = Field(None, min_length=1)
    app_test_data_path: str | None = Field(None, min_length=1)
    src_model_path: str | None = Field(None, min_length=1)
    src_machine_amm: str | None = Field(None, min_length=1)
    target_machine_amm: str | None = Field(None, min_length=1)
    amm_option: str = Field("mean", min_length=1)
    amm_normalize: str = Field("own_max", min_length=1)


@dataclass(frozen=True)
class XammConfig:
    """The file with its paths resolved against its folder."""

    folder: Path
    func: Function
    machine_data: Path | None
    app_train_data: Path | None
    app_test_data: Path | None
    source_model: Path | None
    source_amm: AmmReference | None
    target_amm: AmmReference | None
    amm_option: str = "mean"
    """Weighting of benchmark rows in Algorithm 1, or `auto`."""
    amm_normalize: str = "own_max"
    """Normalisation: the vector that is subtracted from an AMM at the end, or `auto`."""

    @property
    def amm_pair(self) -> tuple[AmmReference, AmmReference] | None:
        """Both AMMs; None where neither is set, and refused where only one is."""
        if self.source_amm is not None and self.target_amm is not None:
            return self.source_amm, self.target_amm
        if self.source_amm is None and self.target_amm is None:
            return None
        absent, given = ("src_machine_amm", "target_machine_amm")[:: 1 if self.source_amm is None else -1]
        raise BadInputError(f"{absent} is not set, but {given} is: set both, or neither to do without AMMs")


def read_config(path: Path) -> XammConfig:
    """Read and check a file; raise `BadInputError` with the first thing that is wrong."""
    fields = _read_fields(path)
    folder = path.absolute().parent

    def resolved(given: str | None) -> Path | None:
        return None if given is None else folder / given

    return XammConfig(
        folder=folder,
        func=fields.func,
        machine_data=resolved(fields.machine_data_path),
        app_train_data=resolved(fields.app_train_data_path),
        app_test_data=resolved(fields.app_test_data_path),
        source_model=resolved(fields.src_model_path),
        source_amm=_reference(path, "src_machine_amm", fields, folder),
        target_amm=_reference(path, "target_machine_amm", fields, folder),
        amm_option=fields.amm_option,
        amm_normalize=fields.amm_normalize,
    )


def _read_fields(path: Path) -> _Fields:
    if not path.is_file():
        raise BadInputError(f"{path} is not a file")
    try:
        document = parse_yaml(path.name, path.read_text("utf-8"))
    except UnicodeDecodeError as error:
        raise BadInputError(f"{path.name} is not YAML: {error}") from None
    if not isinstance(document, dict):
        raise BadInputError(f"{path.name}: write one 'field: value' a line, at least 'func: amm'")
    known = tuple(_Fields.model_fields)
    unknown = [str(name) for name in document if name not in known]
    if unknown:
        raise BadInputError(f"{path.name}: field {unknown[0]!r} is not known: use {', '.join(known)}")
    fields = validated(_Fields, path.name, document)
    needed = _NEEDS[fields.func]
    if getattr(fields, needed) is None:
        raise BadInputError(f"{path.name}: func {fields.func} needs {needed}")
    if fields.func == "test" and fields.src_model_path is None and fields.app_train_data_path is None:
        raise BadInputError(f"{path.name}: func test needs src_model_path, or app_train_data_path to train a model")
    is_auto = AUTO in (fields.amm_option, fields.amm_normalize)
    if fields.func == "amm" and is_auto and fields.app_train_data_path is None:
        raise BadInputError(f"{path.name}: 'auto' needs app_train_data_path, on whose runs the options are compared")
    return fields


def _reference(path: Path, field: str, fields: _Fields, folder: Path) -> AmmReference | None:
    given = getattr(fields, field)
    if given is None:
        return None
    parts = _REFERENCE.fullmatch(given)
    if parts is None or (fields.func == "amm" and not parts["file"].endswith(".json")):
        raise BadInputError(f"{path.name}: {field} {given!r}: write FILE.json or FILE.json:MACHINE")
    return AmmReference(folder / parts["file"], parts["machine"])
