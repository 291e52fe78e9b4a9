"""Does a nightly RAJAPerf run show what happens to a machine? False alarms over years, and faults of the fleet.

False alarms: machines on which nothing changes, 365 nights, eight groups of kernels, a test after every night. Noise
of a night is common to all groups and as large as that of each of them; it is normal, or heavy-tailed (Student's t, 3
degrees of freedom), or remembers the night before (autoregressive, 0.3 and 0.5), or comes on top of a season of a year
with 1% more or less. `told` are alarms of at least 2%, which is what people are told.

Power: machines of the simulated fleet with their noise (run 2%, kernel 1.5%, disturbed passes), 60 nights without a
fault, then 30 with one. Of each fault: machines that people are told of, nights until then, and days that the date is
off (medians).

Last line: one JSON object. Takes half an hour of processor time; `--quick` half a minute.
"""

import argparse
import json
from collections.abc import Callable

import numpy as np
import pandas as pd
from nightly import FAULTS, Fault, nightly_runs

from perf_assets.core.machines import MachineSpec
from perf_assets.demo.fleet import LATER_MACHINES, SOURCE_MACHINES
from perf_assets.demo.fleet_machines import load_machines
from perf_assets.demo.simulated import BenchmarkRun
from perf_assets.features.fleet.benchmark_history import levels, with_kinds
from perf_assets.features.samples import Floats
from perf_assets.workflows.machines.health import MachineHealth, periods_of

NIGHTS, GROUPS, SPREAD = 365, 8, 0.02
BEFORE, AFTER = 60, 30
Noise = Callable[[np.random.Generator, tuple[int, ...]], Floats]


def remembered(share: float) -> Noise:
    """Noise of which a share is that of the night before."""

    def noise(random: np.random.Generator, shape: tuple[int, ...]) -> Floats:
        values = random.normal(size=shape)
        for night in range(1, shape[0]):
            values[night] = share * values[night - 1] + np.sqrt(1 - share**2) * values[night]
        return values

    return noise


def season(random: np.random.Generator, shape: tuple[int, ...]) -> Floats:
    """Normal noise, and a wave of a year and half its size where it is common to all groups."""
    wave = 0.5 * np.sin(2 * np.pi * (np.arange(shape[0]) / NIGHTS + random.random()))[:, None]
    return random.normal(size=shape) + (wave if shape[1] == 1 else 0.0)


NOISES: dict[str, Noise] = {
    "normal": lambda random, shape: random.normal(size=shape),
    "heavy": lambda random, shape: random.standard_t(3, size=shape) / np.sqrt(3),
    "remembers 0.3": remembered(0.3),
    "remembers 0.5": remembered(0.5),
    "season": season,
}


def main(years: int, machines: list[str]) -> None:
    """Print both parts, and the JSON line."""
    found: dict[str, object] = {
        f"false alarms, {name}": false_alarms(name, noise, years) for name, noise in NOISES.items()
    }
    specs = [load_machines()[machine] for machine in machines]
    found |= {name: power(name, fault, specs) for name, fault in FAULTS.items()}
    print(json.dumps(found))


def false_alarms(name: str, noise: Noise, years: int) -> dict[str, float]:
    """Share of years with an alarm, and with one of 2% or more."""
    any_alarm = told = 0
    days = pd.date_range("2026-01-01", periods=NIGHTS)
    for year in range(years):
        random = np.random.default_rng(year)
        of_night = SPREAD * noise(random, (NIGHTS, 1)) + SPREAD * noise(random, (NIGHTS, GROUPS))
        rows = periods_of(
            pd.DataFrame(
                {
                    "setting": "size 32000000",
                    "place": np.repeat(["core", "node"], GROUPS * NIGHTS // 2),
                    "kind": np.repeat([*("compute", "memory", "cache", "other")] * 2, NIGHTS),
                    "collected_at": np.tile(days, GROUPS),
                    "run": np.tile(np.arange(NIGHTS), GROUPS),
                    "level": of_night.T.ravel(),
                    "kernels_count": 10,
                    "environment": "gcc",
                }
            )
        )
        any_alarm += len(rows) > GROUPS
        told += bool(MachineHealth.of_periods(rows).changes)
    print(f"{name}: {any_alarm} of {years} years with an alarm, {told} at their end with one of 2% or more", flush=True)
    return {"years": years, "share_with_alarm": any_alarm / years, "share_told": told / years}


def power(name: str, fault: Fault, specs: list[MachineSpec]) -> dict[str, float]:
    """What people are told of the fault on each machine that it changes."""
    rows = pd.DataFrame([_on_machine(fault, spec) for spec in specs if fault.on(spec) != spec])
    for row in rows.to_dict("records"):
        print(f"{name}: " + ", ".join(f"{key} {value}" for key, value in row.items()), flush=True)
    told = rows[rows["nights"].notna()]
    return {
        "machines": len(rows),
        "told_of": len(told),
        "nights_median": float(told["nights"].median()),
        "days_off_median": float(told["days_off"].median()),
    }


def _on_machine(fault: Fault, spec: MachineSpec) -> dict[str, object]:
    """Nights until the first alarm, and what is said after all nights."""
    history = pd.concat([_history(run) for run in nightly_runs(spec, BEFORE + AFTER, 0, fault, BEFORE)])
    every, day = levels(with_kinds(history)), sorted(history["collected_at"].unique())
    said = MachineHealth.of_periods(periods_of(every)).text or "nothing"
    for night in range(BEFORE, BEFORE + AFTER):
        health = MachineHealth.of_periods(periods_of(every[every["collected_at"] <= day[night]]))
        if health.changes:
            off = (pd.Timestamp(health.changes[0].since) - day[BEFORE].normalize()).days
            return {"machine": spec.machine, "nights": night - BEFORE + 1, "days_off": abs(off), "says": said}
    return {"machine": spec.machine, "nights": None, "days_off": None, "says": said}


def _history(run: BenchmarkRun) -> pd.DataFrame:
    kernels = [kernel for kernel in run.kernels if kernel.reps and kernel.is_checksum_ok]
    places = {"Seq": "core", "OpenMP": "node", "CUDA": "device", "HIP": "device"}
    return pd.DataFrame(
        {
            "run": str(run.launched_at),
            "collected_at": pd.Timestamp(run.launched_at, unit="s"),
            "setting": "size 32000000",
            "place": [places[kernel.variant.partition("_")[2]] for kernel in kernels],
            "kernel": [kernel.kernel for kernel in kernels],
            "problem_size": [kernel.problem_size for kernel in kernels],
            "variant": [kernel.variant for kernel in kernels],
            "tuning": [kernel.tuning for kernel in kernels],
            "seconds_per_rep": [float(np.mean(kernel.pass_seconds)) / kernel.reps for kernel in kernels],
            "bytes_per_rep": [float(kernel.bytes_per_rep) for kernel in kernels],
            "flops_per_rep": [float(kernel.flops_per_rep) for kernel in kernels],
            "environment": run.compiler,
        }
    )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="2 years and 2 machines")
    chosen = parser.parse_args()
    every_machine = [*SOURCE_MACHINES, *LATER_MACHINES]
    main(2 if chosen.quick else 100, ["quartz", "lassen"] if chosen.quick else every_machine)
