"""The sigma-VAE of relative-performance vectors: counters of a run to a short latent vector.

Gaussian likelihood with one learned scale for all features (the calibrated decoder), summed over the features that were
measured; what is missing is masked there, and flagged to the encoder. The divergence is summed over the latent vector.
"""

import math

import torch
from torch import Tensor, nn

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
