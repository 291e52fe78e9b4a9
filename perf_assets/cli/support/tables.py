"""Reading of plain tables by commands, and their output about the columns."""

import re
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from perf_assets.core.errors import BadInputError

if TYPE_CHECKING:
    import pandas as pd


def read_table(path: Path) -> "pd.DataFrame":
    """Rows of a table of samples as a frame; columns that hold only numbers or levels are numeric."""
    import pandas as pd

    from perf_assets.readers.read import read

    if not path.is_file():
        raise BadInputError(f"{path} is not a file")
    rows = [
        {**profile.labels, **{name: total.sum for name, total in profile.metrics.items()}}
        for profile in read(path, "samples").profiles
    ]
    frame = pd.DataFrame(rows)
    for name in frame.select_dtypes(object).columns:
        # Labels of the reader are texts; those of ranks or of wall time are numbers all the same.
        numbers = pd.to_numeric(frame[name], errors="coerce")
        if (numbers.notna() == frame[name].notna()).all():
            frame[name] = numbers
    return frame


def check_patterns(drop: Sequence[str]) -> None:
    """Refuse what is not a regular expression."""
    for pattern in drop:
        try:
            re.compile(pattern)
        except re.error as error:
            raise BadInputError(f"--drop {pattern!r} is no regular expression: {error}") from None


def split_names(text: str) -> list[str]:
    """`A, B` to its names."""
    return [part.strip() for part in text.split(",") if part.strip()]


def read_machine_tables(given: tuple[str, ...]) -> "dict[str, pd.DataFrame]":
    """Tables given as NAME=FILE, by the name of the machine."""
    frames: dict[str, pd.DataFrame] = {}
    for text in given:
        name, equals, file = text.partition("=")
        if not (name and equals and file):
            raise BadInputError(f"--table {text!r}: write NAME=FILE")
        if name in frames:
            raise BadInputError(f"--table: machine {name!r} is given twice")
        frames[name] = read_table(Path(file))
    return frames
