"""M_S, the differentiable source model: a small ensemble of nets on signed-log standardised counters.

Training is PyTorch's; a fitted net is plain arrays, so that predicting, and the gradients an alignment needs, are a
few matrix products.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import torch
from pydantic import BaseModel
from torch import Tensor, nn

from perf_assets.core.errors import BadInputError
from perf_assets.features.samples import Floats, Indices
from perf_assets.features.standardise import Scaler
from perf_assets.models.common.archive import Stored
from perf_assets.models.common.threads import keep_torch_in_budget

_LAYERS = ("first", "second", "last")


class SourceNetSettings(BaseModel, frozen=True, extra="forbid"):
    """Shape and training of the nets."""

    hidden: int = 48
    members: int = 3
    """Nets of the ensemble; they differ in their start and in the order of rows."""
    steps: int = 1200
    batch: int = 128
    left_out: float = 0.1
    """Share of rows that a member does not learn from, so that its error on them is known."""
    learning_rate: float = 4e-3
    weight_decay: float = 1e-2
    noise: float = 0.05
    """Spread of what is added to the standardised counters while learning: an aligned input is never exact."""
    counter_dropout: float = 0.1
    """Share of counters that a row does not show while learning: who leans on one counter fails where it differs."""


@dataclass(frozen=True, eq=False)
class SourceNet(Stored):
    """Counters of a source machine to its target, `log` or plain as the caller chose."""

    scaler: Scaler
    centre: float
    """Mean of the training rows' target."""
    spread: float
    """Standard deviation of the training rows' target."""
    weights: Mapping[str, Floats]
    """Weights of all members by layer."""
    counter_names: tuple[str, ...]
    held_out_error: float
    """Mean squared error of the standardised target on rows that a member did not learn from."""

    @classmethod
    def fit(
        cls,
        counters: Floats,
        target: Floats,
        counter_names: tuple[str, ...],
        *,
        dataset: Indices | None = None,
        settings: SourceNetSettings | None = None,
        seed: int = 0,
    ) -> "SourceNet":
        """Train on rows x counters; `dataset` says of which of several homogeneous sources a row is.

        Sources may differ by a constant (a faster machine), which is learned beside the net and then left out: an
        alignment has its own offset.
        """
        if len(target) < 2 or not counters.shape[1]:
            raise BadInputError("a source model needs at least 2 rows and 1 counter that varies")
        scaler = Scaler.fit(counters)
        centre, spread = float(target.mean()), float(target.std()) + 1e-9
        of_row = np.zeros(len(target), np.intp) if dataset is None else dataset
        inputs = torch.tensor(scaler.transform(counters), dtype=torch.float32)
        wanted = torch.tensor((target - centre) / spread, dtype=torch.float32)
        weights, error = _train(inputs, wanted, torch.tensor(of_row), settings or SourceNetSettings(), seed)
        return cls(scaler, centre, spread, weights, counter_names, error)

    def predict(self, counters: Floats) -> Floats:
        """Target of rows x counters as measured on the source."""
        return self.centre + self.spread * self.standardised(self.scaler.transform(counters))

    def standardised(self, inputs: Floats) -> Floats:
        """Standardised target of standardised inputs: mean of the members."""
        return self.from_hidden(self.hidden(inputs))

    def from_hidden(self, hidden: Floats) -> Floats:
        """Predict from what `hidden` gave."""
        weight = self.weights["last.weight"].reshape(-1) / self.members
        return np.asarray(hidden @ weight + self.weights["last.bias"].mean())

    def with_gradient(self, inputs: Floats) -> tuple[Floats, Floats]:
        """Standardised target, and its gradient by the standardised inputs (rows x counters)."""
        layers = self._layers(inputs)
        slopes = [gate + value * (1 - gate) for value, gate in layers]
        second, last = self.weights["second.weight"], self.weights["last.weight"].reshape(-1)
        back = np.hstack([b @ w.T for b, w in zip(self._by_member(last * slopes[1]), second, strict=True)])
        gradient = (back * slopes[0]) @ self._first.T / self.members
        return self.from_hidden(layers[1][0]), np.asarray(gradient)

    @property
    def members(self) -> int:
        """Nets of the ensemble."""
        return len(self.weights["first.weight"])

    def hidden(self, inputs: Floats) -> Floats:
        """Last hidden layers of all members side by side: what linear probing learns from."""
        return self._layers(inputs)[1][0]

    def torch_net(self) -> "TrainableNet":
        """Net for PyTorch, to be tuned further."""
        net = TrainableNet(self.members, self.weights["first.weight"].shape[1], self.weights["first.weight"].shape[2])
        state = {name: torch.tensor(array, dtype=torch.float32) for name, array in self.weights.items()}
        net.load_state_dict(state)
        return net

    def with_weights(self, net: "TrainableNet") -> "SourceNet":
        """Replace the weights and keep the scaling."""
        return replace(self, weights=net.as_arrays())

    @cached_property
    def _first(self) -> Floats:
        """Weights of the first layers of all members side by side."""
        return np.ascontiguousarray(np.hstack(list(self.weights["first.weight"])))

    def _by_member(self, values: Floats) -> list[Floats]:
        return np.split(values, self.members, axis=1)

    def _layers(self, inputs: Floats) -> list[tuple[Floats, Floats]]:
        """Both hidden layers of all members side by side: values and gates."""
        first = inputs @ self._first + self.weights["first.bias"].reshape(-1)
        values, gate = _silu(first)
        second = self.weights["second.weight"]
        after = np.hstack([v @ w for v, w in zip(self._by_member(values), second, strict=True)])
        after += self.weights["second.bias"].reshape(-1)
        return [(values, gate), _silu(after)]


