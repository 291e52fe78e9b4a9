"""Tables of the warehouse to aligned samples: application runs beside RAJAPerf, which describes every machine."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from zlib import crc32

import numpy as np
import pandas as pd

from perf_assets.core.environment import UNKNOWN
from perf_assets.core.errors import BadInputError
from perf_assets.core.tables.canonical import XAMM_FEATURES
from perf_assets.core.tables.landing import SPECS, TIMINGS
from perf_assets.core.tables.runs import CONFIGURATION, ENVIRONMENTS, FEATURES, RAJAPERF_APP
from perf_assets.features.arguments import ArgumentColumns, described_by
from perf_assets.features.samples import HOST, Floats, Mask, PairedSamples, physical
from perf_assets.features.tables.paired import with_specification

RUN_COLUMNS = (
    *(feature.name for feature in XAMM_FEATURES),
    "ranks",
    "threads",
    "wall_seconds",
)
"""Features of an application run on its source machine: the features of xAMM, and its configuration."""
KERNEL_COLUMNS = ("bytes_per_rep", "flops_per_rep", "seconds_per_rep", "is_core", "is_share")
"""Features of a kernel run."""
_HALF = "half_busy_core"
PLACEMENTS = ("core", "share")
"""Resources of one rank of a program: a core while the others are idle; or its share of a busy node, which is a
GPU, or without one a core while all are busy (the time with all threads, times the threads)."""
NODE = "node"
"""Placement of times per element of a node, which stand for `PLACEMENTS` where machines ran no sizes in common."""
_MOST_ARGUMENTS = 64
"""Columns that arguments of workloads without counters make: those that most workloads have."""
MOST_CONFIGURATIONS = 2000
"""Configurations of an application on a machine that are learned from; docs/scale.md says what more would bring."""

RUNS_QUERY = f"""
    SELECT machine, {", ".join(CONFIGURATION)}, coalesce(gpus, 0) AS gpus, wall_seconds,
        {", ".join(feature.name for feature in XAMM_FEATURES)}
    FROM {FEATURES.name} WHERE wall_seconds IS NOT NULL ORDER BY ALL
"""
USABLE_KERNELS = f"""
        SELECT timings.*, variant LIKE '%OpenMP' AS is_threaded FROM {TIMINGS.name} AS timings
        JOIN {ENVIRONMENTS.name} AS made ON made.machine = timings.machine AND made.app = {RAJAPERF_APP}
            AND made.environment = coalesce(timings.environment, '{UNKNOWN}')
        WHERE is_counted AND is_valid AND seconds_per_rep > 0 AND problem_size IS NOT NULL
            AND (threads IS NOT NULL OR variant NOT LIKE '%OpenMP')
        QUALIFY is_default = bool_or(is_default) OVER (
            PARTITION BY timings.machine, kernel, problem_size, variant, tuning, threads
        )
"""
"""Kernel runs that may be used, of the environment that stands for the machine where it ran there."""
KERNELS_QUERY = f"""
    WITH usable AS ({USABLE_KERNELS}), most AS (
        SELECT machine, max(threads) AS most_threads FROM usable WHERE is_threaded GROUP BY machine
    ), middle AS (
        SELECT machine, most_threads, arg_min(threads, abs(ln(2.0 * threads / most_threads))) AS middle_threads
        FROM usable JOIN most USING (machine) WHERE is_threaded AND threads > 1 AND threads < most_threads GROUP BY ALL
    ), placed AS (
        SELECT machine, kernel, problem_size, variant, tuning, bytes_per_rep, flops_per_rep,
            CASE WHEN variant LIKE '%Seq%' THEN 'core'
                 WHEN is_threaded AND threads = most_threads THEN 'busy_core'
                 WHEN is_threaded AND threads = middle_threads THEN 'half_busy_core'
                 WHEN regexp_matches(variant, 'CUDA|HIP|SYCL|OpenMPTarget') THEN 'device' END AS placement,
            seconds_per_rep * CASE WHEN is_threaded THEN threads ELSE 1 END AS seconds_per_rep
        FROM usable LEFT JOIN most USING (machine) LEFT JOIN middle USING (machine, most_threads)
    ), repeated AS (
        SELECT machine, kernel, problem_size, placement, median(seconds_per_rep) AS seconds_per_rep,
            max(bytes_per_rep) AS bytes_per_rep, max(flops_per_rep) AS flops_per_rep
        FROM placed WHERE placement IS NOT NULL
        GROUP BY machine, kernel, problem_size, placement, variant, tuning
    )
    SELECT machine, kernel, problem_size, placement, min(seconds_per_rep) AS seconds_per_rep,
        max(bytes_per_rep) AS bytes_per_rep, max(flops_per_rep) AS flops_per_rep
    FROM repeated GROUP BY machine, kernel, problem_size, placement ORDER BY ALL
