"""Landing is atomic and idempotent; what the contract does not allow is refused with one line."""

import os
from pathlib import Path

import pytest

from perf_assets.core.errors import BadInputError
from perf_assets.core.manifest import parse_manifest
from perf_assets.storage.lake import Lake, LandedBundle, landed_digests, strays
from perf_assets.storage.landing import copying, land, verified_manifest
from tests.conftest import profile_facts
from tests.storage.conftest import land_counters


def test_a_landed_bundle_is_listed_and_verifies(lake: Lake) -> None:
    landing = land_counters(lake, "b1", profile_facts(), {"PAPI_TOT_INS": 7})
    assert landing.is_new
    assert [name for name, _ in landed_digests(lake, "quartz")] == ["b1"]
    manifest = verified_manifest(landing.bundle, "quartz")
    assert [entry.path for entry in manifest.files] == ["counters.json"]


def test_landing_the_same_again_changes_nothing(lake: Lake) -> None:
    landings, digests = [], []
    for value in (7, 7, 8):
        landings.append(land_counters(lake, "b1", profile_facts(), {"PAPI_TOT_INS": value}))
        digests.append(landings[-1].bundle.digest)
    assert [landing.is_new for landing in landings] == [True, False, True]
    assert digests[0] == digests[1] != digests[2]
    assert [path.name for path in (lake.landing / "quartz").iterdir()] == ["b1"]


@pytest.mark.parametrize("name", ["b1", None])
def test_landing_again_mends_what_was_damaged(lake: Lake, tmp_path: Path, name: str | None) -> None:
    """The quarantine says: land it again."""
    source = tmp_path / "counters.csv"
    source.write_text("a,b\n")
    bundle = land(lake, profile_facts(), name, copying(source)).bundle
    (bundle.directory / "counters.csv").write_text("a")
    again = land(lake, profile_facts(), name, copying(source))
    assert (again.is_new, again.bundle.directory) == (True, bundle.directory)
    verified_manifest(again.bundle, "quartz")


def test_without_a_name_content_names_the_bundle(lake: Lake, tmp_path: Path) -> None:
    source = tmp_path / "profile.csv"
    source.write_text("a,b\n")
    first = land(lake, profile_facts(), None, copying(source))
    later = profile_facts(collected_at="2026-11-02T00:00:00Z")
    again = land(lake, later, None, copying(source))
    assert first.bundle.name.startswith("profile-Kripke-")
    assert (again.is_new, again.bundle) == (False, first.bundle)


def test_a_failing_writer_leaves_nothing(lake: Lake) -> None:
    def write(folder: Path) -> None:
        (folder / "half").write_text("half")
        raise OSError("disk full")

    with pytest.raises(OSError, match="disk full"):
        land(lake, profile_facts(), "b1", write)
    assert list(lake.landing.iterdir()) == []


@pytest.mark.parametrize("name", ["../b", "a/b", "", ".hidden", "x" * 129, "b\n1"])
def test_bundle_names_stay_in_the_landing_zone(lake: Lake, name: str) -> None:
    with pytest.raises(BadInputError, match="bundle name"):
        land(lake, profile_facts(), name, lambda folder: None)


def test_links_are_not_landed(lake: Lake, tmp_path: Path) -> None:
    source = tmp_path / "source"
    source.mkdir()
    (source / "secret").symlink_to("/etc/hostname")
    with pytest.raises(BadInputError, match="symbolic link"):
        land(lake, profile_facts(), None, copying(source))


def test_a_name_that_is_not_utf8_is_not_landed(lake: Lake, tmp_path: Path) -> None:
    source = tmp_path / "source"
    source.mkdir()
    Path(os.fsdecode(os.fsencode(source) + b"/caf\xe9")).write_text("x")
    with pytest.raises(BadInputError, match="not UTF-8"):
        land(lake, profile_facts(), None, copying(source))


def _spoil_content(folder: Path) -> None:
    (folder / "counters.json").write_text('{"PAPI_TOT_INS": 9}')


def _truncate(folder: Path) -> None:
    (folder / "counters.json").write_text("{")


def _inflate(folder: Path) -> None:
    os.truncate(folder / "counters.json", 100 * 2**30)


def _remove(folder: Path) -> None:
    (folder / "counters.json").unlink()


def _add(folder: Path) -> None:
    (folder / "extra").write_text("x")


def _link(folder: Path) -> None:
    (folder / "counters.json").unlink()
    (folder / "counters.json").symlink_to("/etc/hostname")


def _pipe(folder: Path) -> None:
    os.mkfifo(folder / "pipe")


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (_spoil_content, "does not have the sha256"),
        (_truncate, "the copy is incomplete"),
        (_inflate, "the copy is incomplete"),
        (_remove, "listed in manifest.json but missing"),
        (_add, "is not listed"),
        (_link, "symbolic link"),
        (_pipe, "neither a file nor a folder"),
    ],
)
def test_a_bundle_that_is_not_what_its_manifest_says_is_refused(lake: Lake, spoil, message: str) -> None:
    bundle = land_counters(lake, "b1", profile_facts(), {"PAPI_TOT_INS": 7}).bundle
    spoil(bundle.directory)
    with pytest.raises(BadInputError, match=message):
        verified_manifest(LandedBundle(bundle.directory), "quartz")


def test_a_bundle_in_another_machines_folder_is_refused(lake: Lake) -> None:
    bundle = land_counters(lake, "b1", profile_facts(), {"PAPI_TOT_INS": 7}).bundle
    with pytest.raises(BadInputError, match="land it where it belongs"):
        verified_manifest(bundle, "ruby")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ('"machine": "quartz"', "machine: .*'Quartz!' is not allowed"),
        ('"kind": "profile"', "kind: "),
        ('"app": "Kripke"', "app is missing"),
        ('"version": 1', "version: "),
        ('"path": "counters.json"', "leaves the bundle"),
    ],
)
def test_wrong_manifest_fields_are_named(lake: Lake, change: str, message: str) -> None:
    wrong = {
        '"machine": "quartz"': '"machine": "Quartz!"',
        '"kind": "profile"': '"kind": "movie"',
        '"app": "Kripke"': '"args": ""',
        '"version": 1': '"version": 2',
        '"path": "counters.json"': '"path": "../counters.json"',
    }
    bundle = land_counters(lake, "b1", profile_facts(), {"PAPI_TOT_INS": 7}).bundle
    text = bundle.manifest_bytes.decode()
    assert text.count(change) == 1
    if '"args"' in wrong[change]:
        text = text.replace('\n "args": "",', "")
    with pytest.raises(BadInputError, match=message) as caught:
        parse_manifest(text.replace(change, wrong[change]).encode())
    assert "\n" not in str(caught.value)


def test_what_cannot_be_a_bundle_is_a_stray(lake: Lake, tmp_path: Path) -> None:
    land_counters(lake, "good", profile_facts(), {"PAPI_TOT_INS": 7})
    (lake.landing / "Bad Machine").mkdir()
    (lake.landing / "quartz" / "white space").mkdir()
    (lake.landing / "quartz" / "outside").symlink_to(tmp_path)
    Path(os.fsdecode(os.fsencode(lake.landing) + b"/\xff\xfe")).mkdir()
    found = {stray.safe_name: stray.reason for stray in strays(lake)}
    assert set(found) == {
        "landing+Bad%20Machine", "landing+%FF%FE", "quartz+white%20space", "quartz+outside"
    }  # fmt: skip
    assert "symbolic link" in found["quartz+outside"]
    assert [name for name, _ in landed_digests(lake, "quartz")] == ["good"]
