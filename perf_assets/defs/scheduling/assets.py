"""Assets of scheduling: how well times at other widths are known, and what predictions are worth to a scheduler."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

import dagster as dg
from pydantic import Field

from perf_assets.core.tables.runs import FEATURES
from perf_assets.core.tables.schedule import SCALING, TURNAROUND
from perf_assets.core.tables.verdicts import VERDICTS
from perf_assets.core.text import markdown_rows
from perf_assets.defs.conditions import WHEN_CHAMPION_CHANGES
from perf_assets.defs.links import page_metadata, picture_metadata
from perf_assets.defs.resources import LakeResource
from perf_assets.defs.specs import Metadata, asset_spec, one_asset
from perf_assets.defs.targets.assets import ADAPTED

if TYPE_CHECKING:
    import pandas as pd

    from perf_assets.scheduling.experiment import Experiment


@one_asset(asset_spec(SCALING, {"python", "parquet"}, [FEATURES.name], automation_condition=WHEN_CHAMPION_CHANGES))
def eval_scaling__widths(context: dg.AssetExecutionContext, lake: LakeResource) -> dg.MaterializeResult[None]:
    """Leave out every width of every application on every machine, and predict it from the others."""
    from perf_assets.workflows.models.scaling import score_widths

    rows = score_widths(lake.fleet(), context.log.info)
    best = rows[[name for name in rows if str(name).endswith("_mape_ratio")]].min(axis=1)
    return dg.MaterializeResult(
        metadata={
            "dagster/row_count": len(rows),
            "as good as the best baseline of each": int((rows["mape_ratio"] <= best).sum()),
            "scores": dg.MetadataValue.md(markdown_rows(rows, ".3g")),
        }
    )


class ScheduleConfig(dg.Config):
    """The trace and its machine; values that are not given are those of the stored result, where there is one."""

    trace: str | None = Field(default=None, description="Job log (SWF, Slurm, CSM, Flux); else a simulated one")
    nodes: int | None = Field(default=None, ge=1, description="Nodes; those that the trace names where not given")
    machine: str | None = Field(default=None, description="Machine whose runs say how jobs scale; needs a target model")
    repetitions: int | None = Field(default=None, ge=1, description="Shaken traces at full load, with the trace; 20")
    seed: int | None = Field(default=None, ge=0, description="Of which job is which problem, and of drawn jobs; 0")
    loads: list[float] = Field(default=[], description="Loads of the machine; 0.5 to 1.5 in tenths where none is named")
    only_if_changed: bool = Field(
        default=True, description="Keep the stored result where the champion and all that is given are the same"
    )


@one_asset(
    asset_spec(
        TURNAROUND,
        {"numba", "parquet"},
        [FEATURES.name, ADAPTED, VERDICTS.name],
        skippable=True,
        automation_condition=WHEN_CHAMPION_CHANGES,
    )
)
def out_schedule__turnaround(
    context: dg.AssetExecutionContext, config: ScheduleConfig, lake: LakeResource
) -> Iterator[dg.MaterializeResult[None]]:
    """Schedule the trace by all strategies over loads, and draw what comes out."""
    from perf_assets.workflows.scheduling.schedule import Asked, simulate_schedules

    given = {name: getattr(config, name) for name in Asked.model_fields}
    made = simulate_schedules(
        lake.fleet(), given, context.log.info, loads=config.loads, only_if_changed=config.only_if_changed
    )
    if made is None:
        return
    pictures = {chart.name: picture_metadata(lake.lake(), chart.name, chart.title, chart.png) for chart in made.charts}
    metadata: Metadata = {
        "dagster/row_count": len(made.rows),
        "champion": made.champion,
        "what is measured, simulated and predicted": made.origin,
        **page_metadata(made.page),
    }
    yield dg.MaterializeResult(metadata=metadata | _findings(made.experiment, made.rows) | pictures)


def _findings(experiment: "Experiment", rows: "pd.DataFrame") -> Metadata:
    from perf_assets.scheduling.experiment import FULL_LOAD, where_faster
    from perf_assets.scheduling.strategies import PRACTICE, PREDICTOR_MOLDABLE, STRATEGIES

    once = rows[rows["repetition"] == 0]
    keys = zip(once["strategy"], once["load_ratio"], strict=True)
    means = dict(zip(keys, once["turnaround_mean_seconds"], strict=True))
    break_even: Metadata = {f"break-even, {name}": where_faster(means, name) for name in STRATEGIES if name != PRACTICE}
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
    return break_even | {
        "turnaround_gain_ratio at full load": float(gain),
        "nodes practice needs to match": f"{needed} instead of {nodes}" if needed else f"more than 8 times {nodes}",
        "at full load": dg.MetadataValue.md(markdown_rows(shown[columns].reset_index(), ",.2f")),
    }