"""
"""Median of the runs of each variant and tuning, then the fastest of them: what the machine can do. `half_busy_core` is
the number of threads between one and all that is nearest to half of all: how the machine scales."""
NODES_QUERY = f"""
    SELECT {", ".join(CONFIGURATION)}, max(coalesce(nodes, 1)) AS nodes FROM {FEATURES.name} GROUP BY ALL ORDER BY ALL
"""
SPECS_QUERY = f"SELECT * FROM {SPECS.name} ORDER BY machine"


@dataclass(frozen=True)
class FleetTables:
    """Rows of the three queries above."""

    runs: pd.DataFrame
    kernels: pd.DataFrame
    specs: pd.DataFrame
    notes: tuple[str, ...] = ()
    """Notes on how machines are described."""

    def of(self, machines: list[str]) -> "FleetTables":
        """Rows of some machines."""
        runs, kernels, specs = (t[t["machine"].isin(machines)] for t in (self.runs, self.kernels, self.specs))
        return replace(self, runs=runs, kernels=kernels, specs=specs)

    def with_machine(self, machine: str, present: "FleetTables") -> "FleetTables":
        """Tables with other rows of one machine, whether or not it was there."""
        parts = ((self.runs, present.runs), (self.kernels, present.kernels), (self.specs, present.specs))
        runs, kernels, specs = (
            pd.concat([old[old["machine"] != machine], new], ignore_index=True) for old, new in parts
        )
        return replace(self, runs=runs, kernels=kernels, specs=specs)


def fleet_samples(
    tables: FleetTables,
    *,
    with_scaling: bool = False,
    most_configurations: int = MOST_CONFIGURATIONS,
    counter_names: Sequence[str] | None = None,
) -> PairedSamples:
    """Align application runs and kernel runs of all machines that have both or RAJAPerf alone.

    Machines without RAJAPerf, or with little of it, are left out, with a note: nothing describes them. `with_scaling`
    adds kernel runs with about half of the threads, for AMMs. Of an application on a machine at most
    `most_configurations` are kept. Configurations without counters anywhere are described by their arguments beside
    ranks and threads, in further columns: those of `counter_names`, where samples are to have the columns of others.
    """
    described = well_described(tables.kernels)
    undescribed = sorted({*tables.runs["machine"], *tables.kernels["machine"]} - set(described))
    tables = tables.of(described)
    benchmark = benchmark_samples(tables.kernels, with_scaling=with_scaling)
    machines = list(benchmark.machines)
    runs = _as_programs_see_it(tables.runs, machines)
    paired = _paired_configurations(runs)
    configurations = _some_of_each(runs, paired, most_configurations)
    log_seconds, counters = _application_part(runs, machines, configurations)
    names, of_arguments = _arguments(configurations, log_seconds, counters, counter_names)
    assert benchmark.benchmark_settings is not None
    samples = replace(
        benchmark,
        counter_names=(*benchmark.counter_names, *names),
        configurations=(*(configuration_name(key) for key in configurations), *benchmark.configurations),
        apps=np.concatenate([configurations.get_level_values("app").to_numpy(np.str_), benchmark.apps]),
        is_benchmark=np.repeat([False, True], [len(configurations), len(benchmark.apps)]),
        counters=np.concatenate(
            [np.concatenate([counters, benchmark.counters], axis=1), _padded(of_arguments, len(benchmark.apps))], axis=2
        ),
        log_seconds=np.concatenate([log_seconds, benchmark.log_seconds], axis=1),
        benchmark_settings=np.concatenate([np.full(len(configurations), ""), benchmark.benchmark_settings]),
        benchmark_only=np.asarray(np.isnan(log_seconds).all(axis=1)),
        notes=(
            *tables.notes,
            *(f"{machine} has no RAJAPerf runs, or too few, and is left out" for machine in undescribed),
            *_left_out(len(configurations), len(paired), most_configurations),
            *_without_counters(counters, names),
        ),
    )
    specs = _specifications(tables.specs, machines)
    try:
        return samples if specs is None else with_specification(samples, specs, "machine")
    except BadInputError as error:
        return replace(samples, notes=(*samples.notes, f"data sheets are not used: {error}"))


def benchmark_samples(kernels: pd.DataFrame, *, with_scaling: bool = False) -> PairedSamples:
    """The kernel runs that all machines of the table have, of one machine or of many.

    `with_scaling` adds those with about half of the threads, which an AMM is made of too.
    """
    times = kernel_times(kernels, with_scaling=with_scaling)
    log_seconds, counters = _kernel_part(times, kernels)
    return PairedSamples(
        machines=tuple(map(str, times.columns)),
        counter_names=(*RUN_COLUMNS, *KERNEL_COLUMNS),
        configurations=tuple(" ".join(map(str, key)) for key in times.index),
        apps=times.index.get_level_values("kernel").to_numpy(np.str_),
        is_benchmark=np.ones(len(times), bool),
        counters=counters,
        log_seconds=log_seconds,
        benchmark_settings=np.array(_settings(times), np.str_),
    )


def well_described(kernels: pd.DataFrame) -> list[str]:
    """Machines that have at least half of the kernel runs that are usual: those that one lacks are lost for all."""
    on_host = kernels[kernels["placement"].isin(["core", "busy_core", NODE])]
    keys = on_host[["kernel", "problem_size", "placement"]].apply(tuple, axis=1)
    counts = keys.value_counts()
    usual = set(counts[counts >= on_host["machine"].nunique() / 2].index)
    shared = keys.isin(usual).groupby(on_host["machine"]).sum()
    return [str(machine) for machine in shared[shared >= len(usual) / 2].index]


def uses_device(samples: PairedSamples) -> Mask:
    """Per machine, whether programs run on GPUs there."""
    return np.array([f"{machine}{HOST}" in samples.machines for machine in samples.machines])


def configuration_name(key: tuple[object, ...]) -> str:
    """Application, arguments, ranks and threads as one text."""
    app, args, ranks, threads = key
    return f"{app} {args} ({ranks} x {threads})"


def configuration_of(name: str, app: str) -> tuple[str, int, int]:
    """Arguments, ranks and threads of what `configuration_name` made."""
    args, _, size = name.removeprefix(f"{app} ").rpartition("(")
    ranks, _, threads = size.removesuffix(")").partition(" x ")
    return args.removesuffix(" "), int(ranks), int(threads)


def nodes_by_configuration(rows: pd.DataFrame) -> "pd.Series[float]":
    """Nodes of each configuration by its name, from rows of `NODES_QUERY`: the most that it ever used."""
    names = [configuration_name(key) for key in rows[list(CONFIGURATION)].itertuples(index=False, name=None)]
    return pd.Series(rows["nodes"].to_numpy(float), index=names)


def kernel_times(kernels: pd.DataFrame, *, with_scaling: bool = False) -> pd.DataFrame:
    """Seconds per repetition: rows are (kernel, problem_size, placement) that all machines have, columns machines.

    A machine with GPUs has two columns, the second without them. `with_scaling` adds the placement `half_share`; a
    machine that was not run so, and a GPU, is there as with all threads.
    """
    if kernels.empty:
        raise BadInputError("no RAJAPerf run has landed: nothing describes the machines")
    scaling = kernels[kernels["placement"] == _HALF]
    kernels = kernels[kernels["placement"] != _HALF]
    wide = kernels.pivot(index=["placement", "kernel", "problem_size"], columns="machine", values="seconds_per_rep")
    with_device = sorted(kernels.loc[kernels["placement"] == "device", "machine"].unique())
    on_host = wide.drop(index="device", errors="ignore").rename(index={"busy_core": "share"})
    on_device = wide.drop(index="busy_core", errors="ignore").rename(index={"device": "share"})
    columns = {m: on_device[m] if m in with_device else on_host[m] for m in wide}
    columns |= {f"{m}{HOST}": on_host[m] for m in with_device}
    complete = pd.DataFrame(columns).dropna().reorder_levels(["kernel", "problem_size", "placement"])
    if with_scaling and len(scaling):
        complete = pd.concat([complete, _half_shares(complete, scaling)])
    complete = complete.sort_index()
    if complete.empty:
        raise BadInputError("no RAJAPerf kernel ran at the same problem size on all machines: land equal sizes")
    return complete


def _half_shares(complete: pd.DataFrame, scaling: pd.DataFrame) -> pd.DataFrame:
    """Rows of the placement `half_share`, for those that some machine ran with half of its threads."""
    measured = scaling.pivot(index=["kernel", "problem_size"], columns="machine", values="seconds_per_rep")
    shares = complete.xs("share", level="placement")
    shares = shares[shares.index.isin(measured.index)].copy()
    names = list(map(str, shares.columns))
    with_device = {physical(name) for name in names if name.endswith(HOST)}
    for name in names:
        if name not in with_device and physical(name) in measured:
            shares[name] = measured[physical(name)].reindex(shares.index).fillna(shares[name])
    return pd.concat({"half_share": shares}, names=["placement"]).reorder_levels(
        ["kernel", "problem_size", "placement"]
    )


def _settings(times: pd.DataFrame) -> list[str]:
    """`share, size 1` for a kernel's smallest problem on a share: actual sizes differ a little by kernel."""
    rows = times.index.to_frame(index=False)
    ranks = rows.groupby("kernel")["problem_size"].rank("dense").astype(int)
    return [f"{placement}, size {rank}" for placement, rank in zip(rows["placement"], ranks, strict=True)]


