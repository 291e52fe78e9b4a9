"""Assets of target models: adapted to a machine, judged, scored over the number of its runs, shown on its page."""

from collections.abc import Iterator

import dagster as dg
from pydantic import Field

from perf_assets.core.errors import BadInputError, BusyError, RegistryError, UnreadableFileError
from perf_assets.core.tables.landing import COUNTERS, SPECS
from perf_assets.core.tables.models import AMMS, TRANSFER_SCORES
from perf_assets.core.tables.runs import COUNTERS_WIDE, FEATURES
from perf_assets.core.tables.verdicts import VERDICTS
from perf_assets.core.text import markdown_rows
from perf_assets.defs.conditions import FOLLOWS, FOLLOWS_CHECKED
from perf_assets.defs.failures import explained
from perf_assets.defs.links import run_tags, version_link
from perf_assets.defs.partitions import machines
from perf_assets.defs.reports.machine_facts import machine_facts
from perf_assets.defs.resources import LakeResource
from perf_assets.defs.sources.assets import WITH_AMM, TrainingConfig
from perf_assets.defs.specs import Metadata, asset_spec, model_spec
from perf_assets.defs.targets.adaptation import NOT_MADE, inputs_of
from perf_assets.defs.targets.model_card import papers
from perf_assets.defs.targets.verdicts import judge, shown
from perf_assets.storage.results import store

ADAPTED = "model_target__adapted"
PAGE = "out_report__machine"


class AdaptConfig(TrainingConfig):
    """When to fit."""

    only_if_changed: bool = Field(
        default=True, description="Keep the registered version where it was made of the same data"
    )
    source_version: int = Field(
        default=0, ge=0, description="Version of perf-source to start from; 0 is the one in use"
    )
    most_shots: int = Field(default=200, ge=1, description="Most runs on the machine that its model is fitted to")


class SeedsConfig(dg.Config):
    """How much to compute."""

    seeds: int = Field(default=5, ge=1, description="Random draws of shots")
    shots: list[int] = Field(default=[0, 5, 10, 20, 50], description="Numbers of runs on the machine")


@dg.multi_asset(
    specs=[
        model_spec(
            ADAPTED,
            "Target model of a machine: a registered source model, without what it learned from the machine's runs, as "
            "the prior, corrected by the machine's own runs. Chosen on held-out runs; registered in MLflow as "
            "perf-target-MACHINE, first as @challenger.",
            {"mlflow", "python"},
            [FEATURES.name, COUNTERS.name, SPECS.name, AMMS.name, WITH_AMM],
        ).replace_attributes(skippable=True, automation_condition=FOLLOWS_CHECKED)
    ],
    partitions_def=machines,
    name="adapt_machine",
)
@explained
def adapt_machine(
    context: dg.AssetExecutionContext, config: AdaptConfig, lake: LakeResource
) -> Iterator[dg.MaterializeResult[None]]:
    """Adapt and register; a machine that cannot be adapted yet says why and goes on without."""
    from perf_assets.registry.target import made_of, register_target, registered_name
    from perf_assets.workflows.adapt import adapting, reference_machine, target_tags

    machine = context.partition_key
    try:
        inputs = inputs_of(lake, machine, config.seed, config.source_version or None, config.most_shots)
        with adapting(lake.lake(), machine):
            kept = made_of(machine, inputs.digest) if config.only_if_changed else None
            if kept is not None:
                context.log.info(f"{registered_name(machine)} version {kept} was made of the same data and is kept")
                yield _registered(machine, kept, inputs.digest, {"is_kept": True})
                return
            adapted = inputs.adapt(context.log.info)
            tags = target_tags(inputs, lake.provenance(machine)) | run_tags(context)
            formulas = lake.formulas(reference_machine(adapted))
            files, metadata = papers(adapted, formulas, tags)
            version = register_target(adapted, formulas, tags, files)
    except (RegistryError, BusyError, UnreadableFileError):
        raise
    except BadInputError as error:
        context.log.warning(f"no target model of {machine}: {error}")
        context.log_event(dg.AssetObservation(ADAPTED, partition=machine, metadata={NOT_MADE: str(error)}))
        return
    yield _registered(machine, version.version, inputs.digest, {"is_kept": False, **metadata, **tags})


