"""Registered versions: which alias points where, what they were made of, and how aliases move."""

import errno
import logging
import re
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import unquote

import mlflow
from mlflow import MlflowClient
from mlflow.entities.model_registry import ModelVersion
from mlflow.exceptions import MlflowException
from mlflow.pyfunc import PyFuncModel

from perf_assets.core.errors import BadInputError, RegistryError, UnknownError, UnreadableFileError, like, listed
from perf_assets.core.paths import is_own_registry, mlflow_tracking_uri
from perf_assets.core.text import without_passwords
from perf_assets.registry.store import first_line, open_store

_log = logging.getLogger("perf_assets.registry")
Fitted = TypeVar("Fitted")
CHAMPION, CHALLENGER = "champion", "challenger"
SOURCE_ALIASES = ("with-amm", "without-amm")
COMPARABLE = ("mape", "mape_target_only", "mape_unchanged", "coverage_90", "shots", "severity")
"""Metrics that have the same name and meaning for every kind of model, where they are known."""
INPUTS = "inputs_digest"
"""Tag with the digest of what a version was made of."""
_REPLACED = "replaced_version"
"""Tag of a champion: the version that was champion before it."""
_KIND = re.compile("^perf-(target-|transfer-|relative-)?")
"""Start of the names of models, before that of a machine or dataset."""
_READ_ONLY = (errno.EROFS, errno.EACCES, errno.EPERM)
_PINNED = "pinned_"
"""Start of the tag of a registered model that says who chose what an alias points to."""


@dataclass(frozen=True)
class Registered:
    """A registered version, as people list it."""

    name: str
    version: int
    aliases: tuple[str, ...]
    created_at: datetime
    tags: dict[str, str]
    metrics: dict[str, float]


def load(name: str, alias: str) -> PyFuncModel:
    """The model that an alias points to, ready to run: its Python code comes from the registry."""
    try:
        return load_code(f"{name}@{alias}")
    except MlflowException as error:
        raise BadInputError(
            f"no model {name}@{alias} in {mlflow_tracking_uri()} ({first_line(error)}): train one"
        ) from None


def load_code(reference: str) -> PyFuncModel:
    """The model that `NAME@ALIAS` or `NAME/VERSION` stands for; warns where it is not from the lake's own registry."""
    open_store()
    if not is_own_registry():
        place = without_passwords(mlflow_tracking_uri())
        _log.warning("%s comes from %s, not from the lake: loading runs the code stored there", reference, place)
    # MLflow puts the copy of this package that travels with a model in front of all; processes that this one starts
    # would run that copy.
    before = list(sys.path)
    try:
        # What would be warned of is not shown, and takes a second to find.
        model: PyFuncModel = mlflow.pyfunc.load_model(f"models:/{reference}", suppress_warnings=True)
    finally:
        sys.path[:] = before
    return model


def versions(name: str) -> dict[str, int]:
    """Version that each alias of a registered model points to; none where it is not registered."""
    try:
        return {alias: int(number) for alias, number in open_store().get_registered_model(name).aliases.items()}
    except MlflowException as error:
        if error.error_code != "RESOURCE_DOES_NOT_EXIST":
            raise
        return {}


def all_aliases() -> dict[str, dict[str, int]]:
    """Version that each alias points to, by registered model."""
    models = all_pages(open_store().search_registered_models)
    return {model.name: {alias: int(number) for alias, number in model.aliases.items()} for model in models}


def unknown_model(wanted: str, names: Sequence[str]) -> UnknownError:
    """What is said of a model that is not registered: the one that was probably meant, also by its machine alone."""
    subjects = {name: _KIND.sub("", name) for name in names}
    near = like(_KIND.sub("", wanted), list(subjects.values()))
    meant = [name for name, subject in subjects.items() if near and subject == near]
    guess = like(wanted, meant) or next(iter(meant), "")
    advice = f"did you mean {guess}?" if guess else f"there are {listed(names) or 'none yet'}"
    return UnknownError(f"no model {wanted[:200]} is registered: {advice}")


def all_pages(search: Callable[..., Any], page_size: int = 1000) -> Iterator[Any]:
    """All that a search of MLflow finds: it answers with one page at a time."""
    token: str | None = None
    while True:
        page = search(max_results=page_size, page_token=token)
        yield from page
        token = page.token
        if not token:
            return