def _silu(before: Floats) -> tuple[Floats, Floats]:
    gate = np.negative(before)
    np.minimum(gate, 40, out=gate)
    np.exp(gate, out=gate)
    gate += 1
    np.reciprocal(gate, out=gate)
    return before * gate, gate


class TrainableNet(nn.Module):
    """All members at once, as batched matrices."""

    def __init__(self, members: int, inputs: int, hidden: int) -> None:
        super().__init__()
        shapes = ((inputs, hidden), (hidden, hidden), (hidden, 1))
        for name, (rows, columns) in zip(_LAYERS, shapes, strict=True):
            self.register_parameter(f"{name}_weight", nn.Parameter(torch.randn(members, rows, columns) / rows**0.5))
            self.register_parameter(f"{name}_bias", nn.Parameter(torch.zeros(members, 1, columns)))

    def forward(self, inputs: Tensor) -> Tensor:
        """Members x rows, from members x rows x counters."""
        values = inputs
        for name in _LAYERS:
            weight, bias = self.get_parameter(f"{name}_weight"), self.get_parameter(f"{name}_bias")
            values = torch.baddbmm(bias, values, weight)
            if name != _LAYERS[-1]:
                values = nn.functional.silu(values)
        return values[:, :, 0]

    def as_arrays(self) -> dict[str, Floats]:
        """Weights of the net by name."""
        return {
            name.replace("_", "."): parameter.detach().numpy().astype(float)
            for name, parameter in self.named_parameters()
        }

    def load_state_dict(self, state_dict: Any, strict: bool = True, assign: bool = False) -> Any:
        """Weights by the names of `as_arrays`."""
        renamed = {name.replace(".", "_"): value for name, value in state_dict.items()}
        return super().load_state_dict(renamed, strict, assign)


def _train(
    inputs: Tensor, wanted: Tensor, dataset: Tensor, settings: SourceNetSettings, seed: int
) -> tuple[dict[str, Floats], float]:
    """Weights of all members, and the squared error on the rows that each leaves out."""
    keep_torch_in_budget()
    torch.manual_seed(seed)
    net = TrainableNet(settings.members, inputs.shape[1], settings.hidden)
    offsets = nn.Parameter(torch.zeros(int(dataset.max()) + 1))
    groups: list[dict[str, Any]] = [{"params": net.parameters()}, {"params": [offsets], "weight_decay": 0.0}]
    optimiser = torch.optim.AdamW(
        groups,
        settings.learning_rate,
        weight_decay=settings.weight_decay,
    )
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimiser, settings.learning_rate, settings.steps)
    size, kept = min(settings.batch, len(inputs)), 1 - settings.counter_dropout
    own_rows, left_out = _rows_of_members(len(inputs), settings)
    for _ in range(settings.steps):
        rows = own_rows.gather(1, torch.randint(own_rows.shape[1], (settings.members, size)))
        shown = torch.rand(*rows.shape, inputs.shape[1]) < kept
        noisy = (inputs[rows] + settings.noise * torch.randn(*rows.shape, inputs.shape[1])) * shown / kept
        optimiser.zero_grad()
        predicted = net(noisy) + (offsets - offsets.mean())[dataset[rows]]
        loss = nn.functional.huber_loss(predicted, wanted[rows], delta=0.3)
        loss.backward()  # type: ignore[no-untyped-call]
        optimiser.step()
        schedule.step()
    with torch.no_grad():
        predicted = net(inputs[left_out]) + (offsets - offsets.mean())[dataset[left_out]]
        error = float(((predicted - wanted[left_out]) ** 2).mean())
    return net.as_arrays(), error


def _rows_of_members(count: int, settings: SourceNetSettings) -> tuple[Tensor, Tensor]:
    """Members x rows to learn from, and members x rows left out, other ones for each member."""
    order = torch.randperm(count)
    out = max(1, min(int(settings.left_out * count), count // (settings.members + 1)))
    shifted = torch.stack([order.roll(member * out) for member in range(settings.members)])
    return shifted[:, out:] if count > out else shifted, shifted[:, :out]
