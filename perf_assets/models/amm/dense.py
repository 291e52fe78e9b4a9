"""Small dense networks as embeddings: last hidden layer of a regressor, autoencoder, variational autoencoder."""

from abc import ABC, abstractmethod
from typing import Any, Self

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from perf_assets.features.samples import Floats
from perf_assets.models.common.threads import keep_torch_in_budget

_BATCH = 256


class _DenseNet(ABC):
    """Training, storing and applying; what the net is and what it loses is up to the kind."""

    kind = ""

    def __init__(self, *, seed: int = 0, width: int = 8, hidden: int = 48, epochs: int = 60, **shape: int) -> None:
        self.losses: list[float] = []
        self._settings = {"seed": seed, "width": width, "hidden": hidden, "epochs": epochs}
        self._shape = shape
        self._net: nn.ModuleDict | None = None

    def fit(self, features: Floats, targets: Floats) -> Self:
        """Minimise the loss with AdamW."""
        keep_torch_in_budget()
        torch.manual_seed(self._settings["seed"])
        centre, spread = targets.mean(axis=0), targets.std(axis=0) + 1e-9
        inputs = torch.tensor(features, dtype=torch.float32)
        wanted = torch.tensor((targets - centre) / spread, dtype=torch.float32)
        self._shape = {"inputs": features.shape[1], "outputs": targets.shape[1]}
        net = self._net = self._build()
        optimiser = torch.optim.AdamW(net.parameters(), 3e-3, weight_decay=1e-3)
        for _ in range(self._settings["epochs"]):
            parts = []
            for batch in torch.split(torch.randperm(len(inputs)), _BATCH):
                optimiser.zero_grad()
                loss = self._loss(net, inputs[batch], wanted[batch])
                loss.backward()  # type: ignore[no-untyped-call]
                optimiser.step()
                parts.append(float(loss.detach()) * len(batch))
            self.losses.append(sum(parts) / len(inputs))
        net.eval()
        return self

    def transform(self, features: Floats) -> Floats:
        """The hidden layer, in evaluation mode."""
        assert self._net is not None, "fit first"
        with torch.no_grad():
            hidden = self._net["encoder"](torch.tensor(features, dtype=torch.float32))
        return np.asarray(hidden[:, : self._settings["width"]].numpy(), float)

    def description(self) -> dict[str, Any]:
        """Settings and shape."""
        return {"kind": self.kind, **self._settings, **self._shape}

    def arrays(self) -> dict[str, NDArray[Any]]:
        """The network's weights."""
        assert self._net is not None, "fit first"
        return {name: tensor.numpy() for name, tensor in self._net.state_dict().items()}

    def restore(self, arrays: dict[str, NDArray[Any]]) -> Self:
        """Build the network again and load its weights."""
        self._net = self._build()
        self._net.load_state_dict({name: torch.tensor(array) for name, array in arrays.items()})
        self._net.eval()
        return self

    def _build(self) -> nn.ModuleDict:
        hidden, width = self._settings["hidden"], self._settings["width"]
        encoder = nn.Sequential(
            nn.Linear(self._shape["inputs"], hidden), nn.SiLU(), nn.Linear(hidden, self._encoded(width)), *self._bend()
        )
        out = self._shape["outputs" if self.kind == "nn" else "inputs"]
        decoder = nn.Linear(width, out)
        if self.kind != "nn":
            decoder = nn.Sequential(nn.Linear(width, hidden), nn.SiLU(), nn.Linear(hidden, out))  # type: ignore[assignment]
        return nn.ModuleDict({"encoder": encoder, "decoder": decoder})

    def _encoded(self, width: int) -> int:
        return width

    def _bend(self) -> list[nn.Module]:
        return []

    @abstractmethod
    def _loss(self, net: nn.ModuleDict, inputs: Tensor, targets: Tensor) -> Tensor:
        """What training makes small."""


class HiddenLayer(_DenseNet):
    """Last hidden layer of a network that predicts the targets."""

    kind = "nn"

    def _bend(self) -> list[nn.Module]:
        return [nn.ReLU()]

    def _loss(self, net: nn.ModuleDict, inputs: Tensor, targets: Tensor) -> Tensor:
        return nn.functional.mse_loss(net["decoder"](net["encoder"](inputs)), targets)


class AutoEncoder(_DenseNet):
    """Bottleneck of a network that reproduces its input; targets are not looked at."""

    kind = "ae"

    def _loss(self, net: nn.ModuleDict, inputs: Tensor, targets: Tensor) -> Tensor:
        return nn.functional.mse_loss(net["decoder"](net["encoder"](inputs)), inputs)


class VariationalAutoEncoder(_DenseNet):
    """Mean of the latent distribution; targets are not looked at."""

    kind = "vae"

    def _encoded(self, width: int) -> int:
        return 2 * width

    def _loss(self, net: nn.ModuleDict, inputs: Tensor, targets: Tensor) -> Tensor:
        mean, log_variance = net["encoder"](inputs).chunk(2, dim=1)
        log_variance = log_variance.clamp(-8, 8)
        latent = mean + torch.randn_like(mean) * torch.exp(log_variance / 2)
        divergence = 0.5 * (mean**2 + log_variance.exp() - 1 - log_variance).sum(dim=1).mean() / inputs.shape[1]
        reconstruction = nn.functional.mse_loss(net["decoder"](latent), inputs)
        return reconstruction + torch.as_tensor(divergence)
