"""Networks that embed samples: TabNet's sequential attention, and small dense ones.

pytorch-tabnet's defaults are batches of 1024 with the last one dropped: with fewer rows nothing is trained, silently.
The settings here are such that a few hundred rows do train.
"""

import warnings
from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any, ClassVar, Self

import numpy as np
import torch
from numpy.typing import NDArray
from pytorch_tabnet.tab_network import TabNet
from torch import Tensor, nn

from perf_assets.features.samples import Floats
from perf_assets.models.common.threads import keep_torch_in_budget

_HELD_OUT = 0.15
_LARGEST_BATCH, _DENSE_BATCH = 1024, 256
_SPARSITY = 1e-3


class EmbeddingNet(ABC):
    """A network whose inner layer is the embedding, with its settings and shape."""

    DEFAULTS: ClassVar[Mapping[str, float]]

    def __init__(self, settings: Mapping[str, float]) -> None:
        self.settings = {**self.DEFAULTS, **settings}
        self.losses: list[float] = []
        self._net: Any = None

    def fit(self, features: Floats, targets: Floats) -> Self:
        """Train on rows x features and rows x outputs."""
        keep_torch_in_budget()
        torch.manual_seed(self._count("seed"))
        centre, spread = targets.mean(axis=0), targets.std(axis=0) + 1e-9
        inputs = torch.tensor(features, dtype=torch.float32)
        wanted = torch.tensor((targets - centre) / spread, dtype=torch.float32)
        self.settings |= {"inputs": features.shape[1], "outputs": targets.shape[1]}
        self._train(inputs, wanted)
        self._net.eval()
        return self

    def weights(self) -> dict[str, NDArray[Any]]:
        """Weights of the net by name."""
        return {name: tensor.numpy() for name, tensor in self._net.state_dict().items()}

    def with_weights(self, weights: Mapping[str, NDArray[Any]]) -> Self:
        """Build the network again and load its weights."""
        self._net = self._build()
        self._net.load_state_dict({name: torch.tensor(array) for name, array in weights.items()})
        self._net.eval()
        return self

    def _count(self, name: str) -> int:
        return int(self.settings[name])

    @abstractmethod
    def transform(self, features: Floats) -> Floats:
        """Rows x width, network in evaluation mode."""

    @abstractmethod
    def _build(self) -> nn.Module: ...

    @abstractmethod
    def _train(self, inputs: Tensor, wanted: Tensor) -> None: ...


def batch_size(rows: int) -> int:
    """Largest power of two that is at most a quarter of the rows, and at most 1024."""
    return min(_LARGEST_BATCH, 1 << max(1, int(np.log2(max(rows, 8) / 4))))


class TabNetEmbedding(EmbeddingNet):
    """Sum over decision steps of the encoder's ReLU outputs."""

    DEFAULTS: ClassVar = {"seed": 0, "width": 8, "steps": 3, "epochs": 40, "patience": 10, "learning_rate": 2e-2}

    def transform(self, features: Floats) -> Floats:
        """Rows x width."""
        with torch.no_grad():
            network = self._net.tabnet
            outputs, _ = network.encoder(self._net.embedder(torch.tensor(features, dtype=torch.float32)))
        return np.asarray(torch.stack(outputs).sum(dim=0).numpy(), float)

    def masks(self, features: Floats) -> Floats:
        """Rows x features: how much each feature of each row was attended to; every row sums to 1."""
        with torch.no_grad():
            explained, _ = self._net.forward_masks(torch.tensor(features, dtype=torch.float32))
        values = np.asarray(explained.numpy(), float)
        shares: Floats = values / np.maximum(values.sum(axis=1, keepdims=True), 1e-12)
        return shares

    def _build(self, batch: int = _LARGEST_BATCH) -> TabNet:
        width, inputs = self._count("width"), self._count("inputs")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return TabNet(
                inputs,
                self._count("outputs"),
                n_d=width,
                n_a=width,
                n_steps=self._count("steps"),
                gamma=1.3,
                n_independent=1,
                n_shared=1,
                virtual_batch_size=min(256, batch),
                group_attention_matrix=torch.eye(inputs),
            )

    def _train(self, inputs: Tensor, wanted: Tensor) -> None:
        """Train on most rows and stop when the others get no better; the best weights are kept."""
        order = torch.randperm(len(inputs))
        count = max(1, int(_HELD_OUT * len(order)))
        held_out, train = order[:count], order[count:]
        size = batch_size(len(train))
        net = self._net = self._build(size)
        optimiser = torch.optim.Adam(net.parameters(), self.settings["learning_rate"])
        inputs, wanted, held_inputs, held_wanted = inputs[train], wanted[train], inputs[held_out], wanted[held_out]
        best, best_weights, waited = float("inf"), None, 0
        for _ in range(self._count("epochs")):
            net.train()
            total = 0.0
            batches = [b for b in torch.split(torch.randperm(len(inputs)), size) if len(b) > 1]
            for batch in batches:
                optimiser.zero_grad()
                output, sparsity = net(inputs[batch])
                loss = nn.functional.mse_loss(output, wanted[batch]) - _SPARSITY * sparsity
                loss.backward()
                nn.utils.clip_grad_norm_(net.parameters(), 1.0)
                optimiser.step()
                total += float(loss.detach()) * len(batch)
            self.losses.append(total / sum(map(len, batches)))
            net.eval()
            with torch.no_grad():
                score = float(nn.functional.mse_loss(net(held_inputs)[0], held_wanted))
            waited += 1
            if score < best:
                best, waited = score, 0
                best_weights = {name: tensor.clone() for name, tensor in net.state_dict().items()}
            if waited >= self._count("patience"):
                break
        if best_weights is not None:
            net.load_state_dict(best_weights)


