"""`perf-assets predict`."""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any

import click

from perf_assets.cli.support.lake import check_machines
from perf_assets.cli.support.options import ANY_GPUS, gpus_in_use, json_option, run_options
from perf_assets.cli.support.output import check_formats, print_file, print_table, say
from perf_assets.cli.support.tables import read_table
from perf_assets.core.errors import BadInputError

if TYPE_CHECKING:
    from perf_assets.serving.answers import Prediction, Rows


_SHOWN_ROWS = 50
_DIGITS = 6
_SHOWN_ARGS = 30
"""Letters of arguments in the table; --json and --csv have all."""
_LISTED_ROWS = 25
_SOURCE = "perf-source"
_MEASURED = "measured"


@click.command()
@click.argument("profiles", nargs=-1, type=click.Path(path_type=Path), metavar="[PROFILE|TABLE]...")
@click.option("--from", "source", metavar="MACHINE", help="Machine that the runs were measured on.")
@click.option("--to", "target", metavar="MACHINE|all", help="Machine to predict for.")
@click.option("--model", metavar="NAME", help="Ask this registered model with a TABLE: NAME, NAME@ALIAS, NAME/VERSION.")
@run_options
@click.option(
    "--gpus",
    "uses_gpus",
    is_flag=False,
    flag_value=ANY_GPUS,
    callback=gpus_in_use,
    metavar="N",
    help="GPUs that the program uses where there are some; 0 for none.",
)
@click.option("--target-ranks", type=click.IntRange(1), help="MPI ranks there, where not those of the runs.")
@click.option("--no-gpus", is_flag=True, hidden=True, help="Old name of --gpus 0.")
@click.option("--no-measured", is_flag=True, help="Predict also what was measured on the machine itself.")
@json_option
@click.option("--csv", "as_csv", is_flag=True, help="Print as CSV.")
@click.option("--out", type=click.Path(path_type=Path), help="Write into this file instead: .json, or else CSV.")
def command(
    profiles: tuple[Path, ...],
    source: str | None,
    target: str | None,
    model: str | None,
    uses_gpus: bool | None,
    target_ranks: int | None,
    no_gpus: bool,
    no_measured: bool,
    as_json: bool,
    as_csv: bool,
    out: Path | None,
    **given: Any,
) -> None:
    """Predict how long runs that were measured on one machine take on another, with 90% intervals.

    Each PROFILE is a file or folder of any format that 'perf-assets read' knows, or a landed bundle. Without any, the
    runs come from the warehouse: all of the machine, or those of --app, --args and --ranks. What was measured on the
    other machine is said so; else its champion answers where it can, and the source models where it cannot.

    With --model, any registered model (perf-source, perf-target-…, perf-relative-vector, perf-transfer-…, one of
    'perf-assets transfer --register') is asked with the rows of a TABLE that has the columns of its signature.
    """
    if no_gpus:
        say("--no-gpus is called --gpus 0 now, and goes with the next release")
        uses_gpus = False
    check_formats(out, as_json=as_json, as_csv=as_csv)
    if model is not None:
        others = {"--from": source, "--to": target, "--gpus": uses_gpus, "--target-ranks": target_ranks}
        others |= {f"--{name.replace('_', '-')}": value for name, value in given.items()}
        unfit = [name for name, value in others.items() if value is not None]
        if unfit or len(profiles) != 1:
            raise BadInputError(f"--model takes one TABLE and {'no ' + unfit[0] if unfit else 'nothing else'}")
        ask_model(model, profiles[0], out, as_json=as_json, as_csv=as_csv)
        return
    if source is None or target is None:
        raise BadInputError("say --from and --to (a machine, or all), or --model NAME and a TABLE")
    if source == "all":
        raise BadInputError("--from is the machine that the runs were measured on: name one; --to may be all")
    answers = _answers(profiles, source, target, uses_gpus, target_ranks, given, with_measured=not no_measured)
    frame = answers.to_frame()
    frame["warnings"] = frame["warnings"].map("; ".join)
    if not print_file({"predictions": answers.to_dicts()}, frame, out, as_json=as_json, as_csv=as_csv):
        show_predictions(answers)
    if out is not None:
        say(f"{len(answers)} predictions are in {out}")


def _answers(
    profiles: tuple[Path, ...],
    source: str,
    target: str,
    uses_gpus: bool | None,
    target_ranks: int | None,
    given: dict[str, Any],
    *,
    with_measured: bool,
) -> "Rows[Prediction]":
    """Answers for the runs; mistakes that are cheap to detect are reported before anything is loaded."""
    chosen = {name: value for name, value in given.items() if value is not None}
    only_files = sorted(set(chosen) - {"app", "args", "ranks"})
    if not profiles and only_files:
        raise BadInputError(f"--{only_files[0].replace('_', '-')} is for a PROFILE: name one")
    check_machines([source, *([] if target == "all" else [target])])
    from perf_assets.api import open_lake

    lake = open_lake()
    if profiles:
        runs = lake.read(source, *profiles, uses_gpus=uses_gpus, **chosen)
    else:
        runs = lake.runs(source, **chosen, uses_gpus=uses_gpus)
    if target_ranks is not None:
        runs = [run.model_copy(update={"target_ranks": target_ranks}) for run in runs]
    answers = lake.predict(runs, to=target, with_measured=with_measured, may_leave_out=True)
    say(*answers.notes)
    return answers


