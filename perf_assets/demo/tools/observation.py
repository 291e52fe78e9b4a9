"""One run of an execution as tools see it: imbalance, waiting, noise, spread over ranks and threads."""

from collections.abc import Iterable
from dataclasses import dataclass
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

from perf_assets.demo.execution import Execution
from perf_assets.demo.hardware.quantities import ALMOST_EXACT_SPREAD, HOST, HOST_INDEX, RUN_TO_RUN_SPREAD

_TOOLCHAIN_SPREAD = 0.08
"""Between machines, for each program: compilers and libraries serve some better; no data sheet shows that."""
_COMPUTE_SPREAD = 0.015
_COMPUTE_SPREAD_IN_VM = 0.04
"""Neighbours on the same host."""
_NETWORK_SPREAD = 0.10
_START_SPREAD = 0.10
_FILE_SPREAD = 0.30
_SLOW_RUN_PROBABILITY = 0.015
_SLOW_RUN_FACTORS = (1.2, 2.0)
_THREAD_SPREAD = 0.02

_SPREADS = np.array([RUN_TO_RUN_SPREAD.get(name, ALMOST_EXACT_SPREAD) for name in HOST])
_FILE_COLUMNS = [HOST_INDEX[name] for name in ("io_read_bytes", "io_written_bytes", "files_opened")]
_STALL_COLUMNS = [index for name, index in HOST_INDEX.items() if name.endswith("stall_cycles")]
_SPIN_INSTRUCTIONS_PER_CYCLE = 1.1
_SPIN_MIX = np.zeros(len(HOST))
"""Per instruction of a loop that polls for a message or for the device."""
for _name, _share in {
    "instructions": 1.0,
    "branches": 0.24,
    "mispredicted_branches": 0.0004,
    "loads": 0.31,
    "stores": 0.04,
    "integer_instructions": 0.41,
    "l1_load_misses": 0.0004,
    "instruction_cache_misses": 0.0001,
}.items():
    _SPIN_MIX[HOST_INDEX[_name]] = _share


@dataclass(frozen=True)
class Observed:
    """Quantities of one run."""

    wall_seconds: float
    host: NDArray[np.float64]
    """Shape (ranks, threads, `quantities.HOST`)."""
    device: NDArray[np.float64]
    """Shape (ranks with a GPU, `quantities.DEVICE`)."""


def generator(seed: int, names: Iterable[str]) -> np.random.Generator:
    """Independent random stream for the thing that the names identify."""
    return np.random.Generator(
        np.random.PCG64(np.random.SeedSequence([seed, *(crc32(name.encode()) for name in names)]))
    )


def rank_shares(execution: Execution, seed: int) -> NDArray[np.float64]:
    """Work of each rank against the average: a property of the decomposition, the same on every machine."""
    configuration = execution.configuration
    if configuration.ranks == 1:
        return np.ones(1)
    random = generator(seed, ("decomposition", configuration.key))
    shares = np.exp(random.normal(0.0, execution.application.imbalance, configuration.ranks))
    return np.asarray(shares / shares.mean())


def _toolchain_factor(execution: Execution, seed: int) -> float:
    names = ("toolchain", execution.spec.machine, execution.application.name)
    return float(np.exp(generator(seed, names).normal(0.0, _TOOLCHAIN_SPREAD)))


def observe(execution: Execution, run: str, seed: int) -> Observed:
    """One run; the same name and seed give the same run."""
    configuration, spec = execution.configuration, execution.spec
    ranks, threads = configuration.ranks, configuration.threads
    random = generator(seed, (spec.machine, configuration.key, run))
    shares = rank_shares(execution, seed)

    is_virtual = spec.network is None
    spread = _COMPUTE_SPREAD_IN_VM if is_virtual else _COMPUTE_SPREAD
    compute_noise, network_noise, start_noise, file_noise = np.exp(
        random.normal(0.0, 1.0, 4) * (spread, _NETWORK_SPREAD, _START_SPREAD, _FILE_SPREAD)
    )
    slow, factor = random.random(), random.uniform(*_SLOW_RUN_FACTORS)
    if slow < _SLOW_RUN_PROBABILITY:
        compute_noise *= factor
    toolchain = _toolchain_factor(execution, seed)
    compute_noise *= toolchain
    own_seconds = execution.compute_seconds * compute_noise * shares
    start_seconds = execution.start_seconds * start_noise
    file_seconds = execution.file_seconds * file_noise
    wall_seconds = float(
        start_seconds + own_seconds.max() + execution.communication_seconds * network_noise + file_seconds
    )

    thread_seconds = execution.parallel_seconds * threads + execution.serial_seconds
    serial_share = execution.serial_seconds / thread_seconds
    thread_shares = np.full((ranks, threads), (1.0 - serial_share) / threads)
    thread_shares *= np.exp(random.normal(0.0, _THREAD_SPREAD, (ranks, threads)))
    thread_shares[:, 0] += serial_share
    thread_shares /= thread_shares.sum(axis=1, keepdims=True)
    counted = execution.host * np.exp(random.normal(0.0, 1.0, len(HOST)) * _SPREADS)
    counted[_STALL_COLUMNS] *= toolchain
    host = (shares[:, None] * thread_shares)[:, :, None] * counted

    # One thread of a rank does its input and output.
    host[:, :, _FILE_COLUMNS] = 0.0
    host[:, 0, _FILE_COLUMNS] = counted[_FILE_COLUMNS]

    host_seconds = (execution.parallel_seconds + execution.serial_seconds) * compute_noise * shares
    waiting = wall_seconds - start_seconds - file_seconds - host_seconds
    clock = spec.cpu.clock_hertz
    host[:, 0, :] += (waiting * clock * _SPIN_INSTRUCTIONS_PER_CYCLE)[:, None] * _SPIN_MIX

    busy = np.zeros((ranks, threads))
    busy[:, :] = (execution.parallel_seconds * compute_noise * shares)[:, None]
    busy[:, 0] = wall_seconds - file_seconds - 0.4 * start_seconds
    host[:, :, HOST_INDEX["wall_seconds"]] = wall_seconds * (1.0 - 0.002 * random.random((ranks, threads)))
    host[:, :, HOST_INDEX["busy_seconds"]] = busy
    host[:, :, HOST_INDEX["cycles"]] = busy * clock
    switches = random.poisson(3.0 + 4.0 * busy * (3.0 if is_virtual else 1.0))
    host[:, :, HOST_INDEX["context_switches"]] = switches
    host[:, :, HOST_INDEX["migrations"]] = random.binomial(switches, 0.02)

    device_noise = np.exp(random.normal(0.0, 0.01, (ranks, 1)))
    device = execution.device * shares[:, None] * device_noise if execution.placement.gpus else np.zeros((0, 0))
    return Observed(wall_seconds, host, device)
