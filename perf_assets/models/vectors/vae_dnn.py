"""Nichols, Yeom and Bhatele's model of relative-performance vectors, trained in their stages.

1. calibration: the sigma-VAE on the rows of CPUs alone, which sets the decoder and its scale;
2. all rows, the weight of the divergence ramped from 0 to 1;
3. joint: the regression loss of the DNN is added, so that the latent vector keeps what times depend on;
4. the encoder is frozen, and the DNN learns from the mean of the latent vector until held-out configurations get worse.
"""

import math
from collections.abc import Callable, Mapping
from copy import deepcopy
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from perf_assets.core.vector_settings import VaeDnnSettings
from perf_assets.features.samples import Floats, Indices
from perf_assets.features.standardise import Scaler
from perf_assets.features.vectors import VectorSamples, centred
from perf_assets.models.common.archive import Stored
from perf_assets.models.common.threads import keep_torch_in_budget

_LEAST_LOG_SIGMA = -6.0


class SigmaVae(nn.Module):
    """Encoder, decoder, and the logarithm of the decoder's scale."""

    def __init__(self, features: int, machines: int, latent: int, hidden: int) -> None:
        super().__init__()
        self.encoder = nn.Sequential(
            nn.Linear(2 * features + machines, hidden), nn.SiLU(), nn.Linear(hidden, hidden), nn.SiLU()
        )
        self.mean = nn.Linear(hidden, latent)
        self.log_variance = nn.Linear(hidden, latent)
        self.decoder = nn.Sequential(
            nn.Linear(latent, hidden), nn.SiLU(), nn.Linear(hidden, hidden), nn.SiLU(), nn.Linear(hidden, features)
        )
        self.log_sigma = nn.Parameter(torch.zeros(()))

    def encode(self, values: Tensor, measured: Tensor, machine: Tensor) -> tuple[Tensor, Tensor]:
        """Mean and log variance of the latent vector of each run; values that were not measured are 0."""
        hidden = self.encoder(torch.cat([values, 1 - measured, machine], dim=1))
        return self.mean(hidden), self.log_variance(hidden).clamp(-8, 8)

    def loss(self, values: Tensor, measured: Tensor, machine: Tensor, kl_weight: float) -> tuple[Tensor, Tensor]:
        """Negative evidence bound of a batch (mean over runs), and the latent vectors that were drawn."""
        mean, log_variance = self.encode(values, measured, machine)
        latent = mean + torch.randn_like(mean) * torch.exp(log_variance / 2)
        log_sigma = soft_clip(self.log_sigma, _LEAST_LOG_SIGMA)
        errors = (self.decoder(latent) - values) / log_sigma.exp()
        likelihood = (measured * (0.5 * errors**2 + log_sigma + 0.5 * math.log(2 * math.pi))).sum(dim=1)
        divergence = 0.5 * (mean**2 + log_variance.exp() - 1 - log_variance).sum(dim=1)
        return (likelihood + kl_weight * divergence).mean(), latent


def soft_clip(value: Tensor, least: float) -> Tensor:
    """The value, bent so that it never falls below the least: a scale of 0 would explain everything."""
    return least + nn.functional.softplus(value - least)


def vector_head(latent: int, machines: int, hidden: int) -> nn.Sequential:
    """The regressor: three hidden layers, one log time for each machine."""
    return nn.Sequential(
        nn.Linear(latent, hidden),
        nn.ReLU(),
        nn.Linear(hidden, hidden),
        nn.ReLU(),
        nn.Linear(hidden, hidden),
        nn.ReLU(),
        nn.Linear(hidden, machines),
    )


_BATCH = 256
"""Largest batch; small tables are cut into more pieces, or there would be too few steps."""
_LEAST_STEPS = 16
_HELD_OUT = 0.1
"""Share of configurations that early stopping looks at."""


