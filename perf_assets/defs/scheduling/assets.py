"""Asset of the scheduling experiment: what predictions are worth to a scheduler."""

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING

import dagster as dg
from pydantic import Field

from perf_assets.core.tables.runs import FEATURES
from perf_assets.core.tables.schedule import TURNAROUND
from perf_assets.core.tables.verdicts import VERDICTS
from perf_assets.core.text import markdown_rows
from perf_assets.defs.conditions import FOLLOWS_ONCE_MADE
from perf_assets.defs.failures import explained
from perf_assets.defs.resources import LakeResource
from perf_assets.defs.specs import Metadata, asset_spec
from perf_assets.storage.checkpoints import Unfinished
from perf_assets.storage.pages import store_page
from perf_assets.storage.results import has_rows, store, stored
from perf_assets.workflows.schedule import Asked

if TYPE_CHECKING:
    import pandas as pd

    from perf_assets.scheduling.experiment import Experiment

_ORIGIN = (
    "Trace: when jobs come, how wide and long they are, what users ask for ({trace}). Fleet: how much longer a job "
    "takes on fewer nodes ({fleet}). Target model: what the scheduler expects (predicted, for runs it has not seen)."
)


class ScheduleConfig(dg.Config):
    """Which trace, on which machine; what is not given is as in the stored result, where there is one."""

    trace: str | None = Field(default=None, description="SWF file, plain or gzip; a made-up trace where not given")
    nodes: int | None = Field(default=None, ge=1, description="Nodes; those that the trace names where not given")
    machine: str | None = Field(default=None, description="Machine whose runs say how jobs scale; needs a target model")
    repetitions: int | None = Field(default=None, ge=1, description="Shaken traces at full load, with the trace; 20")
    seed: int | None = Field(default=None, ge=0, description="Of which job is which problem, and of a made-up trace; 0")
    loads: list[float] = Field(default=[], description="Loads of the machine; 0.5 to 1.5 in tenths where none is named")
    only_if_changed: bool = Field(
        default=True, description="Keep the stored result where the champion and all that is given are the same"
    )


@dg.multi_asset(
    specs=[
        asset_spec(TURNAROUND, {"numba", "parquet"}, [FEATURES.name, VERDICTS.name]).replace_attributes(
            skippable=True, automation_condition=FOLLOWS_ONCE_MADE
        )
    ],
    name="simulate_schedules",
)
@explained
def simulate_schedules(
    context: dg.AssetExecutionContext, config: ScheduleConfig, lake: LakeResource
) -> Iterator[dg.MaterializeResult[None]]:
    """Schedule the trace by all strategies over loads, and draw what comes out."""
    from perf_assets.defs.scheduling.inputs import champion_version, most_scaling_machine

    before = stored(lake.lake(), TURNAROUND, "") if has_rows(lake.lake(), TURNAROUND) else None
    given = {name: getattr(config, name) for name in Asked.model_fields}
    asked = Asked.after(before, given, partial(most_scaling_machine, lake))
    version = champion_version(asked.machine)
    if config.only_if_changed and asked.was_made(before, version):
        context.log.info(f"kept: {asked.machine}'s champion is still version {version}, and nothing else is asked for")
        return
    experiment, rows = _simulated(lake, asked, version, context.log.info, config.loads)
    yield dg.MaterializeResult(
        metadata={
            "dagster/row_count": len(rows),
            "champion": f"perf-target-{asked.machine} version {version}",
            **_findings(experiment, rows),
            **_page(lake, experiment, rows),
        }
    )


