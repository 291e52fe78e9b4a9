"""The unified input of downstream models (xAMM): embedding of a run, AMMs of both machines, relative time."""

import shutil
from pathlib import Path
from typing import TYPE_CHECKING

from perf_assets.core.errors import BadInputError
from perf_assets.infra.files import replacing
from perf_assets.storage.lake import Lake
from perf_assets.workflows.machines.describe import descriptions

if TYPE_CHECKING:
    import pandas as pd

    from perf_assets.features.samples import Floats

_FILE = "model_source__inputs.parquet"


def inputs_file(lake: Lake) -> Path:
    """Path of the table."""
    return lake.models / _FILE


def make_inputs(lake: Lake, runs: "pd.DataFrame") -> "pd.DataFrame":
    """Store one row per run and ordered pair of machines that ran it, with the source model and encoder in use.

    Machines that came after training are in it as soon as they are described.
    """
    import numpy as np
    import pandas as pd

    from perf_assets.features.fleet.descriptions import with_vectors
    from perf_assets.features.fleet.samples import fleet_samples
    from perf_assets.registry.lineage import ENCODER
    from perf_assets.registry.source import NAME, load_embedding, source_in_use
    from perf_assets.registry.versions import tags_of

    version = source_in_use()
    described = descriptions(lake, tags_of(NAME, version)[ENCODER])
    samples = with_vectors(fleet_samples(described.tables(runs)), described)
    assert samples.amms is not None
    examples, chosen = samples.examples(), described.rows.loc[described.rows["is_chosen"], "option"].iloc[0]
    vectors, simulated = samples.amms[chosen], described.rows.groupby("machine")["is_simulated"].any()
    is_simulated = simulated.reindex(samples.physical_machines).to_numpy(bool)
    names = np.array(samples.machines)
    rows = pd.DataFrame(
        {
            "source_machine": names[examples.source],
            "target_machine": names[examples.target],
            "app": samples.apps[examples.row],
            "configuration": np.array(samples.configurations)[examples.row],
            **_numbered("embedding", load_embedding(version).columns(samples, examples)),
            **_numbered("source_amm", vectors[examples.source]),
            **_numbered("target_amm", vectors[examples.target]),
            "relative_time": np.exp(samples.log_relative_time(examples)),
            "is_simulated": is_simulated[examples.source] | is_simulated[examples.target],
            "encoder_version": described.encoder_version,
            "source_version": version,
        }
    )
    inputs_file(lake).parent.mkdir(parents=True, exist_ok=True)
    with replacing(inputs_file(lake)) as temporary:
        rows.to_parquet(temporary, index=False, compression="zstd")
    return rows


def export_inputs(lake: Lake, out: Path) -> tuple[int, int]:
    """Copy the stored table to a file: its rows and columns."""
    import pyarrow.parquet as pq

    file = inputs_file(lake)
    if out.suffix != ".parquet":
        raise BadInputError(f"--out {out.name}: the inputs are written to a .parquet file")
    if not file.is_file():
        raise BadInputError("there are no inputs of models yet: run 'perf-assets train'")
    with replacing(out.absolute()) as temporary:
        shutil.copyfile(file, temporary)
    metadata = pq.read_metadata(out)
    return metadata.num_rows, metadata.num_columns


def _numbered(name: str, values: "Floats") -> dict[str, "Floats"]:
    return {f"{name}_{position}": column for position, column in enumerate(values.T)}
