"""`perf-assets alerts`."""

import click

from perf_assets.cli.support.options import json_option
from perf_assets.cli.support.output import print_json, print_table
from perf_assets.core.errors import BadInputError
from perf_assets.storage.lake import Lake


@click.command()
@click.option("--test", "is_test", is_flag=True, help="Send a message to each of them.")
@json_option
def command(is_test: bool, as_json: bool) -> None:
    """Say who is told when something goes wrong, as site.yaml in the lake says; with --test, tell them now.

    'perf-assets up' tells of failed runs, failed blocking checks, drift, machines that were not measured for long, and
    disks that fill up: once while it stays wrong.
    """
    from perf_assets.core.site import FILE_NAME, load_site
    from perf_assets.workflows.operate.alerts import Alert, channels_of

    lake = Lake.default()
    settings = load_site(lake.root).alerts
    channels = channels_of(settings)
    if is_test and not channels:
        raise BadInputError(
            f"{lake.root / FILE_NAME} names nobody to tell: write 'alerts' with 'webhook' or 'mail' there"
        )
    if is_test:
        problems = []
        for send in channels.values():
            try:
                send([Alert("test", "a test of the alerts of perf_assets", f"for the lake {lake.root}")])
            except BadInputError as error:
                problems.append(str(error))
        if problems:
            raise BadInputError("; ".join(problems))
    where = {"webhook": settings.webhook_host, "mail": ", ".join(settings.mail.to) if settings.mail else ""}
    rows = {name: where[name] for name in channels}
    if as_json:
        print_json({"channels": rows, "repeat_hours": settings.repeat_hours, "was_tested": is_test})
    else:
        state = "took the test message" if is_test else f"again after {settings.repeat_hours:g} h"
        print_table("Alerts", ["by", "to", ""], [(name, place, state) for name, place in rows.items()])
