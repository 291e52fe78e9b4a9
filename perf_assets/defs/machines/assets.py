"""Assets of machines: the AMM encoder, each machine's description by it, and the page of all descriptions."""

from collections.abc import Iterator

import dagster as dg
from pydantic import Field

from perf_assets.core.errors import BadInputError, RegistryError, UnreadableFileError
from perf_assets.core.tables.landing import SPECS, TIMINGS
from perf_assets.core.tables.models import AMMS
from perf_assets.core.tables.runs import ENVIRONMENTS
from perf_assets.core.text import markdown_rows
from perf_assets.defs.conditions import WHEN_DATA_LANDS, WHEN_INPUT_CHANGES
from perf_assets.defs.ingest.checks import made_or_not, partitioned_spec
from perf_assets.defs.links import (
    note_checklist,
    page_metadata,
    picture_metadata,
    run_tags,
    version_metadata,
)
from perf_assets.defs.partitions import machines
from perf_assets.defs.resources import LakeResource
from perf_assets.defs.specs import FLEET, POOL, Metadata, TrainingConfig, as_event, asset_spec, model_spec, one_asset

ENCODER = "model_amm__encoder"
MAP = "out_amm__machines"


class EncoderConfig(TrainingConfig):
    """Settings for training the encoder."""

    choose_options: bool = Field(
        default=True,
        description="Choose the options of Algorithm 1 on machines that are held out; otherwise they are the paper's",
    )


@one_asset(
    model_spec(
        ENCODER,
        "Encoder of RAJAPerf results, trained on the machines that are known and frozen. The options of "
        "Algorithm 1 are chosen on machines that are held out. Registered in MLflow as perf-amm; all machines are "
        "described by it in the same step.",
        {"mlflow", "pytorch"},
        FLEET,
    )
)
def model_amm__encoder(
    context: dg.AssetExecutionContext, config: EncoderConfig, lake: LakeResource
) -> dg.MaterializeResult[None]:
    """Choose the options, train, register; then describe every machine, so that later steps find them described."""
    from perf_assets.workflows.machines.describe import train_and_register_encoder

    fleet = lake.fleet()
    tags = fleet.provenance() | {"seed": str(config.seed), **run_tags(context)}
    chooses = config.choose_options
    made = train_and_register_encoder(fleet.tables(), config.seed, tags, context.log.info, chooses_options=chooses)
    for machine in fleet.lake.machines():
        for result in _described(context, lake, machine):
            context.log_event(as_event(result, AMMS.name, machine))
    encoder = made.trained.encoder
    metadata: Metadata = {
        "version": encoder.version,
        "options": encoder.options.name,
        "tried": dg.MetadataValue.md(markdown_rows(made.trained.tried)),
        "machines": ", ".join(made.machines),
        "left_out": "; ".join(made.left_out) or "none",
    }
    data_version = dg.DataVersion(encoder.version)
    return dg.MaterializeResult(metadata=metadata | version_metadata(made.version), data_version=data_version)


@one_asset(
    asset_spec(
        AMMS,
        {"pytorch", "parquet"},
        [TIMINGS.name, ENVIRONMENTS.name, SPECS.name, ENCODER],
        skippable=True,
        automation_condition=WHEN_DATA_LANDS,
    ),
    partitioned_spec(
        AMMS.name,
        "is_described",
        "The machine has enough RAJAPerf runs to be described; otherwise which are missing",
        blocking=False,
    ),
    partitions_def=machines,
    pool=POOL,
)
def model_amm__machines(
    context: dg.AssetExecutionContext, lake: LakeResource
) -> Iterator[dg.MaterializeResult[None] | dg.AssetCheckResult]:
    """Say what a machine is like, by the frozen encoders in use, whether or not they were trained on it.

    One that cannot be described has no rows, and its check says why; later steps may do without.
    """
    from perf_assets.workflows.machines.describe import has_encoder
    from perf_assets.workflows.machines.readiness import Readiness

    machine, missing = context.partition_key, "cannot be described"
    for result in _described(context, lake, machine):
        missing = ""
        yield result
    if missing:
        ready = Readiness.of(lake.fleet(), machine)
        missing = next((item.sentence for item in (ready.kernels, ready.sources) if not item.is_done), missing)
        note_checklist(context, lake, machine)
        if has_encoder():
            counted: Metadata = {"dagster/partition_row_count": 0, "missing": missing}
            yield dg.MaterializeResult(metadata=counted, data_version=dg.DataVersion("not described"))
    yield made_or_not(AMMS.name, "is_described", missing)


def _described(
    context: dg.AssetExecutionContext, lake: LakeResource, machine: str
) -> Iterator[dg.MaterializeResult[None]]:
    """Store a machine's description; one that cannot be described says why and goes on without."""
    from perf_assets.workflows.machines.describe import describe_machine, digest_of_rows

    try:
        rows = describe_machine(lake.fleet(), machine)
    except (RegistryError, UnreadableFileError):
        raise
    except BadInputError as error:
        # What landed is good all the same: the machine is ingested, it only cannot be described.
        context.log.warning(str(error))
        return
    amms = rows[rows["is_chosen"]]
    yield dg.MaterializeResult(
        metadata={
            "dagster/partition_row_count": len(rows),
            "encoder_versions": ", ".join(rows["encoder_version"].unique()),
            "was_in_training": bool(amms["was_in_training"].all()),
            "vector": dg.MetadataValue.md(markdown_rows(amms[["encoder_version", "seen_as", "item", "value"]])),
        },
        data_version=dg.DataVersion(digest_of_rows(rows)),
    )


@one_asset(
    model_spec(
        MAP,
        "AMMs of all machines in one file (Parquet and JSON), and on a page: a heat map, a map of machines.",
        {"parquet", "matplotlib"},
        [AMMS.name],
        automation_condition=WHEN_INPUT_CHANGES,
    )
)
def out_amm__machines(lake: LakeResource) -> dg.MaterializeResult[None]:
    """Write the files and draw the pictures."""
    from perf_assets.workflows.machines.describe import draw_machines

    drawn = draw_machines(lake.lake())
    return dg.MaterializeResult(
        metadata={
            "machines_count": drawn.machines_count,
            "described_by_another_encoder": ", ".join(drawn.stale) or "none",
            **page_metadata(drawn.page),
            "map": picture_metadata(lake.lake(), "amm-map", "Machines", drawn.on_a_map.png),
            "heat_map": picture_metadata(lake.lake(), "amm-vectors", "AMMs", drawn.heat_map.png),
            "json": dg.MetadataValue.path(drawn.page.with_suffix(".json")),
            "parquet": dg.MetadataValue.path(drawn.page.with_suffix(".parquet")),
        }
    )
