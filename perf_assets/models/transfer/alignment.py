"""M_A: an affine map from target counters to source counters, fitted through the frozen source model.

Prediction = gain * M_S(start(x) + change(x)) + offset, all in the standardised units of the source. The change, the
gain and the offset are held near 0, 1 and 0 by a quadratic penalty. There are far more weights than shots, so the
Gauss-Newton step is solved in the space of the shots: a handful of n x n systems instead of thousands of epochs.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from perf_assets.features.samples import Floats
from perf_assets.features.standardise import Scaler, signed_log
from perf_assets.features.tables.unpaired import shot_scaler, standardised_logs, varies
from perf_assets.models.transfer.alignment_starts import Start
from perf_assets.models.transfer.source_net import SourceNet

_ITERATIONS = 12
_LEAST_DECREASE = 1e-4
"""Relative decrease of the objective below which the fit has ended."""
_NOISES = (0.001, 0.01, 0.1)
_WEIGHT_SCALES = (0.0, 0.03, 0.3)
_GAIN_SCALES = (0.03, 0.3)
_OFFSET_SCALE = 1.0


@dataclass(frozen=True)
class AlignmentFreedom:
    """Freedom of a fit: prior standard deviations, in standardised units of the source."""

    weight: float
    """Penalty on the change of a source counter by all target counters together, and of its bias."""
    gain: float
    offset: float
    noise: float
    """Standard deviation of what no alignment explains."""


@dataclass(frozen=True)
class Alignment:
    """A fitted M_A with the source model it goes through."""

    source: SourceNet
    start: Start
    scaler: Scaler
    """Scaling of the target counters, from the shots."""
    change: Floats
    """Source counters x target counters that vary over the shots, standardised: added to what the start gives."""
    bias: Floats
    gain: float
    offset: float
    freedom: AlignmentFreedom
    evidence: float
    """Log likelihood of the shots' target under the start and this freedom."""

    @classmethod
    def fit(
        cls, source: SourceNet, start: Start, counters: Floats, target: Floats, *, is_fixed: bool = False
    ) -> "Alignment":
        """Fit to the shots: rows x counters as measured, and their target. A fixed one stays at its start."""
        scaler = shot_scaler(counters)
        logs = signed_log(counters)
        scaled = standardised_logs(scaler, logs)
        inputs = _Inputs(start.apply(logs), scaled / np.sqrt(max(scaled.shape[1], 1)))
        wanted = (target - source.centre) / source.spread
        freedom, evidence = choose_freedom(source, inputs, wanted)
        change, bias, gain, offset = _gauss_newton(source, inputs, wanted, freedom, 0 if is_fixed else _ITERATIONS)
        return cls(
            source=source,
            start=start,
            scaler=scaler,
            change=change,
            bias=bias,
            gain=gain,
            offset=offset,
            freedom=freedom,
            evidence=evidence,
        )

    def align(self, logs: Floats) -> Floats:
        """Standardised source counters of signed logarithms of rows x target counters."""
        return self.moved(self.start.apply(logs), standardised_logs(self.scaler, logs))

    def moved(self, started: Floats, scaled: Floats) -> Floats:
        """Standardised source counters, from where the start puts rows and their standardised target counters."""
        if not self._is_moving:
            return started
        return np.asarray(started + scaled @ self._step + self.bias)

    @cached_property
    def _is_moving(self) -> bool:
        return bool(self.change.any() or self.bias.any())

    @cached_property
    def _step(self) -> Floats:
        return np.ascontiguousarray(self.change.T / self.change.dtype.type(np.sqrt(max(self.change.shape[1], 1))))

    def output(self, hidden: Floats) -> Floats:
        """Target, from the source model's last hidden layers."""
        predicted = self.gain * self.source.from_hidden(hidden) + self.offset
        return self.source.centre + self.source.spread * predicted

    def predict(self, counters: Floats) -> Floats:
        """Target of rows of target counters as measured."""
        return self.output(self.source.hidden(self.align(signed_log(counters))))

    def weights(self) -> Floats:
        """Source counters x target counters: the whole map, both sides in standard deviations."""
        chosen = varies(self.scaler)
        whole = self.start.weights * np.where(chosen, self.scaler.spread, 0)
        whole[:, chosen] += self.change / np.sqrt(max(int(chosen.sum()), 1))
        return np.asarray(whole)


@dataclass(frozen=True)
class Aligned:
    """Source models through their alignments, weighted."""

    parts: tuple[Alignment, ...]
    weights: Floats

    def predict(self, counters: Floats) -> Floats:
        """Target of rows of target counters as measured."""
        weighted = [weight * part.predict(counters) for weight, part in zip(self.weights, self.parts, strict=True)]
        return np.asarray(np.sum(weighted, axis=0))


@dataclass(frozen=True)
class _Inputs:
    started: Floats
    """Shots x source counters: where the start puts them."""
    scaled: Floats
    """Shots x target counters, standardised, divided by the root of their number."""


