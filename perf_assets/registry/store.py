"""The MLflow store: where it is, and how a fitted model becomes a registered version with its provenance."""

import importlib
import logging
import os
import shutil
import subprocess
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from importlib.metadata import version
from importlib.resources import files
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import mlflow
import pandas as pd
from mlflow import MlflowClient
from mlflow.exceptions import MlflowException
from mlflow.models import ModelSignature

from perf_assets.core.errors import DatabaseError, RegistryError
from perf_assets.core.paths import checkout, lake_root, mlflow_tracking_uri, sqlite_file
from perf_assets.core.text import csv_of
from perf_assets.infra.locks import exclusive
from perf_assets.infra.postgres import Address, is_postgres

EXPERIMENTS = {
    "perf-amm": "Encoders: what each machine is like (AMM), from its RAJAPerf runs.",
    "perf-source": "Source models: how long a run on one machine takes on another, for all known machines.",
    "perf-target": "Target models: how long runs take on one machine, adapted to a few runs there; mape is the error.",
    "perf-transfer": "Models of tables of samples (datasets), which learn from other tables too.",
    "perf-vector": "One run on any machine gives its times on all machines.",
}
"""An experiment per kind of model, and what it is about; registered names begin with that of theirs."""
_OWN_NAMES_EXPERIMENT = "perf-transfer"
"""Experiment of models that a person named: `perf-assets transfer --register NAME`."""
_EXPERIMENT_TAGS = {"mlflow.experimentKind": "custom_model_development"}
"""Tag without which MLflow's page shows traces and tokens first."""
_NOTE = "mlflow.note.content"
"""Tag that MLflow's page shows as the description of an experiment."""
CARD = "model_card.md"
"""File of a candidate that becomes the description of its version."""
_ABOUT = {
    "encoder": "What is a machine like? A vector (AMM) from its RAJAPerf runs: machines that are near behave alike.",
    **dict.fromkeys(
        ("with-amm", "without-amm"),
        "How long will a run, measured on one machine, take on another? For all pairs of machines.",
    ),
    "target": "How long will a run, measured on the reference machine, take here? Adapted to the machine's own runs.",
    "transfer": "What will a row of this table take? From features measured here, learned from other tables too.",
    "vector": "From one run on any machine, its times on all machines, with intervals and a ranking.",
}
_MODEL_TAGS = ("machine", "dataset", "is_simulated")
"""Tags of a version that all versions of a model share: the list of models shows them."""
_MOST_DESCRIPTION = 5000
"""Characters of a description that MLflow's tables hold."""
_MOST_DIGEST = 36
_MOST_NAME = 500
"""Characters of a dataset's digest and of its name that MLflow's tables hold."""
_SERVED_WITH = (
    "mlflow",
    "numpy",
    "pandas",
    "pydantic",
    "pytorch-tabnet",
    "pyyaml",
    "scikit-learn",
    "scipy",
    "sqlalchemy",
    "threadpoolctl",
    "torch",
    "xgboost-cpu",
)
"""Distributions that a model needs to answer. Ours is in no index: its code travels with the model."""
_NOT_SERVED = ("cli", "defs", "demo", "readers", "reports", "scheduling", "serving", "storage", "workflows")
"""Parts of this package that no model imports."""
_OPENING_SECONDS = 120.0
"""Wait for other processes that open the same file: the first of them makes all tables."""
_OPENED: set[Path] = set()
"""SQLite files that this process has seen with the tables that it needs."""
_MIGRATED: set[Address] = set()
"""Databases that this process has seen with the tables that it needs."""


@dataclass(frozen=True)
class Candidate:
    """A fitted model on its way into the registry."""

    registered_name: str
    code: Path
    """Python file that MLflow runs to serve the model (models from code)."""
    save: Callable[[Path], None]
    """Writes the fitted model into a folder."""
    signature: ModelSignature
    example: pd.DataFrame
    metrics: Mapping[str, float]
    params: Mapping[str, Any]
    tags: Mapping[str, str]
    """Provenance: what it was made from."""
    tables: Mapping[str, pd.DataFrame] = field(default_factory=dict)
    """Stored beside the model as CSV, by name."""
    files: Mapping[str, bytes] = field(default_factory=dict)
    """Further artifacts by file name: pictures, the model card."""


