"""What a transfer is compared with, beyond models of the shots: the source tuned in the usual ways, and oracles."""

from collections.abc import Callable

import numpy as np
import torch
from torch import nn

from perf_assets.features.paired import Floats, Indices
from perf_assets.features.scaling import Scaler, signed_log
from perf_assets.features.transfer_tables import TransferTable
from perf_assets.models.alignment import Alignment
from perf_assets.models.candidates import Predict, TransferTask
from perf_assets.models.small_models import fit_ridge, fit_xgboost
from perf_assets.models.source_net import SourceNet
from perf_assets.models.threads import keep_torch_in_budget

_TUNING_STEPS = 150
_TUNING_RATE = 1e-3
_SHOT_REPEATS = 20
"""How often a shot counts in pooled training, at most: source rows are many."""

Baseline = Callable[[Indices, int], Predict]


def source_baselines(task: TransferTask) -> tuple[dict[str, Baseline], dict[str, str]]:
    """Baselines by name, and for those that cannot be the reason. They use the first source."""
    names = task.target.counter_names
    found: dict[str, Baseline] = {
        "linear_probe": lambda shots, seed: _linear_probe(task, shots),
        "fine_tune": lambda shots, seed: _fine_tune(task, shots, seed),
    }
    absent: dict[str, str] = {}
    if not any(task.same):
        absent["source_zero_shot"] = "no target counter has the name or the catalogue entry of a source counter"
    if set(names) == set(task.sources[0].rows.counter_names):
        found["pooled"] = lambda shots, seed: _pooled(task, shots, seed)
    else:
        absent["pooled"] = "source and target do not have the same counters"
    return found, absent


def oracle(target: TransferTable, rows: Indices, seed: int) -> Predict:
    """The supervised model: the net that is the source model elsewhere, learned from rows of the target itself."""
    net = SourceNet.fit(target.counters[rows], target.target[rows], target.counter_names, seed=seed)
    return lambda asked: net.predict(target.counters[asked])


def _start(task: TransferTask, shots: Indices) -> Alignment:
    """The first source with the first kind of start that it has, nothing fitted."""
    return task.fit_alignment(task.start_kinds[0], shots, is_fixed=True).parts[0]


def _linear_probe(task: TransferTask, shots: Indices) -> Predict:
    """Ridge on the last hidden layer of the frozen source model."""
    start = _start(task, shots)

    def hidden(rows: Indices) -> Floats:
        return start.source.hidden(start.align(signed_log(task.target.counters[rows])))

    model = fit_ridge(hidden(shots), task.target.target[shots])
    return lambda rows: model.predict(hidden(rows))


def _fine_tune(task: TransferTask, shots: Indices, seed: int) -> Predict:
    """All weights of the source model tuned on the shots, a few small steps."""
    keep_torch_in_budget()
    torch.manual_seed(seed)
    start = _start(task, shots)
    source = start.source
    net = source.torch_net()
    inputs = torch.tensor(start.align(signed_log(task.target.counters[shots])), dtype=torch.float32)
    wanted = torch.tensor((task.target.target[shots] - source.centre) / source.spread, dtype=torch.float32)
    optimiser = torch.optim.AdamW(net.parameters(), _TUNING_RATE, weight_decay=1e-2)
    for _ in range(_TUNING_STEPS):
        optimiser.zero_grad()
        loss = nn.functional.mse_loss(
            net(inputs.expand(source.members, *inputs.shape)), wanted.expand(source.members, -1)
        )
        loss.backward()  # type: ignore[no-untyped-call]
        optimiser.step()
    tuned = source.with_weights(net)

    def predict(rows: Indices) -> Floats:
        found = tuned.standardised(start.align(signed_log(task.target.counters[rows])))
        return tuned.centre + tuned.spread * found

    return predict


def _pooled(task: TransferTask, shots: Indices, seed: int) -> Predict:
    """Boosted trees on source rows and shots together, the shots repeated."""
    source, target = task.sources[0].rows, task.target
    order = [target.counter_names.index(name) for name in source.counter_names]
    repeats = min(_SHOT_REPEATS, max(1, len(source.target) // len(shots)))
    ours = np.tile(target.counters[shots][:, order], (repeats, 1))
    counters = np.vstack([source.counters, ours])
    scaler = Scaler.fit(counters)
    wanted = np.concatenate([source.target, np.tile(target.target[shots], repeats)])
    model = fit_xgboost(scaler.transform(counters), wanted, seed)
    return lambda rows: model.predict(scaler.transform(target.counters[rows][:, order]))
