"""Made-up machines for tests of transfer: counters and times follow from four hidden quantities."""

import numpy as np
import pandas as pd

from perf_assets.features.tables.unpaired import TransferTable, transfer_table
from perf_assets.models.transfer.source_net import SourceNetSettings

QUICK = SourceNetSettings(hidden=16, members=2, steps=300)


def machine(name: str, *, rows: int = 240, seed: int = 0, slowness: float = 1.0, prefix: str = "c") -> pd.DataFrame:
    """Twelve counters with the same meaning on every machine; `prefix` is that of their names."""
    shared, own = np.random.default_rng(99), np.random.default_rng(seed)
    hidden = own.normal(size=(rows, 4))
    mixing = shared.normal(size=(12, 4))
    levels = np.linspace(3, 20, 12)
    counters = np.expm1(np.clip(levels + hidden @ mixing.T, 0, 40))
    seconds = slowness * np.exp(hidden @ [1.0, 0.6, 0.3, 0.0] + 0.3 * np.tanh(hidden[:, 0] * hidden[:, 1]))
    frame = pd.DataFrame(counters, columns=[f"{prefix}{i}" for i in range(12)])
    return frame.assign(seconds=seconds, note=name)


def table(name: str, **settings: object) -> TransferTable:
    """The same, ready for transfer."""
    return transfer_table(name, machine(name, **settings), "seconds")  # type: ignore[arg-type]
