"""Descriptions of machines: rows of `model_amm__machines`, what they hold, and samples of machines that have one."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd

from perf_assets.core.errors import BadInputError
from perf_assets.core.tables.runs import CONFIGURATION
from perf_assets.features.fleet.samples import FleetTables, benchmark_samples
from perf_assets.features.samples import HOST, Floats, PairedSamples, physical
from perf_assets.features.standardise import signed_log

AMM, KERNEL, SHEET = "amm", "kernel", "sheet"
_LEAST_SHARE = 0.5
"""Share of the kernel runs of a model that a machine must have."""
_NEARLY_MOST = 0.9
"""Share of the most configurations in common that a machine must have to lend its kernel times."""
_KERNEL_COLUMNS = {"option": "placement", "item": "kernel", "value": "seconds_per_rep"}

_TYPES = {"problem_size": "int64", "value": "float64", "bytes_per_rep": "float64", "flops_per_rep": "float64"}


@dataclass(frozen=True, eq=False)
class Descriptions:
    """Machines as one encoder describes them."""

    encoder_version: str
    rows: pd.DataFrame
    """Columns of `model_amm__machines`."""

    @classmethod
    def of(cls, rows: pd.DataFrame, encoder_version: str) -> "Descriptions":
        """The rows of one encoder."""
        return cls(encoder_version, rows[rows["encoder_version"] == encoder_version].reset_index(drop=True))

    @property
    def machines(self) -> list[str]:
        """Physical machines that are described."""
        return sorted(map(str, self.rows["machine"].unique()))

    @property
    def kernels(self) -> pd.DataFrame:
        """Kernel times as `KERNELS_QUERY` gives them."""
        kernels = self._part(KERNEL).rename(columns=_KERNEL_COLUMNS)
        columns = ["machine", "kernel", "problem_size", "placement", "seconds_per_rep"]
        return kernels[[*columns, "bytes_per_rep", "flops_per_rep"]].reset_index(drop=True)

    @property
    def sheets(self) -> pd.DataFrame:
        """Numbers of the data sheets, one row per machine that has one."""
        wide = self._part(SHEET).pivot(index="machine", columns="item", values="value")
        sheets: pd.DataFrame = wide.rename_axis(columns=None).reset_index()
        return sheets

    @property
    def vectors(self) -> dict[str, dict[str, Floats]]:
        """AMMs by option and by the machine as programs see it."""
        part = self._part(AMM)
        ordered = part.assign(component=part["item"].astype(int)).sort_values("component", kind="stable")
        by_option: dict[str, dict[str, Floats]] = {}
        for (option, seen_as), group in ordered.groupby(["option", "seen_as"]):
            by_option.setdefault(str(option), {})[str(seen_as)] = group["value"].to_numpy(float)
        return by_option

    def tables(self, runs: pd.DataFrame) -> FleetTables:
        """Application runs beside what describes the machines."""
        return FleetTables(runs, self.kernels, self.sheets)

    def of_machines(self, machines: list[str]) -> "Descriptions":
        """Descriptions of some machines."""
        return replace(self, rows=self.rows[self.rows["machine"].isin(machines)].reset_index(drop=True))

    def updated(self, newer: "Descriptions") -> "Descriptions":
        """All machines of both; of one that both describe, the newer description."""
        kept = self.rows[~self.rows["machine"].isin(newer.machines)]
        return replace(self, rows=pd.concat([kept, newer.rows], ignore_index=True))

    def _part(self, part: str) -> pd.DataFrame:
        return self.rows[self.rows["part"] == part]


def description_rows(
    kernels: pd.DataFrame, sheets: pd.DataFrame, vectors: Mapping[str, Mapping[str, Floats]]
) -> pd.DataFrame:
    """Rows of machines that a description says: kernel times, data sheets, and AMMs by option and view."""
    names = {new: old for old, new in _KERNEL_COLUMNS.items()}
    timed = kernels.rename(columns=names).assign(part=KERNEL, seen_as=kernels["machine"])
    numbers = sheets.set_index("machine").select_dtypes("number").astype(float)
    numbers = numbers.reset_index().melt("machine", var_name="item").dropna(subset="value")
    listed = numbers.assign(part=SHEET, seen_as=numbers["machine"], option="", problem_size=0)
    parts = [
        {"machine": physical(seen_as), "seen_as": seen_as, "option": option, "item": str(component), "value": value}
        for option, by_machine in vectors.items()
        for seen_as, vector in by_machine.items()
        for component, value in enumerate(map(float, vector))
    ]
    amms = pd.DataFrame(parts).assign(part=AMM, problem_size=0)
    columns = ["machine", "part", "seen_as", "option", "item", *_TYPES]
    frames = [frame.reindex(columns=columns).astype(_TYPES) for frame in (amms, timed, listed) if len(frame)]
    rows: pd.DataFrame = pd.concat(frames, ignore_index=True)
    return rows


def with_vectors(samples: PairedSamples, descriptions: Descriptions) -> PairedSamples:
    """Samples with the AMMs of their machines; refuses where one has none."""
    amms = {}
    for option, by_machine in descriptions.vectors.items():
        missing = [name for name in samples.machines if name not in by_machine]
        if missing:
            raise BadInputError(f"{missing[0]} is not described: run 'perf-assets ingest', then 'perf-assets train'")
        amms[option] = np.stack([by_machine[name] for name in samples.machines])
    if not amms:
        raise BadInputError("no machine is described yet: run 'perf-assets train'")
    return replace(samples, amms=amms)


def with_described(samples: PairedSamples, descriptions: Descriptions) -> PairedSamples:
    """Samples with machines added, or described anew, that nothing but their description is known of.

    Kernel runs that a machine lacks are taken to depart from the fleet's mean as its others do; a machine without a
    data sheet is taken to have the fleet's mean. One with less than half of the kernel runs is refused.
    """
    for machine in descriptions.machines:
        own = descriptions.of_machines([machine])
        for name, seconds in _benchmark_of(samples, own).items():
            samples = _put(samples, name, seconds, own)
    return samples


def completed_kernels(samples: PairedSamples, own: Descriptions) -> pd.DataFrame:
    """Kernel times of a machine as `KERNELS_QUERY` gives them, of all kernel runs that `samples` knows."""
    described = _benchmark_of(samples, own)
    rows = [samples.configurations[row].rsplit(" ", 2) for row in np.flatnonzero(samples.is_benchmark)]
    frames = []
    for name, log_seconds in described.items():
        on_device = f"{name}{HOST}" in described
        frame = pd.DataFrame(rows, columns=["kernel", "problem_size", "placement"]).assign(
            machine=physical(name), seconds_per_rep=np.exp(log_seconds), bytes_per_rep=np.nan, flops_per_rep=np.nan
        )
        # What runs on a core is the same with GPUs and without, and is taken from the host.
        frame = frame[frame["placement"] == "share"] if on_device else frame
        frames.append(frame.replace({"placement": {"share": "device" if on_device else "busy_core"}}))
    return pd.concat(frames, ignore_index=True).astype({"problem_size": "int64"})


def lent_kernels(machine: str, runs: pd.DataFrame, others: pd.DataFrame, kernels: pd.DataFrame) -> pd.DataFrame:
    """Kernel times for a machine without any, as `KERNELS_QUERY` gives them: those of a machine that runs alike.

    That is one of those with nearly the most configurations in common, and of them the one whose times differ least,
    by root mean square of their log ratios; its kernel times are moved by so much. `runs` are of the machine, `others`
    and `kernels` of the others. Refuses where no configuration is shared.
    """
    on_gpus = bool((runs["gpus"] > 0).any())
    with_device = set(kernels.loc[kernels["placement"] == "device", "machine"])
    lenders = with_device if on_gpus and with_device else set(kernels["machine"])
    key = list(CONFIGURATION)
    theirs = others[others["machine"].isin(lenders)]
    pairs = theirs.merge(runs, on=key, suffixes=("", "_own"))
    pairs = pairs[(pairs["gpus"] > 0) == (pairs["gpus_own"] > 0)] if on_gpus else pairs
    if pairs.empty:
        raise BadInputError(f"none of the {len(runs)} configurations of {machine} ran on another machine")
    logs = pd.Series(np.log(pairs["wall_seconds_own"] / pairs["wall_seconds"]), pairs.index)
    ratios = logs.groupby(pairs["machine"])
    likeness = pd.DataFrame(
        {"shared": ratios.size(), "mean": ratios.mean(), "rms": (ratios.var(ddof=0) + ratios.mean() ** 2) ** 0.5}
    )
    near = likeness[likeness["shared"] >= _NEARLY_MOST * likeness["shared"].max()].sort_values("rms").iloc[0]
    lent: pd.DataFrame = kernels[(kernels["machine"] == near.name) & (on_gpus | (kernels["placement"] != "device"))]
    factor = float(np.exp(np.copysign(near["rms"], near["mean"])))
    return lent.assign(machine=machine, seconds_per_rep=lent["seconds_per_rep"] * factor)


def _benchmark_of(samples: PairedSamples, own: Descriptions) -> dict[str, Floats]:
    """Log seconds of the benchmark rows that `samples` knows, by view of a machine."""
    alone = benchmark_samples(own.kernels)
    rows = np.flatnonzero(samples.is_benchmark)
    place = {name: row for row, name in enumerate(alone.configurations)}
    known = np.array([place.get(samples.configurations[row], -1) for row in rows])
    if (known >= 0).mean() < _LEAST_SHARE:
        raise BadInputError(
            f"{', '.join(own.machines)} has {int((known >= 0).sum())} of the {len(rows)} RAJAPerf kernel runs that the "
            "source models know: run RAJAPerf with the same kernels and sizes"
        )
    mean = samples.log_seconds[:, rows].mean(axis=0)
    by_machine = {}
    for position, name in enumerate(alone.machines):
        times = np.where(known >= 0, alone.log_seconds[position, known], np.nan)
        by_machine[name] = np.where(np.isnan(times), mean + np.nanmean(times - mean), times)
    return by_machine


def _put(samples: PairedSamples, name: str, benchmark: Floats, own: Descriptions) -> PairedSamples:
    """Samples in which a machine has this benchmark; a machine that was not there comes last."""
    if name not in samples.machines:
        samples = _with_room(samples, name)
    machine, rows = samples.machines.index(name), np.flatnonzero(samples.is_benchmark)
    seconds, counters = samples.log_seconds.copy(), samples.counters.copy()
    seconds[machine, rows] = benchmark
    others = [m for m in range(len(samples.machines)) if m != machine]
    counters[machine, rows] = counters[others[0], rows] if others else counters[machine, rows]
    if "seconds_per_rep" in samples.counter_names:
        counters[machine, rows, samples.counter_names.index("seconds_per_rep")] = np.exp(benchmark)
    amms = None
    if samples.amms is not None:
        vectors = own.vectors
        amms = {option: values.copy() for option, values in samples.amms.items()}
        for option, values in amms.items():
            values[machine] = vectors[option][name]
    specification = samples.specification
    if specification is not None:
        specification = specification.copy()
        specification[machine] = _sheet(samples, name, own, specification[others])
    return replace(samples, log_seconds=seconds, counters=counters, amms=amms, specification=specification)


def _with_room(samples: PairedSamples, name: str) -> PairedSamples:
    def longer(values: Floats) -> Floats:
        return np.concatenate([values, np.full((1, *values.shape[1:]), np.nan)])

    only = samples.benchmark_only
    return replace(
        samples,
        machines=(*samples.machines, name),
        counters=longer(samples.counters),
        log_seconds=longer(samples.log_seconds),
        specification=None if samples.specification is None else longer(samples.specification),
        benchmark_only=None if only is None else np.append(only, False),
        amms=None if samples.amms is None else {option: longer(values) for option, values in samples.amms.items()},
    )


def _sheet(samples: PairedSamples, name: str, own: Descriptions, others: Floats) -> Floats:
    """Properties of a machine, logarithms of them; a host has no GPU."""
    sheets = own.sheets
    if sheets.empty:
        return np.asarray(others.mean(axis=0))
    numbers = sheets.iloc[0].reindex(list(samples.specification_names)).astype(float).fillna(0.0)
    if name.endswith(HOST):
        numbers[numbers.index.str.startswith("gpu_")] = 0.0
    return signed_log(np.asarray(numbers, np.float64))


COMPUTE, MEMORY, CACHE = "compute", "memory", "cache"
_COMPUTE_FLOPS_PER_BYTE = 1.0
"""Operations per byte from which on cores limit, not memory: a triad has 1/12, a large matrix product hundreds."""
_MEMORY_BYTES = 64 * 2**20
"""A repetition that moves more does not stay in the caches of most processors."""
_CACHE_BYTES = 8 * 2**20
"""Bytes up to which a repetition stays in the caches of one processor."""


def kernel_kinds(kernels: pd.DataFrame, configurations: Sequence[str]) -> list[str]:
    """Kind of each kernel run, named `KERNEL SIZE PLACEMENT`; empty where nobody knows or it is in between.

    `kernels` are as `KERNELS_QUERY` gives them: bytes and operations per repetition, where the report has them.
    """
    known = kernels.groupby(["kernel", "problem_size"])[["bytes_per_rep", "flops_per_rep"]].max()
    kinds = {
        f"{row['kernel']} {row['problem_size']}": _kind(row["bytes_per_rep"], row["flops_per_rep"])
        for row in known.reset_index().to_dict("records")
    }
    return [kinds.get(name.rsplit(" ", 1)[0], "") for name in configurations]


def _kind(moved: float, flops: float) -> str:
    if not moved > 0:
        return ""
    if flops / moved >= _COMPUTE_FLOPS_PER_BYTE:
        return COMPUTE
    return MEMORY if moved >= _MEMORY_BYTES else CACHE if moved <= _CACHE_BYTES else ""