def _as_programs_see_it(runs: pd.DataFrame, machines: list[str]) -> pd.DataFrame:
    """Runs without GPUs on a machine that has some belong to its host."""
    host = runs["machine"] + HOST
    seen = runs["machine"].where((runs["gpus"] > 0) | ~host.isin(machines), host)
    return runs.assign(machine=seen)[seen.isin(machines)]


def _specifications(specs: pd.DataFrame, machines: list[str]) -> pd.DataFrame | None:
    """Data sheets of all machines; None where one has none. A host has no GPU."""
    sheets = specs.set_index("machine")
    if not {physical(machine) for machine in machines} <= set(sheets.index):
        return None
    numbers = sheets.loc[[physical(machine) for machine in machines]].select_dtypes("number").astype(float)
    numbers.index = pd.Index(machines, name="machine")
    on_host = [machine for machine in machines if machine.endswith(HOST)]
    numbers.loc[on_host, numbers.columns.str.startswith("gpu_")] = 0.0
    return numbers.fillna(0.0).reset_index()


def _paired_configurations(runs: pd.DataFrame) -> pd.MultiIndex:
    counts = runs.groupby(list(CONFIGURATION), sort=True)["machine"].nunique()
    index = counts[counts >= 2].index
    assert isinstance(index, pd.MultiIndex)
    return index