class _DenseNet(EmbeddingNet):
    """Encoder and decoder of one hidden layer each."""

    DEFAULTS: ClassVar = {"seed": 0, "width": 8, "hidden": 48, "epochs": 60}

    def transform(self, features: Floats) -> Floats:
        """Rows x width."""
        with torch.no_grad():
            hidden = self._net["encoder"](torch.tensor(features, dtype=torch.float32))
        return np.asarray(hidden[:, : self._count("width")].numpy(), float)

    def _build(self) -> nn.ModuleDict:
        encoder = nn.Sequential(nn.Linear(self._count("inputs"), self._count("hidden")), nn.SiLU(), *self._encoded())
        return nn.ModuleDict({"encoder": encoder, "decoder": self._decoder()})

    def _encoded(self) -> list[nn.Module]:
        """Layers that end in the embedding."""
        return [nn.Linear(self._count("hidden"), self._count("width"))]

    def _decoder(self) -> nn.Module:
        """Layers that lead from the embedding to the inputs."""
        width, hidden = self._count("width"), self._count("hidden")
        return nn.Sequential(nn.Linear(width, hidden), nn.SiLU(), nn.Linear(hidden, self._count("inputs")))

    def _train(self, inputs: Tensor, wanted: Tensor) -> None:
        """Minimise the loss with AdamW."""
        net = self._net = self._build()
        optimiser = torch.optim.AdamW(net.parameters(), 3e-3, weight_decay=1e-3)
        for _ in range(self._count("epochs")):
            parts = []
            for batch in torch.split(torch.randperm(len(inputs)), _DENSE_BATCH):
                optimiser.zero_grad()
                loss = self._loss(inputs[batch], wanted[batch])
                loss.backward()  # type: ignore[no-untyped-call]
                optimiser.step()
                parts.append(float(loss.detach()) * len(batch))
            self.losses.append(sum(parts) / len(inputs))

    @abstractmethod
    def _loss(self, inputs: Tensor, targets: Tensor) -> Tensor:
        """Loss that training minimises."""


class HiddenLayer(_DenseNet):
    """Last hidden layer of a network that predicts the targets."""

    def _encoded(self) -> list[nn.Module]:
        return [*super()._encoded(), nn.ReLU()]

    def _decoder(self) -> nn.Module:
        return nn.Linear(self._count("width"), self._count("outputs"))

    def _loss(self, inputs: Tensor, targets: Tensor) -> Tensor:
        return nn.functional.mse_loss(self._net["decoder"](self._net["encoder"](inputs)), targets)


class AutoEncoder(_DenseNet):
    """Bottleneck of a network that reproduces its input; targets are not looked at."""

    def _loss(self, inputs: Tensor, targets: Tensor) -> Tensor:
        return nn.functional.mse_loss(self._net["decoder"](self._net["encoder"](inputs)), inputs)


class VariationalAutoEncoder(_DenseNet):
    """Mean of the latent distribution; targets are not looked at."""

    def _encoded(self) -> list[nn.Module]:
        return [nn.Linear(self._count("hidden"), 2 * self._count("width"))]

    def _loss(self, inputs: Tensor, targets: Tensor) -> Tensor:
        mean, log_variance = self._net["encoder"](inputs).chunk(2, dim=1)
        log_variance = log_variance.clamp(-8, 8)
        latent = mean + torch.randn_like(mean) * torch.exp(log_variance / 2)
        divergence = 0.5 * (mean**2 + log_variance.exp() - 1 - log_variance).sum(dim=1).mean() / inputs.shape[1]
        reconstruction = nn.functional.mse_loss(self._net["decoder"](latent), inputs)
        return reconstruction + torch.as_tensor(divergence)


NETS: dict[str, type[EmbeddingNet]] = {
    "tabnet": TabNetEmbedding,
    "nn": HiddenLayer,
    "ae": AutoEncoder,
    "vae": VariationalAutoEncoder,
}
"""Networks by the kind of embedding."""
