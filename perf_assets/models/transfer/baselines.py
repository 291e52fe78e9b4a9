"""Baselines of a transfer: models of the shots alone, the source tuned in the usual ways, and oracles."""

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import torch
from torch import nn

from perf_assets.features.folds import folds_of
from perf_assets.features.samples import Floats, Indices
from perf_assets.features.standardise import Scaler, signed_log
from perf_assets.features.tables.unpaired import TransferTable, shot_scaler, standardised_logs
from perf_assets.models.common.averaged_gp import AveragedGp, Inputs
from perf_assets.models.common.small_models import FIT_SMALL, fit_deep_trees, fit_ridge, fit_xgboost
from perf_assets.models.common.threads import keep_torch_in_budget
from perf_assets.models.transfer.alignment import Alignment
from perf_assets.models.transfer.model import AlignmentCandidate, Predict, held_out_shots
from perf_assets.models.transfer.source_functions import fit_smooth
from perf_assets.models.transfer.task import TransferTask

_TUNING_STEPS = 150
_TUNING_RATE = 1e-3
_SHOT_REPEATS = 20
"""Largest weight of a shot in pooled training, where source rows are many."""

TARGET_ONLY = "target_"
TARGET_CHOICE = "target_gp"
"""The target-only model that the product is when there are no sources."""
_FOLDS = 3

Baseline = Callable[[Indices, int], Predict]


def target_baselines(target: TransferTable) -> dict[str, Baseline]:
    """Models that look at the shots only, by name."""

    def fit(name: str) -> Baseline:
        return lambda rows, seed: _target_only(target, name, rows, seed)

    return {f"{TARGET_ONLY}{name}": fit(name) for name in FIT_SMALL}


def _target_only(target: TransferTable, name: str, shots: Indices, seed: int) -> Predict:
    scaler = shot_scaler(target.counters[shots], target.is_level)

    def inputs(rows: Indices) -> Floats:
        return standardised_logs(scaler, signed_log(target.counters[rows]))

    known = inputs(shots)
    # Shots that are all alike say nothing but their mean, and trees refuse them.
    model = FIT_SMALL[name if known.shape[1] else "mean"](known, target.target[shots], seed)
    return lambda rows: model.predict(inputs(rows))


def source_baselines(task: TransferTask) -> tuple[dict[str, Baseline], dict[str, str]]:
    """Uses of the source by name, and for those that cannot be the reason; all but the first use one source's net."""
    names = task.target.counter_names
    baselines: dict[str, Baseline] = {
        "linear_probe": lambda shots, seed: _linear_probe(task, shots),
        "fine_tune": lambda shots, seed: _fine_tune(task, shots, seed),
        "ma": lambda shots, seed: AlignmentCandidate(task, task.start_kind).fit(shots, seed),
        "ma_mr": lambda shots, seed: _aligned_with_rest(task, shots, seed),
    }
    absent: dict[str, str] = {}
    if task.groups:
        baselines["source_zero_shot"] = lambda shots, seed: _zero_shot(task)
    else:
        absent["source_zero_shot"] = "no source predicts its own rows by features that the target has"
    if set(names) == set(task.sources[0].rows.counter_names):
        baselines["pooled"] = lambda shots, seed: _pooled(task, shots, seed)
    else:
        absent["pooled"] = "source and target do not have the same counters"
    return baselines, absent


def supervised(target: TransferTable, rows: Indices, seed: int) -> Predict:
    """The model that many rows of the target allow: boosted trees, a forest or a Gaussian process, by held-out error.

    The process has a length of its own for every feature, and interpolates some hundreds of rows.
    """
    known = replace(target, counters=target.counters[rows], target=target.target[rows])

    def fit_kind(kind: str, chosen: Indices) -> Callable[[Floats], Floats]:
        table = replace(known, counters=known.counters[chosen], target=known.target[chosen])
        scaler = shot_scaler(table.counters, table.is_level)
        inputs = standardised_logs(scaler, signed_log(table.counters))
        if not inputs.shape[1]:
            return lambda counters: np.full(len(counters), table.target.mean())
        if kind == "gp":
            smooth = fit_smooth(table)
            return lambda counters: smooth(signed_log(counters))
        fit = fit_deep_trees if kind == "boosting" else FIT_SMALL["extra_trees"]
        model = fit(inputs, table.target, seed)
        return lambda counters: model.predict(standardised_logs(scaler, signed_log(counters)))

    errors = {}
    for kind in ("boosting", "forest", "gp"):
        squares = [
            (fit_kind(kind, inside)(known.counters[outside]) - known.target[outside]) ** 2
            for inside, outside in folds_of(len(rows), _FOLDS, seed)
        ]
        errors[kind] = float(np.concatenate(squares).mean())
    model = fit_kind(min(errors, key=lambda kind: errors[kind]), np.arange(len(rows)))
    return lambda asked: model(target.counters[asked])


def _zero_shot(task: TransferTask) -> Predict:
    """Predictions of the sources without any change."""
    return lambda rows: task.expected[rows].mean(axis=1)


def _aligned_with_rest(task: TransferTask, shots: Indices, seed: int) -> Predict:
    """ModelX whole: M_A from its surest start, and a process of what it leaves on shots it was not fitted on (M_R)."""
    candidate = AlignmentCandidate(task, task.start_kind)
    table, held_out = task.target, held_out_shots(candidate, shots, seed)
    scaler = shot_scaler(table.counters[shots], table.is_level)

    def inputs(rows: Indices, function: Floats) -> Inputs:
        return Inputs((standardised_logs(scaler, signed_log(table.counters[rows])),), function[:, None])

    process = AveragedGp.fit(inputs(shots, held_out), table.target[shots])
    predict = candidate.fit(shots, seed)
    return lambda rows: process.predict(inputs(rows, predict(rows)))


def _start(task: TransferTask, shots: Indices) -> Alignment:
    """The first source with the first kind of start that it has, nothing fitted."""
    return task.fit_alignment(task.start_kind, shots, is_fixed=True).parts[0]


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
        standardised = tuned.standardised(start.align(signed_log(task.target.counters[rows])))
        return tuned.centre + tuned.spread * standardised

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
