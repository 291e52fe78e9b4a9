"""`perf-assets read`."""

from dataclasses import asdict
from itertools import islice
from pathlib import Path
from typing import Any

import click

from perf_assets.cli.support.options import json_option, kind_option
from perf_assets.cli.support.output import print_json, print_table, say
from perf_assets.core.errors import BadInputError
from perf_assets.core.measurements import KernelTiming, Profile, Reading
from perf_assets.core.text import printable


def to_json(reading: Reading) -> dict[str, Any]:
    """`format`, `metadata`, and `timings` of a benchmark or `profiles` of applications."""
    document: dict[str, Any] = {"format": reading.format, "metadata": reading.metadata}
    if not reading.profiles:
        return document | {"timings": [_timing(timing) for timing in reading.timings]}
    return document | {"profiles": [_profile(profile) for profile in reading.profiles]}


def _timing(timing: KernelTiming) -> dict[str, Any]:
    facts = asdict(timing)
    facts |= {"run": printable(timing.run), "valid": facts.pop("is_valid")}
    del facts["environment"]
    return facts


def _profile(profile: Profile) -> dict[str, Any]:
    names = ("ranks", "threads_per_rank", "hosts", "wall_seconds", "labels")
    return {
        "run": printable(profile.run),
        **{name: getattr(profile, name) for name in names},
        "metrics": {name: asdict(total) for name, total in profile.metrics.items()},
        "regions": [
            {"path": list(region.path), "is_communication": region.is_communication, **asdict(region.time)}
            for region in profile.regions
        ],
    }


_SHOWN_TIMINGS = 60
_SHOWN_PROFILES = 8
_SHOWN_ROWS = 20


@click.command()
@click.argument("path", type=click.Path(path_type=Path))
@kind_option
@json_option
def command(path: Path, kind: str | None, as_json: bool) -> None:
    """Print what a file or folder contains: kernel timings, or whole-program totals of every profile.

    The format is found by content. Nothing is stored.
    """
    from perf_assets.readers.read import read
    from perf_assets.workflows.landing.land import without_threads

    if not path.exists():
        raise BadInputError(f"{path} does not exist")
    reading = read(path, kind)
    say(*without_threads(path, reading, None))
    if as_json:
        print_json(to_json(reading))
    elif reading.timings:
        _print_timings(reading)
    else:
        _print_profiles(reading)


def _print_timings(reading: Reading) -> None:
    if len(reading.timings) > _SHOWN_TIMINGS:
        _print_settings(reading)
        return
    columns = ["kernel", "variant", "tuning", "size", "reps", "ranks", "threads", "seconds/rep", "note"]
    rows = [
        [
            *(timing.kernel, timing.variant, timing.tuning),
            *(_or_blank(value) for value in (timing.problem_size, timing.reps, timing.ranks, timing.threads)),
            "" if timing.seconds_per_rep is None else f"{timing.seconds_per_rep:.6g}",
            timing.invalid_reason or "",
        ]
        for timing in reading.timings
    ]
    print_table(f"{reading.format}: {len(rows)} timings", columns, rows)


def _print_settings(reading: Reading) -> None:
    """One row per setting, with its kernels: what another machine must have run, too."""
    kernels: dict[tuple[str, ...], list[bool]] = {}
    for timing in reading.timings:
        numbers = (timing.problem_size, timing.ranks, timing.threads)
        setting = (timing.variant, timing.tuning, *(_or_blank(value) for value in numbers))
        kernels.setdefault(setting, []).append(timing.invalid_reason is None)
    columns = ["variant", "tuning", "size", "ranks", "threads", "kernels", "of them valid"]
    rows = [[*setting, len(are_valid), sum(are_valid)] for setting, are_valid in kernels.items()]
    print_table(f"{reading.format}: {len(reading.timings)} timings by setting (--json has each)", columns, rows)


def _print_profiles(reading: Reading) -> None:
    if len(reading.profiles) > _SHOWN_PROFILES:
        _print_overview(reading)
        return
    for profile in reading.profiles:
        title = f"{reading.format}: run {profile.run}, {profile.ranks} ranks x {profile.threads_per_rank} threads"
        rows = [
            [name, total.unit, *(f"{value:.6g}" for value in (total.sum, total.mean_over_ranks, total.min, total.max))]
            for name, total in profile.metrics.items()
        ]
        print_table(title, ["metric", "unit", "sum", "mean over ranks", "min", "max"], rows)
        if profile.regions:
            _print_regions(profile)


def _print_regions(profile: Profile) -> None:
    longest = sorted(profile.regions, key=lambda region: -region.time.sum)[:_SHOWN_ROWS]
    count = len(profile.regions)
    title = f"{count} regions" + (f", the {_SHOWN_ROWS} longest (--json has all)" if count > _SHOWN_ROWS else "")
    rows = [
        ["/".join(region.path), *(f"{s:.6g}" for s in (region.time.mean_over_ranks, region.time.min, region.time.max))]
        for region in longest
    ]
    print_table(title, ["region", "mean seconds over ranks", "min", "max"], rows)


def _print_overview(reading: Reading) -> None:
    columns = ["run", "ranks", "threads", "wall seconds", "metrics"]
    shown = [
        [p.run, p.ranks, p.threads_per_rank, "" if p.wall_seconds is None else f"{p.wall_seconds:.6g}", len(p.metrics)]
        for p in islice(reading.profiles, _SHOWN_ROWS)
    ]
    count = len(reading.profiles)
    title = f"{reading.format}: {count} profiles" + (f", the first {_SHOWN_ROWS}" if count > _SHOWN_ROWS else "")
    print_table(f"{title} (--json has all metrics)", columns, shown)


def _or_blank(value: int | None) -> str:
    return "" if value is None else str(value)
