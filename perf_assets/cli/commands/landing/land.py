"""`perf-assets land`."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from perf_assets.cli.support.options import json_option, kind_option
from perf_assets.cli.support.output import print_json, print_table, say
from perf_assets.core.errors import BadInputError
from perf_assets.storage.lake import Lake

if TYPE_CHECKING:
    from perf_assets.workflows.landing.land import Planned

_MOST_ROWS = 20
_SHOWN_CHARACTERS = 30
_SILENT_BUNDLES = 10
"""Bundles that land before anybody wonders how far it is."""


@click.command()
@click.argument("paths", nargs=-1, required=True, type=click.Path(path_type=Path), metavar="PATH...")
@click.option("--machine", help="Machine id; needed where no file says it and no --dataset is given.")
@kind_option
@click.option(
    "--app", help="Application; needed for a profile whose files do not name it. Its other name is remembered."
)
@click.option("--args", help="Arguments of the application.")
@click.option("--ranks", type=int, help="MPI ranks.")
@click.option("--threads", type=int, help="Threads of a rank.")
@click.option("--nodes", type=int, help="Nodes.")
@click.option("--gpus", type=int, help="GPUs used in all.")
@click.option("--wall-seconds", type=float, help="Run time, where the files do not have it.")
@click.option("--collected-at", help="When it was measured, as 2026-11-16T12:00Z; the newest file's time if absent.")
@click.option("--target", help="Samples: column to predict.")
@click.option("--dataset", metavar="NAME", help="Samples: dataset that the rows belong to.  [the machine's own]")
@click.option("--environment", help="Software, as in 'gcc 12.1; openmpi 4.1'; what the files say if absent.")
@click.option("--tag", "tags", multiple=True, metavar="KEY=VALUE", help="Anything worth keeping; may be repeated.")
@click.option("--name", help="Name of the bundle; one made from the content if absent. One bundle only.")
@click.option(
    "--dry-run", "is_dry", is_flag=True, help="Show what would land, and where each fact is from; land nothing."
)
@click.option("--spec", type=click.Path(path_type=Path), help="The machine's data sheet, a machine.yaml.")
@json_option
def command(
    paths: tuple[Path, ...],
    environment: str | None,
    tags: tuple[str, ...],
    name: str | None,
    spec: Path | None,
    is_dry: bool,
    as_json: bool,
    **fields: Any,
) -> None:
    """Put measurements into the landing zone.

    A PATH is a file or folder that a tool wrote (RAJAPerf, Caliper, HPCToolkit, LIKWID, PAPI, perf stat, a table of
    samples, job records), or that has a manifest.json already. What the files say (machine, application, arguments,
    date …) need not be typed; a folder of many runs becomes many bundles. Names are those of 'aliases.yaml' in the
    lake. Everything is looked at before anything lands; landing the same thing again changes nothing.
    """
    from perf_assets.core.environment import ENVIRONMENT_TAG, check_environment
    from perf_assets.storage.aliases import known_applications, load_aliases
    from perf_assets.storage.landing import land
    from perf_assets.workflows.landing.land import plan_landing

    given = {field: value for field, value in fields.items() if value is not None}
    if tags or environment is not None:
        given["tags"] = _parse_tags(tags)
    if environment is not None:
        given["tags"][ENVIRONMENT_TAG] = check_environment(environment)
    lake = Lake.default()
    aliases = load_aliases(lake, known_applications(lake))
    with _looking():
        planned = plan_landing(paths, given, aliases)
    if name is not None and len(planned) > 1:
        raise BadInputError(f"--name is for one bundle, and these are {len(planned)}: leave it out, or land one by one")
    writing = [_writing(bundle, spec) for bundle in planned]
    say(*dict.fromkeys(warning for bundle in planned for warning in bundle.warnings))
    if is_dry:
        _show_plan(planned, as_json=as_json)
        return
    if not as_json:
        _show_plan(planned, as_json=False)
    rows = []
    with _progress(len(planned)) as advance:
        for bundle, write in zip(planned, writing, strict=True):
            landing = land(lake, bundle.facts, name or bundle.name, write)
            advance()
            rows.append(_identity(bundle) | {"bundle": landing.bundle.name, "bundle_digest": landing.bundle.digest})
            rows[-1]["state"] = "landed" if landing.is_new else "already there"
    aliases.save()
    _report(rows, as_json=as_json)


def _report(rows: Sequence[dict[str, Any]], *, as_json: bool) -> None:
    if as_json:
        print_json({"bundles": rows})
        return
    columns = ["path", "machine", "kind", "bundle", "state"]
    more = f", the first {_MOST_ROWS} of {len(rows)}" if len(rows) > _MOST_ROWS else ""
    print_table(f"Landed{more}", columns, [[row[column] for column in columns] for row in rows[:_MOST_ROWS]])
    say("Next: 'perf-assets ingest', or wait for the sensor if 'perf-assets up' runs.")


def _identity(bundle: "Planned") -> dict[str, Any]:
    return {"path": bundle.shown_path, "machine": bundle.facts.machine, "kind": bundle.facts.kind}


def _show_plan(planned: Sequence["Planned"], *, as_json: bool) -> None:
    """Print which facts were taken from where."""
    if as_json:
        print_json(
            {"is_dry_run": True, "bundles": [_identity(bundle) | {"facts": _facts(bundle)} for bundle in planned]}
        )
        return
    if len(planned) == 1:
        rows = [[name, fact["value"], fact["from"]] for name, fact in _facts(planned[0]).items()]
        print_table(f"Taken for {planned[0].shown_path}", ["fact", "value", "from"], rows)
        return
    columns = ["path", "machine", "app", "args", "ranks", "threads", "nodes", "wall_seconds"]
    rows = []
    for bundle in planned[:_MOST_ROWS]:
        facts = {name: fact["value"] for name, fact in _facts(bundle).items()}
        rows.append([_short_path(bundle), *(_cut(facts.get(column, "")) for column in columns[1:])])
    more = f", the first {_MOST_ROWS}" if len(planned) > _MOST_ROWS else ""
    print_table(f"{len(planned)} bundles{more} (--dry-run --json says where each fact is from)", columns, rows)


def _short_path(bundle: "Planned") -> str:
    return bundle.files[0] if bundle.files is not None and len(bundle.files) == 1 else str(bundle.path)


def _cut(text: str) -> str:
    return text if len(text) <= _SHOWN_CHARACTERS else f"{text[:_SHOWN_CHARACTERS]}…"


def _facts(bundle: "Planned") -> dict[str, dict[str, str]]:
    facts = bundle.facts.model_dump(mode="json", exclude_none=True)
    facts["tags"] = ", ".join(f"{key}={value}" for key, value in facts["tags"].items())
    facts["app_names"] = ", ".join(f"{given_name}: {app}" for given_name, app in facts.get("app_names", {}).items())
    shown = {
        name: {"value": str(value), "from": bundle.origins.get(name, "")} for name, value in facts.items() if value
    }
    own = {name: {"value": str(value), "from": origin} for name, (value, origin) in bundle.run.items()}
    return own | shown


@contextmanager
def _looking() -> Iterator[None]:
    """A sign of life on a terminal while files are read."""
    from rich.console import Console

    with Console(stderr=True).status("looking at the files"):
        yield


@contextmanager
def _progress(count: int) -> Iterator[Callable[[], None]]:
    """A bar on a terminal, where there is much to land."""
    if count <= _SILENT_BUNDLES:
        yield lambda: None
        return
    from rich.console import Console
    from rich.progress import Progress

    with Progress(console=Console(stderr=True)) as progress:
        task = progress.add_task("landing", total=count)
        yield lambda: progress.advance(task)


def _parse_tags(tags: tuple[str, ...]) -> dict[str, str]:
    for tag in tags:
        if "=" not in tag:
            raise BadInputError(f"--tag {tag!r} is not KEY=VALUE")
    return dict(tag.split("=", 1) for tag in tags)


def _writing(bundle: "Planned", spec: Path | None) -> Callable[[Path], None]:
    """Function that writes the bundle's files: copies, with the data sheet beside them."""
    from perf_assets.core.machines import parse_machine_spec
    from perf_assets.core.manifest import SPEC_NAME
    from perf_assets.storage.landing import copying

    copy = copying(bundle.path, bundle.files)
    if spec is None:
        return copy
    if not spec.is_file():
        raise BadInputError(f"{spec} does not exist")
    sheet = parse_machine_spec(spec.read_text(), str(spec))
    if sheet.machine != bundle.facts.machine:
        raise BadInputError(f"{spec} is of machine {sheet.machine!r}, not of {bundle.facts.machine!r}")

    def write(folder: Path) -> None:
        copy(folder)
        (folder / SPEC_NAME).write_bytes(spec.read_bytes())

    return write