def versions_of(client: MlflowClient, name: str) -> list[ModelVersion]:
    """All versions of a registered model; none where it is not registered."""
    return list(all_pages(partial(client.search_model_versions, f"name = '{name}'")))


def newest_version(name: str) -> int:
    """Number of the version that was registered last."""
    stored_versions = versions_of(open_store(), name)
    if not stored_versions:
        raise BadInputError(f"no model {name} is registered: run 'perf-assets adapt'")
    return max(int(version.version) for version in stored_versions)


def fitted_folder(name: str, version: int) -> Path:
    """Folder with the arrays of a registered version, on this machine."""
    open_store()
    try:
        folder = Path(mlflow.artifacts.download_artifacts(f"models:/{name}/{version}"))
    except MlflowException as error:
        raise RegistryError(f"the files of {name} version {version} cannot be read ({first_line(error)})") from None
    except OSError as error:
        stored_in = _stored_in(name, version) if error.errno in _READ_ONLY else None
        if stored_in is None:
            raise RegistryError(f"the files of {name} version {version} cannot be read ({error})") from None
        folder = stored_in
    return folder / "artifacts" / "fitted"


def load_fitted(load: Callable[[Path], Fitted], name: str, version: int, again: str) -> Fitted:
    """The fitted model of a registered version; `again` says how one of another release is made anew."""
    folder = fitted_folder(name, version)
    try:
        return load(folder)
    except UnreadableFileError as error:
        message = f"{name} version {version} was stored by another version of perf_assets ({error})"
        raise RegistryError(f"{message}: {again}") from None


def _stored_in(name: str, version: int) -> Path | None:
    """Folder of a version in a lake that may only be read, where MLflow cannot note which version it gives."""
    client = open_store()
    address = client.get_model_version_download_uri(name, str(version))
    if address.startswith("models:/"):
        address = client.get_logged_model(address.removeprefix("models:/")).artifact_location
    folder = Path(unquote(address.removeprefix("file://")))
    return folder if folder.is_dir() else None


def shown_alias(name: str) -> tuple[str, int] | None:
    """Alias and version to show: the champion, or where nothing was promoted yet, the newest challenger."""
    aliases = versions(name)
    return next(((alias, aliases[alias]) for alias in (CHAMPION, CHALLENGER) if alias in aliases), None)


def made_of(name: str, inputs_digest: str) -> int | None:
    """The newest version that was made of these inputs, whatever became of it."""
    return max(versions_with(name, INPUTS, inputs_digest), default=None)


def created_at(name: str, version: int) -> datetime:
    """Time at which a version was registered."""
    return datetime.fromtimestamp(open_store().get_model_version(name, str(version)).creation_timestamp / 1000, UTC)


def versions_with(name: str, tag: str, value: str) -> list[int]:
    """Versions that have a tag of this value."""
    stored_versions = versions_of(open_store(), name)
    return [int(version.version) for version in stored_versions if version.tags.get(tag) == value]


def predecessor_of(name: str, version: int) -> int | None:
    """The version that was champion before this one; None where there was none."""
    before = tags_of(name, version).get(_REPLACED)
    return int(before) if before else None


def tags_of(name: str, version: int) -> dict[str, str]:
    """Tags that name what a version was made of; refuses where no version has this number."""
    try:
        return dict(open_store().get_model_version(name, str(version)).tags)
    except MlflowException as error:
        raise BadInputError(
            f"{name} has no version {version} ({first_line(error)}): see 'perf-assets models'"
        ) from None


def metrics_of(name: str, version: int) -> dict[str, float]:
    """Metrics of a version by the names that all models share; empty where its run was deleted."""
    client = open_store()
    run_id = client.get_model_version(name, str(version)).run_id
    try:
        metrics = client.get_run(run_id).data.metrics if run_id else {}
    except MlflowException:
        return {}
    return {metric: float(metrics[metric]) for metric in COMPARABLE if metric in metrics}


def alias_of(name: str, version: int) -> str:
    """The alias that people load a version by: source models have one for each kind."""
    kind = tags_of(name, version).get("kind", "")
    return kind if kind in SOURCE_ALIASES else CHAMPION


def tags_by_version(name: str) -> dict[int, dict[str, str]]:
    """Tags of every version of a registered model; none where it is not registered."""
    return {int(version.version): dict(version.tags) for version in versions_of(open_store(), name)}


