"""The simulated fleet as bundles for a landing zone: benchmark runs and application profiles of every machine."""

from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from hashlib import sha256
from itertools import islice
from pathlib import Path
from statistics import median
from zlib import crc32

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from perf_assets.core.errors import BadInputError
from perf_assets.core.machines import MachineSpec
from perf_assets.core.manifest import DAMAGED_ON_PURPOSE, SPEC_NAME, BundleFacts
from perf_assets.demo.applications.design import Application
from perf_assets.demo.applications.kripke import KRIPKE
from perf_assets.demo.applications.laghos import LAGHOS
from perf_assets.demo.applications.minivite import MINIVITE
from perf_assets.demo.applications.sw4lite import SW4LITE
from perf_assets.demo.applications.testdfft import TESTDFFT
from perf_assets.demo.execution import Execution, execute
from perf_assets.demo.fleet_machines import load_machines, machine_text
from perf_assets.demo.hardware.placement import place
from perf_assets.demo.rajaperf import benchmark_runs
from perf_assets.demo.simulated import BenchmarkRun, ProfiledRun, SimulatedBundle
from perf_assets.demo.tools.profiles import TARGET_COLUMN, arguments, multiplexed, profiled_runs, sample
from perf_assets.demo.writers.caliper import write_caliper
from perf_assets.demo.writers.hpctoolkit_v4 import write_v4_database
from perf_assets.demo.writers.hpctoolkit_xml import write_xml_database
from perf_assets.demo.writers.papi import write_papi
from perf_assets.demo.writers.perf_stat import write_perf_stat
from perf_assets.demo.writers.rajaperf_2024 import write_rajaperf_2024
from perf_assets.demo.writers.rajaperf_2026 import write_rajaperf_2026

APPLICATIONS: tuple[Application, ...] = (LAGHOS, KRIPKE, MINIVITE, SW4LITE, TESTDFFT)


SOURCE_MACHINES = ("quartz", "ruby", "corona", "lassen", "dane", "epyc-vm")
"""Machines that a site has measured for years."""
LATER_MACHINES = ("h100", "tioga", "xeonmax", "grace")
"""Machines that are onboarded afterwards, and are of another kind than all before: two GPU generations, processors with
high-bandwidth memory, an ARM processor. All other machines of the fleet ran only the benchmark."""

_FIRST_RUN = 1_735_689_600
"""2025-01-01, seconds since 1970."""
_CAMPAIGN_SECONDS = 120 * 86_400
_ROWS_AT_A_TIME = 1000

_BENCHMARK_WRITERS: Mapping[str, Callable[[Path, BenchmarkRun], None]] = {
    "quartz": write_caliper,
    "lassen": write_caliper,
    "cloud-skylake-96": write_caliper,
    "dane": write_rajaperf_2026,
    "xeonmax": write_rajaperf_2026,
    "grace": write_rajaperf_2026,
    "tioga": write_rajaperf_2026,
    "h100": write_rajaperf_2026,
    "icelake-8375c": write_rajaperf_2026,
    "epyc-7r13": write_rajaperf_2026,
}
"""Writers by machine; all others have reports of the 2024 releases."""
_PROFILE_WRITERS: Mapping[str, Callable[[Path, ProfiledRun], None]] = {
    "quartz": write_xml_database,
    "ruby": write_v4_database,
    "corona": write_v4_database,
    "lassen": write_v4_database,
    "dane": write_papi,
    "xeonmax": write_papi,
}


def write_samples_csv(path: Path, frame: pd.DataFrame) -> None:
    """Write `frame` as CSV without its index; numbers keep all their digits."""
    frame.to_csv(path, index=False, lineterminator="\n", encoding="utf-8")


def write_samples_parquet(path: Path, frame: pd.DataFrame) -> None:
    """Write `frame` as Parquet without its index, and without the versions of the libraries that made it."""
    table = pa.Table.from_pandas(frame, preserve_index=False).replace_schema_metadata(None)
    pq.write_table(table, path, compression="zstd", store_schema=False)


_SAMPLE_WRITERS: Mapping[str, tuple[str, Callable[[Path, pd.DataFrame], None]]] = {
    "tioga": ("samples.csv", write_samples_csv),
    "h100": ("samples.parquet", write_samples_parquet),
}
_PERF_STAT_MACHINES = ("epyc-vm", "grace")


def fleet_machines() -> tuple[str, ...]:
    """All machines of the fleet: sources, those onboarded later, those with the benchmark only."""
    named = (*SOURCE_MACHINES, *LATER_MACHINES)
    return (*named, *(machine for machine in load_machines() if machine not in named))


