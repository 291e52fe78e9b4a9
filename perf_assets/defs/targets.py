"""Assets of target models: adapted to a machine, scored over the number of its runs, and shown on its page."""

import dagster as dg
from pydantic import Field

from perf_assets.core.errors import BadInputError
from perf_assets.core.model_tables import AMMS, TRANSFER_MATRIX, TRANSFER_SCORES
from perf_assets.core.run_tables import COUNTERS_WIDE, FEATURES
from perf_assets.core.tables import SPECS, TIMINGS
from perf_assets.defs.machine_facts import machine_facts
from perf_assets.defs.models import TrainingConfig
from perf_assets.defs.partitions import machines
from perf_assets.defs.resources import LakeResource
from perf_assets.defs.table_metadata import asset_spec, model_spec
from perf_assets.storage.files import replacing_folder
from perf_assets.storage.results import drop_parts, has_rows, store, store_part, stored

ADAPTED = "model_target__adapted"
PAGE = "out_report__machine"
_FLEET = [FEATURES.name, TIMINGS.name, SPECS.name]


class SeedsConfig(dg.Config):
    """How much to compute."""

    seeds: int = Field(default=5, ge=1, description="Random draws of shots")


@dg.multi_asset(
    specs=[
        model_spec(
            ADAPTED,
            "Target model of a machine: runs on a reference machine, a prior from the other machines, corrected by "
            "the machine's own runs. Chosen on held-out runs; registered in MLflow as perf-target-<machine>@champion.",
            {"mlflow", "python"},
            _FLEET,
        )
    ],
    partitions_def=machines,
    name="adapt_machine",
)
def adapt_machine(
    context: dg.AssetExecutionContext, config: TrainingConfig, lake: LakeResource
) -> dg.MaterializeResult[None]:
    """Adapt, register, and keep the fitted model for the plan of next runs."""
    from perf_assets.features.fleet_samples import fleet_samples
    from perf_assets.models.adapted import adapt
    from perf_assets.registry.store import open_store
    from perf_assets.registry.target import candidate_table, register_target

    open_store()
    adapted = adapt(fleet_samples(lake.fleet_tables()), context.partition_key, config.seed, context.log.info)
    version = register_target(adapted, lake.provenance() | {"seed": str(config.seed)})
    with replacing_folder(lake.target_folder(context.partition_key)) as folder:
        adapted.save(folder)
    candidates = candidate_table(adapted)
    return dg.MaterializeResult(
        metadata={
            "mlflow_version": f"{version.name} version {version.version}",
            "mlflow_uri": version.uri,
            "candidates_on_held_out_shots": dg.MetadataValue.md(candidates.to_markdown(index=False, floatfmt=".3f")),
            **{f"shots of {name}": view.shots for name, view in adapted.views.items()},
            **lake.provenance(),
        }
    )


@dg.multi_asset(
    specs=[asset_spec(TRANSFER_SCORES, {"parquet"}, [*_FLEET, ADAPTED])],
    partitions_def=machines,
    name="score_machine",
)
def score_machine(
    context: dg.AssetExecutionContext, config: SeedsConfig, lake: LakeResource
) -> dg.MaterializeResult[None]:
    """Error over the number of shots, beside baselines on the same rows; none for a machine with too few runs."""
    from perf_assets.features.fleet_samples import fleet_samples
    from perf_assets.models.transfer_matrix import learning_curve

    machine = context.partition_key
    rows = learning_curve(fleet_samples(lake.fleet_tables()), machine, config.seeds, context.log.info)
    rows = rows.assign(machine=machine, is_simulated=lake.is_simulated(machine))
    path = store(lake.lake(), lake.warehouse(), TRANSFER_SCORES, rows, machine)
    shown = rows.pivot_table(index=["target", "method"], columns="shots", values="mape_ratio").reset_index()
    return dg.MaterializeResult(
        metadata={
            "dagster/partition_row_count": len(rows),
            "mape_by_shots": dg.MetadataValue.md(shown.to_markdown(index=False, floatfmt=".3f")),
            "record": dg.MetadataValue.path(path),
        }
    )


