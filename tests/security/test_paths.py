"""What a bundle names and holds stays inside of it: no path leads out, no link, no device, no archive is unpacked."""

import io
import json
import os
import tarfile
import zipfile
from pathlib import Path

import pytest

from perf_assets.core.errors import BadInputError, UnreadableFileError
from perf_assets.core.manifest import MANIFEST_NAME, check_relative_path, parse_manifest
from perf_assets.readers.bundle import read_bundle
from perf_assets.readers.files import SourceFile
from perf_assets.readers.samples.parquet import read_table
from perf_assets.storage.lake import Lake, LandedBundle
from perf_assets.storage.landing import copying, land, verified_manifest
from perf_assets.workflows.landing.ingest import ingest_machine
from tests.conftest import profile_facts
from tests.storage.conftest import land_counters


@pytest.mark.parametrize(
    "path",
    [
        *(
            "..",
            "../b",
            "a/../../b",
            "/etc/passwd",
            "//a",
            "a/..",
            "./a",
            "a/./b",
            "a//b",
            "a/",
            ".",
            "",
            MANIFEST_NAME,
        ),
        *("a\\..\\b", "a\0b", "a\nb", "a\rb", "a\x1b[2Jb", "a\u202eb", "a\udcffb"),
    ],
)
def test_paths_of_a_manifest_stay_inside_and_on_one_line(path: str, lake: Lake) -> None:
    with pytest.raises(ValueError, match=r"leaves the bundle|plain relative|UTF-8|cannot be printed"):
        check_relative_path(path)
    document = json.loads(land_counters(lake, "b1", profile_facts(), {"X": 1}).bundle.manifest_bytes)
    document["files"][0]["path"] = path
    with pytest.raises(BadInputError) as refused:
        parse_manifest(json.dumps(document).encode())
    assert str(refused.value).isprintable()


def test_a_file_name_with_a_line_break_does_not_land(lake: Lake, tmp_path: Path) -> None:
    source = tmp_path / "source"
    source.mkdir()
    (source / "a\nINFO all is well").write_text("x")
    with pytest.raises(BadInputError, match=r"cannot be printed.*rename it"):
        land(lake, profile_facts(), None, copying(source))


def _linked_folder(bundle: Path, outside: Path) -> None:
    (bundle / "counters.json").unlink()
    (bundle / "sub").symlink_to(outside, target_is_directory=True)


def _linked_manifest(bundle: Path, outside: Path) -> None:
    (bundle / MANIFEST_NAME).rename(outside / MANIFEST_NAME)
    (bundle / MANIFEST_NAME).symlink_to(outside / MANIFEST_NAME)


def _device(bundle: Path, outside: Path) -> None:
    try:
        os.mknod(bundle / "zero", 0o600 | 0o020000, os.makedev(1, 5))
    except PermissionError:
        pytest.skip("only root can make a device file")


def _hard_link_to_a_secret(bundle: Path, outside: Path) -> None:
    (outside / "secret").write_text("a secret")
    (bundle / "counters.json").unlink()
    os.link(outside / "secret", bundle / "counters.json")


@pytest.mark.parametrize(
    ("attack", "message"),
    [
        (_linked_folder, "symbolic link"),
        (_linked_manifest, "not a plain file"),
        (_device, "neither a file nor a folder"),
        (_hard_link_to_a_secret, "does not have the sha256"),
    ],
)
def test_a_bundle_that_leads_outside_is_refused(attack, message: str, lake: Lake, tmp_path: Path) -> None:
    bundle = land_counters(lake, "b1", profile_facts(), {"X": 1}).bundle
    outside = tmp_path / "outside"
    outside.mkdir()
    attack(bundle.directory, outside)
    with pytest.raises(BadInputError, match=message) as refused:
        verified_manifest(LandedBundle(bundle.directory), "quartz")
    assert "a secret" not in str(refused.value)


def test_a_hard_link_is_a_file_whose_content_its_producer_knows(lake: Lake, tmp_path: Path) -> None:
    """Backups and rsync make them; the manifest has the sha256, so nothing unknown to the producer gets in."""
    bundle = land_counters(lake, "b1", profile_facts(), {"X": 1}).bundle
    os.link(bundle.directory / "counters.json", tmp_path / "backup")
    assert verified_manifest(LandedBundle(bundle.directory), "quartz").files


def test_a_table_that_became_a_link_after_it_was_verified_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "table").symlink_to("/etc/hostname")
    with pytest.raises(UnreadableFileError, match="cannot be opened"):
        read_table(SourceFile(str(tmp_path / "table"), "table", 10, b"PAR1"))


def _tar(compression: str) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode=f"w:{compression}") as archive:
        evil = tarfile.TarInfo("../../evil")
        evil.size = 4
        archive.addfile(evil, io.BytesIO(b"evil"))
        link = tarfile.TarInfo("link")
        link.type, link.linkname = tarfile.SYMTYPE, "/etc/passwd"
        archive.addfile(link)
    return buffer.getvalue()


def _zip() -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        archive.writestr("../../evil", "evil")
    return buffer.getvalue()


@pytest.mark.parametrize(
    ("name", "content"),
    [("a.tar", _tar("")), ("a.tar.gz", _tar("gz")), ("a.zip", _zip())],
    ids=["tar", "tar.gz", "zip"],  # Their content holds the time: workers would collect different tests.
)
def test_archives_are_never_unpacked(name: str, content: bytes, lake: Lake) -> None:
    land(lake, profile_facts(), "b1", lambda folder: (folder / name).write_bytes(content) and None)
    assert ingest_machine(lake, "quartz", read_bundle).quarantined_count == 1
    reason = json.loads((lake.quarantine / "quartz" / "b1" / "reason.json").read_text())["reason"]
    assert "no known format" in reason
    assert not list(lake.root.parent.rglob("evil"))


def test_a_bundle_too_large_for_the_memory_does_not_stop_the_others(lake: Lake) -> None:
    def read(directory: Path, *rest: object) -> object:
        if directory.name == "bomb":
            raise MemoryError
        return read_bundle(directory, *rest)  # type: ignore[arg-type]

    for name in ("bomb", "good"):
        facts = profile_facts(kind="samples", target="wall_seconds", tags={"name": name})
        land(lake, facts, name, lambda folder: (folder / "t.csv").write_text("app,x,wall_seconds\nA,1,2\n") and None)
    outcome = ingest_machine(lake, "quartz", read)  # type: ignore[arg-type]
    assert (outcome.ingested_count, outcome.quarantined_count) == (1, 1)
    reason = json.loads((lake.quarantine / "quartz" / "bomb" / "reason.json").read_text())["reason"]
    assert "more memory" in reason
