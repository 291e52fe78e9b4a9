"""The `perf-assets` command: finds the subcommand, loads only that, and turns bad input into one line and exit 2."""

import atexit
import importlib
import os
import sys
import traceback
from pathlib import Path
from typing import NoReturn

import click

from perf_assets.cli.support.groups import CommandGroup
from perf_assets.core.errors import BadInputError
from perf_assets.core.paths import HOME, dagster_home, lake_root

_GROUPS = {
    "start": (
        "Begin",
        {
            "init": "Make a folder with a lake and a Dagster home, where there is no checkout.",
            "demo": "Simulate a fleet and run the whole pipeline on it.",
            "up": "Start the Dagster and MLflow pages; stop them with Ctrl-C.",
            "doctor": "Check this installation and say what to do.",
        },
    ),
    "landing": (
        "Measure and land",
        {
            "probe": "Write the data sheet of a machine by looking at it.",
            "measure": "Measure a command, and leave a bundle that lands as it is.",
            "land": "Put measurements into the landing zone.",
            "ingest": "Read what landed into the record and the warehouse.",
            "withdraw": "Take back a bundle that landed by mistake.",
            "forget": "Take a machine out of the lake.",
            "rename": "Give a machine another name.",
            "environments": "List the software that runs were made with, and choose which of it counts.",
            "counters": "List the counters of each machine and what they stand for.",
            "read": "Print what a file or folder contains.",
        },
    ),
    "models": (
        "Train and govern models",
        {
            "train": "Describe all machines, train the source models and register them.",
            "vectors": "Train and register the model that predicts all machines from one run.",
            "adapt": "Fit, score and register the target model of each machine.",
            "amm": "Show or export the Abstract Machine Models.",
            "models": "List registered models, their aliases and where they come from.",
            "promote": "Make a version of a registered model the champion.",
            "rollback": "Make the previous champion the champion again.",
            "unpin": "Let versions compete again after promote or rollback.",
        },
    ),
    "answers": (
        "Ask",
        {
            "predict": "Predict run times on another machine.",
            "observe": "Hand measured runs to the model in use.",
            "plan": "Rank the runs to do next on a machine.",
            "compare": "Compare machines for a portfolio of applications: time, cost, and how sure that is.",
            "reference": "Write predicted reference values of a machine, for acceptance tests.",
            "serve": "Answer predictions over HTTP.",
            "report": "Write the results as pages for people: a site without network.",
            "export": "Write runs for Thicket, or the inputs of downstream models.",
        },
    ),
    "tables": (
        "Methods on tables of your own",
        {
            "run": "Run a configuration file of xAMM: machine models, training or test on tables.",
            "transfer": "Model a target from few of its rows and a source with other counters.",
            "severity": "Measure how hard a transfer between two tables is.",
            "evaluate": "Score methods beside their baselines on data of your own.",
        },
    ),
    "scheduling": (
        "Schedule jobs",
        {
            "advise": "Say which limit, width and machine to ask for.",
            "simulate": "Schedule a job trace by several policies, with and without predictions.",
            "shadow": "Replay a centre's job log with predictions, and say what they would have saved.",
        },
    ),
    "operate": (
        "Operate an installation",
        {
            "database": "Show or choose the database of Dagster's and MLflow's state.",
            "prune": "Remove old versions of models and old runs that nothing needs.",
            "alerts": "Say who is told when something goes wrong, and try it.",
            "backup": "Save lake, models and Dagster's state in a folder.",
            "restore": "Make a home of what 'perf-assets backup' saved.",
            "vocabulary": "Print every table with its columns, units and keys.",
            "manual": "Print every command with its arguments and options.",
        },
    ),
}
"""Commands by the folder of `commands/` that they stand in, with the folder's title in the help."""
_COMMANDS = {name: help_line for _, commands in _GROUPS.values() for name, help_line in commands.items()}
_FOLDERS = {name: folder for folder, (_, commands) in _GROUPS.items() for name in commands}
_EXTRAS = {
    "models": (
        "duckdb",
        "mlflow",
        "ot",
        "pytorch_tabnet",
        "scipy",
        "sklearn",
        "sqlalchemy",
        "threadpoolctl",
        "torch",
        "xgboost",
    ),
    "reports": ("jinja2", "matplotlib", "tabulate"),
    "schedule": ("numba",),
    "serve": ("fastapi", "httptools", "uvicorn", "uvloop"),
    "platform": ("dagster", "dagster_webserver"),
    "postgres": ("dagster_postgres", "psycopg2"),
    "cluster": ("dagster_dask", "dask", "dask_jobqueue", "distributed"),
}
"""Packages of each extra by the name that is imported; `pyproject.toml` has the distributions."""


