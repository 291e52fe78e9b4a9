"""Predictions for a terminal: a table of a few, a summary of many."""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Sequence
from statistics import median
from typing import TYPE_CHECKING

from perf_assets.cli.support.output import print_table, say

if TYPE_CHECKING:
    from perf_assets.serving.answers import Prediction

_SHOWN_ARGS = 30
"""Letters of arguments in the table; --json and --csv have all."""
_SHOWN_ROWS = 25
_SOURCE = "perf-source"
_MEASURED = "measured"


def show_predictions(answers: "Sequence[Prediction]") -> None:
    """A row per prediction where they fit on a page, else a row per machine and application; then the warnings."""
    source = answers[0].source_machine
    targets = list(dict.fromkeys(answer.target_machine for answer in answers))
    if len(answers) <= _SHOWN_ROWS:
        _show_each(answers, f"{len(answers)} answers from runs on {source}")
    elif len(targets) > 1:
        _show_summary(answers, f"Runs on {source}, elsewhere", "machine", lambda answer: answer.target_machine)
    else:
        _show_summary(answers, f"Runs on {source}, on {targets[0]}", "application", lambda answer: answer.app)
    if len(answers) > _SHOWN_ROWS:
        say(f"{len(answers):,} answers: --out FILE, --csv and --json have all; --app and --args choose some")
    _warn(answers)


def _show_each(answers: "Sequence[Prediction]", title: str) -> None:
    """What is the same in all rows stands in the title."""
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
        found = {columns[name](answer) for answer in answers}
        if len(found) == 1:
            title += f", {word} {found.pop()}"
            del columns[name]
    ordered = sorted(answers, key=lambda answer: (answer.app, answer.args, answer.predicted_seconds))
    print_table(title, list(columns), [[value(answer) for value in columns.values()] for answer in ordered])


def _show_summary(answers: "Sequence[Prediction]", title: str, name: str, key: "Callable[[Prediction], str]") -> None:
    groups: dict[str, list[Prediction]] = defaultdict(list)
    for answer in answers:
        groups[key(answer)].append(answer)
    rows = []
    for group, found in sorted(groups.items(), key=lambda item: median(a.relative_time for a in item[1])):
        relative = sorted(answer.relative_time for answer in found)
        widths = [answer.upper_seconds / answer.lower_seconds for answer in found if answer.model != _MEASURED]
        rows.append(
            (
                group,
                len(found),
                f"{median(relative):.3g}",
                f"{relative[0]:.3g} to {relative[-1]:.3g}",
                f"{median(widths):.2f}" if widths else "-",
                _counted(answered_by(answer) for answer in found),
            )
        )
    columns = [name, "runs", "relative time, median", "from, to", "upper / lower, median", "answered by"]
    print_table(title, columns, rows)


def answered_by(answer: "Prediction") -> str:
    """Who answered, in a word or two."""
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
        if answer.model != _MEASURED or len(answers) <= _SHOWN_ROWS
        for warning in answer.warnings
    )
    for warning, count in warned.most_common(_SHOWN_ROWS):
        say(f"note ({count} of {len(answers)}): {warning}")


def _shortened(args: str) -> str:
    return args if len(args) <= _SHOWN_ARGS else f"{args[: _SHOWN_ARGS - 1]}…"
