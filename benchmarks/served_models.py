"""Both kinds of target models as users have them: saved, and loaded again by MLflow."""

from pathlib import Path
from typing import Any

import mlflow
import numpy as np
import pandas as pd
from mlflow.models import ModelSignature
from mlflow.types import Schema, TensorSpec

from perf_assets.features.fleet.samples import RUN_COLUMNS
from perf_assets.features.samples import PairedSamples
from perf_assets.models.common.conformal import Interval
from perf_assets.models.target.correction import fit_correction
from perf_assets.models.target.evaluation import shuffled_runs
from perf_assets.models.target.model import PRIOR_COMPONENTS, AdaptedTarget
from perf_assets.models.target.prior import PriorParts, fit_prior, reference_machine
from perf_assets.models.target.view import AdaptedView
from perf_assets.models.transfer.model import TransferAverage
from perf_assets.registry.store import open_store
from perf_assets.registry.tables.target import example_questions
from perf_assets.registry.target import register_target, registered_name
from perf_assets.registry.versions import CHALLENGER, load

MACHINES, CONFIGURATIONS, KERNELS, SHOTS = 12, 600, 60, 200
HIDDEN = 3
"""Quantities that make up a run, and that machines are differently good at."""


def served_plain(model: TransferAverage, folder: Path) -> Any:
    """An unpaired model, loaded."""
    open_store()
    model.save(folder / "model")
    rows = Schema([TensorSpec(np.dtype(np.float64), (-1, len(model.counter_names)))])
    mlflow.pyfunc.save_model(
        str(folder / "served"),
        python_model=str(Path(__file__).with_name("served_plain_pyfunc.py")),
        artifacts={"fitted": str(folder / "model")},
        signature=ModelSignature(rows),
        pip_requirements=[],
    )
    return mlflow.pyfunc.load_model(str(folder / "served"))


def served_paired() -> tuple[Any, pd.DataFrame]:
    """The registered paired model of a machine of a made-up fleet, loaded, and questions to it.

    It is the slowest there is: as many shots as are used, processes with and without prior, both parts of the prior.
    """
    samples, target = fleet(), MACHINES - 1
    source = reference_machine(samples, target)
    assert source is not None
    shots, parts = shuffled_runs(samples, source, target, 0)[:SHOTS], PriorParts(0)
    prior = fit_prior(samples, target, 0, parts, PRIOR_COMPONENTS)
    model = fit_correction(samples, source, target, shots, [prior, None])
    width = Interval(0.1, 0.9)
    view = AdaptedView(samples.machines[source], SHOTS, "paired", (), width, width, model)
    adapted = AdaptedTarget(samples.machines[target], samples, {samples.machines[target]: view})
    register_target(adapted, [], {}, {})
    return load(registered_name(adapted.machine), CHALLENGER), example_questions(adapted, CONFIGURATIONS)


def fleet(seed: int = 0) -> PairedSamples:
    """Log times are products of what a run needs and what a machine is slow at, and a little of their squares."""
    generator = np.random.default_rng(seed)
    needs = generator.normal(size=(CONFIGURATIONS + KERNELS, HIDDEN))
    slow = 0.3 * generator.normal(size=(MACHINES, HIDDEN))
    times = needs @ np.ones(HIDDEN) + slow @ needs.T + 0.1 * slow @ np.tanh(needs.T**2)
    logs = 8 + needs @ generator.normal(size=(HIDDEN, len(RUN_COLUMNS)))
    counters = np.exp(logs + 0.05 * generator.normal(size=(MACHINES, *logs.shape)))
    counters[:, :, RUN_COLUMNS.index("wall_seconds")] = np.exp(times)
    for name in ("ranks", "threads"):
        counters[:, :, RUN_COLUMNS.index(name)] = 1
    is_benchmark = np.arange(len(needs)) >= CONFIGURATIONS
    counters[:, is_benchmark] = np.nan
    apps = [f"kernel{i}" if is_kernel else f"app{i % 9}" for i, is_kernel in enumerate(is_benchmark)]
    return PairedSamples(
        tuple(f"machine{i}" for i in range(MACHINES)),
        RUN_COLUMNS,
        tuple(f"{app} -n {i} (1 x 1)" for i, app in enumerate(apps)),
        np.array(apps),
        is_benchmark,
        counters,
        times + 0.02 * generator.normal(size=times.shape),
        benchmark_settings=np.where(is_benchmark, "core", ""),
    )
