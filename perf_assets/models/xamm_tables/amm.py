"""AMMs of the machines in a plain table of benchmark runs: an encoder trained on all rows, and Algorithm 1.

The encoder is kept, so that a machine which comes later is described by its benchmark runs alone.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from itertools import product
from pathlib import Path
from typing import get_args

import numpy as np
import pandas as pd

from perf_assets.core.errors import BadInputError, UnreadableFileError, listed
from perf_assets.core.xamm_config import AUTO
from perf_assets.features.samples import Floats, Mask
from perf_assets.features.standardise import Scaler
from perf_assets.features.tables.xamm_benchmarks import BenchmarkTable
from perf_assets.models.amm.embeddings import Embedding
from perf_assets.models.amm.encoder import AmmOptions, Normalisation, Weighting, adjust, combine, machine_models
from perf_assets.models.common import archive

LEAST_ROWS = 8
"""Rows that TabNet can be trained on."""
_UNIT_SHARE = 1e-3
"""Times are given to the scaler in thousandths of the shortest, so that its log(1 + x) is a logarithm."""
_LEAST_SHARE = 0.5
"""Share of the encoder's kernels that a machine which comes later must have run."""


@dataclass(frozen=True)
class TableEncoder:
    """A frozen encoder of benchmark rows."""

    kernels: tuple[str, ...]
    unit: float
    """Time that the inputs are multiples of."""
    scaler: Scaler
    embedding: Embedding
    options: AmmOptions
    fleet_max: float
    """Largest adjusted component over the training machines."""
    machines: tuple[str, ...]
    """Machines that it was trained on."""
    is_supervised: bool
    """Whether it learned ratios between machines; otherwise it learned to give its inputs back."""
    training_rows: int
    is_simulated: bool

    @property
    def version(self) -> str:
        """Identity of the encoder: description, options, weights, and the scale of its inputs."""
        return archive.identity(self)

    def describe(self, table: BenchmarkTable) -> dict[str, Floats]:
        """AMM of each machine of a table, whether it was in training or not."""
        return machine_models(self._embedded(table), self.options, self.fleet_max)

    def rows(self, vectors: dict[str, Floats]) -> pd.DataFrame:
        """One row per machine and component: columns of `model_amm__machines`."""
        rows = vector_rows(vectors, self.options, self.version, self.machines)
        return rows.assign(is_simulated=self.is_simulated)

    def with_options(self, options: AmmOptions, table: BenchmarkTable) -> "TableEncoder":
        """Another way to combine embeddings; `table` has the training machines."""
        vectors = [adjust(combine(rows, options.weighting)) for rows in self._embedded(table).values()]
        return replace(self, options=options, fleet_max=float(np.max(vectors)))

    def save(self, path: Path) -> None:
        """Store as a file, without pickle."""
        archive.write(path, self)

    @classmethod
    def load(cls, path: Path) -> "TableEncoder":
        """Read what `save` wrote."""
        try:
            encoder: TableEncoder = archive.read(path, cls)
        except UnreadableFileError as error:
            raise UnreadableFileError(f"{path.name} is no encoder of func amm ({error}): run func amm again") from None
        return encoder

    def _embedded(self, table: BenchmarkTable) -> dict[str, Floats]:
        """Rows x width by machine; a kernel that was not run is missing."""
        position = {kernel: column for column, kernel in enumerate(table.kernels)}
        absent = [kernel for kernel in self.kernels if kernel not in position]
        if len(absent) > (1 - _LEAST_SHARE) * len(self.kernels):
            raise BadInputError(
                f"{listed(table.machine_names)}: {len(absent)} of the {len(self.kernels)} kernels of the encoder are "
                f"not there ({listed(absent)}): run the benchmark with the same kernels"
            )
        times = np.full((len(table.times), len(self.kernels)), np.nan)
        for column, kernel in enumerate(self.kernels):
            if kernel in position:
                times[:, column] = table.times[:, position[kernel]]
        embedded = self.embedding.transform(self.scaler.transform(times / self.unit))
        return {name: embedded[table.machines == name] for name in table.machine_names}


def fit_table_encoder(table: BenchmarkTable, options: AmmOptions | None = None, seed: int = 0) -> TableEncoder:
    """Train the encoder on the rows of all machines.

    Target: log(time / time on the first machine that has the setting). A setting of one machine only has no such
    ratio, and its rows are embedded but not learned from; where no setting is shared, TabNet learns to give its
    standardised inputs back.
    """
    if len(table.times) < LEAST_ROWS:
        raise BadInputError(f"the benchmark data have {len(table.times)} rows: an encoder needs {LEAST_ROWS} at least")
    unit = _UNIT_SHARE * float(np.nanmin(table.times))
    scaler = Scaler.fit(table.times / unit)
    inputs = scaler.transform(table.times / unit)
    ratios, has_ratio = _log_ratios(table)
    is_supervised = int(has_ratio.sum()) >= LEAST_ROWS
    learned, targets = (inputs[has_ratio], ratios[has_ratio]) if is_supervised else (inputs, inputs)
    encoder = TableEncoder(
        kernels=table.kernels,
        unit=unit,
        scaler=scaler,
        embedding=Embedding.fit("tabnet", learned, targets, seed),
        options=AmmOptions(),
        fleet_max=0.0,
        machines=tuple(table.machine_names),
        is_supervised=is_supervised,
        training_rows=len(learned),
        is_simulated=table.is_simulated,
    )
    return encoder.with_options(options or AmmOptions(), table)


def possible_options(weighting: str, normalize: str) -> list[AmmOptions]:
    """Options that two fields of a configuration allow: one, or all where a field says `auto`."""
    chosen = []
    for field, given, known in (
        ("amm_option", weighting, get_args(Weighting)),
        ("amm_normalize", normalize, get_args(Normalisation)),
    ):
        if given not in (*known, AUTO):
            raise BadInputError(f"{field} {given!r} is not known: use {', '.join(known)} or {AUTO}")
        chosen.append(known if given == AUTO else (given,))
    return [AmmOptions(w, normalize=n) for w, n in product(*chosen)]


def _log_ratios(table: BenchmarkTable) -> tuple[Floats, Mask]:
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


def vector_rows(
    vectors: Mapping[str, Floats], options: AmmOptions, encoder_version: str, trained: Collection[str]
) -> pd.DataFrame:
    """One row per machine and component, of the vectors that one encoder made."""
    return pd.DataFrame(
        [
            {
                "seen_as": name,
                "component": component,
                "value": float(value),
                "weighting": options.weighting,
                "normalize": options.normalize,
                "encoder_version": encoder_version,
                "was_in_training": name in trained,
            }
            for name, vector in vectors.items()
            for component, value in enumerate(vector)
        ]
    )
