"""Links between Dagster, MLflow and the pages in the lake, as metadata."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import dagster as dg

from perf_assets.core.addresses import noted_addresses
from perf_assets.defs.resources import LakeResource
from perf_assets.storage.lake import Lake
from perf_assets.storage.pages import store_page

if TYPE_CHECKING:
    from perf_assets.registry.store import Version


def run_tags(context: dg.AssetExecutionContext) -> dict[str, str]:
    """Tags of a registered version: the Dagster run that made it."""
    run_id = context.run.run_id
    return {"dagster_run_id": run_id, "dagster_run": noted_addresses().run(run_id)}


def version_metadata(version: "Version") -> dict[str, Any]:
    """Metadata of an asset that is a registered version."""
    return registered_metadata(version.name, version.version)


def registered_metadata(name: str, version: int) -> dict[str, Any]:
    """Metadata of an asset that is a registered version, by its name and number."""
    return {
        "mlflow_version": f"{name} version {version}",
        "mlflow_uri": f"models:/{name}/{version}",
        "mlflow": dg.MetadataValue.url(noted_addresses().version(name, version)),
    }


def measured_metadata(name: str, version: int) -> dict[str, Any]:
    """Numbers of a registered version by the names that all models share: Dagster plots them over time."""
    from perf_assets.registry.versions import metrics_of

    return {metric: dg.MetadataValue.float(round(value, 4)) for metric, value in metrics_of(name, version).items()}


def note_checklist(context: dg.AssetExecutionContext, lake: LakeResource, machine: str) -> None:
    """Write the page of a machine without a model, with what it lacks: the step for its page is skipped."""
    from perf_assets.workflows.pages.machine_page import write_checklist

    page = write_checklist(lake.fleet(), machine)
    if page is not None:
        context.log_event(
            dg.AssetMaterialization("out_report__machine", partition=machine, metadata=page_metadata(page))
        )


def page_metadata(page: Path) -> dict[str, Any]:
    """Metadata of an asset that is a page in the lake: where `up` serves it, and its file."""
    return {
        "open": dg.MetadataValue.url(noted_addresses().report(page.name)),
        "page": dg.MetadataValue.path(page),
    }


def picture_metadata(lake: Lake, name: str, title: str, png: bytes) -> dg.MarkdownMetadataValue:
    """A picture that Dagster shows in place: stored beside the pages, because it folds long text away."""
    stored = store_page(lake, f"figure-{name}.png", png)
    return dg.MetadataValue.md(f"![{title}]({noted_addresses().report(stored.name)})")