def registered(wanted: str | None = None) -> Iterator[Registered]:
    """All versions of all models or of one, newest first."""
    client = open_store()
    names = sorted(model.name for model in all_pages(client.search_registered_models))
    if wanted is not None and wanted not in names:
        raise unknown_model(wanted, names)
    for name in names if wanted is None else [wanted]:
        aliases = versions(name)
        stored_versions = versions_of(client, name)
        for version in sorted(stored_versions, key=lambda version: -int(version.version)):
            yield _described(client, version, aliases)


def promote(name: str, version: int) -> bool:
    """Let a version be what people get (champion, or the alias of its kind of source model).

    False where a person chose another one: that stays until it is unpinned.
    """
    if pin_of(name, alias_of(name, version)):
        return False
    _move(name, version)
    return True


def choose(name: str, version: int, by: str) -> None:
    """Let a version be what people get because a person says so: no other one takes its place until `unpin`."""
    _move(name, version)
    _pin(name, alias_of(name, version), version, by)


def pin_of(name: str, alias: str = CHAMPION) -> str:
    """Note on the person who chose an alias's version, and when, as in `version 3 by ada`; empty without a choice."""
    try:
        return str(open_store().get_registered_model(name).tags.get(_PINNED + alias, ""))
    except MlflowException as error:
        if error.error_code != "RESOURCE_DOES_NOT_EXIST":
            raise
        return ""


def unpin(name: str) -> list[str]:
    """Let versions of a model compete again; what its aliases were pinned to."""
    client = open_store()
    pinned = {alias: pin_of(name, alias) for alias in (CHAMPION, *SOURCE_ALIASES)}
    for alias in (alias for alias, pin in pinned.items() if pin):
        client.delete_registered_model_tag(name, _PINNED + alias)
    return [f"{alias}: {pin}" for alias, pin in pinned.items() if pin]


def _pin(name: str, alias: str, version: int, by: str) -> None:
    open_store().set_registered_model_tag(name, _PINNED + alias, f"version {version} by {by}")


def _move(name: str, version: int) -> None:
    """Move the alias of a version's kind to it; the version before it is remembered."""
    alias, before, client = alias_of(name, version), versions(name), open_store()
    if before.get(alias) == version:
        return
    # First what is needed to go back, then the alias: killed in between, the champion is still the old one.
    client.set_model_version_tag(name, str(version), _REPLACED, str(before.get(alias, "")))
    client.set_registered_model_alias(name, alias, str(version))
    if before.get(CHALLENGER) == version:
        client.delete_registered_model_alias(name, CHALLENGER)


def version_before(name: str, alias: str = CHAMPION) -> tuple[int, int]:
    """The version that an alias would point to after a roll-back, and the one it points to now."""
    now = versions(name).get(alias)
    if now is None:
        raise BadInputError(f"{name} has no {alias}: see 'perf-assets models'")
    before = predecessor_of(name, now)
    if before is None:
        raise BadInputError(f"{name} version {now} replaced no other: name one with 'perf-assets promote'")
    return before, now


def roll_back(name: str, alias: str = CHAMPION, by: str = "") -> tuple[int, int]:
    """Let the version before be what people get again; both numbers, the new first. A champion becomes challenger.

    Where a person wants it (`by`), it stays until `unpin`.
    """
    before, now = version_before(name, alias)
    client = open_store()
    if alias == CHAMPION:
        # As a challenger it is known as tried: the same data is not adapted to and promoted again.
        client.set_registered_model_alias(name, CHALLENGER, str(now))
    client.set_registered_model_alias(name, alias, str(before))
    # Or going back again and again would go round in a circle.
    client.delete_model_version_tag(name, str(now), _REPLACED)
    if by:
        _pin(name, alias, before, by)
    return before, now


def forget(name: str) -> bool:
    """Remove a registered model with all versions; its runs stay. False where there is none."""
    if not versions_of(open_store(), name):
        return False
    open_store().delete_registered_model(name)
    return True


def _described(client: MlflowClient, version: ModelVersion, aliases: dict[str, int]) -> Registered:
    number = int(version.version)
    try:
        metrics = dict(client.get_run(version.run_id).data.metrics) if version.run_id else {}
    except MlflowException:
        # Its run was deleted; the version is still there.
        metrics = {}
    return Registered(
        name=version.name,
        version=number,
        aliases=tuple(sorted(alias for alias, pointed in aliases.items() if pointed == number)),
        created_at=datetime.fromtimestamp(version.creation_timestamp / 1000, UTC),
        tags=dict(version.tags),
        metrics=metrics,
    )
