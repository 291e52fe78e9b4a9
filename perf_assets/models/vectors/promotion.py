"""Whether a new vector model should replace the one in use: both are judged on samples that their fits did not see."""

from dataclasses import dataclass

import numpy as np

from perf_assets.features.samples import Floats
from perf_assets.features.vectors import levelled
from perf_assets.models.target.promotion import THRESHOLD
from perf_assets.models.vectors.blend import HeldOutVectors
from perf_assets.models.vectors.model import VectorModel

_LEAST_SHARED = 20
"""Held-out samples that two models must share to be compared."""
_KINDS_OF_NEW = ("configuration", "application")


@dataclass(frozen=True)
class VectorComparison:
    """A new model beside the champion and the mean vector; errors are of log relative times."""

    is_promoted: bool
    reason: str
    held_out_count: int
    log_rmse: float
    mean_vector_log_rmse: float
    champion_log_rmse: float | None
    """Error of the champion on samples that both have held out; None where there are too few."""
    application_log_rmse: float
    """Error on samples of applications that were held out as a whole."""
    champion_application_log_rmse: float | None


def compare(new: VectorModel, champion: VectorModel | None) -> VectorComparison:
    """Decide whether a new model replaces the champion."""
    own = {name: _squares(new.blends[name].held_out) for name in _KINDS_OF_NEW}
    baseline = _mean_vector(new.blends["configuration"].held_out)
    shared = {name: _shared(new, champion, name) for name in _KINDS_OF_NEW} if champion is not None else {}
    rivals = {"the mean vector": (float(own["configuration"].mean()), baseline)}
    rivals |= {f"the champion on a new {name}": pair for name, pair in shared.items() if pair is not None}
    problems = [
        f"its squared error is {ours / theirs:.2f} times that of {rival}"
        for rival, (ours, theirs) in rivals.items()
        if ours > THRESHOLD * theirs
    ]
    reasons = [" and ".join(problems) + f" (at most {THRESHOLD:g} is allowed)"] if problems else []
    reasons = reasons or [f"not worse than {' and '.join(rivals)}"]
    if champion is not None and not any(shared.values()):
        reasons.append("the champion cannot be compared with: too few samples were held out from both")
    champions = {name: None if pair is None else float(np.sqrt(pair[1])) for name, pair in shared.items()}
    return VectorComparison(
        held_out_count=len(own["configuration"]),
        log_rmse=float(np.sqrt(own["configuration"].mean())),
        mean_vector_log_rmse=float(np.sqrt(baseline)),
        champion_log_rmse=champions.get("configuration"),
        application_log_rmse=float(np.sqrt(own["application"].mean())),
        champion_application_log_rmse=champions.get("application"),
        is_promoted=not problems,
        reason="; ".join(reasons),
    )


def _shared(new: VectorModel, champion: VectorModel, name: str) -> tuple[float, float] | None:
    """Mean squared errors of both on the samples and machines that both have held out."""
    ours, theirs = new.blends[name].held_out, champion.blends[name].held_out
    position = {sample: row for row, sample in enumerate(theirs.samples)}
    pairs = [(row, position[sample]) for row, sample in enumerate(ours.samples) if sample in position]
    machines = [machine for machine in new.trained_machines if machine in champion.trained_machines]
    if len(pairs) < _LEAST_SHARED or len(machines) < 2:
        return None
    rows, other_rows = (np.array(column, np.intp) for column in zip(*pairs, strict=True))
    columns, other_columns = (
        np.array([model.trained_machines.index(machine) for machine in machines], np.intp) for model in (new, champion)
    )
    # What is true now: a run that was measured again has one time for both.
    true = ours.log_seconds[np.ix_(rows, columns)]
    values = ours.values[np.ix_(rows, columns)], theirs.values[np.ix_(other_rows, other_columns)]
    errors = [float(_squared(value, true).mean()) for value in values]
    return errors[0], errors[1]


def _squares(held: HeldOutVectors) -> Floats:
    return _squared(held.values, held.log_seconds)


def _squared(values: Floats, true: Floats) -> Floats:
    """Squared error of each sample, a mean over the machines it ran on; samples of one machine say nothing."""
    ran = np.isfinite(true)
    kept = ran.sum(axis=1) > 1
    wrong = levelled(np.where(ran, values, np.nan)[kept]) - levelled(true[kept])
    return np.asarray(np.nanmean(wrong**2, axis=1))


def _mean_vector(held: HeldOutVectors) -> float:
    """Mean squared error of answering every question with the mean vector."""
    true = held.log_seconds[np.isfinite(held.log_seconds).sum(axis=1) > 1]
    centred = levelled(true)
    typical = np.broadcast_to(np.nanmean(centred, axis=0), true.shape)
    return float(_squared(typical, true).mean())
