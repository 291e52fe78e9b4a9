"""The landing contract: what a bundle says of itself in `manifest.json` (version 1).

A bundle is identified by the sha256 of its manifest, and the manifest holds the sha256 of every file,
so two bundles with one digest have the same content.
"""

import hashlib
import re
from datetime import UTC, datetime
from pathlib import PurePosixPath
from typing import Annotated, Literal, Self

from pydantic import AfterValidator, AwareDatetime, BaseModel, ConfigDict, Field, ValidationError, model_validator

from perf_assets.core.datasets import check_dataset_name
from perf_assets.core.errors import BadInputError
from perf_assets.core.machines import check_machine_id
from perf_assets.core.text import check_text, first_problem

DAMAGED_ON_PURPOSE = "damaged-on-purpose"
"""Part of the name of bundles that the demo damages, so that people recognise them."""
MANIFEST_NAME = "manifest.json"
SPEC_NAME = "machine.yaml"
OBSERVED_TAG = "observed"
"""Tag of a run that was handed to a model that is in use."""
MAX_MANIFEST_BYTES = 16 * 2**20
MAX_FILE_BYTES = 4 * 2**30
MAX_BUNDLE_BYTES = 16 * 2**30
MAX_FILES = 100_000
MAX_APP, MAX_ARGS = 200, 10_000
"""Characters."""
_MAX_COUNT = 2**31 - 1
_EARLIEST, _LATEST = datetime(1970, 1, 1, tzinfo=UTC), datetime(2200, 1, 1, tzinfo=UTC)

_BUNDLE_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._=+-]{0,127}")


def check_bundle_name(name: str) -> str:
    """Return `name` if it can be a bundle directory; raise otherwise."""
    if not _BUNDLE_NAME.fullmatch(name):
        raise BadInputError(
            f"bundle name {name!r} is not allowed: use 1 to 128 of letters, digits and . _ = + - "
            "and start with a letter or digit"
        )
    return name


def check_relative_path(path: str) -> str:
    """Return `path` if it names a file inside a bundle in canonical form; raise otherwise."""
    parts = PurePosixPath(path)
    if parts.is_absolute() or ".." in parts.parts or "\\" in path or "\0" in path:
        raise ValueError(f"path {path!r} leaves the bundle")
    if path != str(parts) or path in ("", ".", MANIFEST_NAME):
        raise ValueError(f"path {path!r} is not a plain relative file path")
    try:
        path.encode()
    except UnicodeEncodeError:
        raise ValueError(f"path {path!r} is not UTF-8") from None
    return check_text(path)


def check_application(name: str) -> str:
    """Return `name` if an application can be called so; raise otherwise."""
    if not 1 <= len(name) <= MAX_APP:
        raise ValueError(f"application {name[:40]!r} must have 1 to {MAX_APP} characters")
    return check_text(name)


def check_arguments(args: str) -> str:
    """Return `args` if it can be the arguments of a run; raise otherwise."""
    if len(args) > MAX_ARGS:
        raise ValueError(f"arguments {args[:40]!r} … have more than {MAX_ARGS} characters")
    # Blanks of any kind are folded where runs are compared.
    check_text(" ".join(args.split()))
    return args


class _ManifestModel(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, strict=False)


class FileEntry(_ManifestModel):
    """One file of a bundle."""

    path: Annotated[str, AfterValidator(check_relative_path)]
    size: int = Field(ge=0, le=MAX_FILE_BYTES)
    sha256: str = Field(pattern=r"^[0-9a-f]{64}$")


