"""The demo on measured data: public measurements land, and everything that can be made of them is made."""

import sys
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

from perf_assets.cli.support.output import print_json, print_table, say, say_stage
from perf_assets.core.errors import BadInputError
from perf_assets.core.paths import check_dagster_home
from perf_assets.core.tables.models import AMMS
from perf_assets.storage.lake import Lake

_DRAWS = 3


def land_real(lake: Lake, folder: Path, chosen: Sequence[str], seed: int, *, is_quick: bool, as_json: bool) -> None:
    """Land what is in a folder of measurements, ingest it, make every model of it that it allows, write the pages."""
    from perf_assets.cli.commands.landing.ingest import ingest_with_progress
    from perf_assets.defs.operate.launch import write_site
    from perf_assets.storage.aliases import known_applications, load_aliases
    from perf_assets.storage.landing import land
    from perf_assets.storage.results import has_rows
    from perf_assets.workflows.fleet import Fleet
    from perf_assets.workflows.landing.real_lake import machines_of, real_bundles

    check_dagster_home()
    aliases = load_aliases(lake, known_applications(lake))
    bundles = real_bundles(folder, aliases)
    unknown = sorted(set(chosen) - set(machines_of(bundles)))
    if unknown:
        raise BadInputError(f"machine {unknown[0]!r} is not in {folder}: choose from {', '.join(machines_of(bundles))}")
    bundles = [bundle for bundle in bundles if not chosen or bundle.facts.machine in chosen]
    machines = machines_of(bundles)
    say_stage(f"{len(bundles)} bundles of {len(machines)} machines, all measured")
    for bundle in bundles:
        land(lake, bundle.facts, None, bundle.write)
    aliases.save()
    outcomes = ingest_with_progress(machines)
    failures = {outcome.machine: outcome.failure for outcome in outcomes if outcome.failure}
    # All times of the machine that the others are relative to are 1: a model of it would seem to be perfect.
    relative = Fleet(lake).relative_times()
    to_adapt = [name for name in machines if name not in failures and relative.get(name) != f"relative to {name}"]
    problems, is_broken = _models(lake, to_adapt, seed, is_quick=is_quick)
    problems += write_site((), say_stage, has_amms=has_rows(lake, AMMS))
    rows = [
        {"machine": name, "bundles": sum(b.facts.machine == name for b in bundles), "failure": failures.get(name)}
        for name in machines
    ]
    if as_json:
        print_json({"machines": rows, "not_made": problems})
    else:
        print_table("Measured machines", ["machine", "bundles"], [(row["machine"], row["bundles"]) for row in rows])
        for problem in problems:
            say(f"Not made: {problem}")
    for name, failure in failures.items():
        say(f"perf-assets: ingestion of {name} failed: {failure}")
    if failures or is_broken:
        sys.exit(1)


def _models(lake: Lake, machines: Sequence[str], seed: int, *, is_quick: bool) -> tuple[list[str], bool]:
    """Describe machines, train source models, adapt to each machine, train vectors.

    What was not made, with the reason, and whether that is a fault of ours: it stops no other machine.
    """
    from perf_assets.cli.commands.models.train import train
    from perf_assets.core.vector_settings import VectorSettings
    from perf_assets.defs.operate.launch import adapt_machines, make_vectors
    from perf_assets.features.vectors import SLOWEST

    vectors = VectorSettings.quick() if is_quick else VectorSettings()
    steps: list[Callable[[], None]] = [
        lambda: train(lake, seed, is_quick=is_quick),
        *(partial(adapt_machines, [name], seed, 1 if is_quick else _DRAWS, say_stage) for name in machines),
        lambda: make_vectors(SLOWEST, seed, 0, vectors, say_stage),
    ]
    problems, is_broken = [], False
    for step in steps:
        try:
            step()
        except BadInputError as error:
            problems.append(str(error))
        except RuntimeError as error:
            problems.append(str(error))
            is_broken = True
    return problems, is_broken
