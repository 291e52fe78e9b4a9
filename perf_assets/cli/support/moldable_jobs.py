"""`perf-assets simulate --jobs`: ModelX's experiment on a table of measured runs."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

from perf_assets.cli.support.output import say
from perf_assets.core.errors import BadInputError

if TYPE_CHECKING:
    from perf_assets.scheduling.traces.trace import Trace

LOADS = (0.5, 0.6, 0.7, 0.8, 0.9, 1.0, 1.1, 1.2)
ORIGIN = (
    "jobs are measured runs of the table, submissions and limits are those of the trace, squeezed to the load of the "
    "stock policy; all policies plan with the limit"
)


def simulate_table(
    trace: "Trace", table: Path, nodes: int, shots: tuple[str, ...], load: float | None, repetitions: int, seed: int
) -> dict[str, Any]:
    """Means over repetitions by load and policy, and all rows."""
    import pandas as pd

    from perf_assets.scheduling.moldable import MoldableExperiment, MoldableTable, sweep
    from perf_assets.workflows.moldable import with_predictions

    if not trace.has_requests():
        raise BadInputError(f"{trace.name} does not say how long users asked for: limits cannot be drawn from it")
    try:
        frame = pd.read_csv(table)
    except (ValueError, OSError) as error:
        raise BadInputError(f"{table} is no table of jobs (CSV): {error}") from None
    jobs = MoldableTable.of(with_predictions(frame, shots, seed, say) if shots else frame, nodes)
    for note in jobs.notes:
        say(f"{table.name}: {note}")
    experiment = MoldableExperiment(jobs, trace, nodes)
    rows = sweep(experiment, LOADS if load is None else [load], repetitions, seed)
    return {
        "jobs": len(trace),
        "trace": trace.name,
        "nodes": nodes,
        "policies": means(rows),
        "rows": rows,
        "skipped": dict(trace.skipped),
        "notes": [*trace.notes, *jobs.notes],
        "origin": ORIGIN,
    }


def means(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """A row per load and policy: means over repetitions, and the range of turnarounds relative to the stock policy."""
    import pandas as pd

    frame = pd.DataFrame(rows)
    found = []
    for (load, policy), part in frame.groupby(["load", "policy"], sort=False):
        ratios = part["turnaround_ratio"]
        tolerance = part["tolerance"].iloc[0]
        values = part.drop(columns=["policy", "load", "repetition", "tolerance"]).mean()
        found.append({
            "load": load, "policy": policy, "tolerance": None if pd.isna(tolerance) else float(tolerance),
            "turnaround_ratio_min": float(ratios.min()), "turnaround_ratio_max": float(ratios.max()),
            **{str(name): float(value) for name, value in values.items()},
        })  # fmt: skip
    return found


def table_rows(document: dict[str, Any]) -> tuple[list[str], list[list[Any]]]:
    """Heads and rows for people."""
    heads = ["load", "policy", "tolerance", "turnaround s", "of stock", "wait s", "bounded slowdown", "makespan s",
             "utilisation", "node-hours", "nodes per job"]  # fmt: skip
    rows = []
    for row in document["policies"]:
        tolerance = row["tolerance"]
        rows.append([
            f"{row['load']:g}", row["policy"], "" if tolerance is None else f"{tolerance:.0%}",
            row["turnaround_mean_s"], f"{row['turnaround_ratio']:.1%}", row["wait_mean_s"],
            row["bounded_slowdown_mean"], row["makespan_s"], f"{row['utilisation']:.3f}", row["node_hours"],
            f"{row['nodes_per_job']:.1f}",
        ])  # fmt: skip
    return heads, rows
