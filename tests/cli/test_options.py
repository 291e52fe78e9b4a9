"""Ways to name machines and GPUs, and mistakes that are told before anything is loaded."""

from pathlib import Path

import click
import pytest
from click.testing import CliRunner, Result

from perf_assets.cli.main import cli
from perf_assets.cli.support.options import ANY_GPUS, gpus_in_use, machine_option, one_machine
from perf_assets.core.errors import BadInputError


@click.command()
@machine_option
def several(chosen: tuple[str, ...]) -> None:
    """Print machines."""
    click.echo(" ".join(chosen))


@click.command()
@one_machine
@click.option("--gpus", is_flag=False, flag_value=ANY_GPUS, callback=gpus_in_use)
def single(machine: str, gpus: bool | None) -> None:
    """Print a machine, and whether GPUs are used."""
    click.echo(f"{machine} {gpus}")


@pytest.mark.parametrize(
    "words", [["ruby", "dane"], ["--machine", "dane", "ruby"], ["--machine", "ruby", "--machine", "dane"]]
)
def test_machines_are_words_or_options(words: list[str]) -> None:
    assert set(CliRunner().invoke(several, words).stdout.split()) == {"ruby", "dane"}


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["ruby"], "ruby None"),
        (["--machine", "ruby", "--gpus", "0"], "ruby False"),
        (["ruby", "--gpus", "4"], "ruby True"),
        (["ruby", "--gpus"], "ruby True"),
    ],
)
def test_a_machine_is_a_word_or_an_option_and_gpus_are_a_number(words: list[str], said: str) -> None:
    assert CliRunner().invoke(single, words).stdout.strip() == said


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ([], "say which MACHINE"),
        (["ruby", "--machine", "ruby"], "name the machine once"),
        (["ruby", "--gpus", "many"], "'many' is no number of GPUs (0 for none)"),
    ],
)
def test_what_is_said_twice_or_not_at_all_is_refused(words: list[str], said: str) -> None:
    done = CliRunner().invoke(single, words)
    assert done.exit_code == 2
    assert said in done.output


@pytest.fixture
def asked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> "Asked":
    """Commands on a lake where one machine has landed, which is all that there is."""
    (tmp_path / "landing" / "quartz").mkdir(parents=True)
    monkeypatch.setenv("PERF_ASSETS_LAKE", str(tmp_path))
    return Asked()


class Asked:
    """Answers of commands."""

    def __call__(self, *words: str) -> Result:
        return CliRunner().invoke(cli, list(words))


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("compare Kripke=-1 --machines quartz,ruby", "the weight of Kripke is -1: it must be above 0"),
        ("compare Kripke --machines qartz", "machine 'qartz' is not known: did you mean quartz?"),
        ("compare Kripke --machines quartz --price quartz=-2", "--price quartz=-2: must be above 0"),
        ("plan --machine qartz", "machine 'qartz' is not known: did you mean quartz?"),
        ("reference qartz", "machine 'qartz' is not known: did you mean quartz?"),
        ("reference quartz --out nowhere/file.yaml", "nowhere does not exist: make the folder first"),
        ("observe --machine quartz", "name a PROFILE, or give --app"),
        (
            "predict --from all --to quartz",
            "--from is the machine that the runs were measured on: name one; --to may be all",
        ),
    ],
)
def test_cheap_mistakes_are_told_at_once(asked: Asked, line: str, said: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def loaded(*_: object) -> None:
        raise AssertionError("models are loaded before that")

    monkeypatch.setattr("perf_assets.api.open_lake", loaded)
    done = asked(*line.split())
    assert isinstance(done.exception, BadInputError), done.output
    assert str(done.exception) == said
