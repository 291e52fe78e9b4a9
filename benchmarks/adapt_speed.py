"""How long does adapting take, and how long does asking? 50 shots, 200 counters, made-up data with known structure.

`adapt_seconds` is from the shots to a chosen, fitted target model with all its candidates (source model given);
`align_seconds` is M_A alone, by Gauss-Newton in the space of the shots; `adam_seconds` is the same M_A (same start,
same penalty) by 300 epochs of Adam in PyTorch. Published for adapting: 45.83 s, for a query: 0.78 s. Predictions go
through models that MLflow has loaded, of both kinds: `paired` is what `perf-assets adapt` registers (200 shots on a
made-up fleet, questions are tables of runs), `unpaired` is the one that was just adapted (questions are arrays).
`predict_ms_single` and `predict_rows_per_second` are those of the slower kind.

Last line: one JSON object. Goals: adapt 1 s, 1 ms for one row, 100,000 rows a second. Elapsed times, but for
`..._cpu_...`, which is processor time: on a busy machine the difference is waiting.
"""

import argparse
import json
import os
import statistics
import tempfile
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import served_models
import torch
from served_models import served_paired, served_plain
from torch import nn

from perf_assets.features.samples import Floats
from perf_assets.features.standardise import signed_log
from perf_assets.features.tables.unpaired import TransferTable, standardised_logs
from perf_assets.models.common.threads import keep_torch_in_budget
from perf_assets.models.transfer.alignment import Alignment
from perf_assets.models.transfer.model import fit_product
from perf_assets.models.transfer.task import TransferTask

SHOTS, COUNTERS, ROWS, BATCH, REPEATS = 50, 200, 1000, 100_000, 5
EPOCHS, RATE = 300, 3e-3
SINGLES = 200