class BundleFacts(_ManifestModel):
    """Facts about a bundle that its producer knows and its files do not hold."""

    machine: Annotated[str, AfterValidator(check_machine_id)]
    kind: Literal["rajaperf", "profile", "samples"]
    app: Annotated[str, AfterValidator(check_application)] | None = None
    args: Annotated[str, AfterValidator(check_arguments)] = ""
    ranks: int | None = Field(default=None, ge=1, le=_MAX_COUNT)
    threads: int | None = Field(default=None, ge=1, le=_MAX_COUNT)
    """Threads per rank."""
    nodes: int | None = Field(default=None, ge=1, le=_MAX_COUNT)
    gpus: int | None = Field(default=None, ge=0, le=_MAX_COUNT)
    """GPUs used in all."""
    wall_seconds: float | None = Field(default=None, gt=0, allow_inf_nan=False)
    collected_at: AwareDatetime = Field(ge=_EARLIEST, le=_LATEST)
    target: Annotated[str, AfterValidator(check_text)] | None = Field(default=None, min_length=1, max_length=1000)
    """Column to predict; samples only."""
    dataset: Annotated[str, AfterValidator(check_dataset_name)] | None = None
    """Table that the rows belong to; samples only."""
    app_names: dict[str, Annotated[str, AfterValidator(check_application)]] | None = None
    """Names of applications by their names in the column `app` or in job records; samples only."""
    tags: dict[str, str] = Field(default_factory=dict)

    @model_validator(mode="after")
    def _fields_fit_the_kind(self) -> Self:
        if self.kind == "profile" and self.app is None:
            raise ValueError("app is missing: a profile needs the name of its application")
        if self.kind == "samples" and self.target is None:
            raise ValueError("target is missing: samples need the name of the column to predict")
        if self.kind != "samples" and self.target is not None:
            raise ValueError(f"target belongs to samples, not to {self.kind}")
        if self.kind != "samples" and self.dataset is not None:
            raise ValueError(f"dataset belongs to samples, not to {self.kind}")
        if self.kind != "samples" and self.app_names is not None:
            raise ValueError(f"app_names belongs to samples, not to {self.kind}: name its application with app")
        return self

    @property
    def dataset_name(self) -> str | None:
        """Dataset of a table of samples: the named one, or the machine's own; None for all other bundles.

        A single run that was handed to a model in use is not a table.
        """
        is_table = self.kind == "samples" and OBSERVED_TAG not in self.tags
        return self.dataset or (self.machine if is_table else None)

    @property
    def is_simulated(self) -> bool:
        """Whether the producer says that these are not measurements."""
        return self.tags.get("simulated", "false") == "true"


class Manifest(BundleFacts):
    """A bundle's facts and files."""

    version: Literal[1] = 1
    files: tuple[FileEntry, ...] = Field(min_length=1, max_length=MAX_FILES)

    @model_validator(mode="after")
    def _files_fit_together(self) -> Self:
        paths = [entry.path for entry in self.files]
        if len(set(paths)) != len(paths):
            raise ValueError("files lists a path twice")
        if self.size_bytes > MAX_BUNDLE_BYTES:
            raise ValueError(f"files hold {self.size_bytes} bytes; the limit of a bundle is {MAX_BUNDLE_BYTES}")
        return self

    @property
    def size_bytes(self) -> int:
        """Size of all files together."""
        return sum(entry.size for entry in self.files)

    def to_json(self) -> bytes:
        """The bytes of `manifest.json`, in one canonical form."""
        return (self.model_dump_json(indent=1, exclude_none=True) + "\n").encode()


def parse_manifest(data: bytes) -> Manifest:
    """Read the bytes of a `manifest.json`; raise `BadInputError` with the first thing that is wrong."""
    try:
        return Manifest.model_validate_json(data)
    except ValidationError as error:
        raise BadInputError(f"{MANIFEST_NAME}: {first_problem(error)}") from None


def digest_of(manifest: bytes) -> str:
    """Identity of a bundle: the sha256 of its manifest's bytes."""
    return hashlib.sha256(manifest).hexdigest()


def utc_naive(moment: datetime) -> datetime:
    """Moment in UTC without a zone, as the tables hold it."""
    return moment.astimezone(UTC).replace(tzinfo=None)
