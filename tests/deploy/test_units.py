"""Units of systemd, the compose file and the image name programs, options and files that there are."""

import re
import shlex
import shutil
import subprocess
import tomllib
from collections.abc import Iterator
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

import click
import pytest
import yaml
from packaging.specifiers import SpecifierSet

from perf_assets.cli.main import cli
from tests.installation import PROGRAM, PROJECT

DEPLOY = PROJECT / "deploy"
UNITS = sorted((DEPLOY / "systemd").glob("perf-assets*"))
COMMAND = re.compile(r"perf-assets (.*)$")


def accepted(words: list[str]) -> None:
    """Parse a command line as the program would, without running it."""
    context = cli.make_context("perf-assets", [*words], resilient_parsing=False)
    with context:
        name, command, rest = cli.resolve_command(context, [*context._protected_args, *context.args])
        assert command is not None, words
        command.make_context(str(name), rest, parent=context)


def compose() -> dict[str, Any]:
    document = yaml.safe_load((DEPLOY / "compose.yaml").read_text())
    assert isinstance(document, dict)
    return document


def commands() -> Iterator[tuple[str, list[str]]]:
    """Command lines of perf-assets in all files."""
    for unit in UNITS:
        for line in unit.read_text().splitlines():
            if line.startswith("ExecStart="):
                found = COMMAND.search(line.rstrip("'"))
                assert found, line
                yield (
                    unit.name,
                    shlex.split(found[1].replace("${CREDENTIALS_DIRECTORY}", "/tmp").replace("$$(date +%%F)", "x")),
                )
    entry = ["perf-assets", "-C", "/srv/perf"]
    for name, service in compose()["services"].items():
        if "image" not in service or service["image"] != "perf-assets":
            continue
        words = [*service.get("entrypoint", entry), *service["command"]]
        if words[:2] == ["sh", "-c"]:
            yield from ((name, shlex.split(part)[1:]) for part in words[2].split("&&"))
        else:
            yield name, words[1:]


@pytest.mark.parametrize(
    ("where", "words"), list(commands()), ids=lambda value: value if isinstance(value, str) else ""
)
def test_its_commands_are_those_of_the_command_line(
    where: str, words: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PERF_ASSETS_HOME", "")
    accepted(words)
    with pytest.raises((click.UsageError, click.ClickException)):
        accepted([*words, "--not-an-option"])


def test_nothing_of_the_platform_listens_outside_of_the_network_of_nginx() -> None:
    services = compose()["services"]
    assert [name for name, service in services.items() if "ports" in service] == ["nginx"]
    assert {services[name]["network_mode"] for name in ("platform", "service")} == {"service:nginx"}
    text = (DEPLOY / "compose.yaml").read_text()
    assert "0.0.0.0" not in text
    known = compose()
    for service in services.values():
        for secret in service.get("secrets", []):
            assert (secret if isinstance(secret, str) else secret["source"]) in known["secrets"]
        for volume in service.get("volumes", []):
            place = volume.split(":")[0]
            assert place in known["volumes"] or (DEPLOY / place).exists(), volume


def test_the_image_copies_what_there_is_and_starts_what_there_is() -> None:
    text = (DEPLOY / "Dockerfile").read_text()
    copies = re.findall(r"^COPY (\S+) (\S+)$", text, re.MULTILINE)
    assert len(copies) == text.count("COPY ")
    for source, _ in copies:
        made = source == "dist/perf_assets-*.whl" and "pip wheel --no-deps --wheel-dir dist ." in text
        assert made or (PROJECT / source).is_file(), source
    brought = {place + Path(source).name if place.endswith("/") else place for source, place in copies}
    used = set(re.findall(r"/tmp/[\w.*-]+", re.sub(r"^(COPY|#) .*$", "", text, flags=re.MULTILINE)))
    assert {file for name in used for file in brought if fnmatch(file, name)} == brought
    assert all(any(fnmatch(file, name) for file in brought) for name in used), used
    extras = re.search(r'"\$wheel\[([\w,]+)\]"', text)
    assert extras
    project = tomllib.loads((PROJECT / "pyproject.toml").read_text())["project"]
    assert set(extras[1].split(",")) <= set(project["optional-dependencies"])
    python = re.search(r"^FROM python:([\d.]+)-", text, re.MULTILINE)
    assert python
    assert python[1] in SpecifierSet(project["requires-python"])
    assert 'CMD ["up"]' in text


def test_systemd_takes_the_units(tmp_path: Path) -> None:
    verify = shutil.which("systemd-analyze")
    if verify is None:
        pytest.skip("no systemd-analyze: install Debian's package 'systemd'")
    for unit in UNITS:
        text = unit.read_text().replace("/opt/perf_assets/bin/perf-assets", str(PROGRAM)).replace("=perf\n", "=root\n")
        (tmp_path / unit.name).write_text(text)
    done = subprocess.run(
        [verify, "verify", "--man=no", *map(str, sorted(tmp_path.iterdir()))],
        capture_output=True,
        text=True,
        timeout=100,
    )
    ours = [line for line in done.stderr.splitlines() if "perf-assets" in line]
    assert (done.returncode, ours) == (0, [])


def test_every_timer_has_its_service() -> None:
    names = {unit.name for unit in UNITS}
    assert {unit.name.replace(".timer", ".service") for unit in UNITS if unit.suffix == ".timer"} <= names