def fleet_bundles(
    scale: float, seed: int, machines: Collection[str] | None = None, *, benchmark_scale: float | None = None
) -> Iterator[SimulatedBundle]:
    """All bundles of the fleet, machine by machine, made while they are asked for.

    `scale` multiplies the number of configurations (1 is 649 configurations) and, unless `benchmark_scale` says
    otherwise, of benchmark runs; a smaller fleet is a part of a larger one. The same seed gives the same bytes.
    """
    specs = checked_machines(scale, machines or ())
    wanted = [machine for machine in fleet_machines() if machines is None or machine in machines]
    benchmarks = scale if benchmark_scale is None else benchmark_scale
    return (
        bundle
        for machine in wanted
        for bundle in (*benchmark_bundles(specs[machine], benchmarks, seed), *run_bundles(specs[machine], scale, seed))
    )


def checked_machines(scale: float, machines: Collection[str]) -> dict[str, MachineSpec]:
    """Data sheets of the fleet; refuses an invalid scale and unknown machines."""
    if not scale > 0:
        raise BadInputError(f"scale {scale} is not allowed: use a number above 0")
    specs = load_machines()
    for machine in machines:
        if machine not in specs:
            raise BadInputError(f"the simulated fleet has no machine {machine!r}: use one of {', '.join(specs)}")
    return specs


def run_bundles(
    spec: MachineSpec, scale: float, seed: int, only: Collection[str] | None = None, part: str = ""
) -> Iterator[SimulatedBundle]:
    """Application runs of a machine: all, or those whose configuration is in `only`.

    `part` goes into the names of tables, which hold many runs, where a machine's runs land bit by bit.
    """
    for application in APPLICATIONS:
        if spec.machine in _SAMPLE_WRITERS:
            bundle = _sample_bundle(spec, application, scale, seed, only, part)
            yield from [] if bundle is None else [bundle]
        elif spec.machine in _PROFILE_WRITERS or spec.machine in _PERF_STAT_MACHINES:
            yield from _profile_bundles(spec, application, scale, seed, only)


def measured_seconds(execution: Execution, seed: int) -> float:
    """Run time of an execution as its bundle has it: the median of its profiling runs."""
    if execution.spec.machine in _SAMPLE_WRITERS:
        return float(sample(execution, seed)[TARGET_COLUMN])
    return median(run.wall_seconds for run in profiled_runs(execution, seed).values())


def _tags(seed: int) -> dict[str, str]:
    return {"simulated": "true", "generator": "perf_assets demo", "seed": str(seed)}


def _collected_at(seed: int, *names: str) -> datetime:
    offset = crc32("|".join((str(seed), *names)).encode()) % _CAMPAIGN_SECONDS
    return datetime.fromtimestamp(_FIRST_RUN + offset, UTC)


def benchmark_bundles(spec: MachineSpec, scale: float, seed: int) -> Iterator[SimulatedBundle]:
    """RAJAPerf runs of a machine."""
    for index, run in enumerate(benchmark_runs(spec, scale, seed)):
        yield benchmark_bundle(spec, run, f"rajaperf-{index:04d}-s{run.requested_size}-t{run.threads}", seed)


def benchmark_bundle(spec: MachineSpec, run: BenchmarkRun, name: str, seed: int) -> SimulatedBundle:
    """A RAJAPerf run as a bundle of this name."""
    facts = BundleFacts(
        machine=spec.machine,
        kind="rajaperf",
        app="RAJAPerf",
        ranks=run.ranks or None,
        threads=run.threads,
        nodes=1,
        gpus=0 if spec.gpu is None else 1,
        collected_at=datetime.fromtimestamp(run.launched_at, UTC),
        tags=_tags(seed),
    )
    return SimulatedBundle(name, facts, partial(_write_benchmark, run))


def _write_benchmark(run: BenchmarkRun, directory: Path) -> None:
    _BENCHMARK_WRITERS.get(run.machine, write_rajaperf_2024)(directory, run)
    (directory / SPEC_NAME).write_text(machine_text(run.machine), encoding="utf-8")


def executions(spec: MachineSpec, application: Application, scale: float) -> Iterator[tuple[int, Execution]]:
    """Executions that are possible on the machine, each with its place in the application's sequence."""
    for index, configuration in enumerate(application.configurations(scale)):
        placement = place(spec, application, configuration)
        if placement is not None:
            yield index, execute(spec, application, configuration, placement)