def _some_of_each(runs: pd.DataFrame, paired: pd.MultiIndex, most: int) -> pd.MultiIndex:
    """Draw at most `most` configurations of each application on each machine.

    They are drawn by a digest of their names: machines that ran the same draw the same, and a machine with few runs
    keeps all of them, with what they took elsewhere.
    """
    position = paired.get_indexer(pd.MultiIndex.from_frame(runs[list(CONFIGURATION)]))
    drawn = np.array([crc32(configuration_name(key).encode()) for key in paired])
    rows = runs.loc[position >= 0, ["machine", "app"]].assign(position=position[position >= 0])
    place = rows.assign(drawn=drawn[rows["position"]]).groupby(["machine", "app"])["drawn"].rank("first")
    return paired[np.unique(rows["position"][place <= most])]


def is_bare(counters: Floats) -> Mask:
    """Whether runs lack every feature that counters make, from columns as `RUN_COLUMNS` begins; the last axis goes."""
    return np.asarray(~np.isfinite(counters[..., : len(XAMM_FEATURES)]).any(axis=-1))


def argument_names(counter_names: Sequence[str]) -> list[str]:
    """Columns of samples that arguments of workloads without counters have made."""
    return [name for name in counter_names if name not in (*RUN_COLUMNS, *KERNEL_COLUMNS)]


def _arguments(
    configurations: pd.MultiIndex, log_seconds: Floats, counters: Floats, counter_names: Sequence[str] | None
) -> tuple[list[str], Floats]:
    """Columns of arguments, and machines x configurations x these; NaN where a configuration has counters."""
    bare = np.flatnonzero(is_bare(counters).all(axis=0))
    apps, args = (configurations.get_level_values(name).astype(str)[bare].tolist() for name in ("app", "args"))
    if counter_names is None:
        every = ArgumentColumns.of(apps, args).names
        uses = (np.nan_to_num(described_by(every, apps, args)) != 0).sum(axis=0)
        names = [every[column] for column in sorted(np.argsort(-uses, kind="stable")[:_MOST_ARGUMENTS])]
    else:
        names = argument_names(counter_names)
    values = np.full((*log_seconds.shape, len(names)), np.nan)
    ran = np.isfinite(log_seconds[:, bare])
    values[:, bare] = np.where(ran[:, :, None], described_by(names, apps, args)[None], np.nan)
    return names, values


