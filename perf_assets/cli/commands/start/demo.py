"""`perf-assets demo`."""

from collections.abc import Sequence
from pathlib import Path

import click

from perf_assets.cli.commands.landing.ingest import report
from perf_assets.cli.support.demo_fleet import DemoState, arrive_known, arrive_late, in_two_processes, land_next
from perf_assets.cli.support.demo_real import land_real
from perf_assets.cli.support.options import json_option, machine_option
from perf_assets.cli.support.output import print_json, print_table, say, say_stage
from perf_assets.core.errors import BadInputError
from perf_assets.core.paths import check_dagster_home
from perf_assets.storage.lake import Lake

_FIGURE = "few_runs.png"
_QUICK: dict[str, list[str] | int] = {
    "without_amm": ["raw_xgboost"],
    "with_amm": ["raw_amm_xgboost"],
    "machine_models": ["bilinear", "mixture"],
    # Of no answer: an attention is fitted to show which kernels applications behave like.
    "attention_steps": 60,
    "attention_members": 1,
}
"""Methods that a quick choice has: those that take seconds."""
_NEXT = """
All of this is simulated. Look at it:
  make up                                      the Dagster page (lineage, tables, checks), the MLflow page, the site
  .venv/bin/perf-assets demo --next            ten more runs of a late machine land: watch them become a new champion
  {reports}/index.html                 all machines: how well a few runs do, what needs a person
  {reports}/machine-{late}.html          a machine that came late: its model, learning curve, next runs
  .venv/bin/perf-assets predict --from quartz --to {late} --app Kripke   how long its runs on quartz take there
  .venv/bin/perf-assets plan {late}              which runs on it would teach most
  .venv/bin/perf-assets land PATH --machine M  your own measurements (see docs/get_started.md)
"""


@click.command()
@click.option(
    "--scale", default=0.25, show_default=True, help="Size of the fleet's data: 0.1 for a try, 1 in full, 100 for load."
)
@click.option("--seed", default=0, show_default=True, help="Same seed, same files.")
@machine_option
@click.option("--thorough", is_flag=True, help="Choose from all methods: better source models, many times as long.")
@click.option("--next", "is_next", is_flag=True, help="Land the next ten runs of a late machine, and nothing else.")
@click.option(
    "--real",
    type=click.Path(path_type=Path),
    metavar="DIR",
    help="Instead of simulating, land the public measurements in a folder (docs/methods.md names them).",
)
@json_option
def command(
    scale: float, seed: int, chosen: tuple[str, ...], thorough: bool, is_next: bool, real: Path | None, as_json: bool
) -> None:
    """Simulate a fleet: twelve known machines teach models, four others arrive late with ten runs each.

    The files are genuine RAJAPerf, HPCToolkit, PAPI and perf stat formats; the measurements in them are simulated. Most
    runs of the late machines are kept aside, never land, and tell in the end how good the models are. With --next the
    next ten runs of a late machine land (--machine says of which): 'perf-assets up' makes a new model of them.
    """
    lake = Lake.default()
    if real is not None:
        if is_next:
            raise BadInputError("--real lands measurements, --next simulated ones: choose one")
        land_real(lake, real, chosen, seed, is_quick=not thorough, as_json=as_json)
        return
    if is_next:
        _next(lake, chosen, as_json=as_json)
        return
    known, late = _chosen(chosen)
    if not 0 < scale <= 1000:
        raise BadInputError(f"--scale {scale:g} is out of range: give a number above 0 and up to 1000")
    check_dagster_home()
    state = DemoState(scale, seed, dict.fromkeys(late, 1))
    state.save(lake)
    say_stage(f"{len(known)} machines that are known")
    arrived = in_two_processes(arrive_known, state, known)
    problem = _train(seed, is_quick=not thorough) if known and not arrived.failures else ""
    if not arrived.failures and not problem and late:
        say_stage(f"{len(late)} machines that arrive late, with ten runs each")
        arrived = in_two_processes(arrive_late, state, late)
        problem = arrived.problem or _write_page()
    _tell(lake, known, late, arrived.failures, problem, as_json=as_json)


