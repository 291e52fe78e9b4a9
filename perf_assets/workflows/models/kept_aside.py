"""Runs kept aside as the truth about a machine: they never land, and do nothing but score models of its other runs."""

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from perf_assets.core.catalogue import load_catalogue
from perf_assets.infra.files import replacing
from perf_assets.storage.lake import Lake

if TYPE_CHECKING:
    import pandas as pd

    from perf_assets.features.samples import Floats, Indices, PairedSamples
    from perf_assets.workflows.models.paired_inputs import AdaptationInputs

OURS, TARGET_ONLY, UNCHANGED = "product", "target_only", "source_unchanged"
"""Methods that are compared: what would be registered, the better of the models of the shots alone, and the time on the
reference machine."""


def truth_file(lake: Lake, machine: str) -> Path:
    """Times of the runs that are kept aside, one file per machine."""
    return lake.root / "demo" / "kept_aside" / f"{machine}.parquet"


def scored_file(lake: Lake, machine: str) -> Path:
    """Predictions of the runs that are kept aside, one file per machine."""
    return lake.root / "demo" / "scored" / f"{machine}.parquet"


def store_truth(lake: Lake, machine: str, truth: "pd.DataFrame") -> None:
    """Keep runs aside: app, args, ranks, threads, gpus, wall_seconds."""
    _store(truth_file(lake, machine), truth)


def has_truth(lake: Lake, machine: str) -> bool:
    """Whether runs of a machine are kept aside."""
    return truth_file(lake, machine).is_file()


def scored(lake: Lake) -> "pd.DataFrame":
    """Predictions of all runs that are kept aside; an empty frame where none are."""
    import pandas as pd

    files = sorted((lake.root / "demo" / "scored").glob("*.parquet"))
    return pd.concat([pd.read_parquet(file) for file in files], ignore_index=True) if files else pd.DataFrame()


def score_kept_aside(
    lake: Lake, inputs: "AdaptationInputs", counts: Sequence[int], seeds: int, progress: Callable[[str], None]
) -> "pd.DataFrame":
    """Predict the runs that are kept aside from some of the landed ones and from all; rows of the learning curve.

    Numbers of runs are of the whole machine, whichever way programs see it. Draws differ in which runs are given; with
    none and with all there is one draw.
    """
    import pandas as pd

    from perf_assets.models.common.threads import keep_blas_to_one_thread

    keep_blas_to_one_thread()
    truth = pd.read_parquet(truth_file(lake, inputs.machine))
    rows = pd.concat(_predictions(lake, inputs, truth, counts, seeds), ignore_index=True)
    rows = rows.assign(machine=inputs.machine)
    _store(scored_file(lake, inputs.machine), rows)
    progress(f"{inputs.machine}: {rows['configuration'].nunique()} runs kept aside, up to {rows['shots'].max()} given")
    return curve_of(rows)


def curve_of(rows: "pd.DataFrame") -> "pd.DataFrame":
    """Scores by target, source, shots, seed and method, from predictions of single runs."""
    import numpy as np
    import pandas as pd

    from perf_assets.models.target.evaluation import score_runs

    scores = []
    for key, group in rows.groupby(["target", "source", "shots", "seed"]):
        true = np.log(group["measured_seconds"].to_numpy(float))
        where = dict(zip(("target", "source", "shots", "seed"), key, strict=True))
        inside = group["measured_seconds"].between(group["lower_seconds"], group["upper_seconds"]).mean()
        for method, column in (
            (OURS, "predicted_seconds"),
            ("target_ridge", "target_ridge_seconds"),
            ("target_gp", "target_gp_seconds"),
            (UNCHANGED, "unchanged_seconds"),
        ):
            if group[column].notna().all():
                score = score_runs(true, np.log(group[column].to_numpy(float)), None)
                covered = float(inside) if method == OURS else np.nan
                scores.append(
                    {**where, "method": method, "mape_ratio": score["mape"], "log_rmse": score["log_rmse"]}
                    | {"coverage_90_ratio": covered}
                )
    return pd.DataFrame(scores)


