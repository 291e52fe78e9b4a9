"""The scheduling experiment: a request, completed by the result that is stored; the simulation, its rows and page."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from pydantic import BaseModel, ConfigDict

from perf_assets.core.tables.schedule import TURNAROUND
from perf_assets.storage.checkpoints import Checkpoints
from perf_assets.storage.pages import store_page
from perf_assets.storage.results import has_rows, store, stored
from perf_assets.workflows.fleet import Fleet

if TYPE_CHECKING:
    import pandas as pd

    from perf_assets.reports.site import Chart
    from perf_assets.scheduling.experiment import Experiment

_ORIGIN = (
    "Trace: when jobs come, how wide and long they are, what users ask for ({trace}). Fleet: how much longer a job "
    "takes on fewer nodes ({fleet}). Target model: what the scheduler expects (predicted, for runs it has not seen)."
)

_REPETITIONS = 20


class Asked(BaseModel):
    """A trace on a machine, with everything that decides the result but the target model."""

    model_config = ConfigDict(frozen=True)

    trace: str | None
    nodes: int | None
    machine: str
    repetitions: int
    seed: int

    @classmethod
    def after(
        cls, before: "pd.DataFrame | None", given: Mapping[str, object], default_machine: Callable[[], str]
    ) -> "Asked":
        """Request with what is given; the rest is as in the stored result, whose champion it fits, or by default.

        Another trace has other nodes: those of the stored result go with its own trace only.
        """
        known = {} if before is None else _request(before)
        if given.get("trace") is not None:
            known = {name: value for name, value in known.items() if name not in ("trace", "nodes")}
        wanted = {**known, **{name: value for name, value in given.items() if value is not None}}
        wanted.setdefault("trace", None)
        wanted.setdefault("nodes", None)
        wanted.setdefault("seed", 0)
        wanted.setdefault("repetitions", _REPETITIONS)
        return cls.model_validate(wanted if "machine" in wanted else {**wanted, "machine": default_machine()})

    def was_made(self, before: "pd.DataFrame | None", champion_version: int) -> bool:
        """Whether the stored result is of this request and this version of the target model."""
        known = {} if before is None else _request(before)
        if before is None or not known or int(before["champion_version"].iloc[0]) != champion_version:
            return False
        nodes = self.nodes if self.nodes is not None else known["nodes"]
        return known == {**self.model_dump(), "nodes": nodes}


def _request(rows: "pd.DataFrame") -> dict[str, object]:
    """Request behind a stored result; nothing of one that was stored before this was kept."""
    if "champion_version" not in rows or rows.empty:
        return {}
    first = rows.iloc[0]
    return {
        "trace": None if first["trace_path"] is None else str(first["trace_path"]),
        "nodes": int(first["nodes_count"]),
        "machine": str(first["machine"]),
        "repetitions": int(rows["repetition"].max()) + 1,
        "seed": int(first["seed"]),
    }


@dataclass(frozen=True, eq=False)
class Simulated:
    """A simulated trace, stored and drawn."""

    experiment: "Experiment"
    rows: "pd.DataFrame"
    """Rows of `out_schedule__turnaround`."""
    champion: str
    """Name and version of the target model behind it."""
    charts: "tuple[Chart, ...]"
    page: Path

    @property
    def origin(self) -> str:
        """Origin of the figures: what is measured, simulated and predicted."""
        return _origin(self.rows)


def simulate_schedules(
    fleet: Fleet,
    given: Mapping[str, object],
    say: Callable[[str], None],
    *,
    loads: Sequence[float] = (),
    only_if_changed: bool = True,
) -> Simulated | None:
    """Schedule a trace by all strategies over loads, store and draw what comes out; None where it would be the same."""
    from perf_assets.workflows.scheduling.scheduled_problems import champion_version, most_scaling_machine

    before = stored(fleet.lake, TURNAROUND, "") if has_rows(fleet.lake, TURNAROUND) else None
    asked = Asked.after(before, given, partial(most_scaling_machine, fleet))
    version = champion_version(asked.machine)
    if only_if_changed and asked.was_made(before, version):
        say(f"kept: {asked.machine}'s champion is still version {version}, and nothing else is asked for")
        return None
    experiment, rows = _simulated(fleet, asked, version, say, loads)
    charts = _charts(experiment, rows)
    return Simulated(
        experiment=experiment,
        rows=rows,
        champion=f"perf-target-{asked.machine} version {version}",
        charts=charts,
        page=_written(fleet, rows, charts),
    )


def _simulated(
    fleet: Fleet, asked: Asked, version: int, say: Callable[[str], None], loads: Sequence[float]
) -> "tuple[Experiment, pd.DataFrame]":
    import pandas as pd

    from perf_assets.scheduling.experiment import LOADS, Experiment
    from perf_assets.scheduling.simulate import Machine
    from perf_assets.workflows.scheduling.scheduled_problems import fleet_problems, given_trace

    trace, nodes = given_trace(asked.trace, asked.nodes, asked.seed)
    experiment = Experiment(trace, fleet_problems(fleet, [asked.machine]), Machine(asked.machine, nodes), asked.seed)
    skipped = ", ".join(f"{count} {reason}" for reason, count in trace.skipped.items()) or "nothing"
    say(f"{trace.name}: {len(trace)} jobs, load {trace.load(nodes):.2f} on {nodes} nodes; skipped: {skipped}")
    kept = Checkpoints(fleet.lake, TURNAROUND.name, experiment.digest)
    rows = pd.DataFrame(experiment.rows(loads or LOADS, asked.repetitions, say, kept)).assign(
        trace=trace.name,
        trace_path=asked.trace,
        seed=asked.seed,
        machine=asked.machine,
        champion_version=version,
        nodes_count=nodes,
        is_trace_simulated=trace.is_simulated,
        is_simulated=fleet.is_simulated(asked.machine) or trace.is_simulated,
    )
    store(fleet.lake, fleet.warehouse, TURNAROUND, rows)
    kept.finish()
    return experiment, rows


def _charts(experiment: "Experiment", rows: "pd.DataFrame") -> "tuple[Chart, ...]":
    from perf_assets.reports.schedule.page import GanttBar, day_chart, sweep_chart, turnaround_chart
    from perf_assets.scheduling.experiment import DAY_SECONDS, FULL_LOAD, bars, busy_day

    nodes = experiment.machine.nodes
    schedules = experiment.schedules(FULL_LOAD)
    begins = busy_day(next(iter(schedules.values())))
    ends = begins + DAY_SECONDS
    panels = {
        name: [
            GanttBar(bar.start, bar.end, bar.first_node, bar.nodes, bar.is_narrower, bar.was_killed)
            for bar in bars(schedule, 0, begins, ends)
        ]
        for name, schedule in schedules.items()
    }
    return (
        turnaround_chart(rows, FULL_LOAD),
        sweep_chart(rows, experiment.trace.load(nodes)),
        day_chart(panels, nodes, begins, ends),
    )


def _written(fleet: Fleet, rows: "pd.DataFrame", charts: "tuple[Chart, ...]") -> Path:
    from perf_assets.reports.schedule.page import schedule_page

    return store_page(fleet.lake, "schedule.html", schedule_page(rows, list(charts), _origin(rows)))


def _origin(rows: "pd.DataFrame") -> str:
    return _ORIGIN.format(
        trace="simulated" if rows["is_trace_simulated"].iloc[0] else "measured",
        fleet="simulated" if rows["is_simulated"].iloc[0] else "measured",
    )
