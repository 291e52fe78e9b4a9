"""A reading as a JSON document with stable fields, as `perf-assets read --json` prints it."""

from typing import Any

from perf_assets.core.measurements import KernelTiming, MetricTotal, Profile, Reading
from perf_assets.core.shown_text import printable


def to_json(reading: Reading) -> dict[str, Any]:
    """`format`, `metadata`, and `timings` of a benchmark or `profiles` of applications."""
    document: dict[str, Any] = {"format": reading.format, "metadata": reading.metadata}
    if not reading.profiles:
        return document | {"timings": [_timing(timing) for timing in reading.timings]}
    return document | {"profiles": [_profile(profile) for profile in reading.profiles]}


def _timing(timing: KernelTiming) -> dict[str, Any]:
    return {
        "run": printable(timing.run),
        "kernel": timing.kernel,
        "variant": timing.variant,
        "tuning": timing.tuning,
        "problem_size": timing.problem_size,
        "reps": timing.reps,
        "ranks": timing.ranks,
        "threads": timing.threads,
        "seconds_per_rep": timing.seconds_per_rep,
        "seconds_per_rep_min": timing.seconds_per_rep_min,
        "seconds_per_rep_max": timing.seconds_per_rep_max,
        "bytes_per_rep": timing.bytes_per_rep,
        "flops_per_rep": timing.flops_per_rep,
        "valid": timing.is_valid,
        "invalid_reason": timing.invalid_reason,
        "counters": timing.counters,
    }


def _profile(profile: Profile) -> dict[str, Any]:
    return {
        "run": printable(profile.run),
        "ranks": profile.ranks,
        "threads_per_rank": profile.threads_per_rank,
        "hosts": profile.hosts,
        "wall_seconds": profile.wall_seconds,
        "labels": profile.labels,
        "metrics": {name: _metric(total) for name, total in profile.metrics.items()},
        "regions": [
            {"path": list(region.path), "is_communication": region.is_communication, **_metric(region.time)}
            for region in profile.regions
        ],
    }


def _metric(total: MetricTotal) -> dict[str, Any]:
    return {
        "sum": total.sum,
        "mean_over_ranks": total.mean_over_ranks,
        "min": total.min,
        "max": total.max,
        "unit": total.unit,
        "running_ratio": total.running_ratio,
    }
