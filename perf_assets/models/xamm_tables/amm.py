"""AMMs of the machines in a plain table of benchmark runs: an encoder trained on all rows, and Algorithm 1."""

import hashlib
from dataclasses import dataclass

import numpy as np
import pandas as pd

from perf_assets.core.errors import BadInputError
from perf_assets.features.samples import Floats
from perf_assets.features.standardise import Scaler
from perf_assets.features.tables.xamm_benchmarks import BenchmarkTable
from perf_assets.models.amm.embeddings import Embedding, make_embedding
from perf_assets.models.amm.encoder import AmmOptions, machine_models

LEAST_ROWS = 8
"""That TabNet can be trained on."""
_FINEST = 1e-3
"""Times are given to the scaler in thousandths of the shortest, so that its log(1 + x) is a logarithm."""


@dataclass(frozen=True)
class TableAmms:
    """AMMs and how they were made."""

    vectors: dict[str, Floats]
    encoder_version: str
    options: AmmOptions
    is_supervised: bool
    """Whether the encoder learned ratios between machines; otherwise it learned to give its inputs back."""
    training_rows: int
    is_simulated: bool

    def rows(self) -> pd.DataFrame:
        """One row per machine and component: columns of `model_amm__machines`."""
        return pd.DataFrame(
            [
                {
                    "seen_as": machine,
                    "component": component,
                    "value": float(value),
                    "weighting": self.options.weighting,
                    "normalize": self.options.normalize,
                    "encoder_version": self.encoder_version,
                    "is_simulated": self.is_simulated,
                }
                for machine, vector in self.vectors.items()
                for component, value in enumerate(vector)
            ]
        )


def table_amms(table: BenchmarkTable, seed: int = 0) -> TableAmms:
    """Train the encoder on the rows of all machines and describe each with the paper's options.

    Target: log(time / time on the first machine that has the setting). A setting of one machine only has no such
    ratio, and its rows are embedded but not learned from; where no setting is shared, TabNet learns to give its
    standardised inputs back.
    """
    if len(table.times) < LEAST_ROWS:
        raise BadInputError(f"the benchmark data have {len(table.times)} rows: an encoder needs {LEAST_ROWS} at least")
    fine = table.times / (_FINEST * np.nanmin(table.times))
    inputs = Scaler.fit(fine).transform(fine)
    ratios, has_ratio = _log_ratios(table)
    is_supervised = int(has_ratio.sum()) >= LEAST_ROWS
    learned, targets = (inputs[has_ratio], ratios[has_ratio]) if is_supervised else (inputs, inputs)
    embedding = make_embedding("tabnet", seed).fit(learned, targets)
    embedded = embedding.transform(inputs)
    options = AmmOptions()
    by_machine = {name: embedded[table.machines == name] for name in table.machine_names}
    return TableAmms(
        machine_models(by_machine, options),
        _version(embedding, fine),
        options,
        is_supervised,
        len(learned),
        table.is_simulated,
    )


def _log_ratios(table: BenchmarkTable) -> tuple[Floats, "np.ndarray[tuple[int], np.dtype[np.bool_]]"]:
    """Rows x kernels, and which rows have ratios: those of settings that several machines share.

    A kernel that one of the two rows lacks is as the others are on average.
    """
    logs = np.log(table.times)
    # Rows come machine by machine, so the first row of a setting is that of the first machine which has it.
    _, first, of_row, counts = np.unique(table.settings, return_index=True, return_inverse=True, return_counts=True)
    ratios = logs - logs[first[of_row]]
    known = np.isfinite(ratios)
    mean = np.where(known, ratios, 0.0).sum(axis=1, keepdims=True) / np.maximum(known.sum(axis=1, keepdims=True), 1)
    return np.where(known, ratios, mean), (counts[of_row] > 1) & known.any(axis=1)


def _version(embedding: Embedding, inputs: Floats) -> str:
    """Identity of the fitted encoder: its description, its weights and what its scaler was fitted on."""
    seen = hashlib.sha256(repr(embedding.description()).encode())
    for name, array in sorted({**embedding.arrays(), "inputs": inputs}.items()):
        seen.update(name.encode() + np.ascontiguousarray(array).tobytes())
    return seen.hexdigest()[:16]
