"""What `load.py` computes from its measurements, and shows: growth, costs of a profile, lakes that are larger."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

LANDING, RECORD, WAREHOUSE, FEATURES, REST = "landing", "record", "warehouse", "features", "start and Dagster"
BY_PROFILE = (LANDING, RECORD, WAREHOUSE, FEATURES)
"""Stages that take longer with every profile; the others work on a bounded number of configurations."""
_HOUR = 3600.0
_ALL = "all"


@dataclass(frozen=True)
class Stage:
    """Part of the work at one scale."""

    name: str
    seconds: float
    """That a user waits."""
    cpu_seconds: float
    """Of all its processes: what `seconds` would be about if nobody else used the machine."""
    peak_mb: float


@dataclass(frozen=True)
class Load:
    """One lake from landing to target models."""

    scale: float
    bundles: int
    runs: int
    """Application runs in the warehouse."""
    files: int
    landed_mb: float
    stored_mb: float
    """Record, warehouse and models."""
    stages: tuple[Stage, ...]

    @property
    def seconds(self) -> float:
        """Of all stages."""
        return sum(stage.seconds for stage in self.stages)

    @property
    def cpu_seconds(self) -> float:
        """Of all stages."""
        return sum(stage.cpu_seconds for stage in self.stages)

    @property
    def peak_mb(self) -> float:
        """Of the stage that needs most."""
        return max(stage.peak_mb for stage in self.stages)

    def of(self, names: Sequence[str]) -> float:
        """Processor time of some stages: what others do at the same time changes it little."""
        return sum(stage.cpu_seconds for stage in self.stages if stage.name in names)


@dataclass(frozen=True)
class Costs:
    """What one profile more costs, and what a machine costs before its first."""

    seconds: Mapping[str, float]
    """Processor time by stage that grows with profiles."""
    fixed_seconds: float
    """Processor time of ingesting a machine."""
    files: float
    landed_mb: float
    stored_mb: float


@dataclass(frozen=True)
class Larger:
    """A lake that was not measured."""

    hours: Mapping[str, float]
    """By stage, one process after the other; waiting for disks is not counted."""
    landed_gb: float
    stored_gb: float
    files: float

    @property
    def slowest(self) -> str:
        """The stage that takes longest: the first bottleneck."""
        return max(self.hours, key=lambda stage: self.hours[stage])


def together(parts: Sequence[Stage]) -> Stage:
    """Parts of one stage as one."""
    return Stage(
        parts[0].name,
        sum(part.seconds for part in parts),
        sum(part.cpu_seconds for part in parts),
        max(part.peak_mb for part in parts),
    )


def growth(small: Load, large: Load) -> dict[str, float]:
    """Figures of the last line."""
    return {
        "time_growth_10_to_100": round(large.seconds / small.seconds, 3),
        "memory_growth_10_to_100": round(large.peak_mb / small.peak_mb, 3),
        "cpu_growth_10_to_100": round(large.cpu_seconds / small.cpu_seconds, 3),
    }


def profile_costs(few: Load, many: Load) -> Costs:
    """From two lakes of one machine that has profiles of one format only: slopes, and what is left at no profile."""
    more = many.bundles - few.bundles

    def slope(small: float, large: float) -> float:
        return max(large - small, 0.0) / more

    seconds = {stage: slope(few.of([stage]), many.of([stage])) for stage in BY_PROFILE}
    return Costs(
        seconds,
        max(many.cpu_seconds - many.bundles * sum(seconds.values()), 0.0),
        slope(few.files, many.files),
        slope(few.landed_mb, many.landed_mb),
        slope(few.stored_mb, many.stored_mb),
    )


def extrapolate(costs: Costs, profiles: int, machines: int) -> Larger:
    """So many profiles of one format, spread over so many machines."""
    hours = {stage: profiles * seconds / _HOUR for stage, seconds in costs.seconds.items()}
    return Larger(
        hours | {REST: machines * costs.fixed_seconds / _HOUR},
        profiles * costs.landed_mb / 1e3,
        profiles * costs.stored_mb / 1e3,
        profiles * costs.files,
    )


def training_hours(load: Load, folds: int, more_folds: int) -> float:
    """Of AMMs and source models with more machines: every machine that is held out is a training of bounded size."""
    return load.of(["AMMs", "source models"]) * more_folds / folds / _HOUR


def training_gb(machines: int, configurations: int, columns: int) -> float:
    """The largest arrays of training: samples, those with a machine hidden, and the index of all ordered pairs."""
    samples = 8 * machines * configurations * columns
    pairs = 3 * 8 * machines * (machines - 1) * configurations
    return (2 * samples + pairs) / 1e9


def show_scales(loads: Sequence[Load]) -> None:
    """Seconds and peak memory of each stage at each scale."""
    print(f"\n{'':18}" + "".join(f"{f'scale {load.scale:g}':>32}" for load in loads))
    for name, values in {
        "bundles": [load.bundles for load in loads],
        "application runs": [load.runs for load in loads],
        "files landed": [load.files for load in loads],
        "MB landed": [load.landed_mb for load in loads],
        "MB stored": [load.stored_mb for load in loads],
    }.items():
        print(f"{name:18}" + "".join(f"{value:32,.0f}" for value in values))
    print(f"{'':18}" + "".join(f"{'waited':>12}{'processor':>10}{'peak':>10}" for _ in loads))
    names = dict.fromkeys(stage.name for load in loads for stage in load.stages)
    for name in (*names, _ALL):
        print(f"{name:18}" + "".join(_cell(load, name) for load in loads))
    for load in loads:
        slow, big = max(load.stages, key=lambda s: s.cpu_seconds), max(load.stages, key=lambda s: s.peak_mb)
        share = slow.cpu_seconds / load.cpu_seconds
        print(f"scale {load.scale:g}: {slow.name} takes most time ({share:.0%}), {big.name} most memory", flush=True)


def _cell(load: Load, name: str) -> str:
    parts = [stage for stage in load.stages if name in (stage.name, _ALL)]
    if not parts:
        return f"{'':32}"
    found = together(parts)
    return f"{found.seconds:10.1f} s{found.cpu_seconds:8.1f} s{found.peak_mb:7.0f} MB"


def show_costs(found: Mapping[str, Costs]) -> None:
    """What one profile more costs, by format."""
    print(f"\n{'one profile more':18}" + "".join(f"{name:>12}" for name in BY_PROFILE))
    for name, costs in found.items():
        stages = "".join(f"{1e3 * seconds:9.1f} ms" for seconds in costs.seconds.values())
        sizes = f"{1e3 * costs.landed_mb:.0f} kB landed, {1e3 * costs.stored_mb:.0f} kB stored"
        print(f"{name:18}{stages}  {costs.files:.0f} files, {sizes}; {costs.fixed_seconds:.0f} s a machine")


def show_larger(title: str, costs: Costs, profiles: int, machines: int) -> None:
    """One line of an extrapolation."""
    found = extrapolate(costs, profiles, machines)
    parts = ", ".join(f"{stage} {hours:.1f} h" for stage, hours in found.hours.items())
    print(
        f"{title}: {sum(found.hours.values()):.1f} h ({parts}), {found.landed_gb:,.0f} GB landed in "
        f"{found.files / 1e6:.1f} million files, {found.stored_gb:,.0f} GB stored; first bottleneck: {found.slowest}",
        flush=True,
    )
