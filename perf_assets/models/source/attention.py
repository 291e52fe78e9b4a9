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
    """Shape and training of the nets."""

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


class _Side(nn.Module):
    """A linear layer of each member, side by side: members x rows x inputs to members x rows x outputs."""

    def __init__(self, members: int, inputs: int, outputs: int) -> None:
        super().__init__()
        bound = inputs**-0.5
        self.weight = nn.Parameter(torch.empty(members, outputs, inputs).uniform_(-bound, bound))
        self.bias = nn.Parameter(torch.empty(members, outputs).uniform_(-bound, bound))

    def forward(self, rows: Tensor) -> Tensor:
        return torch.baddbmm(self.bias[:, None], rows, self.weight.transpose(1, 2))


class _AttentionNets(nn.Module):
    """All members of the ensemble in one net: a step of small nets is mostly calls, and these are shared."""

    def __init__(self, counters: int, machine_width: int, settings: AttentionSettings) -> None:
        super().__init__()
        self.query = self._tower(counters, settings)
        self.key = self._tower(counters, settings)
        self.correction = nn.Sequential(
            _Side(settings.members, counters, settings.correction),
            nn.SiLU(),
            _Side(settings.members, settings.correction, machine_width),
        )
        self.sharpness = nn.Parameter(torch.ones(settings.members))

    def weights(self, runs: Tensor, benchmark: Tensor) -> Tensor:
        """Members x machines x runs x benchmark rows.

        From members x machines x runs x counters and members x machines x rows x counters.
        """
        queries, keys = _of_rows(self.query, runs), _of_rows(self.key, benchmark)
        sharpness = self.sharpness[:, None, None, None] / queries.shape[-1] ** 0.5
        return torch.softmax(sharpness * queries @ keys.transpose(2, 3), dim=3)

    def forward(self, runs: Tensor, benchmark: Tensor, ratios: Tensor, machine_vectors: Tensor) -> Tensor:
        """Members x source machines x runs x target machines."""
        behaves_like = self.weights(runs, benchmark) @ ratios.transpose(1, 2)
        corrected: Tensor = behaves_like + _of_rows(self.correction, runs) @ machine_vectors.transpose(1, 2)
        return corrected

    @staticmethod
    def _tower(counters: int, settings: AttentionSettings) -> nn.Sequential:
        return nn.Sequential(
            _Side(settings.members, counters, settings.hidden),
            nn.SiLU(),
            nn.Dropout(settings.dropout),
            _Side(settings.members, settings.hidden, settings.width),
        )


