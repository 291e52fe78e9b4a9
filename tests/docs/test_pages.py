"""Every command of the documentation is run by a test, every option in it exists, every link leads somewhere."""

import re
import shutil
import subprocess
from pathlib import Path

import click
import pytest
import yaml

from perf_assets.cli.main import cli
from tests.docs.elsewhere import ELSEWHERE, RUN_HERE, Elsewhere, elsewhere
from tests.docs.pages import (
    COMMANDS,
    CONTENTS,
    PROJECT,
    SHOWN,
    Command,
    blocks,
    chapters,
    commands,
    hidden_commands,
    pages,
    spans,
)

_LINK = re.compile(r"!?\[[^]]*\]\(([^)\s]+)\)")
_TARGET = re.compile(r"make ([a-z-]+)$")


@pytest.mark.parametrize("page", pages())
def test_every_command_is_run_by_a_test(page: str) -> None:
    problems = [
        f"{command.place}: nobody runs '{command.text}': begin it with {', '.join(RUN_HERE)}; or name the test that "
        "runs it in ELSEWHERE of tests/docs/elsewhere.py; or call its block 'machine' (it runs where things are "
        "measured) or 'text' (it is no command)"
        for command in commands(page)
        if command.info in COMMANDS and command.words[0] not in RUN_HERE and elsewhere(command) is None
    ]
    problems += [
        f"{command.place}: '{command.text}' is in a block that is not run: give it one without an info string"
        for command in hidden_commands(page)
    ]
    known = (*COMMANDS, *SHOWN, "python", "machine")
    problems += [
        f"{page} line {block.line}: what is a block '{block.info}'? Use one of {', '.join(known)}"
        for block in blocks(page)
        if block.info not in known
    ]
    assert not problems, "\n".join(problems)


@pytest.mark.parametrize("one", ELSEWHERE, ids=lambda one: one.start)
def test_what_runs_elsewhere_still_does(one: Elsewhere) -> None:
    assert one.problem() is None
    assert any(elsewhere(command) == one for page in pages() for command in commands(page)), (
        f"no page has a command '{one.start}' any more: take it out of ELSEWHERE"
    )


@pytest.mark.parametrize("page", pages())
def test_commands_and_options_in_sentences_exist(page: str) -> None:
    problems = [
        f"{span.place}: `{span.text}`: {problem}"
        for span in spans(page)
        if re.match(r"(\.venv/bin/)?perf-assets ", span.text) and (problem := _unknown(span)) is not None
    ]
    assert not problems, "\n".join(problems)


def _unknown(span: Command) -> str | None:
    """What there is not: a command or an option."""
    found: click.Command = cli
    words = re.findall(r"[^\s\[\]|=,…]+", span.text)[1:]
    while words and isinstance(found, click.Group) and not words[0].startswith("-"):
        name = words.pop(0)
        inner = found.get_command(click.Context(found), name)
        if inner is None and found.invoke_without_command:
            break
        if inner is None and name not in ("COMMAND",):
            return f"there is no command {name}"
        found = inner or click.Command(name, params=[])
    options = {option for parameter in found.params for option in (*parameter.opts, *parameter.secondary_opts)}
    wrong = [word for word in words if word.startswith("--") and word not in {*options, "--help"}]
    return f"there is no option {wrong[0]}" if wrong else None