def _profile_bundles(
    spec: MachineSpec, application: Application, scale: float, seed: int, only: Collection[str] | None
) -> Iterator[SimulatedBundle]:
    for index, execution in executions(spec, application, scale):
        configuration = execution.configuration
        if only is not None and configuration.key not in only:
            continue
        wall_seconds = None
        write: Callable[[Path], None] = partial(_write_profiles, execution, seed)
        if spec.machine in _PERF_STAT_MACHINES:
            (run,) = profiled_runs(execution, seed).values()
            wall_seconds = run.wall_seconds
            write = partial(_write_perf_stat, run, spec, seed)
        facts = BundleFacts(
            machine=spec.machine,
            kind="profile",
            app=application.name,
            args=arguments(execution),
            ranks=configuration.ranks,
            threads=configuration.threads,
            nodes=execution.placement.nodes,
            gpus=execution.placement.gpus,
            wall_seconds=wall_seconds,
            collected_at=_collected_at(seed, spec.machine, configuration.key),
            tags=_tags(seed),
        )
        name = f"{application.name.lower()}-{sha256(configuration.key.encode()).hexdigest()[:12]}"
        if is_damaged(spec.machine, application.name, index):
            name, write = f"{name}-{DAMAGED_ON_PURPOSE}", with_damage(write, spec.machine, index)
        yield SimulatedBundle(name, facts, write)


def _write_profiles(execution: Execution, seed: int, directory: Path) -> None:
    for name, run in profiled_runs(execution, seed).items():
        (directory / name).mkdir()
        _PROFILE_WRITERS[execution.spec.machine](directory / name, run)


def _write_perf_stat(run: ProfiledRun, spec: MachineSpec, seed: int, directory: Path) -> None:
    estimated, shares = multiplexed(run, spec, seed)
    write_perf_stat(directory / "perf-stat.csv", estimated, shares)


def _sample_bundle(
    spec: MachineSpec, application: Application, scale: float, seed: int, only: Collection[str] | None, part: str
) -> SimulatedBundle | None:
    """A table of runs; None where there is none."""
    file_name, write_table = _SAMPLE_WRITERS[spec.machine]

    def chosen() -> Iterator[Execution]:
        for _, execution in executions(spec, application, scale):
            if only is None or execution.configuration.key in only:
                yield execution

    def write(directory: Path) -> None:
        rows = (sample(execution, seed) for execution in chosen())
        # Rows are dictionaries and heavy: only a chunk of them exists at a time.
        chunks = [pd.DataFrame(chunk) for chunk in iter(lambda: list(islice(rows, _ROWS_AT_A_TIME)), [])]
        write_table(directory / file_name, pd.concat(chunks, ignore_index=True))

    if only is not None and next(chosen(), None) is None:
        return None
    facts = BundleFacts(
        machine=spec.machine,
        kind="samples",
        app=application.name,
        collected_at=_collected_at(seed, spec.machine, application.name, *([part] if part else [])),
        target=TARGET_COLUMN,
        tags=_tags(seed) | {"aggregation": "sum"},
    )
    return SimulatedBundle(f"{application.name.lower()}-samples{part}", facts, write)


_DAMAGED: Mapping[str, tuple[str, int]] = {"quartz": ("Kripke", 20), "ruby": ("Kripke", 21)}
"""Application, and place in its sequence, of the one run that is damaged on purpose, by machine."""


@dataclass(frozen=True)
class _Accident:
    """Damage to the last file that matches a pattern."""

    pattern: str
    kept_share: float | None
    """Share of the file's bytes that is left; None: the file is missing."""


_ACCIDENTS: Mapping[str, tuple[_Accident, ...]] = {
    "quartz": (_Accident("set*/*.metric-db", 0.6), _Accident("set*/experiment.xml", None)),
    "ruby": (_Accident("set*/profile.db", 0.6), _Accident("set*/meta.db", None)),
}


def is_damaged(machine: str, app: str, index: int) -> bool:
    """Whether this configuration (by its place in the application's sequence) is damaged on a machine."""
    return _DAMAGED.get(machine) == (app, index)


def with_damage(write: Callable[[Path], None], machine: str, index: int) -> Callable[[Path], None]:
    """Files after an accident."""
    accidents = _ACCIDENTS[machine]
    accident = accidents[index % len(accidents)]

    def damaged(directory: Path) -> None:
        write(directory)
        victim = sorted(directory.glob(accident.pattern))[-1]
        content = victim.read_bytes()
        if accident.kept_share is None:
            victim.unlink()
        else:
            victim.write_bytes(content[: int(len(content) * accident.kept_share)])

    return damaged