class _LazyGroup(CommandGroup):
    """Commands by name, each in a module of the same name in its folder, imported when it is used."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(_COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in _COMMANDS:
            return None
        command: click.Command = importlib.import_module(
            f"perf_assets.cli.commands.{_FOLDERS[cmd_name]}.{cmd_name}"
        ).command
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        for title, commands in _GROUPS.values():
            with formatter.section(title):
                formatter.write_dl(list(commands.items()))


@click.group(cls=_LazyGroup)
@click.version_option(package_name="perf_assets")
@click.option("-C", "folder", metavar="DIR", help="Folder that 'perf-assets init' made: its lake, its Dagster home.")
def cli(folder: str | None) -> None:
    """Performance data, machine models and few-shot performance models of supercomputers."""
    if folder is not None:
        os.environ[HOME] = str(Path(folder).absolute())


def main() -> NoReturn:
    """Run the command line, and end the process."""
    # Nothing that is made here is for everybody to change, whatever the shell allows.
    os.umask(os.umask(0o022) | 0o002)
    try:
        code = _run()
    except Exception as error:
        lost = missing_extra(error) or _lost_database(error)
        if lost is None:
            traceback.print_exc()
        else:
            click.echo(f"perf-assets: {lost}", err=True)
        code = 1 if lost is None else 2
    sys.stdout.flush()
    sys.stderr.flush()
    # DuckDB's binding prints pages of "leaked" objects while Python takes itself apart: end before that.
    atexit._run_exitfuncs()
    os._exit(code)


def _run() -> int:
    """Exit code: 0, 2 for bad usage or input, 130 when interrupted, or what the command says."""
    try:
        cli.main(prog_name="perf-assets", standalone_mode=False)
    except (click.exceptions.Abort, KeyboardInterrupt):
        return 130
    except click.ClickException as error:
        context = error.ctx if isinstance(error, click.UsageError) else None
        command = context.command_path if context is not None else "perf-assets"
        click.echo(f"perf-assets: {error.format_message()} (see '{command} --help')", err=True)
        return 2
    except BadInputError as error:
        click.echo(f"perf-assets: {error}", err=True)
        return 2
    except OSError as error:
        click.echo(f"perf-assets: {_of_file(error)}", err=True)
        return 2
    except SystemExit as end:
        return end.code if isinstance(end.code, int) else int(end.code is not None)
    return 0


def _of_file(error: OSError) -> str:
    """Message for a file error: the failed action, and advice where the file is of the lake or of the Dagster home."""
    if error.filename is None or error.strerror is None:
        return str(error)
    path = Path(os.fsdecode(error.filename)).absolute()
    for folder, variable in ((lake_root(), "PERF_ASSETS_LAKE"), (dagster_home(), "DAGSTER_HOME")):
        if path.is_relative_to(folder) or folder.is_relative_to(path):
            return f"{path}: {error.strerror}: set {variable} (or -C DIR) to a folder that you may read and write"
    return f"{path}: {error.strerror}"


def _lost_database(error: BaseException | None) -> str | None:
    """One line where a failure comes of PostgreSQL going away half way; None for any other."""
    while error is not None:
        if type(error).__name__ == "OperationalError" and "psycopg2" in str(error):
            from perf_assets.infra.postgres import told_of_loss

            return told_of_loss(error)
        error = error.__cause__ or error.__context__
    return None


def missing_extra(error: BaseException | None) -> str | None:
    """One line where a failure comes of a package that an extra brings; None for any other."""
    while error is not None:
        if isinstance(error, ModuleNotFoundError):
            package = (error.name or "").partition(".")[0]
            for extra, packages in _EXTRAS.items():
                if package in packages:
                    return f"this needs {package}, which is not installed: pip install 'perf_assets[{extra}]'"
        error = error.__cause__ or error.__context__
    return None