def _chosen(chosen: Sequence[str]) -> tuple[list[str], list[str]]:
    """Machines that are known and machines that arrive late."""
    from perf_assets.demo.fleet_machines import load_machines
    from perf_assets.demo.late import KNOWN_MACHINES, LATE_MACHINES

    every = sorted(load_machines())
    unknown = sorted(set(chosen) - set(every))
    if unknown:
        raise BadInputError(f"machine {unknown[0]!r} is not in the simulated fleet: choose from {', '.join(every)}")
    machines = list(chosen) or [*KNOWN_MACHINES, *LATE_MACHINES]
    return [m for m in machines if m not in LATE_MACHINES], [m for m in machines if m in LATE_MACHINES]


def _train(seed: int, *, is_quick: bool) -> str:
    """Train the source models; why they could not be made, if so."""
    from perf_assets.defs.operate.launch import train_fleet

    try:
        train_fleet(seed, say_stage, _QUICK if is_quick else {}, chooses_amm_options=not is_quick)
    except BadInputError as error:
        return str(error)
    return ""


def _write_page() -> str:
    """Write the first page, and that of the machines' descriptions, which late ones have joined; why not, if so."""
    from perf_assets.defs.operate.launch import write_site

    problems = write_site((), say_stage, has_amms=True)
    _draw(Lake.default())
    return "; ".join(problems)


def _draw(lake: Lake) -> None:
    """The figure of the first page as a file, for those who want to show it elsewhere."""
    from perf_assets.reports.fleet.story import draw_curve
    from perf_assets.workflows.pages.story import story_of

    story = story_of(lake)
    if story is not None:
        draw_curve(story, lake.reports / _FIGURE)


def _tell(
    lake: Lake, known: list[str], late: list[str], failures: dict[str, str], problem: str, *, as_json: bool
) -> None:
    """Print the story and what to look at; exit where something failed."""
    import sys

    from perf_assets.workflows.pages.story import story_rows

    rows = [row for row in story_rows(lake) if row["machine"] in late]
    if as_json:
        print_json({"late_machines": rows, "failures": failures})
    elif rows:
        print_table(
            "Late machines (simulated): error on runs that were kept aside and took part in nothing",
            [
                "machine",
                "runs used",
                "our model %",
                "target-only %",
                "time unchanged %",
                "intervals hold %",
                "runs aside",
            ],
            [
                (
                    row["machine"],
                    row["shots"],
                    *(_percent(row[name]) for name in ("ours", "target_only", "unchanged", "coverage")),
                    row["kept_aside"],
                )
                for row in rows
            ],
        )
    else:
        report(lake, known, [], as_json=False)
    if problem:
        say(f"Not all models were made: {problem}")
    say(_NEXT.format(reports=lake.reports, late=late[0] if late else "dane"))
    for machine, failure in failures.items():
        say(f"perf-assets: ingestion of {machine} failed: {failure}")
    if failures:
        sys.exit(1)


def _percent(ratio: float | None) -> str:
    return "-" if ratio is None else f"{100 * ratio:,.1f}"


def _next(lake: Lake, chosen: tuple[str, ...], *, as_json: bool) -> None:
    if len(chosen) > 1:
        raise BadInputError("--next takes one --machine")
    machine, before, now = land_next(lake, chosen[0] if chosen else None)
    if as_json:
        print_json({"machine": machine, "runs_before": before, "runs": now})
        return
    click.echo(f"{machine}: {now - before} more runs landed, {now} in all.")
    say(
        "'perf-assets up' makes a new model of them within minutes (watch it in the Dagster page); without it: "
        f"'perf-assets ingest --machine {machine}', then 'perf-assets adapt --machine {machine}'."
    )