def test_every_make_target_exists() -> None:
    make = shutil.which("make")
    if make is None:
        pytest.skip("no make")
    found = {
        match[1]
        for page in pages()
        for span in (*spans(page), *commands(page))
        if (match := _TARGET.match(" ".join(span.text.split("#")[0].split())))
    }
    assert {"demo", "test", "up", "docs"} <= found
    for target in sorted(found):
        done = subprocess.run([make, "-n", target], cwd=PROJECT, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr


def test_every_script_exists() -> None:
    named = {
        (span.place, match[1])
        for page in pages()
        for span in (*spans(page), *commands(page))
        for match in re.finditer(r"python ((?:benchmarks|examples)/\S+\.py)", span.text)
    }
    assert len(named) > 5
    assert [f"{place}: {script}" for place, script in sorted(named) if not (PROJECT / script).is_file()] == []


def test_every_module_that_a_page_names_exists() -> None:
    there = [f"/{path.relative_to(PROJECT).as_posix()}" for path in PROJECT.rglob("*.py") if ".venv" not in path.parts]
    named = {
        (span.place, match[0])
        for page in pages()
        if page.startswith("docs/")
        for span in spans(page)
        for match in re.finditer(r"[\w/]+\.py\b", span.text)
    }
    assert len(named) > 50
    gone = [f"{place}: {name}" for place, name in sorted(named) if not any(path.endswith(f"/{name}") for path in there)]
    assert gone == []


@pytest.mark.parametrize("page", pages())
def test_links_lead_somewhere(page: str) -> None:
    problems = []
    fenced = {n for block in blocks(page) for n in range(block.line - 1, block.line + len(block.lines) + 1)}
    for number, line in enumerate((PROJECT / page).read_text().splitlines(), 1):
        for target in _LINK.findall(line) if number not in fenced else ():
            if re.match(r"https?://", target):
                continue
            path, _, anchor = target.partition("#")
            there = ((PROJECT / page).parent / path).resolve() if path else PROJECT / page
            if not there.exists():
                problems.append(f"{page} line {number}: {target} does not exist")
            elif anchor and anchor not in _anchors(there):
                problems.append(f"{page} line {number}: {path or page} has no heading #{anchor}")
    assert not problems, "\n".join(problems)


def _anchors(page: Path) -> set[str]:
    """Names that GitHub gives to the headings of a page."""
    headings = re.findall(r"^#+ (.+)$", page.read_text(), re.MULTILINE)
    plain = [re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", heading).replace("`", "").lower() for heading in headings]
    return {re.sub(r"[^\w\- ]", "", heading).replace(" ", "-") for heading in plain}


def test_every_page_is_a_chapter() -> None:
    missing = {f"docs/{path.name}" for path in PROJECT.glob("docs/*.md")} - {"docs/README.md", *chapters()}
    assert not missing, f"add to docs/README.md: {', '.join(sorted(missing))}"
    assert len(set(chapters())) == len(chapters())


def test_the_site_loads_nothing_from_the_network() -> None:
    """Where mkdocs.yml says nothing else, its theme takes fonts and the search of pages on a disk from elsewhere."""
    site = yaml.safe_load((PROJECT / "mkdocs.yml").read_text())
    assert site["theme"]["font"] is False
    scripts = site["extra"]["polyfills"]
    assert any("iframe-worker" in script for script in scripts), "the plugin 'offline' adds one from the network"
    for file in (*scripts, *site.get("extra_javascript", []), *site.get("extra_css", [])):
        assert (PROJECT / "docs" / file).is_file(), file
        assert "://" not in (PROJECT / "docs" / file).read_text(), file
    for page in PROJECT.glob("docs/*.md"):
        assert not re.findall(r"!\[[^]]*\]\(https?:|\bsrc=.https?:", page.read_text()), page.name


def test_the_site_has_all_chapters_in_their_order() -> None:
    listed = yaml.safe_load((PROJECT / "mkdocs.yml").read_text())["nav"]
    (first,) = listed[0].values()
    titles = {
        title: page
        for part in listed[1:]
        for section in part.values()
        for one in section
        for title, page in one.items()
    }
    contents = dict(re.findall(r"^\d+\. \[([^]]+)\]\(([^)#]+\.md)\)", CONTENTS.read_text(), re.MULTILINE))
    assert first == "README.md"
    assert list(titles.items()) == [
        (title, "landing_contract.md" if page.startswith("..") else page) for title, page in contents.items()
    ]
