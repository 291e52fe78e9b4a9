"""The commands of the documentation, run one after the other in a folder that has what they name."""

import contextlib
import io
import os
import re
import shutil
import signal
import subprocess
import sys
import urllib.request
from dataclasses import dataclass, field
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from perf_assets.cli.main import cli
from tests.docs.pages import PROJECT, Command

ONCE = ("perf-assets vectors", "perf-assets evaluate")
"""Commands that take long and give the same again: another page's is not run twice."""
_SECONDS = 300
_PORT = re.compile(r"(?<=127\.0\.0\.1:)\d+")


def with_little_work(patch: pytest.MonkeyPatch) -> None:
    """Let the commands that compare all methods compare some, once: they take minutes to hours otherwise."""
    defaults = {
        ("train", "--quick"): True,
        ("vectors", "--quick"): True,
        ("evaluate", "vector", "--quick"): True,
        ("evaluate", "pairs", "--seeds"): 1,
        ("evaluate", "pairs", "--shots"): (0, 5),
        ("evaluate", "xamm", "--seeds"): 1,
        ("evaluate", "xamm", "--method"): ("raw_xgboost", "benchmark_mean"),
        ("evaluate", "xamm", "--embedding"): ("raw",),
        ("adapt", "--seeds"): 1,
        # The rest is held out, which is what schedules are simulated with.
        ("adapt", "--most-shots"): 10,
    }
    for (*path, option), value in defaults.items():
        patch.setattr(_option(path, option), "default", value)


def _option(path: list[str], name: str) -> click.Parameter:
    found: click.Command = cli
    for word in path:
        assert isinstance(found, click.Group)
        inner = found.get_command(click.Context(found), word)
        assert inner is not None
        found = inner
    return next(parameter for parameter in found.params if name in parameter.opts)


@dataclass
class Documented:
    """Runs commands in a folder; a service that one starts answers those that follow, until it is stopped."""

    folder: Path
    trained: set[str] = field(default_factory=set)
    """Commands of ONCE that were run."""
    service: "subprocess.Popen[str] | None" = None
    port: str = ""

    def run(self, command: Command) -> None:
        """Fail with the place of the command and what it said, unless it succeeds."""
        with pytest.MonkeyPatch.context() as patch:
            for name, value in command.variables.items() if command.info != "python" else ():
                patch.setenv(name, value.replace("$PWD", str(self.folder)))
            self._run(command)

    def _run(self, command: Command) -> None:
        if command.info == "python":
            _python(command)
            return
        words = self._expanded(command.words)
        # with_little_work asks for --quick everywhere.
        text = " ".join(word for word in words if word != "--quick")
        if text.startswith(ONCE) and text in self.trained:
            return
        self.trained.add(text)
        if words[0] == "python":
            self._process(command, [sys.executable, *words[1:]])
        elif words[0] == "curl":
            given = [_PORT.sub(self.port, word) for word in words[1:]]
            self._process(command, ["curl", "--silent", "--show-error", "--fail-with-body", *given])
        elif words[:2] == ["perf-assets", "serve"]:
            self._serve(command, words[2:])
        else:
            self._command_line(command, words[1:])

    def stop(self) -> None:
        """Stop the service, if there is one."""
        if self.service is None:
            return
        self.service.send_signal(signal.SIGTERM)
        try:
            said, _ = self.service.communicate(timeout=30)
        finally:
            self.service.kill()
        assert (self.service.returncode, "Traceback" in said) == (0, False), said
        self.service = None

    def _expanded(self, words: list[str]) -> list[str]:
        """With file names in the place of patterns, as the shell does it."""
        found = [sorted(map(str, self.folder.glob(word))) if "*" in word else [] for word in words]
        return [name for word, names in zip(words, found, strict=True) for name in names or [word]]

    def _command_line(self, command: Command, words: list[str]) -> None:
        done = CliRunner().invoke(cli, words)
        if done.exit_code:
            pytest.fail(f"{command.place}: '{command.text}': {done.exception}\n{done.output[-2000:]}", pytrace=False)

    def _process(self, command: Command, words: list[str]) -> None:
        if words[0] == "curl" and shutil.which("curl") is None:
            pytest.skip("no curl")
        done = subprocess.run(
            words, cwd=self.folder, env=_environment(), capture_output=True, text=True, timeout=_SECONDS, check=False
        )
        if done.returncode:
            pytest.fail(f"{command.place}: '{command.text}':\n{done.stdout}{done.stderr[-2000:]}", pytrace=False)

    def _serve(self, command: Command, words: list[str]) -> None:
        """Start it on a free port, whichever one the page names: the last one counts."""
        self.stop()
        line = [sys.executable, "-c", "from perf_assets.cli.main import main; main()", "serve", *words, "--port", "0"]
        self.service = subprocess.Popen(
            line, cwd=self.folder, env=_environment(), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
        )
        assert self.service.stdout is not None
        said = ""
        for line_said in self.service.stdout:
            said += line_said
            if found := re.search(r"http://127\.0\.0\.1:(\d+)/docs", line_said):
                self.port = found[1]
                break
        else:
            pytest.fail(f"{command.place}: '{command.text}': {said}", pytrace=False)
        with urllib.request.urlopen(f"http://127.0.0.1:{self.port}/health", timeout=30) as answer:
            assert answer.status == 200


def _python(command: Command) -> None:
    """Run a block in this process, which has loaded already what takes long to load."""
    try:
        with contextlib.redirect_stdout(io.StringIO()):
            exec(compile(command.text, command.place, "exec"), {"__name__": "__main__"})
    except Exception as error:
        pytest.fail(f"{command.place}: {command.text}\n{error!r}", pytrace=False)


def _environment() -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": str(PROJECT)}
