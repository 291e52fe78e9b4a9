"""`perf-assets reference`."""

from pathlib import Path
from typing import Any

import click

from perf_assets.cli.support.lake import check_known, check_machine
from perf_assets.cli.support.options import json_option, one_machine
from perf_assets.cli.support.output import check_folder, print_json, say
from perf_assets.storage.lake import Lake

_HEAD = """\
# Predicted reference values of {machine}: not measured there. Each is [seconds, lower, upper, unit] as in ReFrame: a
# run passes between value x (1 + lower) and value x (1 + upper), which are the ends of the 90% interval, so that about
# one good run of ten lies outside.{simulated}
"""


@click.command()
@one_machine
@click.option("--app", help="Of this application only.")
@click.option("--reframe", "as_module", is_flag=True, help="A module with a mixin for ReFrame instead of YAML.")
@click.option("--out", type=click.Path(path_type=Path), help="Write into this file.")
@json_option
def command(machine: str, app: str | None, as_module: bool, out: Path | None, as_json: bool) -> None:
    """Write predicted reference values of MACHINE with tolerances, for acceptance tests: YAML in ReFrame's manner.

    A test for each configuration that ran on the reference machine of its champion.
    """
    check_machine(machine)
    check_known(Lake.default(), [machine])
    if out is not None:
        check_folder(out)
    from perf_assets.api import open_lake
    from perf_assets.infra.files import replacing
    from perf_assets.serving.listing import references
    from perf_assets.serving.reframe import reframe_module

    lake = open_lake()
    runs = lake.runs(lake.reference_machine(machine), app=app)
    found = references(machine, lake.predict(runs, to=machine, with_measured=False))
    found["is_simulated"] = any(
        m.is_simulated for m in lake.models() if f"{m.name} version {m.version}" in found["models"]
    )
    if as_json:
        print_json(found)
        return
    text = reframe_module(found) if as_module else _yaml(found)
    if out is None:
        click.echo(text, nl=False)
        return
    with replacing(out.absolute()) as temporary:
        temporary.write_text(text)
    say(f"{len(found['tests'])} references are in {out}")


def _yaml(found: dict[str, Any]) -> str:
    import yaml

    simulated = "\n# They come from simulated data." if found["is_simulated"] else ""
    head = _HEAD.format(machine=found["machine"], simulated=simulated)
    return head + str(yaml.safe_dump(found, sort_keys=False, width=120))
