"""`perf-assets backup` and `restore`: what is restored elsewhere answers the same, and what is not whole is refused."""

import json
import shutil
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from perf_assets.cli.commands.operate.restore import command as restore_command
from perf_assets.cli.main import cli
from perf_assets.core.errors import BadInputError
from perf_assets.core.paths import unfinished_restore
from perf_assets.storage.lake import Lake
from tests.docs.newbox import relocate
from tests.features.fleet_tables import SPEEDS
from tests.installation import PROJECT
from tests.serving.conftest import MACHINE, Fleet
from tests.serving.test_commands import table

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("serving")]
__all__ = ["table"]


@pytest.fixture
def home(fleet: Fleet, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home with registered models, as `init` makes them, in use."""
    root = tmp_path / "centre"
    registry = Path(fleet.tracking_uri.removeprefix("sqlite:///")).parent
    shutil.copytree(registry, root / "data_lake" / "mlflow")
    relocate(root / "data_lake" / "mlflow" / "mlflow.db", registry, root / "data_lake" / "mlflow")
    for machine in SPEEDS:
        (root / "data_lake" / "landing" / machine).mkdir(parents=True)
    (root / "data_lake" / "landing" / "notes.txt").write_text("kept")
    (root / "dagster_home").mkdir()
    for name in ("workspace.yaml", "dagster_home/dagster.yaml"):
        shutil.copyfile(PROJECT / name, root / name)
    use(root, monkeypatch)
    return root


def use(root: Path, patch: pytest.MonkeyPatch) -> None:
    for name in ("PERF_ASSETS_LAKE", "DAGSTER_HOME", "MLFLOW_TRACKING_URI"):
        patch.setenv(name, "")
    patch.setenv("PERF_ASSETS_HOME", str(root))


def run(*arguments: str) -> Result:
    return CliRunner().invoke(cli, [*arguments])


def refused(*arguments: str) -> str:
    done = run(*arguments)
    assert isinstance(done.exception, BadInputError), done.output
    return str(done.exception)


def answers(fleet: Fleet, table: Path) -> object:
    done = run("predict", "--from", fleet.reference, "--to", MACHINE, str(table), "--json")
    assert done.exit_code == 0, done.output
    return json.loads(done.stdout)["predictions"]


def test_what_is_restored_elsewhere_answers_the_same(
    fleet: Fleet, home: Path, table: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = answers(fleet, table)
    saved = run("backup", str(tmp_path / "saved"), "--json")
    assert saved.exit_code == 0, saved.output
    assert json.loads(saved.stdout)["files"] > 10
    assert not list((tmp_path / "saved").rglob("*.lock"))
    home.rename(tmp_path / "gone")
    elsewhere = tmp_path / "another disk" / "home"
    restored = run("restore", str(tmp_path / "saved"), str(elsewhere))
    assert restored.exit_code == 0, restored.output
    use(elsewhere, monkeypatch)
    assert answers(fleet, table) == before
    assert (elsewhere / "data_lake" / "landing" / "notes.txt").read_text() == "kept"
    assert "is there already, and not empty" in refused("restore", str(tmp_path / "saved"), str(elsewhere))


def test_a_backup_is_written_whole_to_a_new_place(home: Path, tmp_path: Path) -> None:
    assert "is to be saved" in refused("backup", str(home / "data_lake" / "copy"))
    (tmp_path / "there").mkdir()
    assert "never overwritten" in refused("backup", str(tmp_path / "there"))
    shutil.rmtree(home / "data_lake")
    assert "there is no lake" in refused("backup", str(tmp_path / "saved"))
    assert sorted(path.name for path in tmp_path.iterdir() if "saved" in path.name) == []


@pytest.mark.parametrize(
    ("spoil", "told"),
    [
        (lambda backup, note: (backup / "backup.json").unlink(), "is no backup"),
        (lambda backup, note: note.update(format=2), "a backup of another version: perf_assets .* wrote format 2"),
        (lambda backup, note: note["versions"].update(mlflow="99.1"), "the state of mlflow 99.1, and 3"),
        (lambda backup, note: (backup / "data_lake/landing/notes.txt").unlink(), "1 of .* files are missing"),
        (lambda backup, note: (backup / "data_lake/landing/notes.txt").write_text("KEPT"), "notes.txt is damaged"),
        (lambda backup, note: note["files"].update({"../../x": [0, ""]}), "names the file"),
        (lambda backup, note: note.pop("versions"), "is damaged"),
    ],
)
def test_a_backup_that_cannot_be_restored_makes_nothing(
    home: Path, tmp_path: Path, spoil: object, told: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert run("backup", str(tmp_path / "saved")).exit_code == 0
    file = tmp_path / "saved" / "backup.json"
    note = json.loads(file.read_text())
    spoil(tmp_path / "saved", note)
    if file.exists():
        file.write_text(json.dumps(note))
    target = tmp_path / "restored"
    with pytest.raises(BadInputError, match=told):
        restore_command.main([str(tmp_path / "saved"), str(target)], standalone_mode=False)
    assert not target.exists()


def test_a_half_restored_home_says_so_and_is_restored_again(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert run("backup", str(tmp_path / "saved")).exit_code == 0
    target = tmp_path / "restored"
    (unfinished_restore(target) / "data_lake").mkdir(parents=True)
    monkeypatch.setenv("PERF_ASSETS_HOME", str(target))
    assert "is half restored" in refused("models")
    assert "is half restored" in refused("init", str(target))
    assert run("restore", str(tmp_path / "saved"), str(target)).exit_code == 0
    assert Lake.default().root == target / "data_lake"
    assert run("models").exit_code == 0
    assert not unfinished_restore(target).exists()
