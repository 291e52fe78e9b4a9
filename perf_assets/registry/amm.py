"""Registration of the AMM encoder: `perf-amm`, alias `champion`."""

from functools import lru_cache
from pathlib import Path

import pandas as pd
from mlflow.models import ModelSignature
from mlflow.types import ColSpec, DataType, Schema

from perf_assets.core.errors import BadInputError
from perf_assets.core.paths import has_registry, mlflow_tracking_uri
from perf_assets.features.fleet.samples import benchmark_samples
from perf_assets.models.amm.encoder import AmmEncoder
from perf_assets.models.common import archive
from perf_assets.models.source.amm_options import ENCODER_FILE, TrainedEncoder
from perf_assets.registry.lineage import AMM, ENCODER, SOURCE, sources_in_use
from perf_assets.registry.store import Candidate, Version, register
from perf_assets.registry.versions import CHAMPION, load_fitted, promote, tags_by_version, versions

_COLUMNS = ("machine", "kernel", "problem_size", "placement", "seconds_per_rep")
NAME = AMM
_TRAIN = "run 'perf-assets train'"
SIGNATURE = ModelSignature(
    inputs=Schema(
        [
            ColSpec(DataType.string, "machine"),
            ColSpec(DataType.string, "kernel"),
            ColSpec(DataType.long, "problem_size"),
            ColSpec(DataType.string, "placement"),
            ColSpec(DataType.double, "seconds_per_rep"),
        ]
    ),
    outputs=Schema(
        [
            ColSpec(DataType.string, "seen_as"),
            ColSpec(DataType.long, "component"),
            ColSpec(DataType.double, "value"),
        ]
    ),
)
"""RAJAPerf kernel times of machines, to one AMM per machine. Placements: core, busy_core (time x threads), device."""


def register_encoder(
    trained: TrainedEncoder, kernels: pd.DataFrame, provenance: dict[str, str], files: dict[str, bytes]
) -> Version:
    """Register an encoder with what it was chosen from, as champion; one that is champion already is used again."""
    encoder = trained.encoder
    for number, tags in tags_by_version(NAME).items():
        if tags.get(ENCODER) == encoder.version and versions(NAME).get(CHAMPION) == number:
            return Version(NAME, number, "")
    rows = trained.tried.to_dict("records")
    metrics = {f"{row['weighting']} {row['normalize']} log_rmse": float(row["log_rmse"]) for row in rows}
    candidate = Candidate(
        registered_name=NAME,
        code=Path(__file__).with_name("pyfunc") / "amm.py",
        save=trained.save,
        signature=SIGNATURE,
        example=kernels[kernels["machine"] == kernels["machine"].iloc[0]][list(_COLUMNS)],
        metrics=metrics,
        params={"options": encoder.options.name, "machines": ", ".join(encoder.machines)},
        tags={**provenance, "kind": "encoder", ENCODER: encoder.version},
        tables={"options": trained.tried},
        files=files,
    )
    made = register(candidate, None)
    promote(NAME, made.version)
    return made


def vectors(kernels: pd.DataFrame, encoder: AmmEncoder) -> pd.DataFrame:
    """seen_as, component, value: AMMs of the machines of a table of kernel times."""
    missing = [name for name in _COLUMNS if name not in kernels]
    if missing:
        raise BadInputError(f"the kernel times lack the column {missing[0]}")
    columns = [*_COLUMNS, "bytes_per_rep", "flops_per_rep"]
    samples = benchmark_samples(kernels.reindex(columns=columns), with_scaling=True)
    rows = [
        {"seen_as": name, "component": component, "value": float(value)}
        for name, vector in zip(samples.machines, encoder.machine_models(samples), strict=True)
        for component, value in enumerate(vector)
    ]
    return pd.DataFrame(rows)


def load_encoder() -> tuple[int, TrainedEncoder]:
    """The encoder in use, with its version."""
    number = versions(NAME).get(CHAMPION) if has_registry() else None
    if number is None:
        raise BadInputError("there is no AMM encoder yet: run 'perf-assets train'")
    return number, load_fitted(TrainedEncoder.load, NAME, number, _TRAIN)


def frozen_encoder(version: int) -> AmmEncoder:
    """The encoder of a registered version alone; loaded once in a process."""
    return _frozen_encoder(mlflow_tracking_uri(), version)


@lru_cache(maxsize=16)
def _frozen_encoder(store: str, version: int) -> AmmEncoder:
    encoder: AmmEncoder = load_fitted(
        lambda folder: archive.read(folder / ENCODER_FILE, AmmEncoder), NAME, version, _TRAIN
    )
    return encoder


def encoders_in_use() -> list[int]:
    """Versions of encoders by which machines must be described: those of source models in use, last the one in use."""
    if not has_registry():
        return []
    champion = versions(NAME).get(CHAMPION)
    sources = tags_by_version(SOURCE)
    wanted = {sources[number].get(ENCODER) for number in sources_in_use() if number in sources}
    newest = {tags.get(ENCODER): number for number, tags in sorted(tags_by_version(NAME).items())}
    others = sorted({newest[identity] for identity in wanted if identity in newest} - {champion})
    return [*others, *([] if champion is None else [champion])]


def encoders_of_sources() -> set[str]:
    """Identities of the encoders whose descriptions some registered source model takes."""
    return {tags[ENCODER] for tags in tags_by_version(SOURCE).values() if ENCODER in tags} if has_registry() else set()
