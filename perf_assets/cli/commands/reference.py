"""`perf-assets reference`."""

from pathlib import Path

import click

from perf_assets.cli.support.lake import check_machine
from perf_assets.cli.support.options import json_option
from perf_assets.cli.support.output import check_folder, print_json, say

_HEAD = """\
# Predicted reference values of {machine}: not measured there. Each is [seconds, lower, upper, unit] as in ReFrame: a
# run passes between value x (1 + lower) and value x (1 + upper), which are the ends of the 90% interval, so that about
# one good run of ten lies outside.{simulated}
"""


@click.command()
@click.argument("machine")
@click.option("--app", help="Of this application only.")
@click.option("--out", type=click.Path(path_type=Path), help="Write into this file.")
@json_option
def command(machine: str, app: str | None, out: Path | None, as_json: bool) -> None:
    """Write predicted reference values of MACHINE with tolerances, for acceptance tests: YAML in ReFrame's manner.

    A test for each configuration that ran on the reference machine of its champion.
    """
    import yaml

    from perf_assets.api import open_lake
    from perf_assets.infra.files import replacing
    from perf_assets.serving.listing import references

    check_machine(machine)
    lake = open_lake()
    runs = lake.runs(lake.reference_machine(machine), app=app)
    found = references(machine, lake.predict(runs, to=machine, with_measured=False))
    found["is_simulated"] = any(
        m.is_simulated for m in lake.models() if f"{m.name} version {m.version}" in found["models"]
    )
    if as_json:
        print_json(found)
        return
    simulated = "\n# They come from simulated data." if found["is_simulated"] else ""
    text = _HEAD.format(machine=machine, simulated=simulated) + yaml.safe_dump(found, sort_keys=False, width=120)
    if out is None:
        click.echo(text, nl=False)
        return
    check_folder(out)
    with replacing(out.absolute()) as temporary:
        temporary.write_text(text)
    say(f"{len(found['tests'])} references are in {out}")
