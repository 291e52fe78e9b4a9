"""Asset of the scheduling experiment: what predictions are worth to a scheduler."""

from typing import TYPE_CHECKING

import dagster as dg
from pydantic import Field

from perf_assets.core.tables.runs import FEATURES
from perf_assets.core.tables.schedule import TURNAROUND
from perf_assets.core.text import markdown_rows
from perf_assets.defs.failures import explained
from perf_assets.defs.resources import LakeResource
from perf_assets.defs.specs import Metadata, asset_spec
from perf_assets.defs.targets.assets import ADAPTED
from perf_assets.storage.checkpoints import Unfinished
from perf_assets.storage.pages import store_page
from perf_assets.storage.results import store

if TYPE_CHECKING:
    import pandas as pd

    from perf_assets.scheduling.experiment import Experiment

_ORIGIN = (
    "Trace: when jobs come, how wide and long they are, what users ask for ({trace}). Fleet: how much longer a job "
    "takes on fewer nodes ({fleet}). Target model: what the scheduler expects (predicted, for runs it has not seen)."
)


class ScheduleConfig(dg.Config):
    """Which trace, on which machine."""

    trace: str | None = Field(default=None, description="SWF file, plain or gzip; a made-up trace where not given")
    nodes: int | None = Field(default=None, ge=1, description="Nodes; those that the trace names where not given")
    machine: str | None = Field(default=None, description="Machine whose runs say how jobs scale; needs a target model")
    repetitions: int = Field(default=20, ge=1, description="Shaken traces at full load, the trace as it is included")
    seed: int = Field(default=0, ge=0, description="Of which job is which problem, and of the made-up trace")


@dg.multi_asset(
    specs=[asset_spec(TURNAROUND, {"numba", "parquet"}, [FEATURES.name, ADAPTED])], name="simulate_schedules"
)
@explained
def simulate_schedules(
    context: dg.AssetExecutionContext, config: ScheduleConfig, lake: LakeResource
) -> dg.MaterializeResult[None]:
    """Schedule the trace by all strategies over loads, and draw what comes out."""
    import pandas as pd

    from perf_assets.defs.scheduling.inputs import fleet_problems, given_trace, most_scaling_machine
    from perf_assets.scheduling.experiment import LOADS, Experiment
    from perf_assets.scheduling.simulate import Machine

    trace, nodes = given_trace(config.trace, config.nodes, config.seed)
    name = config.machine or most_scaling_machine(lake)
    experiment = Experiment(trace, fleet_problems(lake, [name]), Machine(name, nodes), config.seed)
    context.log.info(f"{trace.name}: {len(trace)} jobs, load {trace.load(nodes):.2f} on {nodes} nodes")
    kept = Unfinished(lake.lake(), TURNAROUND.name, experiment.digest)
    rows = pd.DataFrame(experiment.rows(LOADS, config.repetitions, context.log.info, kept)).assign(
        trace=trace.name,
        machine=name,
        nodes_count=nodes,
        is_trace_simulated=trace.is_simulated,
        is_simulated=lake.is_simulated(name) or trace.is_simulated,
    )
    path = store(lake.lake(), lake.warehouse(), TURNAROUND, rows)
    kept.finish()
    return dg.MaterializeResult(
        metadata={
            "dagster/row_count": len(rows),
            "skipped": ", ".join(f"{count} {reason}" for reason, count in trace.skipped.items()) or "nothing",
            "record": dg.MetadataValue.path(path),
            **_findings(experiment, rows),
            **_page(lake, experiment, rows),
        }
    )


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