@dg.multi_asset(
    specs=[
        model_spec(
            PAGE,
            "Page of a machine: AMM, severity, chosen model and candidates, learning curve, calibration, alignment of "
            "counters, next runs.",
            {"html"},
            [ADAPTED, TRANSFER_SCORES.name, AMMS.name, COUNTERS_WIDE],
        )
    ],
    partitions_def=machines,
    name="write_machine_page",
)
def write_machine_page(context: dg.AssetExecutionContext, lake: LakeResource) -> dg.MaterializeResult[None]:
    """Write the page of a machine that has a target model."""
    from perf_assets.reports.machine_page import machine_page
    from perf_assets.storage.pages import store_page

    machine = context.partition_key
    facts = machine_facts(lake, machine)
    path = store_page(lake.lake(), f"machine-{machine}.html", machine_page(facts))
    proposal = store_page(lake.lake(), f"catalogue-{machine}.yaml", facts.catalogue_proposal)
    return dg.MaterializeResult(
        metadata={
            "page": dg.MetadataValue.path(path),
            "open": dg.MetadataValue.url(path.as_uri()),
            "catalogue_proposal": dg.MetadataValue.path(proposal),
        }
    )


@dg.multi_asset(specs=[asset_spec(TRANSFER_MATRIX, {"parquet"}, _FLEET)], name="score_all_pairs")
def score_all_pairs(
    context: dg.AssetExecutionContext, config: SeedsConfig, lake: LakeResource
) -> dg.MaterializeResult[None]:
    """Score every ordered pair; pairs that are already scored on the same samples are not scored again."""
    from perf_assets.features.fleet_samples import fleet_samples
    from perf_assets.models.transfer_matrix import matrix, pairs

    samples, is_simulated = fleet_samples(lake.fleet_tables()), lake.is_simulated()
    every = pairs(samples, config.seeds)
    if not every:
        raise BadInputError("no two machines share enough configurations to score: land more runs")
    done = set()
    if has_rows(lake.lake(), TRANSFER_MATRIX):
        found = stored(lake.lake(), TRANSFER_MATRIX, "")
        if (found["data_digest"] != f"{samples.digest}:{config.seeds}").any():
            drop_parts(lake.lake(), TRANSFER_MATRIX)
        else:
            done = set(found[["source", "target"]].itertuples(index=False, name=None))
    todo = [pair for pair in every if (pair.source, pair.target) not in done]
    for count, (pair, rows) in enumerate(matrix(samples, todo), 1):
        rows = rows.assign(data_digest=f"{samples.digest}:{config.seeds}", is_simulated=is_simulated)
        store_part(lake.lake(), TRANSFER_MATRIX, rows, f"source={pair.source}/target={pair.target}")
        context.log.info(f"{pair.source} -> {pair.target}: {count} of {len(todo)} pairs")
    from perf_assets.reports.inline import data_uri
    from perf_assets.reports.machine_figures import severity_against_gain

    lake.warehouse().load_results(TRANSFER_MATRIX)
    scores = stored(lake.lake(), TRANSFER_MATRIX, "")
    shown = scores.pivot_table(index="method", columns="shots", values="mape_ratio", aggfunc="median").reset_index()
    path = lake.lake().reports / "severity_against_gain.png"
    path.parent.mkdir(parents=True, exist_ok=True)
    severity_against_gain(scores, path)
    picture = data_uri(lambda target: severity_against_gain(scores, target))
    return dg.MaterializeResult(
        metadata={
            "dagster/row_count": len(scores),
            "pairs_count": len(every),
            "pairs_kept_from_before_count": len(every) - len(todo),
            "median_mape_by_shots": dg.MetadataValue.md(shown.to_markdown(index=False, floatfmt=".3f")),
            "severity_against_gain": dg.MetadataValue.md(f"![severity against gain]({picture})"),
            "picture": dg.MetadataValue.path(path),
        }
    )