def machine(seed: int, slowness: float, name: str) -> TransferTable:
    """Runs with counters that follow from six hidden quantities; half of the names differ between machines."""
    shared, own = np.random.default_rng(0), np.random.default_rng(seed)
    hidden = own.normal(size=(ROWS, 6))
    mixing = np.vstack([shared.normal(size=(COUNTERS // 2, 6)), own.normal(size=(COUNTERS // 2, 6))])
    counters = np.expm1(np.clip(8 + hidden @ mixing.T + 0.05 * own.normal(size=(ROWS, COUNTERS)), 0, 40))
    target = slowness + hidden @ [1.0, 0.7, 0.4, 0.2, 0.1, 0.1] + 0.3 * np.tanh(hidden[:, 0] * hidden[:, 1])
    names = [f"c{i}" if i < COUNTERS // 2 else f"{name}{i}" for i in range(COUNTERS)]
    return TransferTable(name, tuple(names), counters, target, np.ones(ROWS, bool))


def adam(fitted: Alignment, counters: Floats, target: Floats) -> float:
    """Mean squared error of the shots after fitting the same M_A with Adam."""
    net, freedom = fitted.source.torch_net().requires_grad_(False), fitted.freedom
    logs = signed_log(counters)
    scaled = standardised_logs(fitted.scaler, logs)
    inputs = torch.tensor(scaled / np.sqrt(scaled.shape[1]), dtype=torch.float32)
    started = torch.tensor(fitted.start.apply(logs), dtype=torch.float32)
    wanted = torch.tensor((target - fitted.source.centre) / fitted.source.spread, dtype=torch.float32)
    layer = nn.Linear(inputs.shape[1], started.shape[1])
    nn.init.zeros_(layer.weight)
    nn.init.zeros_(layer.bias)
    gain, offset = nn.Parameter(torch.ones(1)), nn.Parameter(torch.zeros(1))
    optimiser = torch.optim.Adam([*layer.parameters(), gain, offset], RATE)
    for _ in range(EPOCHS):
        optimiser.zero_grad()
        aligned = (started + layer(inputs)).expand(fitted.source.members, -1, -1)
        error = ((gain * net(aligned).mean(0) + offset - wanted) ** 2).sum() / freedom.noise**2
        moved = sum((p**2).sum() for p in layer.parameters()) / max(freedom.weight, 1e-3) ** 2
        outside = ((gain - 1) / freedom.gain) ** 2 + (offset / freedom.offset) ** 2
        (error + moved + outside).sum().backward()
        optimiser.step()
    return float(error.detach()) * freedom.noise**2 / len(target) * fitted.source.spread**2


def make_small() -> None:
    """Everything so small that all of it takes seconds."""
    global SHOTS, COUNTERS, ROWS, BATCH, REPEATS, EPOCHS, SINGLES
    SHOTS, COUNTERS, ROWS, BATCH, REPEATS, EPOCHS, SINGLES = 15, 12, 100, 1000, 1, 5, 5
    served_models.MACHINES, served_models.CONFIGURATIONS, served_models.KERNELS, served_models.SHOTS = 5, 40, 12, 15


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--quick", action="store_true", help="seconds instead of minutes, figures without meaning")
    if parser.parse_args().quick:
        make_small()
    keep_torch_in_budget()
    source, target = machine(1, 0.0, "source"), machine(2, 1.5, "target")
    task = TransferTask.of([source], target)
    shots = np.random.default_rng(0).permutation(ROWS)[:SHOTS]
    fit_product(task, shots)
    whole, whole_cpu, align, by_adam = [], [], [], []
    for _ in range(REPEATS):
        started = time.process_time()
        product, seconds = timed(lambda: fit_product(task, shots))
        whole.append(seconds)
        whole_cpu.append(time.process_time() - started)
        # A task remembers the alignments that were fitted last; a new one knows nothing yet.
        fitted, seconds = timed(lambda: replace(task).fit_alignment("matched", shots))
        align.append(seconds)
    for _ in range(2):
        error, seconds = timed(lambda: adam(fitted.parts[0], target.counters[shots], target.target[shots]))
        by_adam.append(seconds)
    own_error = float(np.mean((fitted.parts[0].predict(target.counters[shots]) - target.target[shots]) ** 2))
    assert product.model is not None
    print(f"chosen: {product.chosen}")
    print(f"squared error of the shots: {own_error:.4g} by Gauss-Newton, {error:.4g} by Adam")
    result = {
        "adapt_seconds": statistics.median(whole),
        "adapt_cpu_seconds": statistics.median(whole_cpu),
        "align_seconds": statistics.median(align),
        "adam_seconds": min(by_adam),
    }
    with tempfile.TemporaryDirectory() as folder:
        os.environ["PERF_ASSETS_LAKE"] = folder
        os.environ.pop("MLFLOW_TRACKING_URI", None)
        plain = served_plain(product.model, Path(folder))
        paired, runs = served_paired()
        many = np.tile(target.counters, (BATCH // ROWS, 1))
        many_runs = pd.concat([runs] * (BATCH // len(runs) + 1), ignore_index=True)[:BATCH]
        found = {
            "unpaired": prediction_speed(plain, target.counters[:1], many),
            "paired": prediction_speed(paired, runs[:1], many_runs),
        }
    result["predict_ms_single"] = max(one["predict_ms_single"] for one in found.values())
    result["predict_rows_per_second"] = min(one["predict_rows_per_second"] for one in found.values())
    result |= {f"{kind}_{name}": value for kind, one in found.items() for name, value in one.items()}
    for name, value in result.items():
        print(f"{name:26s} {value:,.4f}")
    print(json.dumps({name: round(value, 5) for name, value in result.items()}))


def prediction_speed(model: Any, one: Any, many: Any) -> dict[str, float]:
    """Of a loaded model, for a single question and a batch."""
    started = time.process_time()
    single = statistics.median(timed(lambda: model.predict(one))[1] for _ in range(SINGLES))
    single_busy = (time.process_time() - started) / SINGLES
    started = time.process_time()
    batch = statistics.median(timed(lambda: model.predict(many))[1] for _ in range(REPEATS))
    busy = (time.process_time() - started) / REPEATS
    return {
        "predict_ms_single": 1e3 * single,
        "predict_cpu_ms_single": 1e3 * single_busy,
        "predict_rows_per_second": BATCH / batch,
        "predict_rows_per_cpu_second": BATCH / busy,
    }


def timed(work):  # type: ignore[no-untyped-def]
    """Result and seconds."""
    started = time.perf_counter()
    result = work()
    return result, time.perf_counter() - started


if __name__ == "__main__":
    main()
