"""Runs of an application on one machine as a model of scaling sees them: widths, ranks and threads, arguments."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from perf_assets.features.arguments import ArgumentColumns
from perf_assets.features.samples import Floats, Mask
from perf_assets.models.scaling.model import ScaledTimes, ScalingModel

NODES, RANKS = "nodes", "ranks"


@dataclass(frozen=True, eq=False)
class ScalingRuns:
    """Configurations of an application on a machine, as a model of scaling sees them."""

    app: str
    width: str
    """`nodes`; `ranks` where a run does not say its nodes."""
    values: Floats
    """Rows x parameters; the first is the width."""
    is_level: Mask
    """Parameters that are taken as they are; of the others the logarithm counts."""
    seconds: Floats
    columns: ArgumentColumns
    means: Floats
    """Mean of each column, for runs that do not have it."""

    @classmethod
    def of(cls, rows: pd.DataFrame) -> "ScalingRuns":
        """Rows of one application on one machine, with configuration, nodes and wall_seconds."""
        apps, args = rows["app"].tolist(), rows["args"].tolist()
        columns = ArgumentColumns.of(apps, args)
        table = columns.table(apps, args)
        counts = np.isfinite(table).sum(axis=0)
        means = np.where(counts, np.nansum(table, axis=0) / np.maximum(counts, 1), 0.0)
        width = RANKS if rows["nodes"].isna().any() else NODES
        nodes, ranks, threads = (rows[name].tolist() for name in (NODES, RANKS, "threads"))
        values = _values(width, nodes, ranks, threads, np.where(np.isfinite(table), table, means))
        is_level = np.arange(values.shape[1]) >= 3
        return cls(apps[0], width, values, is_level, rows["wall_seconds"].to_numpy(float), columns, means)

    @property
    def widths(self) -> Floats:
        """Widths that were run."""
        return np.unique(self.values[:, 0])

    def fit(self) -> ScalingModel:
        """A model of all runs."""
        return ScalingModel.fit(self.values, self.seconds, 0, self.is_level)

    def predict(
        self, model: ScalingModel, args: str, nodes: Sequence[float], ranks: Sequence[int], threads: Sequence[int]
    ) -> ScaledTimes:
        """Times of one problem on several widths."""
        table = self.columns.table([self.app] * len(ranks), [args] * len(ranks))
        return model.predict(
            _values(self.width, nodes, ranks, threads, np.where(np.isfinite(table), table, self.means))
        )


def _values(
    width: str, nodes: Sequence[float], ranks: Sequence[int], threads: Sequence[int], arguments: Floats
) -> Floats:
    """Width, ranks of a node (1 where the width is ranks), threads of a rank, arguments."""
    each = np.asarray(ranks, float)
    wide = each if width == RANKS else np.asarray(nodes, float)
    return np.column_stack([wide, each / wide, np.asarray(threads, float), arguments])
