"""Traces as files."""

from pathlib import Path

HEADER = "; Version: 2.2\n; MaxNodes: 4\n; MaxProcs: 8\n; Note: nobody\u2019s trace\n"


def line(
    number: int, submit: int, run: int, nodes: int, request: int = -1, user: int = 1, asked_nodes: int = -1
) -> str:
    """One job."""
    values = [number, submit, -1, run, nodes, -1, -1, asked_nodes, request, -1, 1, user, 1, -1, -1, -1, -1, -1]
    return " ".join(map(str, values))


def write(path: Path, *lines: str) -> Path:
    """A trace with a header."""
    path.write_text(HEADER + "\n".join(lines) + "\n")
    return path
