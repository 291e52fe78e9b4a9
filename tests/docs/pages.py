"""The pages of the documentation in reading order, and the commands in them.

Fenced blocks without an info string (or `sh`) hold commands, one a line; `python` blocks are run as they are; `machine`
blocks are for the machine that is measured; `text`, `yaml` and `json` blocks are not run and must hold no command.
"""

import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import takewhile
from pathlib import Path

PROJECT = Path(__file__).resolve().parents[2]
CONTENTS = PROJECT / "docs" / "README.md"
COMMANDS = ("", "sh")
"""Info strings of blocks that hold commands."""
SHOWN = ("text", "yaml", "json")
"""Info strings of blocks that are not run."""
_FENCE = re.compile(r"^\s*```(.*)$")
_ASSIGNMENT = re.compile(r"[A-Z_]+=")
_CODE = re.compile(r"`([^`]+)`")
_COMMAND_LINE = re.compile(r"^\s*(?:\.venv/bin/)?(?:perf-assets|python|make|curl|dg|mlflow) ")


@dataclass(frozen=True)
class Command:
    """A command, or a whole `python` block."""

    page: str
    line: int
    text: str
    info: str = ""
    """Info string of its block."""

    @property
    def place(self) -> str:
        return f"{self.page} line {self.line}"

    @property
    def words(self) -> list[str]:
        """As the shell takes them, without the folder of the virtual environment."""
        first, *rest = shlex.split(self.text, comments=True)[len(self.variables) :]
        return [first.removeprefix(".venv/bin/"), *rest]

    @property
    def variables(self) -> dict[str, str]:
        """Environment that stands before the command: NAME=value."""
        given = takewhile(_ASSIGNMENT.match, shlex.split(self.text, comments=True))
        return dict(word.split("=", 1) for word in given)


@dataclass(frozen=True)
class Block:
    """A fenced block."""

    page: str
    line: int
    """Of the first line in it."""
    info: str
    lines: tuple[str, ...]


def pages() -> list[str]:
    """Paths from the project's folder: README first, then the chapters as the contents list them, then all others."""
    there = [*PROJECT.glob("docs/*.md"), PROJECT / "data_lake" / "README.md", *PROJECT.glob("examples/**/*.md")]
    found = ["README.md", "docs/README.md", *chapters()]
    return [*found, *sorted({str(path.relative_to(PROJECT)) for path in there} - set(found))]


def chapters() -> list[str]:
    """Pages that the contents list, in that order."""
    linked = re.findall(r"^\s*(?:\d+\.|-) \[[^]]+\]\(([^)#]+\.md)\)", CONTENTS.read_text(), re.MULTILINE)
    return [str((CONTENTS.parent / target).resolve().relative_to(PROJECT)) for target in linked]


def blocks(page: str) -> Iterator[Block]:
    """The fenced blocks of a page."""
    info, start, held = None, 0, []
    for number, line in enumerate((PROJECT / page).read_text().splitlines(), 1):
        fence = _FENCE.match(line)
        if fence is None:
            held.append(line)
        elif info is None:
            info, start, held = fence[1].strip(), number + 1, []
        else:
            yield Block(page, start, info, tuple(held))
            info = None
    assert info is None, f"{page}: the block at line {start} does not end"


def commands(page: str) -> Iterator[Command]:
    """What is to be run, in order; lines for the machine that is measured are among it."""
    for block in blocks(page):
        if block.info == "python":
            yield Command(page, block.line, "\n".join(block.lines), block.info)
        elif block.info in (*COMMANDS, "machine"):
            yield from _lines(block)


def _lines(block: Block) -> Iterator[Command]:
    """Commands of a block; one may go on over several lines, after a backslash or within quotes."""
    held, start = "", block.line
    for number, line in enumerate(block.lines, block.line):
        start = number if not held else start
        held += line
        if held.endswith("\\"):
            held = held[:-1]
        elif _is_whole(held):
            if shlex.split(held, comments=True):
                yield Command(block.page, start, held.strip(), block.info)
            held = ""
        else:
            held += "\n"
    assert not held, f"{block.page} line {start}: quotes are not closed: {held}"


def _is_whole(text: str) -> bool:
    try:
        shlex.split(text, comments=True)
    except ValueError:
        return False
    return True


def hidden_commands(page: str) -> Iterator[Command]:
    """Lines that look like commands where none is looked for: in other blocks, or set off by blanks alone."""
    fenced = set()
    for block in blocks(page):
        fenced |= set(range(block.line - 1, block.line + len(block.lines) + 1))
        if block.info not in (*COMMANDS, "python", "machine"):
            yield from (
                Command(page, number, line.strip(), block.info)
                for number, line in enumerate(block.lines, block.line)
                if _COMMAND_LINE.match(line)
            )
    for number, line in enumerate((PROJECT / page).read_text().splitlines(), 1):
        if number not in fenced and line.startswith("    ") and _COMMAND_LINE.match(line):
            yield Command(page, number, line.strip())


def spans(page: str) -> Iterator[Command]:
    """Code within sentences."""
    fenced = {n for block in blocks(page) for n in range(block.line - 1, block.line + len(block.lines) + 1)}
    for number, line in enumerate((PROJECT / page).read_text().splitlines(), 1):
        if number not in fenced:
            yield from (Command(page, number, text) for text in _CODE.findall(line))


def written_by_command(page: str) -> str:
    """The text of a page that a command prints."""
    return (PROJECT / page).read_text()
