"""TabNet's sequential attention as an embedding, with settings under which a few hundred rows do train.

pytorch-tabnet's defaults are batches of 1024 with the last one dropped: with fewer rows nothing is trained, silently.
"""

import warnings
from typing import Any, Self

import numpy as np
import torch
from numpy.typing import NDArray
from pytorch_tabnet.tab_network import TabNet
from torch import Tensor, nn

from perf_assets.features.samples import Floats
from perf_assets.models.common import archive
from perf_assets.models.common.threads import keep_torch_in_budget

_HELD_OUT = 0.15
_LARGEST_BATCH = 1024
_SPARSITY = 1e-3


def batch_size(rows: int) -> int:
    """Largest power of two that is at most a quarter of the rows, and at most 1024."""
    return min(_LARGEST_BATCH, 1 << max(1, int(np.log2(max(rows, 8) / 4))))


class TabNetEmbedding:
    """Sum over decision steps of the encoder's ReLU outputs, network in evaluation mode."""

    def __init__(
        self,
        *,
        seed: int = 0,
        width: int = 8,
        steps: int = 3,
        epochs: int = 40,
        patience: int = 10,
        learning_rate: float = 2e-2,
        inputs: int = 0,
        outputs: int = 0,
    ) -> None:
        self.losses: list[float] = []
        self._settings = {
            "seed": seed,
            "width": width,
            "steps": steps,
            "epochs": epochs,
            "patience": patience,
            "learning_rate": learning_rate,
        }
        self._shape = {"inputs": inputs, "outputs": outputs}
        self._net: TabNet | None = None

    def fit(self, features: Floats, targets: Floats) -> Self:
        """Train on most rows and stop when the others get no better; the best weights are kept."""
        keep_torch_in_budget()
        torch.manual_seed(int(self._settings["seed"]))
        centre, spread = targets.mean(axis=0), targets.std(axis=0) + 1e-9
        inputs = torch.tensor(features, dtype=torch.float32)
        wanted = torch.tensor((targets - centre) / spread, dtype=torch.float32)
        self._shape = {"inputs": features.shape[1], "outputs": targets.shape[1]}
        order = torch.randperm(len(inputs))
        count = max(1, int(_HELD_OUT * len(order)))
        held_out, train = order[:count], order[count:]
        net = self._net = self._build(batch_size(len(train)))
        self._train(net, inputs[train], wanted[train], inputs[held_out], wanted[held_out])
        net.eval()
        return self

    def transform(self, features: Floats) -> Floats:
        """Rows x width."""
        assert self._net is not None, "fit first"
        with torch.no_grad():
            network = self._net.tabnet
            outputs, _ = network.encoder(self._net.embedder(torch.tensor(features, dtype=torch.float32)))
        return np.asarray(torch.stack(outputs).sum(dim=0).numpy(), float)

    def masks(self, features: Floats) -> Floats:
        """Rows x features: how much each feature of each row was attended to; every row sums to 1."""
        assert self._net is not None, "fit first"
        with torch.no_grad():
            explained, _ = self._net.forward_masks(torch.tensor(features, dtype=torch.float32))
        values = np.asarray(explained.numpy(), float)
        shares: Floats = values / np.maximum(values.sum(axis=1, keepdims=True), 1e-12)
        return shares

    def description(self) -> dict[str, Any]:
        """Settings and shape."""
        return {"kind": "tabnet", **self._settings, **self._shape}

    def arrays(self) -> dict[str, NDArray[Any]]:
        """The network's weights."""
        assert self._net is not None, "fit first"
        return {f"net.{name}": tensor.numpy() for name, tensor in self._net.state_dict().items()}

    def restore(self, arrays: dict[str, NDArray[Any]]) -> Self:
        """Build the network again and load its weights."""
        self._net = self._build(_LARGEST_BATCH)
        weights = {name: torch.tensor(array) for name, array in archive.part("net.", arrays).items()}
        self._net.load_state_dict(weights)
        self._net.eval()
        return self

    def _build(self, batch: int) -> TabNet:
        width = int(self._settings["width"])
        inputs = self._shape["inputs"]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return TabNet(
                inputs,
                self._shape["outputs"],
                n_d=width,
                n_a=width,
                n_steps=int(self._settings["steps"]),
                gamma=1.3,
                n_independent=1,
                n_shared=1,
                virtual_batch_size=min(256, batch),
                group_attention_matrix=torch.eye(inputs),
            )

    def _train(self, net: TabNet, inputs: Tensor, wanted: Tensor, held_inputs: Tensor, held_wanted: Tensor) -> None:
        optimiser = torch.optim.Adam(net.parameters(), self._settings["learning_rate"])
        size = batch_size(len(inputs))
        best, best_weights, waited = float("inf"), None, 0
        for _ in range(int(self._settings["epochs"])):
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
            score = self._score(net, held_inputs, held_wanted)
            waited += 1
            if score < best:
                best, waited = score, 0
                best_weights = {name: tensor.clone() for name, tensor in net.state_dict().items()}
            if waited >= int(self._settings["patience"]):
                break
        if best_weights is not None:
            net.load_state_dict(best_weights)

    @staticmethod
    def _score(net: TabNet, inputs: Tensor, wanted: Tensor) -> float:
        net.eval()
        with torch.no_grad():
            return float(nn.functional.mse_loss(net(inputs)[0], wanted))