def _predictions(
    lake: Lake, inputs: "AdaptationInputs", truth: "pd.DataFrame", counts: Sequence[int], seeds: int
) -> "Iterator[pd.DataFrame]":
    """Predictions for every way in which programs see the machine, number of given runs and draw."""
    import numpy as np

    from perf_assets.features.samples import physical
    from perf_assets.models.target.prior import reference_machine

    samples = inputs.samples
    views = [place for place, name in enumerate(samples.machines) if physical(name) == inputs.machine]
    has_run = np.isfinite(samples.log_seconds[views]) & ~samples.is_benchmark
    landed = np.flatnonzero(has_run.any(axis=0))
    numbers = sorted({count for count in counts if count < len(landed)} | {len(landed)})
    for target in views:
        source = reference_machine(samples, target)
        rows, seconds = _test_rows(lake, samples, target, truth)
        known = np.isfinite(samples.log_seconds[source, rows]) if source is not None and len(rows) else None
        if source is None or known is None or not known.any():
            continue
        prior = inputs.prior(samples.machines[target], samples.machines[source])
        for count in numbers:
            for seed in range(1 if count in (0, len(landed)) else seeds):
                given = np.random.default_rng(seed).permutation(landed)[:count]
                here = np.isfinite(samples.log_seconds[[source, target]][:, given]).all(axis=0)
                predicted = _predicted(samples, source, target, given[here], rows[known], prior)
                yield predicted.assign(measured_seconds=seconds[known], shots=count, seed=seed)


def _test_rows(lake: Lake, samples: "PairedSamples", target: int, truth: "pd.DataFrame") -> "tuple[Indices, Floats]":
    """Samples kept aside for one view of the machine (its GPUs or its host), and their times; none of them landed."""
    import numpy as np

    from perf_assets.features.fleet.samples import configuration_name
    from perf_assets.features.samples import HOST

    name = samples.machines[target]
    has_device = f"{name.removesuffix(HOST)}{HOST}" in samples.machines
    wanted = (truth["gpus"] > 0) == (not name.endswith(HOST)) if has_device else truth["gpus"] == 0
    catalogue, place = load_catalogue(lake.site_catalogues()), {c: i for i, c in enumerate(samples.configurations)}
    rows, seconds = [], []
    for run in truth[wanted].itertuples(index=False):
        key = configuration_name((run.app, catalogue.comparable_args(str(run.args)), run.ranks, run.threads))
        if key in place and np.isnan(samples.log_seconds[target, place[key]]):
            rows.append(place[key])
            seconds.append(float(run.wall_seconds))  # type: ignore[arg-type]
    return np.array(rows, np.intp), np.array(seconds)


def _predicted(
    samples: "PairedSamples", source: int, target: int, given: "Indices", rows: "Indices", prior: object
) -> "pd.DataFrame":
    import numpy as np
    import pandas as pd

    from perf_assets.models.target.evaluation import predict_shots
    from perf_assets.models.target.prior import Prior
    from perf_assets.models.target.shots_only import SHOTS_ONLY
    from perf_assets.models.target.view import adapt_view

    assert prior is None or isinstance(prior, Prior)
    mean, width = adapt_view(samples, source, target, given, 0, prior).distribution(samples, rows)
    alone = {name: predict_shots(name, samples, source, target, given, rows, None) for name in SHOTS_ONLY}
    limit = 20.0  # A model of two runs may extrapolate beyond what a number can hold.
    unchanged = samples.log_seconds[source, rows]
    shown = {
        f"{name}_seconds": np.nan
        if distribution is None
        else np.exp(np.clip(distribution[0], unchanged - limit, unchanged + limit))
        for name, distribution in alone.items()
    }
    return pd.DataFrame(
        {
            "target": samples.machines[target],
            "source": samples.machines[source],
            "configuration": [samples.configurations[row] for row in rows],
            "app": samples.apps[rows],
            "predicted_seconds": np.exp(mean),
            "lower_seconds": np.exp(mean - width),
            "upper_seconds": np.exp(mean + width),
            "unchanged_seconds": np.exp(unchanged),
            **shown,
        }
    )


def _store(path: Path, rows: "pd.DataFrame") -> None:
    """Write a Parquet file whole or not at all."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with replacing(path) as temporary:
        rows.to_parquet(temporary, index=False)
