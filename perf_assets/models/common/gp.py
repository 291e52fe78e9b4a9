"""Gaussian process for tens to hundreds of rows, in plain numpy: quick to fit, quick to ask.

Kernel: a mixture of a linear one and a squared-exponential one. Its few hyperparameters are taken from a grid by
evidence, with scale and noise solved along one eigendecomposition each: no local optimum, no warning, no iterations.
"""

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from perf_assets.features.samples import Floats

_LENGTHS = (0.3, 0.6, 1.0, 2.0, 4.0)
"""Length scales, in units of the root mean squared distance of two rows."""
_LINEAR_SHARES = (0.0, 0.3, 0.7, 0.95, 1.0)
_NOISES = np.logspace(-4, 1, 16)
"""Variance of the noise relative to that of the function."""
_MANY = 250
"""Rows that hyperparameters are chosen on where there are more."""


@dataclass(frozen=True)
class SmallGp:
    """A fitted process: mean and variance at new rows."""

    kind: ClassVar[str] = "gp"
    inputs: Floats
    """Training rows x features."""
    coefficients: Floats
    centre: float
    length: float
    """Length scale of the squared exponential, in the units of the features."""
    linear_share: float
    variance: float
    noise: float
    evidence: float
    """Log marginal likelihood at the chosen hyperparameters."""
    held_out: Floats
    """Leave-one-out predictions of the training rows, at the same hyperparameters."""

    @classmethod
    def fit(cls, inputs: Floats, target: Floats) -> "SmallGp":
        """Fit to rows x features; the mean far from all rows is that of the rows."""
        middle = float(target.mean())
        chosen = slice(None) if len(target) <= _MANY else np.random.default_rng(0).permutation(len(target))[:_MANY]
        few, wanted = inputs[chosen], target[chosen] - middle
        unit = _typical_distance(few)
        best = max(
            (
                (*_best_noise(_kernel(few, few, length * unit, share), wanted), length * unit, share)
                for share in _LINEAR_SHARES
                for length in (_LENGTHS if share < 1 else (1.0,))
            ),
            key=lambda tried: tried[0],
        )
        evidence, noise, variance, length, share = best
        inverse = np.linalg.inv(_kernel(inputs, inputs, length, share) + noise * np.eye(len(target)))
        coefficients = inverse @ (target - middle)
        held_out = target - coefficients / np.diag(inverse)
        return cls(
            inputs=inputs,
            coefficients=coefficients,
            centre=middle,
            length=length,
            linear_share=share,
            variance=variance,
            noise=noise,
            evidence=evidence,
            held_out=held_out,
        )

    def predict(self, inputs: Floats) -> Floats:
        """Mean at rows x features."""
        return self.centre + _kernel(inputs, self.inputs, self.length, self.linear_share) @ self.coefficients

    def description(self) -> dict[str, Any]:
        """Everything that is no array."""
        names = ("centre", "length", "linear_share", "variance", "noise", "evidence")
        return {name: float(getattr(self, name)) for name in names}

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Rows and their coefficients."""
        return {"inputs": self.inputs, "coefficients": self.coefficients, "held_out": self.held_out}


def _kernel(rows: Floats, others: Floats, length: float, linear_share: float) -> Floats:
    products = rows @ others.T
    total = linear_share * products / rows.shape[1]
    if linear_share < 1:
        ours, theirs = np.einsum("ij,ij->i", rows, rows), np.einsum("ij,ij->i", others, others)
        halves = np.minimum(products - 0.5 * (ours[:, None] + theirs[None]), 0)
        total = total + (1 - linear_share) * np.exp(halves / length**2)
    return np.asarray(total)


def _typical_distance(rows: Floats) -> float:
    centred = rows - rows.mean(axis=0)
    return float(np.sqrt(2 * (centred**2).sum(axis=1).mean())) + 1e-9


def _best_noise(kernel: Floats, wanted: Floats) -> tuple[float, float, float]:
    """Best log evidence over relative noises, that noise, and the variance of the function that goes with it."""
    values, vectors = np.linalg.eigh(kernel)
    projected = (vectors.T @ wanted) ** 2
    spectra = np.maximum(values, 0)[None] + _NOISES[:, None]
    variances = np.mean(projected / spectra, axis=1) + 1e-12
    count = len(wanted)
    # A weak prior on the noise keeps a handful of rows from being interpolated.
    evidences = -0.5 * (count * np.log(variances) + np.log(spectra).sum(axis=1)) - 0.1 * np.log(_NOISES / 0.03) ** 2
    best = int(np.argmax(evidences))
    return float(evidences[best]), float(_NOISES[best]), float(variances[best])
