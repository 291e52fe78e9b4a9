"""Target models of machines: adapted, judged, checked, scored over the number of runs, and shown on a page."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

import dagster as dg
from pydantic import Field

from perf_assets.core.errors import BadInputError, BusyError, RegistryError, UnreadableFileError
from perf_assets.core.tables.landing import COUNTERS, SPECS
from perf_assets.core.tables.models import AMMS, TRANSFER_SCORES
from perf_assets.core.tables.runs import COUNTERS_WIDE, FEATURES
from perf_assets.core.tables.verdicts import VERDICTS
from perf_assets.core.text import markdown_rows
from perf_assets.defs.code_versions import code_version
from perf_assets.defs.conditions import WHEN_CHECKED_INPUT_CHANGES, WHEN_MACHINE_HAS_MODEL
from perf_assets.defs.ingest.checks import made_or_not, partitioned_spec
from perf_assets.defs.links import (
    measured_metadata,
    note_checklist,
    page_metadata,
    picture_metadata,
    registered_metadata,
    run_tags,
)
from perf_assets.defs.partitions import machines
from perf_assets.defs.resources import LakeResource
from perf_assets.defs.sources.assets import WITH_AMM
from perf_assets.defs.specs import POOL, Metadata, TrainingConfig, asset_spec, model_spec, one_asset
from perf_assets.defs.verdicts import curve_result, verdict_check, verdict_result
from perf_assets.storage.lake import Lake
from perf_assets.storage.results import stored_at

if TYPE_CHECKING:
    from perf_assets.workflows.models.target import MadeTarget, TargetRequest

ADAPTED = "model_target__adapted"
PAGE = "out_report__machine"
NOT_MADE = "not_made"
"""Metadata of the observation with the reason why there is no target model."""
_WORKFLOW = "perf_assets.workflows.models.target"


class AdaptationConfig(TrainingConfig):
    """Condition for a new fit."""

    only_if_changed: bool = Field(
        default=True, description="Keep the registered version where it was made of the same data"
    )


class AdaptConfig(AdaptationConfig):
    """Source version to start from, and extent of the fit."""

    source_version: int = Field(
        default=0, ge=0, description="Version of perf-source to start from; 0 is the one in use"
    )
    most_shots: int = Field(default=200, ge=1, description="Most runs on the machine that its model is fitted to")

    def request(self) -> "TargetRequest":
        """Request as workflows take it."""
        from perf_assets.workflows.models.target import TargetRequest

        return TargetRequest(
            seed=self.seed,
            most_shots=self.most_shots,
            source_version=self.source_version or None,
            only_if_changed=self.only_if_changed,
        )


class SeedsConfig(dg.Config):
    """Number of repetitions."""

    seeds: int = Field(default=5, ge=1, description="Random draws of shots")
    shots: list[int] = Field(default=[0, 5, 10, 20, 50], description="Numbers of runs on the machine")


@one_asset(
    model_spec(
        ADAPTED,
        "Target model of a machine: a registered source model, without what it learned from the machine's runs, as "
        "the prior, corrected by the machine's own runs. Where its runs pair with those of no other machine, it is "
        "adapted from the counters of the other machines (ModelX), without a prior. Chosen on held-out runs; "
        "registered in MLflow as perf-target-MACHINE, first as @challenger.",
        {"mlflow", "python"},
        [FEATURES.name, COUNTERS_WIDE, COUNTERS.name, SPECS.name, AMMS.name, WITH_AMM],
        skippable=True,
        automation_condition=WHEN_CHECKED_INPUT_CHANGES,
    ),
    partitioned_spec(
        ADAPTED, "is_made", "The machine has what a model needs; otherwise what is missing", blocking=False
    ),
    partitions_def=machines,
)
def model_target__adapted(
    context: dg.AssetExecutionContext, config: AdaptConfig, lake: LakeResource
) -> Iterator[dg.MaterializeResult[None] | dg.AssetCheckResult]:
    """Adapt and register; a machine that cannot be adapted yet says why, on its page too, and goes on without."""
    from perf_assets.workflows.models.target import make_target

    machine, code = context.partition_key, code_version(_WORKFLOW)
    try:
        made = make_target(lake.fleet(), machine, code, config.request(), run_tags(context), context.log.info)
    except (RegistryError, BusyError, UnreadableFileError):
        raise
    except BadInputError as error:
        context.log.warning(f"no target model of {machine}: {error}")
        context.log_event(dg.AssetObservation(ADAPTED, partition=machine, metadata={NOT_MADE: str(error)}))
        note_checklist(context, lake, machine)
        yield made_or_not(ADAPTED, "is_made", str(error))
        return
    yield dg.MaterializeResult(metadata=_shown(lake.lake(), machine, made), data_version=dg.DataVersion(made.digest))
    yield made_or_not(ADAPTED, "is_made")


@one_asset(
    asset_spec(VERDICTS, {"mlflow", "parquet"}, [ADAPTED, COUNTERS_WIDE], automation_condition=WHEN_MACHINE_HAS_MODEL),
    partitions_def=machines,
    pool=POOL,
)
def eval_target__verdicts(context: dg.AssetExecutionContext, lake: LakeResource) -> dg.MaterializeResult[None]:
    """Compare the newest model with the champion and with baselines; promote it, or leave it a challenger."""
    from perf_assets.registry.target import registered_name
    from perf_assets.workflows.models.target import judge_machine

    machine = context.partition_key
    rows = judge_machine(lake.fleet(), machine)
    return verdict_result(context, registered_name(machine), rows, stored_at(lake.lake(), VERDICTS, machine))


@one_asset(
    asset_spec(
        TRANSFER_SCORES,
        {"parquet"},
        [FEATURES.name, COUNTERS_WIDE, AMMS.name, WITH_AMM],
        skippable=True,
        automation_condition=WHEN_CHECKED_INPUT_CHANGES,
    ),
    partitioned_spec(TRANSFER_SCORES.name, "is_scored", "The machine has runs enough to hold some out", blocking=False),
    partitions_def=machines,
)
def eval_transfer__scores(
    context: dg.AssetExecutionContext, config: SeedsConfig, lake: LakeResource
) -> Iterator[dg.MaterializeResult[None] | dg.AssetCheckResult]:
    """Error over the number of shots, beside baselines on the same rows; none for a machine with too few runs."""
    from perf_assets.workflows.models.target import score_machine

    machine, code = context.partition_key, code_version(_WORKFLOW)
    try:
        rows = score_machine(lake.fleet(), machine, code, config.seeds, config.shots, context.log.info)
    except (RegistryError, UnreadableFileError):
        raise
    except BadInputError as error:
        context.log.warning(f"no scores of {machine}: {error}")
        yield made_or_not(TRANSFER_SCORES.name, "is_scored", str(error))
        return
    yield curve_result(rows, ["target", "method"], stored_at(lake.lake(), TRANSFER_SCORES, machine))
    yield made_or_not(TRANSFER_SCORES.name, "is_scored")


@one_asset(
    model_spec(
        PAGE,
        "Page of a machine: data sheet, predicted against measured, learning curve, calibration, severity, AMM, "
        "alignment of counters, next runs, model history.",
        {"html"},
        [ADAPTED, VERDICTS.name, TRANSFER_SCORES.name, AMMS.name, FEATURES.name, COUNTERS_WIDE, SPECS.name],
        automation_condition=WHEN_CHECKED_INPUT_CHANGES,
    ),
    partitions_def=machines,
)
def out_report__machine(context: dg.AssetExecutionContext, lake: LakeResource) -> dg.MaterializeResult[None]:
    """Write the page of a machine: of its target model, or of what it needs for one."""
    from perf_assets.workflows.pages.machine_page import write_machine_page

    page, proposal = write_machine_page(lake.fleet(), context.partition_key)
    proposed = {} if proposal is None else {"catalogue_proposal": dg.MetadataValue.path(proposal)}
    return dg.MaterializeResult(metadata={**page_metadata(page), **proposed})


def _shown(lake: Lake, machine: str, made: "MadeTarget") -> Metadata:
    """Metadata of a registered version: its errors, and of one that was fitted in this run, all candidates."""
    from perf_assets.registry.target import registered_name

    name = registered_name(machine)
    metadata = measured_metadata(name, made.version) | registered_metadata(name, made.version)
    if made.is_kept:
        return metadata | {"kept": "this version was made of the same data"}
    metadata |= {f"shots of {view}": count for view, count in made.shots.items()} if len(made.shots) > 1 else {}
    if made.picture is None:
        return metadata | {"candidates_on_held_out_shots": "too few runs to hold some out"}
    candidates = made.candidates.drop(columns=["source", "shots"])
    return metadata | {
        "candidates_on_held_out_shots": dg.MetadataValue.md(markdown_rows(candidates, ".3f")),
        "errors_beside_baselines": picture_metadata(
            lake, f"{name}-{made.version}", "errors on held-out runs", made.picture
        ),
    }


check_target = verdict_check("check_target", ADAPTED, VERDICTS, machines, "runs")
