"""Errors a person can cause, each of which is one clear line: what is wrong, where, what to do."""

from collections.abc import Sequence
from difflib import get_close_matches

from perf_assets.core.text import printable, without_passwords

_MOST_NAMES = 8
_MOST_CHARACTERS = 4000
"""Longest message: names in it can be as long as the file that they are from."""


class BadInputError(Exception):
    """Something given to us is wrong. Commands print its one line and exit with 2."""

    def __init__(self, message: str) -> None:
        line = printable(without_passwords(" ".join(message.split())))
        super().__init__(line if len(line) <= _MOST_CHARACTERS else f"{line[:_MOST_CHARACTERS]}…")


class UnknownError(BadInputError):
    """A requested thing does not exist: a machine, a model."""


class UnreadableFileError(BadInputError):
    """A file or directory that no reader understands, or that its reader finds damaged."""


class RegistryError(BadInputError):
    """The MLflow store cannot be used."""


class DatabaseError(BadInputError):
    """The PostgreSQL database cannot be reached or used."""


class BusyError(BadInputError):
    """Another process holds what this one needs for longer than it was willing to wait."""


class ClusterError(BadInputError):
    """The cluster that a profile names cannot be used, or lost its workers."""


def listed(names: Sequence[object]) -> str:
    """The first few names, for a line that people read."""
    more = f" and {len(names) - _MOST_NAMES} more" if len(names) > _MOST_NAMES else ""
    return ", ".join(map(str, names[:_MOST_NAMES])) + more


def like(name: str, known: Sequence[str]) -> str:
    """The known name that is most like one that is not known; empty where none is."""
    near = get_close_matches(name.lower(), {text.lower(): text for text in known}, n=1, cutoff=0.6)
    return next((text for text in known if near and text.lower() == near[0]), "")
