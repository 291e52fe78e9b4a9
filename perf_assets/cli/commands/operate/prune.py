"""`perf-assets prune`."""

import click

from perf_assets.cli.support.options import json_option
from perf_assets.cli.support.output import print_json, print_table, say
from perf_assets.storage.lake import Lake


@click.command()
@click.option("--dry-run", is_flag=True, help="Say what would be removed.")
@json_option
def command(dry_run: bool, as_json: bool) -> None:
    """Remove old versions of models, with their files, and old runs of MLflow that nothing needs any more.

    Kept are versions with an alias and those that 'rollback' goes back to, the source models and encoders of all that
    is kept, and, as site.yaml in the lake says, the newest (retention: versions, 5) and the young (days, 180). What
    landed and the record are never touched.
    """
    from perf_assets.workflows.operate.prune import prune

    removable = prune(Lake.default(), say, is_trial=dry_run)
    versions, runs = (removable.versions, removable.runs) if removable else ((), ())
    if as_json:
        removed = [{"name": name, "version": number} for name, number in versions]
        print_json({"versions": removed, "runs": list(runs), "is_dry_run": dry_run})
    else:
        numbers: dict[str, list[str]] = {}
        for name, number in versions:
            numbers.setdefault(name, []).append(str(number))
        title = f"{'Would be removed' if dry_run else 'Removed'}: {len(versions)} versions, {len(runs)} runs"
        print_table(title, ["model", "versions"], [(name, ", ".join(own)) for name, own in numbers.items()])
