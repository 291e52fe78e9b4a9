"""`perf-assets reference`: predicted reference values, as YAML or as a Python module that ReFrame loads."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click

from perf_assets.cli.support.lake import check_machines
from perf_assets.cli.support.options import json_option, one_machine
from perf_assets.cli.support.output import check_folder, print_json, say

_MODULE = '''\
"""Predicted reference values of {machine}: not measured there{simulated}.

    class Kripke(rfm.RunOnlyRegressionTest, PredictedReferences):
        predicted_app, predicted_args, num_tasks = "Kripke", "--groups 8", 4

        @performance_function("s")
        def {variable}(self): ...

A run passes within the 90% interval of its prediction, so that about one good run of ten does not.
Made by 'perf-assets reference {machine} --reframe' from {models}.
"""

import reframe as rfm

REFERENCES = {{
{rows}
}}
"""(seconds, lower, upper, unit) by application, arguments, tasks and threads of a task."""


# ReFrame 4.10 has another name for mixins.
class PredictedReferences(getattr(rfm, "RegressionTestPlugin", None) or rfm.RegressionMixin):
    """Gives a test its predicted reference, where there is one for what it runs."""

    predicted_app = variable(str)
    predicted_args = variable(str, value="")

    @run_after("init")
    def take_predicted_reference(self):
        key = (self.predicted_app, self.predicted_args, self.num_tasks, self.num_cpus_per_task or 1)
        self.reference = REFERENCES.get(key, {{}})
'''

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
    check_machines([machine])
    if out is not None:
        check_folder(out)
    from perf_assets.api import open_lake
    from perf_assets.infra.files import write_bytes
    from perf_assets.serving.listing import references

    lake = open_lake()
    runs = lake.runs(lake.reference_machine(machine), app=app)
    document = references(machine, lake.predict(runs, to=machine, with_measured=False))
    document["is_simulated"] = any(
        m.is_simulated for m in lake.models() if f"{m.name} version {m.version}" in document["models"]
    )
    if as_json:
        print_json(document)
        return
    text = reframe_module(document) if as_module else _yaml(document)
    if out is None:
        click.echo(text, nl=False)
        return
    write_bytes(out.absolute(), text.encode())
    say(f"{len(document['tests'])} references are in {out}")


def _yaml(document: dict[str, Any]) -> str:
    import yaml

    simulated = "\n# They come from simulated data." if document["is_simulated"] else ""
    head = _HEAD.format(machine=document["machine"], simulated=simulated)
    return head + str(yaml.safe_dump(document, sort_keys=False, width=120))


def reframe_module(document: Mapping[str, Any]) -> str:
    """Text of the module, from what `references` found."""
    rows = []
    for test in document["tests"]:
        key = (test["app"], test["args"], test["ranks"], test["threads"])
        values = {
            system: {name: tuple(value) for name, value in by_name.items()}
            for system, by_name in test["reference"].items()
        }
        rows.append(f"    {key!r}: {values!r},")
    return _MODULE.format(
        machine=document["machine"],
        variable=document["variable"],
        simulated=", and predicted from simulated data" if document.get("is_simulated") else "",
        models=", ".join(document["models"]),
        rows="\n".join(rows),
    )
