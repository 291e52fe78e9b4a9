"""Scores of predicted against true positive quantities (run times, relative times)."""

import numpy as np
from numpy.typing import ArrayLike, NDArray


def _log_ratio(true: ArrayLike, predicted: ArrayLike) -> NDArray[np.float64]:
    true_values, predicted_values = np.asarray(true, float), np.asarray(predicted, float)
    if true_values.shape != predicted_values.shape:
        raise ValueError(f"shapes differ: {true_values.shape} true, {predicted_values.shape} predicted")
    if not true_values.size:
        raise ValueError("no values to score")
    if (true_values <= 0).any() or (predicted_values <= 0).any():
        raise ValueError("scores of ratios need positive values")
    logs: NDArray[np.float64] = np.log(predicted_values / true_values)
    return logs


def mape(true: ArrayLike, predicted: ArrayLike) -> float:
    """Mean of |predicted - true| / true, as a ratio (0.1 is ten percent)."""
    return mape_of_logs(_log_ratio(true, predicted))


def mape_of_logs(errors: NDArray[np.float64]) -> float:
    """Mean absolute relative error (0.1 is 10%) of log errors, predicted less true."""
    return float(np.mean(np.abs(np.expm1(errors))))


def log_rmse(true: ArrayLike, predicted: ArrayLike) -> float:
    """Root mean square of log(predicted / true)."""
    return float(np.sqrt(np.mean(_log_ratio(true, predicted) ** 2)))


def share_within(true: ArrayLike, predicted: ArrayLike, ratio: float) -> float:
    """Share of predictions whose relative error is at most `ratio`."""
    return float(np.mean(np.abs(np.expm1(_log_ratio(true, predicted))) <= ratio))