@dataclass(frozen=True, eq=False)
class VaeDnn(Stored):
    """Encoder and regressor; predicts centred log times."""

    settings: VaeDnnSettings
    machines: tuple[str, ...]
    scaler: Scaler
    centre: Floats
    """Mean of each machine."""
    spread: float
    vae: Mapping[str, NDArray[Any]]
    """Weights of the variational autoencoder."""
    dnn: Mapping[str, NDArray[Any]]
    """Weights of the regressor."""

    @classmethod
    def fit(cls, samples: VectorSamples, settings: VaeDnnSettings | None = None, seed: int = 0) -> "VaeDnn":
        """Run the four stages."""
        keep_torch_in_budget()
        torch.manual_seed(seed)
        settings = settings or VaeDnnSettings()
        scaler = Scaler.fit(samples.features)
        targets = centred(samples.log_seconds)
        # A machine that ran nothing yet, because it is new, has the mean of all.
        centre = np.nansum(targets, axis=0) / np.maximum(np.isfinite(targets).sum(axis=0), 1)
        spread = float(np.nanstd(targets - centre)) + 1e-6
        known = np.isfinite(targets)[samples.row]
        data = _Data(
            *_inputs(samples, scaler, samples.machines),
            torch.tensor(np.nan_to_num((targets - centre) / spread)[samples.row], dtype=torch.float32),
            torch.tensor(known, dtype=torch.float32),
        )
        nets = _Nets(settings, data.values.shape[1], len(samples.machines))
        held_out = _held_out(samples, seed)
        learning = np.flatnonzero(~held_out)
        on_cpu = learning[samples.is_cpu[learning]]
        nets.train_vae(data, on_cpu if len(on_cpu) else learning, learning)
        nets.train_jointly(data, learning)
        nets.train_dnn(data, learning, np.flatnonzero(held_out))
        vae, dnn = ({n: t.numpy() for n, t in net.state_dict().items()} for net in (nets.vae, nets.dnn))
        return cls(
            settings=settings,
            machines=samples.machines,
            scaler=scaler,
            centre=centre,
            spread=spread,
            vae=vae,
            dnn=dnn,
        )

    def predict(self, samples: VectorSamples) -> Floats:
        """Samples x machines: log times less the level of the configuration."""
        with torch.no_grad():
            latent = self._nets.vae.encode(*_inputs(samples, self.scaler, self.machines))[0]
            standardised = self._nets.dnn(latent).numpy()
        return np.asarray(standardised * self.spread + self.centre, float)

    @property
    def log_sigma(self) -> float:
        """Logarithm of the decoder's learned scale, in standard deviations of the features."""
        return float(self.vae["log_sigma"])

    @cached_property
    def _nets(self) -> "_Nets":
        nets = _Nets(self.settings, len(self.scaler.mean), len(self.machines))
        for net, weights in ((nets.vae, self.vae), (nets.dnn, self.dnn)):
            net.load_state_dict({name: torch.tensor(array) for name, array in weights.items()})
        return nets


def _inputs(samples: VectorSamples, scaler: Scaler, machines: tuple[str, ...]) -> tuple[Tensor, Tensor, Tensor]:
    values, measured = scaler.transform(samples.features), np.isfinite(samples.features)
    # A machine that is not known has no place: all zeros.
    machine = np.array([[name == known for known in machines] for name in samples.machines])[samples.source]
    return tuple(torch.tensor(part, dtype=torch.float32) for part in (values, measured, machine))  # type: ignore[return-value]


