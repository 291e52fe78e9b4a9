"""`perf-assets simulate --speeds`: several clusters, to one of which each job is sent when it comes."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from perf_assets.cli.support.output import say
from perf_assets.core.errors import BadInputError

if TYPE_CHECKING:
    import pandas as pd

    from perf_assets.scheduling.dispatch import SpeedTable
    from perf_assets.scheduling.simulate import Machine
    from perf_assets.scheduling.traces.trace import Trace

LOADS = (0.6, 0.8, 1.0)
ORIGIN = (
    "jobs are workloads of the table, each with the nodes and the time of a job of the trace at speed 1; clusters plan "
    "with what users asked for, doubled until it suffices"
)


def simulate_dispatch(
    trace: "Trace",
    table: Path,
    clusters: "tuple[Machine, ...]",
    *,
    known: Sequence[str],
    shots: Sequence[str],
    models: bool,
    gpu_only: Sequence[str],
    load: float | None,
    repetitions: int,
    seed: int,
) -> dict[str, Any]:
    """Means over repetitions by load, prediction and rule, and all rows."""
    import pandas as pd

    from perf_assets.scheduling.dispatch import DispatchExperiment, SpeedTable, sweep

    if bool(shots or models) != bool(known):
        raise BadInputError(
            "--shots goes with --known, and so does --models: speeds are predicted from those on known machines"
        )
    try:
        frame = pd.read_csv(table)
    except (ValueError, OSError) as error:
        raise BadInputError(f"{table} is no table of speeds (CSV): {error}") from None
    absent = [name for name in known if name not in frame]
    if absent:
        raise BadInputError(f"--known {absent[0]}: {table} has no such column")
    if known:
        # Predictions stand on the known machines: a workload that was not measured on the first one has none.
        is_known = pd.to_numeric(frame[known[0]], errors="coerce") > 0
        if not is_known.all():
            say(f"{table.name}: {int((~is_known).sum())} workloads without a speed on {known[0]} are left out")
        frame = frame[is_known].reset_index(drop=True)
    jobs = SpeedTable.of(frame, clusters, gpu_only)
    for note in jobs.notes:
        say(f"{table.name}: {note}")
    registered = _registered(frame, jobs, known[0]) if models else {}
    predicted = [{**registered, **_predictions(frame, jobs, known, shots, seed + each)} for each in range(repetitions)]
    experiment = DispatchExperiment(jobs, trace, clusters)
    rows = sweep(experiment, predicted, LOADS if load is None else [load], repetitions, seed)
    return {
        "jobs": len(trace),
        "trace": trace.name,
        "clusters": {machine.name: machine.nodes for machine in clusters},
        "workloads": len(jobs),
        "policies": means(rows),
        "rows": rows,
        "skipped": dict(trace.skipped),
        "notes": [*trace.notes, *jobs.notes],
        "origin": ORIGIN,
    }


def _registered(frame: "pd.DataFrame", jobs: "SpeedTable", source: str) -> "Mapping[str, Any]":
    """Speeds by the champions of the registry, from runs on one machine."""
    from perf_assets.cli.support.dispatch_models import registered_speeds
    from perf_assets.serving.predictor import Predictor
    from perf_assets.storage.lake import Lake

    speeds = registered_speeds(Predictor(Lake.default()), frame, jobs.ways, source)
    return {name: speed[jobs.rows] for name, speed in speeds.items()}


def _predictions(
    frame: "pd.DataFrame", jobs: "SpeedTable", known: Sequence[str], shots: Sequence[str], seed: int
) -> "Mapping[str, Any]":
    """Predicted speeds of the workloads, by prediction and shots; other columns of the table describe workloads."""
    from perf_assets.core.shots import Shots
    from perf_assets.workflows.scheduling.dispatch import predicted_speeds

    speeds = {}
    for text in shots:
        say(f"shots {text}, drawn with seed {seed}")
        for name, speed in predicted_speeds(frame, jobs.ways, known, Shots.parse(text), seed, say).items():
            speeds[f"{name}, {text}"] = speed[jobs.rows]
    return speeds


def means(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """A row per load, prediction and rule: means over repetitions, and the range of the share of the gain kept."""
    import pandas as pd

    frame = pd.DataFrame(rows).astype({"gain_kept_ratio": float})
    averaged = []
    for (load, prediction, rule), part in frame.groupby(["load", "prediction", "rule"], sort=False):
        values = part.drop(columns=["load", "prediction", "rule", "repetition"])
        kept = part["gain_kept_ratio"].dropna()
        averaged.append({
            "load": load, "prediction": prediction, "rule": rule,
            **{str(name): None if pd.isna(value) else float(value) for name, value in values.mean().items()},
            "gain_kept_min": float(kept.min()) if len(kept) else None,
            "gain_kept_max": float(kept.max()) if len(kept) else None,
        })  # fmt: skip
    return averaged


def table_rows(document: dict[str, Any]) -> tuple[list[str], list[list[Any]]]:
    """Heads and rows for people."""
    heads = ["load", "predicted speeds", "dispatch by", "turnaround s", "wait s", "bounded slowdown", "node-hours",
             "of the ideal's gain"]  # fmt: skip
    rows = []
    for row in document["policies"]:
        kept, low, high = (row[name] for name in ("gain_kept_ratio", "gain_kept_min", "gain_kept_max"))
        share = "" if kept is None else f"{kept:.0%}" if low == high else f"{kept:.0%} ({low:.0%} to {high:.0%})"
        rows.append([
            f"{row['load']:g}", row["prediction"], row["rule"], row["turnaround_mean_s"], row["wait_mean_s"],
            row["bounded_slowdown_mean"], row["node_hours"], share,
        ])  # fmt: skip
    return heads, rows