def ask_model(reference: str, table: Path, out: Path | None, *, as_json: bool, as_csv: bool) -> None:
    """Print or write the answers of a registered model for the rows of a table."""
    from perf_assets.registry.asking import ask_table

    answer = ask_table(reference, read_table(table))
    records = answer.frame.astype(object).where(answer.frame.notna(), None).to_dict("records")
    document = {"model": answer.model, "version": answer.version, "answers": records}
    if not print_file(document, answer.frame, out, as_json=as_json, as_csv=as_csv):
        shown = answer.frame.head(_SHOWN_ROWS)
        rows = [[_cell(value) for value in row] for row in shown.itertuples(index=False, name=None)]
        title = f"{answer.model} version {answer.version}: {len(answer.frame)} answers"
        print_table(title, list(map(str, shown.columns)), rows)
        if len(answer.frame) > len(shown):
            say(f"the first {len(shown)} of {len(answer.frame)}: --out FILE, --csv and --json have all")
    if out is not None:
        say(f"{len(answer.frame)} answers of {answer.model} version {answer.version} are in {out}")


def _cell(value: object) -> str:
    return f"{value:.{_DIGITS}g}" if isinstance(value, float) else str(value)


def show_predictions(answers: "Sequence[Prediction]") -> None:
    """A row per prediction where they fit on a page, else a row per machine and application; then the warnings."""
    source = answers[0].source_machine
    targets = list(dict.fromkeys(answer.target_machine for answer in answers))
    if len(answers) <= _LISTED_ROWS:
        _show_each(answers, f"{len(answers)} {'answer' if len(answers) == 1 else 'answers'} from runs on {source}")
    elif len(targets) > 1:
        _show_summary(answers, f"Runs on {source}, elsewhere", "machine", lambda answer: answer.target_machine)
    else:
        _show_summary(answers, f"Runs on {source}, on {targets[0]}", "application", lambda answer: answer.app)
    if len(answers) > _LISTED_ROWS:
        say(f"{len(answers):,} answers: --out FILE, --csv and --json have all; --app and --args choose some")
    _warn(answers)


def _show_each(answers: "Sequence[Prediction]", title: str) -> None:
    """Print one row per answer; values that are equal in all rows stand in the title."""
    columns: dict[str, Callable[[Prediction], str]] = {
        "application": lambda answer: answer.app,
        "configuration": lambda answer: f"{_shortened(answer.args)} ({answer.ranks} x {answer.threads})".strip(),
        "measured s": lambda answer: f"{answer.source_seconds:.4g}",
        "on": lambda answer: answer.target_machine,
        "relative": lambda answer: f"{answer.relative_time:.3g}",
        "seconds there": lambda answer: f"{answer.predicted_seconds:.4g}",
        "90% interval s": _interval,
        "by": answered_by,
    }
    for name, word in (("application", "of"), ("on", "on")):
        values = {columns[name](answer) for answer in answers}
        if len(values) == 1:
            title += f", {word} {values.pop()}"
            del columns[name]
    ordered = sorted(answers, key=lambda answer: (answer.app, answer.args, answer.predicted_seconds))
    print_table(title, list(columns), [[value(answer) for value in columns.values()] for answer in ordered])


def _show_summary(answers: "Sequence[Prediction]", title: str, name: str, key: "Callable[[Prediction], str]") -> None:
    groups: dict[str, list[Prediction]] = defaultdict(list)
    for answer in answers:
        groups[key(answer)].append(answer)
    rows = []
    for group, of_group in sorted(groups.items(), key=lambda item: median(a.relative_time for a in item[1])):
        relative = sorted(answer.relative_time for answer in of_group)
        widths = [answer.upper_seconds / answer.lower_seconds for answer in of_group if answer.model != _MEASURED]
        rows.append(
            (
                group,
                len(of_group),
                f"{median(relative):.3g}",
                f"{relative[0]:.3g} to {relative[-1]:.3g}",
                f"{median(widths):.2f}" if widths else "-",
                _counted(answered_by(answer) for answer in of_group),
            )
        )
    columns = [name, "runs", "relative time, median", "from, to", "upper / lower, median", "answered by"]
    print_table(title, columns, rows)


def answered_by(answer: "Prediction") -> str:
    """Name of the model that answered, in a word or two."""
    if answer.model == _MEASURED:
        return "measured there"
    return f"{'source model' if answer.model == _SOURCE else 'champion'} v{answer.model_version}"


def _interval(answer: "Prediction") -> str:
    if answer.lower_seconds == answer.upper_seconds:
        return "-"
    return f"{answer.lower_seconds:.4g} to {answer.upper_seconds:.4g}"


def _counted(names: Iterable[str]) -> str:
    return ", ".join(f"{name} ({count})" for name, count in Counter(names).most_common())


def _warn(answers: "Sequence[Prediction]") -> None:
    """Each warning once, the most frequent first; what was measured is in the table."""
    warned = Counter(
        f"{answer.target_machine}: {warning}"
        for answer in answers
        if answer.model != _MEASURED or len(answers) <= _LISTED_ROWS
        for warning in answer.warnings
    )
    for warning, count in warned.most_common(_LISTED_ROWS):
        say(f"note ({count} of {len(answers)}): {warning}")


def _shortened(args: str) -> str:
    return args if len(args) <= _SHOWN_ARGS else f"{args[: _SHOWN_ARGS - 1]}…"