def _simulated(
    lake: LakeResource, asked: Asked, version: int, say: Callable[[str], None], loads: Sequence[float]
) -> "tuple[Experiment, pd.DataFrame]":
    import pandas as pd

    from perf_assets.defs.scheduling.inputs import fleet_problems, given_trace
    from perf_assets.scheduling.experiment import LOADS, Experiment
    from perf_assets.scheduling.simulate import Machine

    trace, nodes = given_trace(asked.trace, asked.nodes, asked.seed)
    experiment = Experiment(trace, fleet_problems(lake, [asked.machine]), Machine(asked.machine, nodes), asked.seed)
    skipped = ", ".join(f"{count} {reason}" for reason, count in trace.skipped.items()) or "nothing"
    say(f"{trace.name}: {len(trace)} jobs, load {trace.load(nodes):.2f} on {nodes} nodes; skipped: {skipped}")
    kept = Unfinished(lake.lake(), TURNAROUND.name, experiment.digest)
    rows = pd.DataFrame(experiment.rows(loads or LOADS, asked.repetitions, say, kept)).assign(
        trace=trace.name,
        trace_path=asked.trace,
        seed=asked.seed,
        machine=asked.machine,
        champion_version=version,
        nodes_count=nodes,
        is_trace_simulated=trace.is_simulated,
        is_simulated=lake.is_simulated(asked.machine) or trace.is_simulated,
    )
    store(lake.lake(), lake.warehouse(), TURNAROUND, rows)
    kept.finish()
    return experiment, rows


def _findings(experiment: "Experiment", rows: "pd.DataFrame") -> dict[str, dg.MetadataValue | str | float | int]:
    from perf_assets.scheduling.experiment import FULL_LOAD, where_faster
    from perf_assets.scheduling.strategies import PRACTICE, PREDICTOR_MOLDABLE, STRATEGIES

    once = rows[rows["repetition"] == 0]
    keys = zip(once["strategy"], once["load_ratio"], strict=True)
    means = dict(zip(keys, once["turnaround_mean_seconds"], strict=True))
    found: dict[str, dg.MetadataValue | str | float | int] = {
        f"break-even, {name}": where_faster(means, name) for name in STRATEGIES if name != PRACTICE
    }
    gain = 1 - means[PREDICTOR_MOLDABLE, FULL_LOAD] / means[PRACTICE, FULL_LOAD]
    needed = experiment.nodes_to_match(FULL_LOAD)
    nodes = experiment.machine.nodes
    shown = once[once["load_ratio"] == FULL_LOAD].set_index("strategy")
    columns = [
        "turnaround_mean_seconds",
        "wait_mean_seconds",
        "bounded_slowdown_mean",
        "utilisation_ratio",
        "killed_count",
    ]
    return found | {
        "turnaround_gain_ratio at full load": float(gain),
        "nodes practice needs to match": f"{needed} instead of {nodes}" if needed else f"more than 8 times {nodes}",
        "at full load": dg.MetadataValue.md(markdown_rows(shown[columns].reset_index(), ",.2f")),
        "what is measured, simulated and predicted": _origin(rows),
    }


def _page(lake: LakeResource, experiment: "Experiment", rows: "pd.DataFrame") -> Metadata:
    """Write the page; its pictures are on the asset too."""
    from perf_assets.reports.schedule.page import GanttBar, day_chart, schedule_page, sweep_chart, turnaround_chart
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
    charts = [
        turnaround_chart(rows, FULL_LOAD),
        sweep_chart(rows, experiment.trace.load(nodes)),
        day_chart(panels, nodes, begins, ends),
    ]
    path = store_page(lake.lake(), "schedule.html", schedule_page(rows, charts, _origin(rows)))
    return {
        "page": dg.MetadataValue.path(path),
        "open": dg.MetadataValue.url(path.as_uri()),
        **{chart.name: dg.MetadataValue.md(f"![{chart.title}]({chart.picture_address})") for chart in charts},
    }


def _origin(rows: "pd.DataFrame") -> str:
    """What is measured, simulated and predicted."""
    return _ORIGIN.format(
        trace="made up" if rows["is_trace_simulated"].iloc[0] else "measured",
        fleet="simulated" if rows["is_simulated"].iloc[0] else "measured",
    )
