"""`perf-assets land`."""

from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import click
from pydantic import ValidationError

from perf_assets.cli.support.options import json_option, kind_option
from perf_assets.cli.support.output import print_json, print_table, say
from perf_assets.core.errors import BadInputError
from perf_assets.core.machines import parse_machine_spec
from perf_assets.core.manifest import MANIFEST_NAME, SPEC_NAME, BundleFacts, parse_manifest
from perf_assets.core.text import first_problem
from perf_assets.storage.lake import Lake, LandedBundle
from perf_assets.storage.landing import copying, land, plain_files, verified_manifest


@click.command()
@click.argument("paths", nargs=-1, required=True, type=click.Path(path_type=Path), metavar="PATH...")
@click.option("--machine", help="Machine id; needed unless PATH has a manifest.json.")
@kind_option
@click.option("--app", help="Application; needed for a profile whose files do not name it.")
@click.option("--args", help="Arguments of the application.")
@click.option("--ranks", type=int, help="MPI ranks.")
@click.option("--threads", type=int, help="Threads of a rank.")
@click.option("--nodes", type=int, help="Nodes.")
@click.option("--gpus", type=int, help="GPUs used in all.")
@click.option("--wall-seconds", type=float, help="Run time, where the files do not have it.")
@click.option("--collected-at", help="When it was measured, as 2026-11-16T12:00Z; the newest file's time if absent.")
@click.option("--target", help="Samples: column to predict.")
@click.option("--tag", "tags", multiple=True, metavar="KEY=VALUE", help="Anything worth keeping; may be repeated.")
@click.option("--name", help="Name of the bundle; one made from the content if absent. One PATH only.")
@click.option("--spec", type=click.Path(path_type=Path), help="The machine's data sheet, a machine.yaml.")
@json_option
def command(
    paths: tuple[Path, ...],
    tags: tuple[str, ...],
    name: str | None,
    spec: Path | None,
    as_json: bool,
    **fields: Any,
) -> None:
    """Put measurements into the landing zone, each PATH as one bundle.

    A PATH is a file or folder that a tool wrote (RAJAPerf, HPCToolkit, PAPI, perf stat, a table of samples), or
    a folder that has a manifest.json already. Everything is looked at before anything lands; landing the same
    thing again changes nothing.
    """
    if name is not None and len(paths) > 1:
        raise BadInputError("--name is for one PATH: leave it out, or land one by one")
    given = {field: value for field, value in fields.items() if value is not None}
    if tags:
        given["tags"] = _parse_tags(tags)
    facts = [_facts(path, given) for path in paths]
    lake = Lake.default()
    rows = []
    for path, fact in zip(paths, facts, strict=True):
        landing = land(lake, fact, name or _prepared_name(path), _writing(path, spec, fact.machine))
        state = "landed" if landing.is_new else "already there"
        rows.append({"path": str(path), "machine": fact.machine, "kind": fact.kind, "bundle": landing.bundle.name})
        rows[-1] |= {"bundle_digest": landing.bundle.digest, "state": state}
    if as_json:
        print_json({"bundles": rows})
    else:
        columns = ["path", "machine", "kind", "bundle", "state"]
        print_table("Landed", columns, [[row[column] for column in columns] for row in rows])
        say("Next: 'perf-assets ingest', or wait for the sensor if 'perf-assets up' runs.")


def _facts(path: Path, given: dict[str, Any]) -> BundleFacts:
    if not path.exists():
        raise BadInputError(f"{path} does not exist")
    if (path / MANIFEST_NAME).is_file():
        return _prepared_facts(path, given)
    if "machine" not in given:
        raise BadInputError(f"{path} has no {MANIFEST_NAME}: say which machine it is from with --machine")
    from perf_assets.readers.read import read

    found: dict[str, Any] = {"collected_at": _newest(path)}
    reading = read(path, given.get("kind"))
    found["kind"] = "samples" if reading.format.startswith("samples") else "rajaperf" if reading.timings else "profile"
    if reading.profiles and "program" in reading.metadata:
        found["app"] = reading.metadata["program"]
    if reading.profiles and "wall_seconds" not in given and all(p.wall_seconds is None for p in reading.profiles):
        say(f"{path}: no run time in the files: give --wall-seconds, or it cannot be compared with other machines")
    try:
        return BundleFacts.model_validate(found | given)
    except ValidationError as error:
        raise BadInputError(f"{path}: {first_problem(error)} (see 'perf-assets land --help')") from None


def _prepared_facts(path: Path, given: dict[str, Any]) -> BundleFacts:
    """Facts of a folder that has a manifest, which must be true."""
    if given:
        raise BadInputError(f"{path} has a {MANIFEST_NAME}: leave out --{min(given).replace('_', '-')}, or remove it")
    bundle = LandedBundle(path.absolute())
    manifest = verified_manifest(bundle, parse_manifest(bundle.manifest_bytes).machine)
    return BundleFacts.model_validate(manifest.model_dump(exclude={"files", "version"}))


def _prepared_name(path: Path) -> str | None:
    return path.absolute().name if (path / MANIFEST_NAME).is_file() else None


def _newest(path: Path) -> datetime:
    files = [path / file for file in plain_files(path)] if path.is_dir() else [path]
    if not files:
        raise BadInputError(f"{path} is empty")
    return datetime.fromtimestamp(int(max(file.stat().st_mtime for file in files)), UTC)


def _parse_tags(tags: tuple[str, ...]) -> dict[str, str]:
    for tag in tags:
        if "=" not in tag:
            raise BadInputError(f"--tag {tag!r} is not KEY=VALUE")
    return dict(tag.split("=", 1) for tag in tags)


def _writing(path: Path, spec: Path | None, machine: str) -> Callable[[Path], None]:
    """How the bundle's files are written: copied, with the data sheet beside them."""
    copy = copying(path)
    if spec is None:
        return copy
    if not spec.is_file():
        raise BadInputError(f"{spec} does not exist")
    sheet = parse_machine_spec(spec.read_text())
    if sheet.machine != machine:
        raise BadInputError(f"{spec} is of machine {sheet.machine!r}, not of {machine!r}")

    def write(folder: Path) -> None:
        copy(folder)
        (folder / SPEC_NAME).write_bytes(spec.read_bytes())

    return write
