"""Answers of runs that were measured on the machine that is asked about."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from perf_assets.core.catalogue import Catalogue, load_catalogue
from perf_assets.core.errors import BusyError
from perf_assets.core.tables.runs import CONFIGURATION, CURRENT_RUNS, FEATURES
from perf_assets.serving.answers import Prediction
from perf_assets.serving.requests import Run
from perf_assets.storage.lake import Lake
from perf_assets.storage.record import MachineRecord
from perf_assets.workflows.fleet import open_warehouse

MEASURED = "measured"
"""Name in the place of a model's in answers that are measurements."""
_TIMES = f"""
    SELECT {", ".join(CONFIGURATION)}, coalesce(gpus, 0) AS gpus, runs_count,
        wall_seconds, wall_seconds_min, wall_seconds_max
    FROM {FEATURES.name} WHERE machine = $machine AND wall_seconds IS NOT NULL
"""
_DATES = f"""
    SELECT {", ".join(CONFIGURATION)}, max(collected_at) AS measured_at FROM {CURRENT_RUNS} WHERE machine = $machine
    GROUP BY ALL
"""
_WAIT_SECONDS = 1.0
"""Longest wait for a process that writes the warehouse, if its earlier state is known."""


@dataclass(frozen=True)
class _Measured:
    """Times of one machine as the warehouse had them at some state of its files."""

    state: tuple[int, int]
    catalogue: Catalogue
    times: dict[tuple[object, ...], dict[str, Any]]
    """Row of the warehouse by configuration, with the date."""

    def row(self, run: Run) -> dict[str, Any] | None:
        """Row of a run that was measured; None without one."""
        key = (run.app, self.catalogue.comparable_args(run.args), run.ranks_there, run.threads)
        row = self.times.get(key)
        return row if row is not None and run.uses_gpus in (None, bool(row["gpus"])) else None


class Measurements:
    """Measured times of machines, read when they are first asked for and whenever their files have changed."""

    def __init__(self, lake: Lake) -> None:
        self._lake = lake
        self._read: dict[str, _Measured] = {}

    def are_without(self, runs: Sequence[Run], machine: str) -> bool:
        """Whether none of the runs was measured on the machine, as far as is known without reading; never waits."""
        present = self._read.get(machine)
        if present is None or present.state != self._state(machine):
            return not self._lake.warehouse.is_file()
        return all(present.row(run) is None for run in runs)

    def of_runs(self, runs: Sequence[Run], machine: str) -> dict[int, Prediction]:
        """Answers by the position of a run, of those whose configuration was measured on the machine."""
        if not self._lake.warehouse.is_file():
            return {}
        measured = self._of_machine(machine)
        rows = {position: measured.row(run) for position, run in enumerate(runs)}
        return {position: _answer(runs[position], machine, row) for position, row in rows.items() if row is not None}

    def _of_machine(self, machine: str) -> _Measured:
        present, state = self._read.get(machine), self._state(machine)
        if present is not None and present.state == state:
            return present
        try:
            read = self._measured(machine, state, 60.0 if present is None else _WAIT_SECONDS)
        except BusyError:
            if present is None:
                raise
            return present
        self._read[machine] = read
        return read

    def _measured(self, machine: str, state: tuple[int, int], wait_seconds: float) -> _Measured:
        catalogue = load_catalogue(self._lake.site_catalogues())
        warehouse, named = open_warehouse(self._lake, wait_seconds), {"machine": machine}
        dates = {
            (row["app"], catalogue.comparable_args(str(row["args"])), row["ranks"], row["threads"]): row["measured_at"]
            for row in warehouse.frame(_DATES, dict(named)).to_dict("records")
        }
        times: dict[tuple[object, ...], dict[str, Any]] = {}
        for row in warehouse.frame(_TIMES, dict(named)).to_dict("records"):
            key = tuple(row[name] for name in CONFIGURATION)
            times[key] = {**{str(name): value for name, value in row.items()}, "measured_at": dates[key]}
        return _Measured(state, catalogue, times)

    def _state(self, machine: str) -> tuple[int, int]:
        """Times of the last change of the machine's record and of the warehouse."""
        ledger = MachineRecord(self._lake.record, machine).ledger_file()
        return _written_at(ledger), _written_at(self._lake.warehouse)


def _written_at(path: Path) -> int:
    try:
        return path.stat().st_mtime_ns
    except FileNotFoundError:
        return 0


def _answer(run: Run, target: str, row: dict[str, Any]) -> Prediction:
    seconds, least, most = (float(row[name]) for name in ("wall_seconds", "wall_seconds_min", "wall_seconds_max"))
    count = int(row["runs_count"])
    spread = "one run" if count == 1 else f"{count} runs, {least:.4g} to {most:.4g} s"
    warning = f"measured on {target} itself, {row['measured_at']:%Y-%m-%d} ({spread}): no prediction"
    bounds = (seconds, least, most)
    return Prediction.of_run(run, target, bounds, (MEASURED, 0), observed_count=count, warnings=[warning])
