"""Attention over benchmark kernels: a run behaves on a new machine like the kernels it resembles.

    log relative_time(x, S->T) = sum_k softmax_k(q(x) . key_k / sqrt(d)) log(t_k,T / t_k,S) + b(x) . [relative AMM, 1]

x is the run's sample on S, key_k comes from benchmark row k on S, and the values are measured ratios, so a machine
that was not in training needs nothing but its benchmark. The weights do not depend on T: one pass predicts all targets.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import torch
from numpy.typing import NDArray
from pydantic import BaseModel
from torch import Tensor, nn

from perf_assets.features.samples import Examples, Floats, Indices, Mask, PairedSamples, balanced_weights
from perf_assets.features.standardise import Scaler, fit_scaler
from perf_assets.models.amm.relative import ROWS_PER_BENCHMARK, RelativeAmm
from perf_assets.models.common.archive import Stored
from perf_assets.models.common.threads import keep_torch_in_budget


class AttentionSettings(BaseModel, frozen=True, extra="forbid"):
    """How the nets look and learn."""

    hidden: int = 48
    width: int = 16
    correction: int = 8
    dropout: float = 0.1
    counter_dropout: float = 0.35
    """Share of counters that a step does not see: who leans on a single counter fails on the next program."""
    steps: int = 250
    rows_a_step: int = 64
    """Runs of each source machine in a step; each is compared with all targets."""
    learning_rate: float = 5e-3
    weight_decay: float = 1e-2
    huber: float = 0.1
    members: int = 4
    """Nets of the ensemble; they differ in their seed."""


class _AttentionNet(nn.Module):
    def __init__(self, counters: int, machine_width: int, settings: AttentionSettings) -> None:
        super().__init__()
        self.query = self._tower(counters, settings)
        self.key = self._tower(counters, settings)
        self.correction = nn.Sequential(
            nn.Linear(counters, settings.correction), nn.SiLU(), nn.Linear(settings.correction, machine_width)
        )
        self.sharpness = nn.Parameter(torch.tensor(1.0))

    def weights(self, runs: Tensor, benchmark: Tensor) -> Tensor:
        """Machines x runs x benchmark rows, from machines x runs x counters and machines x rows x counters."""
        queries, keys = self.query(runs), self.key(benchmark)
        scores = self.sharpness * queries @ keys.transpose(1, 2) / queries.shape[-1] ** 0.5
        return torch.softmax(scores, dim=2)

    def forward(self, runs: Tensor, benchmark: Tensor, ratios: Tensor, machine_vectors: Tensor) -> Tensor:
        """Source machines x runs x target machines."""
        behaves_like = self.weights(runs, benchmark) @ ratios.transpose(1, 2)
        corrected: Tensor = behaves_like + self.correction(runs) @ machine_vectors.transpose(1, 2)
        return corrected

    @staticmethod
    def _tower(counters: int, settings: AttentionSettings) -> nn.Sequential:
        return nn.Sequential(
            nn.Linear(counters, settings.hidden),
            nn.SiLU(),
            nn.Dropout(settings.dropout),
            nn.Linear(settings.hidden, settings.width),
        )


@dataclass(frozen=True, eq=False)
class BenchmarkAttention(Stored):
    """Ensemble of nets, fitted on all ordered pairs of the training machines.

    The samples it is used on must have the same counters and benchmark rows.
    """

    settings: AttentionSettings
    scaler: Scaler
    machine: RelativeAmm
    members: tuple[Mapping[str, NDArray[np.float32]], ...]
    """Weights of each net."""

    @classmethod
    def fit(
        cls, samples: PairedSamples, settings: AttentionSettings | None = None, seed: int = 0
    ) -> "BenchmarkAttention":
        """Learn from everything that can be seen in `samples`."""
        keep_torch_in_budget()
        settings = settings or AttentionSettings()
        model = cls(settings, fit_scaler(samples, with_benchmark=True), RelativeAmm.fit(samples), ())
        nets = [model._fit_net(samples, seed * settings.members + member) for member in range(settings.members)]
        weights = ({name: tensor.numpy() for name, tensor in net.state_dict().items()} for net in nets)
        return replace(model, members=tuple(weights))

    def predict(self, samples: PairedSamples, examples: Examples) -> Floats:
        """Log relative times: mean of the ensemble."""
        return np.asarray(self.predict_members(samples, examples).mean(axis=0))

    def predict_members(self, samples: PairedSamples, examples: Examples) -> Floats:
        """Members x examples: their spread says how sure the ensemble is."""
        context = self._context(samples)
        predicted = np.empty((len(self._nets), len(examples)))
        for source in np.unique(examples.source):
            chosen = np.flatnonzero(examples.source == source)
            rows, of_example = np.unique(examples.row[chosen], return_inverse=True)
            runs = self._tensor(samples.counters[source : source + 1, rows])
            with torch.no_grad():
                by_member = [
                    net(runs, *(part[source : source + 1] for part in context))[0].numpy() for net in self._nets
                ]
            predicted[:, chosen] = np.stack(by_member)[:, of_example, examples.target[chosen]]
        return predicted

    def weights(self, samples: PairedSamples, machine: int) -> Floats:
        """Configurations x benchmark rows: how much a run, measured on `machine`, behaves like each of them."""
        runs, benchmark = self._tensor(samples.counters[machine : machine + 1]), self._context(samples)[0]
        with torch.no_grad():
            by_member = [net.weights(runs, benchmark[machine : machine + 1])[0].numpy() for net in self._nets]
        return np.asarray(np.mean(by_member, axis=0), float)

    def behaves_like(self, samples: PairedSamples, machine: int) -> tuple[list[str], Floats]:
        """Benchmark applications, and configurations x share of attention that each of them gets."""
        weights = self.weights(samples, machine)
        apps = samples.apps[samples.benchmark_rows(ROWS_PER_BENCHMARK)]
        names = sorted(set(apps.tolist()))
        return names, np.stack([weights[:, apps == name].sum(axis=1) for name in names], axis=1)

    @cached_property
    def _nets(self) -> list[_AttentionNet]:
        nets = []
        for weights in self.members:
            net = _AttentionNet(len(self.scaler.mean), self.machine.width + 1, self.settings)
            net.load_state_dict({name: torch.tensor(array) for name, array in weights.items()})
            nets.append(net.eval())
        return nets

    def _tensor(self, counters: Floats) -> Tensor:
        return torch.tensor(self.scaler.transform(counters), dtype=torch.float32)

    def _context(self, samples: PairedSamples) -> tuple[Tensor, Tensor, Tensor]:
        """Benchmark counters, log ratios and pair vectors of all machines."""
        ratios = self.machine.ratios(samples)
        benchmark = self._tensor(samples.counters[:, samples.benchmark_rows(ROWS_PER_BENCHMARK)])
        vectors = self.machine.vectors(samples)
        vectors = 0.3 * np.concatenate([vectors, np.ones((*vectors.shape[:2], 1))], axis=2)
        return benchmark, torch.tensor(ratios, dtype=torch.float32), torch.tensor(vectors, dtype=torch.float32)

    def _fit_net(self, samples: PairedSamples, seed: int) -> _AttentionNet:
        torch.manual_seed(seed)
        generator = np.random.default_rng(seed)
        machines = samples.training_machines
        runs = self._tensor(samples.counters[machines])
        benchmark, ratios, vectors = self._context(samples)
        pick = np.ix_(machines, machines)
        context = (benchmark[machines], ratios[pick], vectors[pick])
        chance, wanted, is_known = self._training_runs(samples, machines)
        net = _AttentionNet(runs.shape[2], vectors.shape[2], self.settings)
        optimiser = torch.optim.AdamW(
            net.parameters(), self.settings.learning_rate, weight_decay=self.settings.weight_decay
        )
        schedule = torch.optim.lr_scheduler.OneCycleLR(
            optimiser, self.settings.learning_rate, max(self.settings.steps, 4)
        )
        for _ in range(self.settings.steps):
            rows = generator.choice(len(chance), self.settings.rows_a_step, p=chance)
            optimiser.zero_grad()
            shown = self._shown(runs.shape[2])
            predicted = net(runs[:, rows] * shown, context[0] * shown, *context[1:])
            known = is_known[:, rows]
            loss = nn.functional.huber_loss(predicted[known], wanted[:, rows][known], delta=self.settings.huber)
            loss.backward()  # type: ignore[no-untyped-call]
            optimiser.step()
            schedule.step()
        return net.eval()

    def _shown(self, counters: int) -> Tensor:
        kept = 1 - self.settings.counter_dropout
        return (torch.rand(counters) < kept) / kept

    def _training_runs(self, samples: PairedSamples, machines: Indices) -> tuple[Floats, Tensor, Tensor]:
        """Chance to be drawn of each configuration, targets (source x configuration x target), and which are known."""
        examples = samples.examples(with_benchmark=samples.learns_from_benchmark)
        chance = np.bincount(examples.row, balanced_weights(samples, examples), len(samples.configurations))
        times = samples.log_seconds[machines]
        wanted = times.T[None, :, :] - times[:, :, None]
        known: Mask = np.isfinite(wanted) & ~np.eye(len(machines), dtype=bool)[:, None, :]
        known[:, chance == 0] = False
        return chance / chance.sum(), torch.tensor(wanted, dtype=torch.float32), torch.tensor(known)