@dataclass(frozen=True)
class Version:
    """A registered version."""

    name: str
    version: int
    run_id: str

    @property
    def uri(self) -> str:
        """Address for `mlflow.pyfunc.load_model`."""
        return f"models:/{self.name}/{self.version}"


def open_store() -> MlflowClient:
    """The store of this lake, or the one that MLFLOW_TRACKING_URI names; made ready at the first use."""
    uri = mlflow_tracking_uri()
    if is_postgres(uri):
        uri = Address(uri).url.render_as_string(hide_password=False)
    file = sqlite_file(uri)
    if file is not None:
        file.parent.mkdir(parents=True, exist_ok=True)
    os.environ.setdefault("MLFLOW_DISABLE_TELEMETRY", "true")
    os.environ.setdefault("MLFLOW_ENABLE_ARTIFACTS_PROGRESS_BAR", "false")
    _silence()
    mlflow.set_tracking_uri(uri)
    try:
        if is_postgres(uri):
            migrate(Address(uri))
        with _opened_by_one(uri):
            client = MlflowClient()
            client.get_experiment_by_name("perf-amm")  # Makes the tables of a new file.
    except DatabaseError as error:
        raise RegistryError(f"the MLflow store {error}") from None
    except MlflowException as error:
        raise RegistryError(f"the MLflow store {uri} cannot be used ({first_line(error)})") from None
    return client


@contextmanager
def _opened_by_one(uri: str) -> Iterator[None]:
    """Let no other process open a SQLite file meanwhile: the first makes its tables, which MLflow lets several try."""
    file = sqlite_file(uri)
    is_there = file is not None and file.exists()
    if file is None or (is_there and (file in _OPENED or not os.access(file.parent, os.W_OK))):
        # A store that may only be read has its tables already.
        yield
        return
    with exclusive(file.with_name("open.lock"), f"opening {file}", _OPENING_SECONDS):
        yield
    _OPENED.add(file)


def migrate(address: Address) -> None:
    """Bring the tables of a database to what this MLflow needs; where it is away, say so at once.

    MLflow itself would try for two minutes, and lets two hosts make the tables at the same time.
    """
    address.check()
    if address in _MIGRATED:
        return
    _silence()
    utils: Any = importlib.import_module("mlflow.store.db.utils")
    with address.locked("mlflow tables"):
        engine = utils.create_sqlalchemy_engine(address.text)
        try:
            if not utils._all_tables_exist(engine):
                utils._initialize_tables(engine)
            elif utils._get_schema_version(engine) != utils._get_latest_schema_revision():
                utils._upgrade_db(engine)
        finally:
            engine.dispose()
    _MIGRATED.add(address)


def _silence() -> None:
    """One line of a fresh schema for each of dozens of migrations is not news to anybody."""
    logging.getLogger("alembic").setLevel(logging.WARNING)
    logging.getLogger("mlflow").setLevel(logging.ERROR)


def _experiment(client: MlflowClient, registered_name: str) -> str:
    """Identity of the experiment for a registered name; made at its first use."""
    own = [name for name in EXPERIMENTS if registered_name == name or registered_name.startswith(f"{name}-")]
    name = own[0] if own else _OWN_NAMES_EXPERIMENT
    try:
        tags = {**_EXPERIMENT_TAGS, _NOTE: EXPERIMENTS[name]}
        return client.create_experiment(name, artifact_location=_artifacts(), tags=tags)
    except MlflowException as error:
        existing = client.get_experiment_by_name(name)
        if error.error_code != "RESOURCE_ALREADY_EXISTS" or existing is None:
            raise
        return str(existing.experiment_id)


def _artifacts() -> str | None:
    """Folder of artifacts, which for a file would be the working directory; None at a server, which knows its own."""
    uri = mlflow_tracking_uri()
    file = sqlite_file(uri)
    if file is not None:
        return (file.parent / "artifacts").as_uri()
    return (lake_root() / "mlflow" / "artifacts").as_uri() if is_postgres(uri) else None


