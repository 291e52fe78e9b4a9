"""`perf-assets predict`."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from perf_assets.cli.support.lake import check_machine
from perf_assets.cli.support.options import json_option, run_options
from perf_assets.cli.support.output import check_folder, print_json, print_table, say
from perf_assets.core.errors import BadInputError
from perf_assets.core.text import csv_of

if TYPE_CHECKING:
    from perf_assets.serving.answers import Prediction, Rows

_SHOWN_ARGS = 60
"""Letters of arguments in the table; --json and --csv have all."""


@click.command()
@click.argument("profiles", nargs=-1, type=click.Path(path_type=Path), metavar="[PROFILE]...")
@click.option("--from", "source", required=True, metavar="MACHINE", help="Machine that the runs were measured on.")
@click.option("--to", "target", required=True, metavar="MACHINE|all", help="Machine to predict for.")
@run_options
@click.option("--gpus/--no-gpus", "uses_gpus", default=None, help="Whether the program uses GPUs where there are some.")
@json_option
@click.option("--csv", "as_csv", is_flag=True, help="Print as CSV.")
@click.option("--out", type=click.Path(path_type=Path), help="Write into this file instead: .json, or else CSV.")
def command(
    profiles: tuple[Path, ...],
    source: str,
    target: str,
    uses_gpus: bool | None,
    as_json: bool,
    as_csv: bool,
    out: Path | None,
    **given: Any,
) -> None:
    """Say how long runs that were measured on one machine take on another, with 90% intervals.

    Each PROFILE is a file or folder of any format that 'perf-assets read' knows, or a landed bundle. Without any, the
    runs come from the warehouse: all of the machine, or those of --app, --args and --ranks.
    """
    from perf_assets.api import open_lake

    if as_json and as_csv:
        raise BadInputError("--json and --csv exclude each other: choose one")
    for machine in (source, *([] if target == "all" else [target])):
        check_machine(machine)
    said = {name: value for name, value in given.items() if value is not None}
    lake = open_lake()
    if profiles:
        runs = lake.read(source, *profiles, uses_gpus=uses_gpus, **said)
    else:
        only_files = sorted(set(said) - {"app", "args", "ranks"})
        if only_files:
            raise BadInputError(f"--{only_files[0].replace('_', '-')} is for a PROFILE: name one")
        runs = lake.runs(source, **said, uses_gpus=uses_gpus)
    answers = lake.predict(runs, to=target)
    for note in answers.notes:
        say(note)
    if out is not None:
        _write(out, answers)
        say(f"{len(answers)} predictions are in {out}")
    elif as_json:
        print_json({"predictions": answers.to_dicts()})
    elif as_csv:
        click.echo(_csv(answers), nl=False)
    else:
        _print(answers)


def _print(answers: "Rows[Prediction]") -> None:
    columns = ["application", "configuration", "measured s", "on", "relative", "predicted s", "90% interval s"]
    print_table(
        f"{len(answers)} predictions from runs on {answers[0].source_machine}",
        [*columns, "model", "AMM"],
        [
            (
                answer.app,
                f"{_shortened(answer.args)} ({answer.ranks} x {answer.threads})".strip(),
                f"{answer.source_seconds:.4g}",
                answer.target_machine,
                f"{answer.relative_time:.3g}",
                f"{answer.predicted_seconds:.4g}",
                f"{answer.lower_seconds:.4g} to {answer.upper_seconds:.4g}",
                f"{'source' if answer.model == 'perf-source' else 'champion'} v{answer.model_version}",
                "with" if answer.is_with_amm else "without",
            )
            for answer in answers
        ],
    )
    warned: dict[str, int] = {}
    for answer in answers:
        for warning in answer.warnings:
            warned[f"{answer.target_machine}: {warning}"] = warned.get(f"{answer.target_machine}: {warning}", 0) + 1
    for warning, count in warned.items():
        say(f"warning ({count} of {len(answers)}): {warning}")


def _shortened(args: str) -> str:
    return args if len(args) <= _SHOWN_ARGS else f"{args[: _SHOWN_ARGS - 1]}…"


def _csv(answers: "Rows[Prediction]") -> str:
    frame = answers.to_frame()
    return csv_of(frame.assign(warnings=frame["warnings"].map("; ".join)))


def _write(out: Path, answers: "Rows[Prediction]") -> None:
    """Whole or not at all."""
    import json

    from perf_assets.infra.files import replacing

    text = json.dumps({"predictions": answers.to_dicts()}, indent=1) if out.suffix == ".json" else _csv(answers)
    check_folder(out)
    with replacing(out.absolute()) as temporary:
        temporary.write_text(text)