def _padded(values: Floats, count: int) -> Floats:
    """Arguments of application runs, followed by `count` empty rows for kernel runs, which have none."""
    return np.concatenate([values, np.full((len(values), count, values.shape[2]), np.nan)], axis=1)


def _without_counters(counters: Floats, names: Sequence[str]) -> list[str]:
    count = int(is_bare(counters).all(axis=0).sum())
    by = f"ranks, threads and {len(names)} columns of arguments"
    return [f"{count} configurations have no counters: {by} describe them"] if count else []


def _left_out(kept: int, count: int, most: int) -> list[str]:
    limit = f"at most {most} of an application on a machine"
    return [f"{count - kept} of {count} configurations are left out: {limit}"] if kept < count else []


def _application_part(runs: pd.DataFrame, machines: list[str], configurations: pd.MultiIndex) -> tuple[Floats, Floats]:
    """Log times (machines x configurations) and columns (the same x RUN_COLUMNS + KERNEL_COLUMNS)."""
    by_machine = dict(list(runs.groupby("machine")))
    seconds = np.full((len(machines), len(configurations)), np.nan)
    columns = np.full((*seconds.shape, len(RUN_COLUMNS) + len(KERNEL_COLUMNS)), np.nan)
    for position, machine in enumerate(machines):
        if machine in by_machine:
            of_machine = by_machine[machine].set_index(list(CONFIGURATION), drop=False).reindex(configurations)
            seconds[position] = of_machine["wall_seconds"]
            columns[position, :, : len(RUN_COLUMNS)] = of_machine[list(RUN_COLUMNS)].to_numpy(float)
    return np.log(seconds), columns


def _kernel_part(times: pd.DataFrame, kernels: pd.DataFrame) -> tuple[Floats, Floats]:
    """Log times (machines x kernel runs) and columns of the kernels."""
    work = kernels.groupby(["kernel", "problem_size"])[["bytes_per_rep", "flops_per_rep"]].max()
    rows = times.index.to_frame(index=False)
    of_row = work.reindex(pd.MultiIndex.from_frame(rows[["kernel", "problem_size"]])).to_numpy(float)
    flags = np.stack([(rows["placement"] == placement).to_numpy(float) for placement in PLACEMENTS], axis=1)
    seconds = times.to_numpy(float).T
    columns = np.full((*seconds.shape, len(RUN_COLUMNS) + len(KERNEL_COLUMNS)), np.nan)
    start = len(RUN_COLUMNS)
    columns[:, :, start : start + 2] = of_row
    columns[:, :, start + 2] = seconds
    columns[:, :, start + 3 :] = flags
    return np.log(seconds), columns


SCALING_QUERY = f"""
    SELECT machine, {", ".join(CONFIGURATION)}, coalesce(nodes, 1) AS nodes
    FROM {FEATURES.name} WHERE wall_seconds IS NOT NULL ORDER BY ALL
"""
PROBLEM = ("app", "args")
"""Data that does not depend on the number of nodes."""


def scaling_runs(rows: pd.DataFrame, predictions: pd.DataFrame) -> pd.DataFrame:
    """Runs that are predicted to be fastest, one per machine, problem and number of nodes.

    `rows` are of `SCALING_QUERY`, `predictions` of `held_out_predictions` for one or several machines.
    """
    keys = rows[list(CONFIGURATION)].itertuples(index=False, name=None)
    named = rows.assign(configuration=[configuration_name(key) for key in keys])
    predicted = named.merge(predictions, on=["machine", "configuration"])
    ordered = predicted.sort_values(["machine", *PROBLEM, "nodes", "predicted_seconds", "configuration"])
    fastest = ordered.drop_duplicates(["machine", *PROBLEM, "nodes"])
    return fastest[["machine", *PROBLEM, "nodes", "seconds", "predicted_seconds", "upper_seconds"]].reset_index(
        drop=True
    )