def register(candidate: Candidate, alias: str | None) -> Version:
    """Log a model with all that belongs to it, register it, and let the alias, if any, point to it."""
    client = open_store()
    experiment = _experiment(client, candidate.registered_name)
    with (
        mlflow.start_run(experiment_id=experiment, run_name=candidate.registered_name) as run,
        TemporaryDirectory() as temporary,
    ):
        folder = Path(temporary) / "fitted"
        candidate.save(folder)
        mlflow.log_params(dict(candidate.params))
        mlflow.log_metrics({name: value for name, value in candidate.metrics.items() if value == value})
        mlflow.set_tags(dict(candidate.tags))
        _log_data(candidate.tags)
        for name, table in candidate.tables.items():
            mlflow.log_text(csv_of(table), f"{name}.csv")
        for name, content in candidate.files.items():
            (Path(temporary) / name).write_bytes(content)
            mlflow.log_artifact(str(Path(temporary) / name))
        logged = mlflow.pyfunc.log_model(
            name=candidate.registered_name,
            python_model=str(candidate.code),
            artifacts={"fitted": str(folder)},
            signature=candidate.signature,
            input_example=candidate.example,
            pip_requirements=requirements(),
            code_paths=[str(_own_code(Path(temporary)))],
        )
        number = _create_version(client, candidate, logged.model_uri, run.info.run_id)
    if alias is not None:
        client.set_registered_model_alias(candidate.registered_name, alias, str(number))
    return Version(candidate.registered_name, number, run.info.run_id)


def _log_data(tags: Mapping[str, str]) -> None:
    """Name the landed bundles that a model was made from, with their digest, as the run's dataset."""
    from mlflow.data.code_dataset_source import CodeDatasetSource
    from mlflow.data.meta_dataset import MetaDataset

    digest = tags.get("manifests_digest")
    if digest is None:
        return
    of = next((tags[name] for name in ("machine", "dataset", "machines") if tags.get(name)), "all machines")
    source = CodeDatasetSource({name: tags[name] for name in ("manifests_count", "is_simulated") if name in tags})
    # MLflow's own class lacks a property that its base class calls abstract.
    dataset = MetaDataset(source, f"bundles of {of}"[:_MOST_NAME], digest[:_MOST_DIGEST])  # type: ignore[abstract]
    mlflow.log_input(dataset, context="training")


def requirements() -> list[str]:
    """Packages that a model needs, in the versions it was made with, as a package index has them."""
    return [f"{name}=={version(name).partition('+')[0]}" for name in _SERVED_WITH]


def _own_code(folder: Path) -> Path:
    """A copy of what of this package a model needs."""
    own = folder / "perf_assets"
    shutil.copytree(str(files("perf_assets")), own, ignore=shutil.ignore_patterns("__pycache__", *_NOT_SERVED))
    return own


def code_version() -> str:
    """Commit of the checkout, with a mark where files differ from it; the release where it was installed as one."""
    root = checkout()
    if root is None:
        return version("perf_assets")
    command = ["git", "-C", str(root), "describe", "--always", "--dirty", "--abbrev=12", "--exclude=*"]
    try:
        return subprocess.run(command, capture_output=True, text=True, check=True, timeout=10).stdout.strip()
    except (OSError, subprocess.SubprocessError):
        return "unknown"


def first_line(error: MlflowException) -> str:
    """First line of an error of MLflow."""
    return str(error.message).strip().splitlines()[0]


def _create_version(client: MlflowClient, candidate: Candidate, uri: str, run_id: str) -> int:
    name, about = candidate.registered_name, _ABOUT.get(candidate.tags.get("kind", ""), "")
    shown = {label: candidate.tags[label] for label in _MODEL_TAGS if candidate.tags.get(label)}
    try:
        client.create_registered_model(name, tags=shown, description=about)
    except MlflowException as error:
        if error.error_code != "RESOURCE_ALREADY_EXISTS":
            raise
        client.update_registered_model(name, about)
    tags = {**candidate.tags, "code_version": code_version()}
    created = client.create_model_version(name, uri, run_id, tags=tags, description=_description(candidate))
    return int(created.version)


def _description(candidate: Candidate) -> str:
    """The model card, or what the model is made of and how good it is, where there is no card."""
    card = candidate.files.get(CARD)
    if card is not None:
        return card.decode()[:_MOST_DESCRIPTION]
    made_of = [f"- {name}: {value}" for name, value in candidate.params.items()]
    scores = [f"- {name}: {value:.3g}" for name, value in candidate.metrics.items() if value == value]
    return "\n".join(["Made of", *made_of, "", "Scores", *scores])[:_MOST_DESCRIPTION]
