"""Docstrings that stand alone, settings that no test patches, and class names that are used once."""

import ast
import re
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import pytest

PROJECT = Path(__file__).resolve().parents[2]
PACKAGE = PROJECT / "perf_assets"
BAD_START = re.compile(
    r"(Of |That |Those |The same\b|The arrays\.|A saved one|Saved ones?\b|Some of them|All of them|To be |From |"
    r"By |As )"
)
"""Answers to a question that only the neighbour asks: a docstring begins with a noun or a verb."""
QUAINT = re.compile(
    r"\b(?:one|a|two|three) (?:value|vector|column|row|line|file|panel|point|model|number|process) an? [a-z]+|"
    r"\b(?<!there )(?:is|are) no (?:array|number|table|trace|object|counter|feature|metric)s?\b"
)
"""`one vector a machine` is one per machine; what `is no number` is not a number."""
EMPTY_NAMES = {"told", "said", "says", "tells", "found"}
"""Names of variables, arguments and functions that do not say what they hold."""
EMPTY_STILL = {"cli/commands/start/doctor.py"}
"""`doctor --json` has a key `found`, which monitoring reads; no other module may have such a name."""


def docstrings(file: Path) -> Iterator[tuple[int, str]]:
    """Line and text of all docstrings, those of attributes and constants too."""
    for node in ast.walk(ast.parse(file.read_text())):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            for line in node.body:
                match line:
                    case ast.Expr(value=ast.Constant(value=str() as text)):
                        yield line.lineno, text


@pytest.mark.slow
def test_docstrings_begin_with_a_noun_or_a_verb() -> None:
    bad = [
        f"{file.relative_to(PROJECT)}:{line}: {text.splitlines()[0]}"
        for file in sorted(PACKAGE.rglob("*.py"))
        for line, text in docstrings(file)
        if BAD_START.match(text)
    ]
    assert not bad, "\n".join(bad)


@pytest.mark.slow
def test_docstrings_are_plain() -> None:
    quaint = [
        f"{file.relative_to(PROJECT)}:{line}: {match.group()}"
        for file in sorted(PACKAGE.rglob("*.py"))
        for line, text in docstrings(file)
        for match in QUAINT.finditer(text)
    ]
    assert not quaint, "\n".join(quaint)


def named(file: Path) -> Iterator[str]:
    """Names that a module gives to variables, arguments and functions."""
    for node in ast.walk(ast.parse(file.read_text())):
        match node:
            case ast.Name(id=name, ctx=ast.Store()) | ast.arg(arg=name) | ast.FunctionDef(name=name):
                yield name.strip("_")


@pytest.mark.slow
def test_names_say_what_they_hold() -> None:
    empty = {
        str(file.relative_to(PACKAGE)): sorted(names)
        for file in PACKAGE.rglob("*.py")
        if (names := EMPTY_NAMES.intersection(named(file)))
    }
    assert set(empty) <= EMPTY_STILL, {file: names for file, names in empty.items() if file not in EMPTY_STILL}


def patched_constants(file: Path) -> Iterator[str]:
    """Constants of the package, and defaults of functions, that a test replaces."""
    tree = ast.parse(file.read_text())
    ours = {
        alias.asname or alias.name
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("perf_assets")
        for alias in node.names
    }
    for node in ast.walk(tree):
        match node:
            case ast.Call(func=ast.Attribute(attr="setattr"), args=[ast.Constant(value=str() as dotted), *_]):
                name = dotted.rpartition(".")[2] if dotted.startswith("perf_assets.") else ""
            case ast.Call(func=ast.Attribute(attr="setattr"), args=[ast.Name(id=owner), ast.Constant(value=name), *_]):
                name = name if owner in ours else ""
            case ast.Attribute(attr="__defaults__" | "__kwdefaults__" as name):
                pass
            case ast.Assign(targets=[ast.Attribute(value=ast.Name(id=owner), attr=name)]) if owner in ours:
                pass
            case _:
                continue
        if name.lstrip("_").isupper() or name.endswith(("defaults__", "Settings")):
            yield name


@pytest.mark.slow
def test_no_test_patches_a_setting() -> None:
    found = {
        (str(file.relative_to(PROJECT)), name)
        for file in (PROJECT / "tests").rglob("*.py")
        for name in patched_constants(file)
    }
    assert found == set(), "settings are arguments, or fields of a model of settings"


def test_a_class_name_stands_for_one_thing() -> None:
    modules = defaultdict(set)
    for file in PACKAGE.rglob("*.py"):
        for node in ast.parse(file.read_text()).body:
            if isinstance(node, ast.ClassDef):
                modules[node.name].add(str(file.relative_to(PACKAGE)))
    twice = {name: sorted(files) for name, files in modules.items() if len(files) > 1}
    assert twice == {}
