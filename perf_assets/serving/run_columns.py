"""Runs as rows of a model's columns: canonical features from whatever counters were measured."""

from collections.abc import Mapping, Sequence

import numpy as np

from perf_assets.core.catalogue import Resolved
from perf_assets.core.errors import BadInputError
from perf_assets.core.tables.canonical import XAMM_FEATURES
from perf_assets.features.arguments import described_by
from perf_assets.features.counters.raw import features_of_run
from perf_assets.features.fleet.samples import argument_names
from perf_assets.features.samples import Floats
from perf_assets.serving.requests import Run

BARE = "no counters: it is known by its ranks, threads and arguments alone"
FEATURES = tuple(feature.name for feature in XAMM_FEATURES)


def columns_of(
    run: Run, formulas: Mapping[str, Sequence[Resolved]], names: Sequence[str], needed: Sequence[str], needing: str
) -> tuple[Floats, list[str]]:
    """Columns that a model takes of a run, NaN where missing, and a warning about those that it needs and lacks.

    A run that has none of them is refused, unless the model knows runs by their arguments as well; `needing` says for
    whom, as in `source models need`.
    """
    measured = run.measured
    known = dict.fromkeys(FEATURES, np.nan) | features_of_run(measured, formulas)
    known |= {name: measured[name] for name in FEATURES if name in measured}
    missing = [name for name in needed if np.isnan(known[name])]
    of_arguments = argument_names(names)
    bare = of_arguments and all(np.isnan(known[name]) for name in FEATURES)
    if missing and len(missing) == len(needed) and not bare:
        raise BadInputError(
            f"{run.app}: has none of the counters that {needing}: measure those of {run.machine} that "
            f"'perf-assets counters' lists, or give features such as {missing[0]}"
        )
    known |= {"ranks": run.ranks, "threads": run.threads, "wall_seconds": run.wall_seconds}
    if bare:
        known |= dict(zip(of_arguments, described_by(of_arguments, [run.app], [run.args])[0].tolist(), strict=True))
    columns = np.array([known.get(name, np.nan) for name in names])
    if bare:
        return columns, [BARE]
    return columns, [f"counters missing for {', '.join(missing)}: taken as unknown"] if missing else []