@dg.multi_asset(
    specs=[asset_spec(VERDICTS, {"mlflow", "parquet"}, [ADAPTED]).replace_attributes(automation_condition=FOLLOWS)],
    partitions_def=machines,
    name="judge_machine",
)
@explained
def judge_machine(context: dg.AssetExecutionContext, lake: LakeResource) -> dg.MaterializeResult[None]:
    """Compare the newest model with the champion and with baselines; promote it, or leave it a challenger."""
    from perf_assets.workflows.adapt import adapting

    machine = context.partition_key
    with adapting(lake.lake(), machine):
        rows = judge(lake, machine)
        path = store(lake.lake(), lake.warehouse(), VERDICTS, rows, machine)
    newest = rows.iloc[-1]
    context.log.info(f"perf-target-{machine} version {newest['version']}: {newest['decision']}, {newest['reason']}")
    return dg.MaterializeResult(
        metadata={
            "dagster/partition_row_count": len(rows),
            "decision": str(newest["decision"]),
            "reason": str(newest["reason"]),
            "history": dg.MetadataValue.md(shown(rows)),
            "record": dg.MetadataValue.path(path),
        },
        data_version=dg.DataVersion(f"version {newest['version']} {newest['decision']}"),
    )


@dg.multi_asset(
    specs=[
        asset_spec(TRANSFER_SCORES, {"parquet"}, [FEATURES.name, AMMS.name, WITH_AMM]).replace_attributes(
            skippable=True, automation_condition=FOLLOWS_CHECKED
        )
    ],
    partitions_def=machines,
    name="score_machine",
)
@explained
def score_machine(
    context: dg.AssetExecutionContext, config: SeedsConfig, lake: LakeResource
) -> Iterator[dg.MaterializeResult[None]]:
    """Error over the number of shots, beside baselines on the same rows; none for a machine with too few runs."""
    from perf_assets.models.target.matrix import learning_curve
    from perf_assets.registry.target import log_learning_curve
    from perf_assets.workflows.kept_aside import has_truth, score_kept_aside

    machine = context.partition_key
    try:
        inputs = inputs_of(lake, machine)
        if has_truth(lake.lake(), machine):
            rows = score_kept_aside(lake.lake(), inputs, config.shots, config.seeds, context.log.info)
        else:
            rows = learning_curve(inputs.samples, machine, inputs.prior, config.seeds, context.log.info, config.shots)
    except (RegistryError, UnreadableFileError):
        raise
    except BadInputError as error:
        context.log.warning(f"no scores of {machine}: {error}")
        return
    rows = rows.assign(machine=machine, is_simulated=lake.is_simulated(machine))
    path = store(lake.lake(), lake.warehouse(), TRANSFER_SCORES, rows, machine)
    log_learning_curve(machine, rows)
    table = rows.pivot_table(index=["target", "method"], columns="shots", values="mape_ratio").reset_index()
    yield dg.MaterializeResult(
        metadata={
            "dagster/partition_row_count": len(rows),
            "mape_by_shots": dg.MetadataValue.md(markdown_rows(table, ".3f")),
            "record": dg.MetadataValue.path(path),
        }
    )


@dg.multi_asset(
    specs=[
        model_spec(
            PAGE,
            "Page of a machine: data sheet, predicted against measured, learning curve, calibration, severity, AMM, "
            "alignment of counters, next runs, model history.",
            {"html"},
            [ADAPTED, VERDICTS.name, TRANSFER_SCORES.name, AMMS.name, FEATURES.name, COUNTERS_WIDE, SPECS.name],
        ).replace_attributes(automation_condition=FOLLOWS_CHECKED)
    ],
    partitions_def=machines,
    name="write_machine_page",
)
@explained
def write_machine_page(context: dg.AssetExecutionContext, lake: LakeResource) -> dg.MaterializeResult[None]:
    """Write the page of a machine that has a target model."""
    from perf_assets.reports.machine.page import machine_page
    from perf_assets.storage.pages import machine_page_name, store_page

    machine = context.partition_key
    facts = machine_facts(lake, machine)
    path = store_page(lake.lake(), machine_page_name(machine), machine_page(facts))
    proposal = store_page(lake.lake(), f"catalogue-{machine}.yaml", facts.catalogue_proposal)
    return dg.MaterializeResult(
        metadata={
            "page": dg.MetadataValue.path(path),
            "open": dg.MetadataValue.url(path.as_uri()),
            "catalogue_proposal": dg.MetadataValue.path(proposal),
        }
    )


def _registered(machine: str, version: int, inputs_digest: str, metadata: Metadata) -> dg.MaterializeResult[None]:
    from perf_assets.registry.target import registered_name

    name = registered_name(machine)
    links: Metadata = {
        "mlflow_version": f"{name} version {version}",
        "mlflow_uri": f"models:/{name}/{version}",
        "mlflow": dg.MetadataValue.url(version_link(name, version)),
    }
    return dg.MaterializeResult(metadata=links | metadata, data_version=dg.DataVersion(inputs_digest))