def choose_freedom(source: SourceNet, inputs: _Inputs, wanted: Floats) -> tuple[AlignmentFreedom, float]:
    """The freedom under which the shots are most likely, for the model linearised at the start; and how likely."""
    first, gradient = source.with_gradient(inputs.started)
    residual = wanted - first
    tried = []
    for weight in _WEIGHT_SCALES:
        for gain in _GAIN_SCALES:
            kernel = _kernel(inputs, first, gradient, 1.0, AlignmentFreedom(weight, gain, _OFFSET_SCALE, 1.0))
            values, vectors = np.linalg.eigh(kernel)
            projected = (vectors.T @ residual) ** 2
            for noise in _NOISES:
                spectrum = np.maximum(values, 0) + noise
                evidence = -0.5 * float(np.sum(projected / spectrum + np.log(spectrum)))
                tried.append((evidence, AlignmentFreedom(weight, gain, _OFFSET_SCALE, float(np.sqrt(noise)))))
    evidence, freedom = max(tried, key=lambda one: one[0])
    return freedom, evidence - len(wanted) * float(np.log(source.spread))


def _kernel(inputs: _Inputs, output: Floats, gradient: Floats, gain: float, freedom: AlignmentFreedom) -> Floats:
    """Covariance of the shots' predictions under the prior of the map, linearised."""
    moved = (gradient @ gradient.T) * (inputs.scaled @ inputs.scaled.T + 1)
    return (
        (gain * freedom.weight) ** 2 * moved
        + freedom.gain**2 * np.outer(output, output)
        + np.float64(freedom.offset**2)
    )


def _gauss_newton(
    source: SourceNet, inputs: _Inputs, wanted: Floats, freedom: AlignmentFreedom, iterations: int
) -> tuple[Floats, Floats, float, float]:
    shape = (inputs.started.shape[1], inputs.scaled.shape[1])
    state: tuple[Floats, Floats, float, float] = (np.zeros(shape), np.zeros(shape[0]), 1.0, 0.0)
    value, output, gradient = _objective(source, inputs, wanted, state, freedom)
    for _ in range(iterations):
        proposed = _solve(inputs, wanted, state, output, gradient, freedom)
        step, is_better = 1.0, False
        while step > 0.05 and not is_better:
            tried = _between(state, proposed, step)
            tried_objective, tried_output, tried_gradient = _objective(source, inputs, wanted, tried, freedom)
            is_better = tried_objective < value
            step /= 2
        if not is_better:
            break
        has_ended = value - tried_objective < _LEAST_DECREASE * abs(value)
        state, value, output, gradient = tried, tried_objective, tried_output, tried_gradient
        if has_ended:
            break
    return state


def _objective(
    source: SourceNet,
    inputs: _Inputs,
    wanted: Floats,
    state: tuple[Floats, Floats, float, float],
    freedom: AlignmentFreedom,
) -> tuple[float, Floats, Floats]:
    """Penalised squared error, and the source model's output and gradient there."""
    change, bias, gain, offset = state
    output, gradient = source.with_gradient(inputs.started + inputs.scaled @ change.T + bias)
    error = float(np.sum((wanted - gain * output - offset) ** 2)) / freedom.noise**2
    moved = (float(np.sum(change**2)) + float(np.sum(bias**2))) / max(freedom.weight, 1e-9) ** 2
    outside = ((gain - 1) / freedom.gain) ** 2 + (offset / freedom.offset) ** 2
    return error + moved + outside, output, gradient


def _solve(
    inputs: _Inputs,
    wanted: Floats,
    state: tuple[Floats, Floats, float, float],
    output: Floats,
    gradient: Floats,
    freedom: AlignmentFreedom,
) -> tuple[Floats, Floats, float, float]:
    """Minimum of the penalised error with the source model linearised at `state`."""
    change, bias, gain, _ = state
    moved = np.einsum("ij,ij->i", gradient, inputs.scaled @ change.T + bias)
    # The linearised prediction of the prior's mean: no change, gain 1, offset 0.
    prior = output - gain * moved
    kernel = _kernel(inputs, output, gradient, gain, freedom) + freedom.noise**2 * np.eye(len(wanted))
    dual = np.linalg.solve(kernel, wanted - prior)
    pulled = freedom.weight**2 * gain * dual[:, None] * gradient
    return (
        pulled.T @ inputs.scaled,
        pulled.sum(axis=0),
        1 + freedom.gain**2 * float(dual @ output),
        freedom.offset**2 * float(dual.sum()),
    )


def _between(
    state: tuple[Floats, Floats, float, float], proposed: tuple[Floats, Floats, float, float], step: float
) -> tuple[Floats, Floats, float, float]:
    change, bias = ((1 - step) * old + step * new for old, new in zip(state[:2], proposed[:2], strict=True))
    gain, offset = ((1 - step) * old + step * new for old, new in zip(state[2:], proposed[2:], strict=True))
    return change, bias, gain, offset
