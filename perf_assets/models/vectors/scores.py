"""Scores of predicted relative-performance vectors. Every score counts the machines that a configuration ran on."""

from dataclasses import dataclass

import numpy as np

from perf_assets.core.metrics import mape
from perf_assets.features.samples import Floats, Mask
from perf_assets.features.vectors import relative

OWN_DOUBTS = ("coverage", "stated_order")
"""Scores of methods that say how sure they are."""
SCORES = ("r2", "r2_per_machine", "mae", "mape", "same_order", "top1", "regret", "auc")


@dataclass(frozen=True)
class Held:
    """Predictions for held-out samples, and the true values."""

    log_seconds: Floats
    """Samples x machines: true log times, NaN where it did not run."""
    predicted: Floats
    """Log times as predicted, up to a level of each sample."""
    ranked: Floats
    """Values that give the order of the machines: the prediction, or places of the most probable order."""
    majority: Floats
    """Predictions of the majority order."""
    majority_holds: Mask
    """Whether the true order is the majority order."""


def vector_scores(held: Held, reference: str, machines: tuple[str, ...]) -> dict[str, float]:
    """All scores of a method.

    `r2`: over all entries of the vectors, about the mean of all entries. `r2_per_machine`: about the mean of each
    machine, so that the mean vector as the answer to everything has 0. `regret`: extra time of the machine that is
    predicted to be the best, as a ratio. `auc`: of the smallest predicted gap along the majority order, as a sign that
    this order holds.
    """
    ran = np.isfinite(held.log_seconds)
    if reference in machines:
        with_reference = ran[:, machines.index(reference)]
        held = Held(*(part[with_reference] for part in vars(held).values()))
        ran = ran[with_reference]
    if not len(ran):
        return dict.fromkeys(SCORES, float("nan"))
    predicted = np.where(ran, held.predicted, np.nan)
    true, ratios = (relative(logs, reference, machines) for logs in (held.log_seconds, predicted))
    errors = float(np.nansum((ratios - true) ** 2))
    about_all = float(np.nansum((true - np.nanmean(true)) ** 2))
    about_machine = float(np.nansum((true - _column_means(true)) ** 2))
    chosen = np.where(ran, held.ranked, np.inf).argmin(axis=1)
    best = np.nanmin(held.log_seconds, axis=1)
    extra = np.expm1(held.log_seconds[np.arange(len(chosen)), chosen] - best)
    return {
        "r2": 1 - errors / about_all if about_all else float("nan"),
        "r2_per_machine": 1 - errors / about_machine if about_machine else float("nan"),
        "mae": float(np.nanmean(np.abs(ratios - true))),
        "mape": mape(true[ran], ratios[ran]),
        "same_order": float(same_orders(held.ranked, held.log_seconds).mean()),
        "top1": float((extra == 0).mean()),
        "regret": float(extra.mean()),
        "auc": area_under(*roc(majority_gap(predicted, held.majority), held.majority_holds)),
    }


def doubt_scores(
    held: Held, half_widths: Floats, probability: Floats, reference: str, machines: tuple[str, ...]
) -> dict[str, float]:
    """Whether a method's own doubts are right: both are to be near what they say.

    `coverage`: share of the relative times within their intervals; `half_widths` (samples x machines) are in log.
    `stated_order`: mean probability that the order is right, to be compared with `same_order`.
    """
    errors = log_errors(held.log_seconds, held.predicted, reference, machines)
    known = np.isfinite(errors)
    if not known.any():
        return dict.fromkeys(OWN_DOUBTS, float("nan"))
    inside = errors <= half_widths
    return {"coverage": float(inside[known].mean()), "stated_order": float(probability[known.any(axis=1)].mean())}


def log_errors(log_seconds: Floats, predicted: Floats, reference: str, machines: tuple[str, ...]) -> Floats:
    """Samples x machines: error of log relative times; NaN where the machine, or a named reference, did not run."""
    ran = np.isfinite(log_seconds)
    if reference in machines:
        ran = ran & ran[:, [machines.index(reference)]]
    asked = ran.any(axis=1)
    true, ratios = (
        np.log(relative(np.where(ran, logs, np.nan)[asked], reference, machines)) for logs in (log_seconds, predicted)
    )
    errors = np.full(log_seconds.shape, np.nan)
    errors[asked] = np.abs(true - ratios)
    return errors


def same_orders(ranked: Floats, log_seconds: Floats) -> Mask:
    """Per sample, whether all machines it ran on are in the true order."""
    ran = np.isfinite(log_seconds)
    predicted_order, true = (
        np.argsort(np.where(ran, values, np.inf), axis=1, kind="stable") for values in (ranked, log_seconds)
    )
    return np.asarray((predicted_order == true).all(axis=1))


def majority_gap(predicted: Floats, majority: Floats) -> Floats:
    """Smallest predicted step in log time along the majority order; below 0 where that order is not predicted."""
    gaps = np.empty(len(predicted))
    for row, (values, order) in enumerate(zip(predicted, majority, strict=True)):
        known = np.isfinite(values)
        steps = np.diff(values[known][np.argsort(order[known], kind="stable")])
        gaps[row] = steps.min() if len(steps) else 0.0
    return gaps


def roc(scores: Floats, labels: Mask) -> tuple[Floats, Floats]:
    """False and true positive rates over all thresholds; NaN where one of the two classes is empty."""
    if not labels.any() or labels.all():
        return np.array([np.nan]), np.array([np.nan])
    order = np.argsort(-scores, kind="stable")
    ends = np.flatnonzero(np.append(np.diff(scores[order]) != 0, True))
    hits, misses = np.cumsum(labels[order])[ends], np.cumsum(~labels[order])[ends]
    return np.append(0.0, misses / misses[-1]), np.append(0.0, hits / hits[-1])


def area_under(false_rates: Floats, true_rates: Floats) -> float:
    """Area under a ROC curve."""
    return float(np.trapezoid(true_rates, false_rates)) if np.isfinite(false_rates).all() else float("nan")


def _column_means(values: Floats) -> Floats:
    return np.asarray(np.nansum(values, axis=0) / np.maximum(np.isfinite(values).sum(axis=0), 1))