class _Nets:
    """Both nets and their training."""

    def __init__(self, settings: VaeDnnSettings, features: int, machines: int) -> None:
        self.settings = settings
        self.vae = SigmaVae(features, machines, settings.latent, settings.vae_hidden)
        self.dnn = vector_head(settings.latent, machines, settings.dnn_hidden)

    def train_vae(self, data: "_Data", on_cpu: Indices, every: Indices) -> None:
        """Stages 1 and 2."""
        optimiser = torch.optim.Adam(self.vae.parameters(), self.settings.learning_rate)
        for _ in range(self.settings.calibration_epochs):
            _epoch(on_cpu, optimiser, lambda batch: self.vae.loss(*data.inputs(batch), 0.0)[0])
        for epoch in range(self.settings.ramp_epochs):
            weight = (epoch + 1) / self.settings.ramp_epochs
            _epoch(every, optimiser, lambda batch, weight=weight: self.vae.loss(*data.inputs(batch), weight)[0])  # type: ignore[misc]

    def train_jointly(self, data: "_Data", rows: Indices) -> None:
        """Stage 3: a feature and a target count the same."""
        both = [*self.vae.parameters(), *self.dnn.parameters()]
        optimiser = torch.optim.Adam(both, self.settings.learning_rate)

        def loss(batch: Tensor) -> Tensor:
            evidence, latent = self.vae.loss(*data.inputs(batch), 1.0)
            return evidence + data.values.shape[1] * data.error(self.dnn(latent), batch)

        for _ in range(self.settings.joint_epochs):
            _epoch(rows, optimiser, loss, self.settings.rows_an_epoch)

    def train_dnn(self, data: "_Data", rows: Indices, held_out: Indices) -> None:
        """Stage 4, with early stopping; the step size falls to 0."""
        with torch.no_grad():
            latent = self.vae.encode(*data.inputs(torch.arange(len(data.values))))[0]
        optimiser = torch.optim.AdamW(self.dnn.parameters(), self.settings.learning_rate, weight_decay=1e-3)
        falling = torch.optim.lr_scheduler.CosineAnnealingLR(optimiser, self.settings.most_dnn_epochs)
        tested = torch.from_numpy(held_out)
        best, best_error, waited = self.dnn.state_dict(), float("inf"), 0
        for _ in range(self.settings.most_dnn_epochs):
            _epoch(rows, optimiser, lambda b: data.error(self.dnn(latent[b]), b), self.settings.rows_an_epoch)
            falling.step()
            with torch.no_grad():
                error = float(data.error(self.dnn(latent[tested]), tested))
            waited = 0 if error < best_error else waited + 1
            if error < best_error:
                best, best_error = deepcopy(self.dnn.state_dict()), error
            if waited >= self.settings.patience:
                break
        self.dnn.load_state_dict(best)


@dataclass(frozen=True)
class _Data:
    """All samples as tensors."""

    values: Tensor
    measured: Tensor
    machine: Tensor
    targets: Tensor
    known: Tensor
    """1 where the target was measured."""

    def inputs(self, rows: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Inputs of the VAE."""
        return self.values[rows], self.measured[rows], self.machine[rows]

    def error(self, predicted: Tensor, rows: Tensor) -> Tensor:
        """Huber loss summed over the machines that were measured, mean over samples."""
        each = nn.functional.huber_loss(predicted, self.targets[rows], reduction="none", delta=0.5)
        return (self.known[rows] * each).sum(dim=1).mean()


def _epoch(
    rows: Indices, optimiser: torch.optim.Optimizer, loss: Callable[[Tensor], Tensor], most: int | None = None
) -> None:
    """One pass over the rows, or over a random part of them."""
    order = torch.from_numpy(rows)[torch.randperm(len(rows))][:most]
    for batch in torch.split(order, min(_BATCH, max(1, len(order) // _LEAST_STEPS))):
        optimiser.zero_grad()
        loss(batch).backward()  # type: ignore[no-untyped-call]
        optimiser.step()


def _held_out(samples: VectorSamples, seed: int) -> "np.ndarray[tuple[int], np.dtype[np.bool_]]":
    """Samples of a tenth of the configurations, at least one."""
    count = len(samples.configurations)
    chosen = np.random.default_rng(seed).permutation(count)[: max(1, round(_HELD_OUT * count))]
    return np.isin(samples.row, chosen)
