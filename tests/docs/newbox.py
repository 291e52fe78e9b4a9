"""What the documentation takes for granted: a machine `newbox` whose tools have written their files, and a job trace.

Newbox is the fleet's dane under another name. The files are written by the simulation's writers of genuine formats.
"""

import shutil
import sqlite3
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from itertools import islice
from pathlib import Path

import numpy as np
import pandas as pd

from perf_assets.core.manifest import SPEC_NAME
from perf_assets.demo.execution import Execution, execute
from perf_assets.demo.fleet import APPLICATIONS, fleet_bundles, write_samples_csv
from perf_assets.demo.fleet_machines import load_machines, machine_text
from perf_assets.demo.hardware.placement import place
from perf_assets.demo.simulated import ProfiledRun
from perf_assets.demo.tools.profiles import profiled_runs, sample
from perf_assets.demo.writers.hpctoolkit_v4 import write_v4_database
from perf_assets.demo.writers.hpctoolkit_xml import write_xml_database
from perf_assets.demo.writers.papi import write_papi
from perf_assets.demo.writers.perf_stat import write_perf_stat
from tests.installation import SCALE
from tests.scheduling.traces import SACCT, line, sacct_line, write

TWIN = "dane"
SAMPLES = 10
"""Rows of samples.csv, about."""
_REAL_TIME = "REALTIME (sec)"
_NO_COUNTERS = ("ranks", "threads", "nodes", "gpus", "wall_seconds")


def write_files(folder: Path) -> None:
    """All files that pages name, under the names that they have there."""
    (folder / "machine.yaml").write_text(machine_text(TWIN).replace(f"machine: {TWIN}", "machine: newbox"))
    _write_benchmark(folder / "rajaperf_output")
    _write_sets(folder / "hpctoolkit-sw4lite-database", next(_executions(TWIN, "SW4lite")), write_v4_database)
    _write_sets(folder / "quartz-sw4lite-database", next(_executions("quartz", "SW4lite")), write_xml_database)
    write_papi(folder, next(iter(profiled_runs(next(islice(_executions(TWIN, "TESTDFFT"), 1, None)), 1).values())))
    (by_perf,) = profiled_runs(next(_executions("epyc-vm", "TESTDFFT")), 1).values()
    write_perf_stat(folder / "perf.csv", by_perf, {})
    rows = [_per_rank(sample(run, 1)) for name in ("miniVite", "Kripke") for run in _executions(TWIN, name)]
    write_samples_csv(folder / "samples.csv", pd.DataFrame(rows[:: max(1, len(rows) // SAMPLES)]))
    jobs = (sacct_line(n, 1 + n % 7, 1 + n % 30, 1 + n % 4) for n in range(200))
    (folder / "sacct.txt").write_text("\n".join([SACCT, *jobs]) + "\n")
    runs = (f"{app},{nodes},{60 + nodes % 3},{61 + nodes % 5}" for app in ("cg", "ft") for nodes in (1, 2, 4, 8))
    (folder / "jobs.csv").write_text("\n".join(["app,nodes,runtime_seconds,net_predicted_seconds", *runs]) + "\n")
    speeds = (f"{app},{n},{1 + n / 20},{1 + n / 30},{fast + n / 20},{1 / fast + n / 20}"
              for app, fast in (("cg", 2.0), ("ft", 0.5)) for n in range(20))  # fmt: skip
    (folder / "speeds.csv").write_text("\n".join(["app,size,quartz,ruby,dane,tioga-gpu", *speeds]) + "\n")
    write(folder / "trace.swf", *(line(n, 60 * n, 100 + 7 * n % 900, 1 + n % 4, 1800, user=n % 3) for n in range(200)))


def _executions(machine: str, app: str) -> Iterator[Execution]:
    """What the machine can run of an application, in the order of the fleet."""
    spec = load_machines()[machine]
    application = next(one for one in APPLICATIONS if one.name == app)
    for configuration in application.configurations(SCALE):
        placement = place(spec, application, configuration)
        if placement is not None:
            yield execute(spec, application, configuration, placement)


def _write_benchmark(folder: Path) -> None:
    for bundle in fleet_bundles(SCALE, 1, [TWIN]):
        if bundle.facts.kind == "rajaperf":
            (folder / bundle.name).mkdir(parents=True)
            bundle.write(folder / bundle.name)
            (folder / bundle.name / SPEC_NAME).unlink()


def _write_sets(folder: Path, execution: Execution, write_database: Callable[[Path, ProfiledRun], None]) -> None:
    for name, run in profiled_runs(execution, 1).items():
        (folder / name).mkdir(parents=True)
        write_database(folder / name, _with_real_time(run))


def _with_real_time(run: ProfiledRun) -> ProfiledRun:
    """As hpcrun measures it: dane's event sets are made for PAPI, which takes the time by itself."""
    if _REAL_TIME in run.metrics:
        return run
    seconds = np.full((*run.values.shape[:2], 1), run.wall_seconds)
    return replace(run, metrics=(_REAL_TIME, *run.metrics), values=np.concatenate([seconds, run.values], axis=2))


def _per_rank(row: Mapping[str, str | float]) -> dict[str, str | float]:
    """A row whose counters are those of an average rank."""
    ranks = float(row["ranks"])
    return {
        name: value if isinstance(value, str) or name in _NO_COUNTERS else value / ranks for name, value in row.items()
    }


def copy_lake(lake: Path, copy: Path) -> None:
    """A lake of its own with the registered models, wherever MLflow has noted where they are."""
    shutil.copytree(lake, copy, ignore=shutil.ignore_patterns("locks"), dirs_exist_ok=True)
    relocate(copy / "mlflow" / "mlflow.db", lake, copy)


def relocate(registry: Path, before: Path, now: Path) -> None:
    """Let a registry find what it noted below one folder below another."""
    with sqlite3.connect(registry) as database:
        tables = [name for (name,) in database.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
        for table in tables:
            columns = [row[1] for row in database.execute(f'PRAGMA table_info("{table}")')]
            for column in columns:
                database.execute(
                    f'UPDATE "{table}" SET "{column}" = replace("{column}", ?, ?) WHERE instr("{column}", ?)',
                    (f"{before}/", f"{now}/", f"{before}/"),
                )