def _of_rows(layers: nn.Sequential, rows: Tensor) -> Tensor:
    """Output of the layers for members x machines x rows x counters."""
    applied: Tensor = layers(rows.flatten(1, 2))
    return applied.reshape(*rows.shape[:3], -1)


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
        weights = model._fit_nets(samples, seed).state_dict().items()
        of_member = ({name: tensor[m].numpy() for name, tensor in weights} for m in range(settings.members))
        return replace(model, members=tuple(of_member))

    def predict(self, samples: PairedSamples, examples: Examples) -> Floats:
        """Log relative times: mean of the ensemble."""
        return np.asarray(self.predict_members(samples, examples).mean(axis=0))

    def predict_members(self, samples: PairedSamples, examples: Examples) -> Floats:
        """Members x examples: their spread says how sure the ensemble is."""
        context = self._context(samples)
        predicted = np.empty((self.settings.members, len(examples)))
        for source in np.unique(examples.source):
            chosen = np.flatnonzero(examples.source == source)
            rows, of_example = np.unique(examples.row[chosen], return_inverse=True)
            runs = self._tensor(samples.counters[source : source + 1, rows])
            with torch.no_grad():
                benchmark, *others = (part[source : source + 1] for part in context)
                by_member = self._nets(self._for_all(runs), self._for_all(benchmark), *others)[:, 0].numpy()
            predicted[:, chosen] = by_member[:, of_example, examples.target[chosen]]
        return predicted

    def weights(self, samples: PairedSamples, machine: int) -> Floats:
        """Configurations x benchmark rows: how much a run, measured on `machine`, behaves like each of them."""
        runs, benchmark = self._tensor(samples.counters[machine : machine + 1]), self._context(samples)[0]
        with torch.no_grad():
            by_member = self._nets.weights(self._for_all(runs), self._for_all(benchmark[machine : machine + 1]))
        return np.asarray(by_member[:, 0].mean(dim=0).numpy(), float)

    def behaves_like(self, samples: PairedSamples, machine: int) -> tuple[list[str], Floats]:
        """Benchmark applications, and configurations x share of attention that each of them gets."""
        weights = self.weights(samples, machine)
        apps = samples.apps[samples.benchmark_rows(ROWS_PER_BENCHMARK)]
        names = sorted(set(apps.tolist()))
        return names, np.stack([weights[:, apps == name].sum(axis=1) for name in names], axis=1)

    @cached_property
    def _nets(self) -> _AttentionNets:
        nets = _AttentionNets(len(self.scaler.mean), self.machine.width + 1, self.settings)
        names = nets.state_dict()
        nets.load_state_dict({name: torch.tensor(np.stack([own[name] for own in self.members])) for name in names})
        return nets.eval()

    def _tensor(self, counters: Floats) -> Tensor:
        return torch.tensor(self.scaler.transform(counters), dtype=torch.float32)

    def _context(self, samples: PairedSamples) -> tuple[Tensor, Tensor, Tensor]:
        """Benchmark counters, log ratios and pair vectors of all machines."""
        ratios = self.machine.ratios(samples)
        benchmark = self._tensor(samples.counters[:, samples.benchmark_rows(ROWS_PER_BENCHMARK)])
        vectors = self.machine.vectors(samples)
        vectors = 0.3 * np.concatenate([vectors, np.ones((*vectors.shape[:2], 1))], axis=2)
        return benchmark, torch.tensor(ratios, dtype=torch.float32), torch.tensor(vectors, dtype=torch.float32)

    def _for_all(self, rows: Tensor) -> Tensor:
        """Machines x rows x counters, for each member."""
        return rows.expand(self.settings.members, *rows.shape)

    def _fit_nets(self, samples: PairedSamples, seed: int) -> _AttentionNets:
        settings, machines = self.settings, samples.training_machines
        torch.manual_seed(seed)
        # Configurations come first: picking some of them is then one copy of whole rows.
        runs = self._tensor(samples.counters[machines]).transpose(0, 1).contiguous()
        benchmark, ratios, vectors = self._context(samples)
        pick = np.ix_(machines, machines)
        context = (ratios[pick], vectors[pick])
        chance, wanted, is_known = self._training_runs(samples, machines)
        nets = _AttentionNets(runs.shape[2], vectors.shape[2], settings)
        optimiser = torch.optim.AdamW(
            nets.parameters(), settings.learning_rate, weight_decay=settings.weight_decay, fused=True
        )
        schedule = torch.optim.lr_scheduler.OneCycleLR(optimiser, settings.learning_rate, max(settings.steps, 4))
        drawn = (settings.steps, settings.members, settings.rows_a_step)
        for rows in torch.tensor(np.random.default_rng(seed).choice(len(chance), drawn, p=chance)):
            optimiser.zero_grad()
            shown = self._shown(runs.shape[2])
            predicted = nets(runs[rows].transpose(1, 2) * shown, benchmark[machines] * shown, *context)
            known = is_known[rows].transpose(1, 2)
            wrong = nn.functional.huber_loss(
                predicted, wanted[rows].transpose(1, 2), reduction="none", delta=settings.huber
            )
            # Each member learns from its own mean error; no weight belongs to two of them.
            loss = ((wrong * known).sum(dim=(1, 2, 3)) / known.sum(dim=(1, 2, 3)).clamp(min=1)).sum()
            loss.backward()  # type: ignore[no-untyped-call]
            optimiser.step()
            schedule.step()
        return nets.eval()

    def _shown(self, counters: int) -> Tensor:
        """Members x 1 x 1 x counters: 0 for those that a step does not see."""
        kept = 1 - self.settings.counter_dropout
        return (torch.rand(self.settings.members, 1, 1, counters) < kept) / kept

    def _training_runs(self, samples: PairedSamples, machines: Indices) -> tuple[Floats, Tensor, Tensor]:
        """Chance to be drawn of each configuration, targets (configuration x source x target), and which are known.

        What is not known is 0.
        """
        examples = samples.examples(with_benchmark=samples.learns_from_benchmark)
        chance = np.bincount(examples.row, balanced_weights(samples, examples), len(samples.configurations))
        times = samples.log_seconds[machines].T
        wanted = times[:, None, :] - times[:, :, None]
        known: Mask = np.isfinite(wanted) & ~np.eye(len(machines), dtype=bool)
        known[chance == 0] = False
        wanted = np.where(known, wanted, 0.0)
        return chance / chance.sum(), torch.tensor(wanted, dtype=torch.float32), torch.tensor(known)
