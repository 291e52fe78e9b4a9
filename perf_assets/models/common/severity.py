"""Severity: how hard a transfer is, from 0 (the source predicts the target as well as itself) to 1 (not at all).

Where source and target share features, it is measured by what the source as it is says of the shots: their squared
error, on a logarithmic scale between the floor (the source's error on its own held-out rows) and the ceiling (the error
on the shots when their targets are shuffled). So it sees level and scale of the target, and needs no model of it.

Where they share none, directions and the distribution of the target are compared. Rows are ordered by target and cut
into bins of equal count; the centred bins x counters matrix of means spans, by its left singular vectors, how counters
move along the target. The angle is the root mean square principal angle between source and target, over a right angle.
No common counters are needed, and permuting columns changes nothing.

Few rows bias angles upwards. So they stand between a floor (source against itself, at the same number of rows) and a
ceiling (the target's labels shuffled), and the rescaled value says where between them they lie; it is at least as
large as the distance of the two distributions of the target asks for.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from perf_assets.core.errors import BadInputError
from perf_assets.features.samples import Floats, Indices
from perf_assets.features.tables.unpaired import scaled_rows

if TYPE_CHECKING:
    from perf_assets.models.transfer.task import TransferTask


@dataclass(frozen=True)
class Severity:
    """Severity with what it must be compared with."""

    severity: float
    """Root mean squared error of the source's functions on the shots, or angle between directions (0 to 1)."""
    floor: float
    """Error at severity 0: the source on its own rows."""
    ceiling: float
    """Error without any relation: the target's labels shuffled."""
    rescaled: float
    """0 at the floor, 1 at the ceiling."""
    rows_count: int
    measure: str
    """`functions` where source and target share features, else `directions`."""


_MOST_BINS = 12
_LEAST_A_BIN = 2
_MOST_DIRECTIONS = 3
_ENERGY = 0.8
"""Share of the squared singular values that the directions hold."""
_REPEATS = 20
_QUANTILES = 50
_TINY = 1e-12


def severity(
    source_counters: Floats, source_target: Floats, target_counters: Floats, target: Floats, seed: int = 0
) -> Severity:
    """Severity of a transfer, from rows x counters as measured and the targets of both sides."""
    count = min(len(target), len(source_target) // 2)
    if count < 2 * _LEAST_A_BIN:
        raise BadInputError(
            f"severity needs at least {2 * _LEAST_A_BIN} rows of the target and twice that of the source"
        )
    if not (np.ptp(source_target) > 0 and np.ptp(target) > 0):
        raise BadInputError("severity needs targets that vary, in the source and in the target")
    bins = min(_MOST_BINS, count // _LEAST_A_BIN)
    generator = np.random.default_rng(seed)
    theirs, ours = scaled_rows(source_counters), scaled_rows(target_counters)
    if not (theirs.shape[1] and ours.shape[1]):
        raise BadInputError("severity needs a counter that varies, in the source and in the target")
    count_kept = _direction_count(theirs, source_target, bins)
    theirs_whole = _directions(theirs, source_target, bins, count_kept)
    measured_distance = _distance(theirs_whole, _directions(ours, target, bins, count_kept))
    floors, ceilings = [], []
    for _ in range(_REPEATS):
        order = generator.permutation(len(source_target))
        half, few = order[len(order) // 2 :], order[:count]
        # The few are scaled by themselves, as shots are.
        floors.append(
            _distance(
                _directions(theirs[half], source_target[half], bins, count_kept),
                _directions(scaled_rows(source_counters[few]), source_target[few], bins, count_kept),
            )
        )
        shuffled = _directions(ours, generator.permutation(target), bins, count_kept)
        ceilings.append(_distance(theirs_whole, shuffled))
    floor, ceiling = float(np.mean(floors)), float(np.mean(ceilings))
    rescaled = float(np.clip((measured_distance - floor) / max(ceiling - floor, 1e-9), 0, 1))
    return Severity(
        severity=measured_distance,
        floor=floor,
        ceiling=ceiling,
        rescaled=max(rescaled, _apart(source_target, target)),
        rows_count=len(target),
        measure="directions",
    )


def transfer_severity(task: "TransferTask", shots: Indices) -> Severity | None:
    """Severity of a transfer, from the shots; None where they, or the source's rows, are too few to say."""
    target = task.target.target[shots]
    if task.groups:
        errors = [one.error for group in task.groups for one in group.functions]
        return _of_functions(task.expected[shots].mean(axis=1), target, float(np.mean(errors)))
    severities = []
    for source in task.sources:
        try:
            severities.append(severity(source.rows.counters, source.rows.target, task.target.counters[shots], target))
        except BadInputError:
            continue
    return min(severities, key=lambda one: one.rescaled) if severities else None


def _of_functions(expected: Floats, target: Floats, own_error: float) -> Severity:
    """Severity of functions of a source, from what they expect of the shots; all errors as root mean squares."""
    error = float(np.mean((expected - target) ** 2))
    shuffled = float(expected.var() + target.var() + (expected.mean() - target.mean()) ** 2)
    floor = min(own_error, shuffled) + _TINY
    rescaled = float(np.clip(np.log((error + _TINY) / floor) / max(np.log((shuffled + _TINY) / floor), _TINY), 0, 1))
    return Severity(
        severity=float(np.sqrt(error)),
        floor=float(np.sqrt(floor)),
        ceiling=float(np.sqrt(shuffled)),
        rescaled=rescaled,
        rows_count=len(target),
        measure="functions",
    )


def _apart(source: Floats, target: Floats) -> float:
    """Distance of two distributions of the target (2-Wasserstein) relative to it and the source's spread, 0 to 1."""
    levels = (np.arange(_QUANTILES) + 0.5) / _QUANTILES
    square = float(np.mean((np.quantile(source, levels) - np.quantile(target, levels)) ** 2))
    return float(np.sqrt(square / (square + source.var())))


def _directions(rows: Floats, target: Floats, bins: int, count: int) -> Floats:
    """Bins x directions: orthonormal, the main ways in which counters move along the target."""
    left, values = _bin_means(rows, target, bins)
    return np.asarray(left[:, : min(count, int((values > 1e-9 * max(values[0], 1e-12)).sum()) or 1)])


def _direction_count(rows: Floats, target: Floats, bins: int) -> int:
    """Directions that hold most of the movement along the target; the others are noise and would look severe."""
    _, values = _bin_means(rows, target, bins)
    held = np.cumsum(values**2) / max(float(np.sum(values**2)), 1e-12)
    return min(_MOST_DIRECTIONS, 1 + int(np.searchsorted(held, _ENERGY)))


def _bin_means(rows: Floats, target: Floats, bins: int) -> tuple[Floats, Floats]:
    """Left singular vectors and singular values of the centred means of bins of rows in order of target."""
    order = np.argsort(target, kind="stable")
    means = np.stack([rows[part].mean(axis=0) for part in np.array_split(order, bins)])
    left, values, _ = np.linalg.svd(means - means.mean(axis=0), full_matrices=False)
    return left, values


def _distance(first: Floats, second: Floats) -> float:
    """Root mean square principal angle over a right angle; the spaces may differ in dimension."""
    cosines = np.linalg.svd(first.T @ second, compute_uv=False)
    angles = np.arccos(np.clip(cosines, 0, 1))
    return float(np.sqrt(np.mean(angles**2)) / (np.pi / 2))
