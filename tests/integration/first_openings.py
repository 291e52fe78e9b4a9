"""Open new homes from several processes at once; prints as JSON what went wrong in any of them.

Processes are forked from one that has loaded everything, so that they meet at the tables and not while loading.
"""

import json
import multiprocessing
import os
import shutil
import sys
import traceback
from collections.abc import Callable
from pathlib import Path

from tests.installation import PROJECT

AT_ONCE = int(os.environ.get("PERF_ASSETS_OPENING_PROCESSES", "4"))
"""`make test-all` has 8."""


def open_home() -> None:
    from perf_assets.defs.operate.launch import open_instance

    with open_instance() as instance:
        assert instance.get_runs_count() == 0
        assert instance.get_daemon_statuses() is not None
        assert instance.all_asset_keys() == []
        assert instance.schedule_storage is not None
        assert instance.schedule_storage.all_instigator_state() == []


def open_registry() -> None:
    from perf_assets.registry.store import open_store

    assert [experiment.name for experiment in open_store().search_experiments()] == ["Default"]


OPENINGS: dict[str, Callable[[], None]] = {"home": open_home, "registry": open_registry}


def _in_process(opening: str, start: "multiprocessing.synchronize.Barrier", told: Path) -> None:
    start.wait(200)
    try:
        OPENINGS[opening]()
    except BaseException:
        told.write_text(traceback.format_exc()[-1000:])
        sys.exit(1)


def one_round(opening: str, root: Path, storage: str) -> list[str]:
    """What went wrong when several processes opened a new home in this folder at once."""
    home = root / "home"
    home.mkdir(parents=True)
    shutil.copyfile(PROJECT / "dagster_home" / "dagster.yaml", home / "dagster.yaml")
    if opening == "home" and storage:
        (home / "dagster.yaml").write_text(json.dumps({"storage": {"postgres": {"postgres_url": storage}}}))
    os.environ |= {
        "DAGSTER_HOME": str(home),
        "PERF_ASSETS_LAKE": str(root / "lake"),
        "MLFLOW_TRACKING_URI": storage if opening == "registry" else "",
    }
    forking = multiprocessing.get_context("fork")
    start = forking.Barrier(AT_ONCE)
    files = [root / f"told-{number}" for number in range(AT_ONCE)]
    processes = [forking.Process(target=_in_process, args=(opening, start, file)) for file in files]
    for process in processes:
        process.start()
    for process in processes:
        process.join(200)
    for process in processes:
        process.kill()
    return [
        file.read_text() if file.exists() else f"ended with {process.exitcode}"
        for process, file in zip(processes, files, strict=True)
        if process.exitcode != 0
    ]


def main(opening: str, root: str, *storages: str) -> None:
    """A round for each address of a storage; an empty one is a SQLite file."""
    import perf_assets.defs.operate.launch
    import perf_assets.registry.store  # noqa: F401

    told = [one_round(opening, Path(root) / str(number), storage) for number, storage in enumerate(storages)]
    sys.stdout.write(json.dumps([line for lines in told for line in lines]))


if __name__ == "__main__":
    main(*sys.argv[1:])
