"""What adapting leaves behind: target models that are plain arrays."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from perf_assets.features.paired import Floats
from perf_assets.features.scaling import Scaler
from perf_assets.features.transfer_tables import standardised_logs
from perf_assets.models.alignment import Alignment
from perf_assets.models.small_models import SmallModel


class Rows:
    """Rows of target counters, with everything that several models of a blend compute from them, once."""

    def __init__(self, counters: Floats) -> None:
        self._counters = counters
        self._made: dict[tuple[str, int], Floats] = {}

    @cached_property
    def logs(self) -> Floats:
        """Signed logarithms."""
        logs = np.abs(self._counters)
        np.log1p(logs, out=logs)
        return np.copysign(logs, self._counters, out=logs)

    def scaled(self, scaler: Scaler) -> Floats:
        """Standardised, without the counters that the shots say nothing about."""
        return self._once("scaled", scaler, lambda: standardised_logs(scaler, self.logs))

    def aligned(self, alignment: Alignment) -> Floats:
        """Standardised source counters."""
        return self._once(
            "aligned", alignment, lambda: alignment.moved(self.started(alignment), self.scaled(alignment.scaler))
        )

    def started(self, alignment: Alignment) -> Floats:
        """The same where the alignment starts from."""
        return self._once("started", alignment.start, lambda: alignment.start.apply(self.logs))

    def through(self, alignment: Alignment) -> Floats:
        """Target by the source model."""
        return self._once("through", alignment, lambda: alignment.output(self.hidden(alignment)))

    def hidden(self, alignment: Alignment) -> Floats:
        """Last hidden layers of the source model."""
        return self._once("hidden", alignment, lambda: alignment.source.hidden(self.aligned(alignment)))

    def _once(self, what: str, of: object, make: Callable[[], Floats]) -> Floats:
        key = (what, id(of))
        if key not in self._made:
            self._made[key] = make()
        return self._made[key]


@dataclass(frozen=True)
class TargetOnly:
    """A small model on standardised target counters."""

    scaler: Scaler
    model: SmallModel

    def predict(self, rows: Rows) -> Floats:
        """Target of rows."""
        return self.model.predict(rows.scaled(self.scaler))


@dataclass(frozen=True)
class Aligned:
    """Source models through their alignments, weighted."""

    parts: tuple[Alignment, ...]
    weights: Floats

    def predict(self, rows: Rows) -> Floats:
        """Target of rows."""
        found = [w * rows.through(part) for w, part in zip(self.weights, self.parts, strict=True)]
        return np.asarray(np.sum(found, axis=0))


@dataclass(frozen=True)
class Corrected:
    """A base plus a model of what it leaves: M_S(M_A(x)) + M_R(x)."""

    base: Aligned
    scaler: Scaler
    model: SmallModel

    def predict(self, rows: Rows) -> Floats:
        """Target of rows."""
        return self.base.predict(rows) + self.model.predict(residual_inputs(self.base, self.scaler, rows))


@dataclass(frozen=True)
class Probed:
    """A small model on target counters and the source models' last hidden layers."""

    base: Aligned
    scaler: Scaler
    middle: Floats
    """Of the hidden layers, over the shots."""
    spread: float
    model: SmallModel

    def predict(self, rows: Rows) -> Floats:
        """Target of rows."""
        return self.model.predict(probe_inputs(self.base, self.scaler, self.middle, self.spread, rows))


Fitted = TargetOnly | Aligned | Corrected | Probed


def parts_of(model: Fitted) -> tuple[Alignment, ...]:
    """Alignments that a model goes through."""
    if isinstance(model, TargetOnly):
        return ()
    return model.parts if isinstance(model, Aligned) else model.base.parts


def residual_inputs(base: Aligned, scaler: Scaler, rows: Rows) -> Floats:
    """What M_R looks at: target counters, and the source counters they are aligned to."""
    return np.hstack([rows.scaled(scaler), *(rows.aligned(part) for part in base.parts)])


def probe_inputs(base: Aligned, scaler: Scaler, middle: Floats, spread: float, rows: Rows) -> Floats:
    """What a probe looks at: target counters, and hidden layers in units of their spread over the shots."""
    hidden = np.hstack([rows.hidden(part) for part in base.parts])
    return np.hstack([rows.scaled(scaler), (hidden - middle) / spread])
