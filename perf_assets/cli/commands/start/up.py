"""`perf-assets up`."""

import os
import shutil
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path

import click

from perf_assets.cli.support.output import say
from perf_assets.cli.support.services import (
    SERVES,
    Service,
    answers,
    code_socket,
    end_left_behind,
    free_port,
    listens,
    stop,
    wait_until_ready,
)
from perf_assets.core.addresses import Addresses
from perf_assets.core.errors import BadInputError, BusyError, DatabaseError
from perf_assets.core.paths import dagster_home, database_of, lake_root, mlflow_tracking_uri, sqlite_file
from perf_assets.infra.leases import NO_OS_LOCKS
from perf_assets.infra.locks import exclusive
from perf_assets.infra.permissions import check_private_places
from perf_assets.infra.postgres import Address, LeaseClaim, is_postgres

_AFTERMATH_SECONDS = 120.0
"""Seconds after an outage in which a service may still end of it: Dagster tries to connect again for a while."""


class Keeper:
    """Keeps services running, and the right to be the only `up` on their database, if they have one."""

    def __init__(self, database: str | None) -> None:
        self._claim = None if database is None else LeaseClaim(Address(database), "perf-assets up")
        self._lost_at: float | None = None
        self._is_away = False

    def __enter__(self) -> "Keeper":
        if self._claim is not None:
            self._claim.hold()
        return self

    def __exit__(self, *_: object) -> None:
        if self._claim is not None:
            self._claim.release()

    def look_after(self, services: Sequence[Service]) -> None:
        """Start again what has ended, unless the database is away: then when it is back."""
        if self._database_is_away():
            return
        recently = self._lost_at is not None and time.monotonic() - self._lost_at < _AFTERMATH_SECONDS
        for service in services:
            revived = service.revive(is_blamed=not recently)
            if revived is not None:
                say(revived)

    def _database_is_away(self) -> bool:
        if self._claim is None:
            return False
        try:
            self._claim.hold()
        except DatabaseError as error:
            self._lost_at = time.monotonic()
            if not self._is_away:
                say(f"{error}. What runs goes on when it is back.")
            self._is_away = True
            return True
        if self._is_away:
            say("The database is back.")
        self._is_away = False
        return False


_START_SECONDS = 120.0
_HERE = "127.0.0.1"


@click.command()
@click.option("--port", default=3000, show_default=True, help="Port of the Dagster page; 0 takes a free one.")
@click.option("--mlflow-port", default=5000, show_default=True, help="Port of the MLflow page; 0 takes a free one.")
@click.option("--pages-port", default=4000, show_default=True, help="Port of the lake's own pages; 0 takes a free one.")
def command(port: int, mlflow_port: int, pages_port: int) -> None:
    """Start the Dagster page, the Dagster daemon, the MLflow page and the lake's own pages on this machine only.

    Says what it waits for, prints the addresses once they answer, and runs until Ctrl-C or SIGTERM; then nothing is
    left running.
    """
    from perf_assets.core.site import load_site
    from perf_assets.storage.landing import landing_seconds

    home = dagster_home()
    check_private_places()
    # What these refuse is printed here, not in a service's log.
    landing_seconds()
    site = load_site(lake_root())
    with _only_one(home, lake_root()):
        stopped = threading.Event()
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, lambda *_: stopped.set())
        left = end_left_behind(home)
        if left:
            say(f"{left} processes of a 'perf-assets up' that was killed were still there, and were ended.")
        addresses = _addresses(port, mlflow_port, pages_port)
        with Keeper(database_of(home)) as keeper:
            _make_ready(home)
            # Links lead to where a proxy shows the pages, if there is one.
            shown = site.addresses.model_dump(exclude_none=True)
            replace(addresses, **{name: url.rstrip("/") for name, url in shown.items()}).note(home)
            services = _start_all(home, addresses)
            try:
                wait_until_ready(services, _START_SECONDS, say)
                click.echo(f"Dagster  {addresses.dagster}\nMLflow   {addresses.mlflow}\nPages    {addresses.pages}")
                say("Press Ctrl-C to stop.")
                while not stopped.wait(1.0):
                    keeper.look_after(services)
            finally:
                say(f"Stopping {', '.join(service.name for service in services)} and what they started (up to 30 s).")
                stop(services)
                shutil.rmtree(code_socket(home).parent, ignore_errors=True)


def _addresses(port: int, mlflow_port: int, pages_port: int) -> Addresses:
    """Addresses at ports that are free; refuses a port that is taken, or given twice."""
    wanted = {"--port": port, "--mlflow-port": mlflow_port, "--pages-port": pages_port}
    ports: dict[int, str] = {}
    for option, number in wanted.items():
        free = free_port(number, option)
        if free in ports:
            raise BadInputError(f"port {free} is both {ports[free]} and {option}: choose another with {option}")
        ports[free] = option
    return Addresses(*(f"http://{_HERE}:{free}" for free in ports))


@contextmanager
def _only_one(home: Path, lake: Path) -> Iterator[None]:
    """Two daemons on one instance or one lake would do everything twice."""
    # Not `*.lock`: those are waited for, and doctor warns of those that are held.
    for_lake = lake / "locks" / "up"
    with ExitStack() as held:
        try:
            held.enter_context(exclusive(home / "up.lock", "perf-assets up", wait_seconds=0))
        except BusyError:
            running = (home / "up.lock").read_text().strip()
            raise BusyError(f"perf-assets up is already running on {home}: process {running}") from None
        try:
            held.enter_context(exclusive(for_lake, "perf-assets up", wait_seconds=0))
        except BusyError:
            running = for_lake.read_text().strip()
            raise BusyError(
                f"perf-assets up is already running on the lake {lake}, with another Dagster home than {home}: process "
                f"{running}; two would do everything twice: stop it first, or name another lake (PERF_ASSETS_LAKE)"
            ) from None
        except OSError as error:
            if error.errno not in NO_OS_LOCKS:
                raise
        yield


def _make_ready(home: Path) -> None:
    """Bring the tables of databases to what the services need, and note who launches runs."""
    from perf_assets.defs.operate.dead_runs import note_launcher
    from perf_assets.defs.operate.launch import migrate_instance, open_instance

    migrate_instance(home)
    store = mlflow_tracking_uri()
    file = sqlite_file(store)
    # MLflow's own service would make tables without a lock, beside a first command.
    if is_postgres(store) or (file is not None and not file.exists()):
        from perf_assets.registry.store import open_store

        open_store()
    with open_instance() as instance:
        left_behind = note_launcher(instance)
    if left_behind is not None:
        say(left_behind)


def _start_all(home: Path, addresses: Addresses) -> list[Service]:
    """Start all services: one code server loads the definitions, answers the page and the daemon, and executes runs."""
    from perf_assets.defs.operate.dead_runs import end_dead_runs
    from perf_assets.defs.operate.launch import DEFINITIONS, daemon_is_alive, open_instance

    instance = open_instance()
    end_dead_runs(instance)
    lake = lake_root()
    for folder in ("mlflow", "reports"):
        (lake / folder).mkdir(parents=True, exist_ok=True)
    programs = Path(sys.executable).parent
    socket = code_socket(home)
    workspace = _workspace_of(home, socket)
    port, mlflow_port, pages_port = (
        address.rpartition(":")[2] for address in (addresses.dagster, addresses.mlflow, addresses.pages)
    )
    environment = {
        "DAGSTER_HOME": str(home),
        SERVES: str(home),
        "PERF_ASSETS_LAKE": str(lake),
        # Not as an argument: it may hold a password, and everybody sees the arguments of processes.
        "MLFLOW_BACKEND_STORE_URI": mlflow_tracking_uri(),
        # Seven processes for jobs that are not used here.
        "MLFLOW_SERVER_ENABLE_JOB_EXECUTION": "false",
        "MLFLOW_DISABLE_TELEMETRY": "true",
        "PATH": os.pathsep.join([str(programs), os.environ.get("PATH", "")]),
    }

    def service(name: str, command: list[str], is_ready: Callable[[], bool], *, outlived: bool = False) -> Service:
        program = str(programs / command[0])
        log = home / "service_logs" / f"{name}.log"
        return Service(name, [program, *command[1:]], log, environment, is_ready, outlived)

    mlflow = service(
        "mlflow",
        [
            *("python", "-m", "uvicorn", "--factory", "perf_assets.registry.mlflow_page:create_app"),
            *("--host", _HERE, "--port", mlflow_port, "--no-access-log"),
        ],
        lambda: answers(f"{addresses.mlflow}/health"),
    )
    code_server = service(
        "dagster-code-server",
        [
            *("dagster", "code-server", "start", "--module-name", DEFINITIONS, "--location-name", DEFINITIONS),
            *(
                "--working-directory",
                str(home),
                "--socket",
                str(socket),
                "--use-python-environment-entry-point",
            ),
        ],
        lambda: listens(socket),
        outlived=True,
    )
    pages = service(
        "pages",
        ["python", "-m", "perf_assets.serving.site", str(lake / "reports"), pages_port],
        lambda: answers(addresses.pages),
    )
    services = [mlflow, code_server, pages]
    try:
        # Page and daemon take what the code server says when they start.
        wait_until_ready([code_server], _START_SECONDS, say)
        services += [
            service(
                "dagster-webserver",
                ["dagster-webserver", "-w", str(workspace), "-h", _HERE, "-p", port],
                lambda: answers(f"{addresses.dagster}/server_info"),
            ),
            service(
                "dagster-daemon", ["dagster-daemon", "run", "-w", str(workspace)], lambda: daemon_is_alive(instance)
            ),
        ]
    except BaseException:
        stop(services)
        raise
    return services


def _workspace_of(home: Path, socket: Path) -> Path:
    """File from which Dagster's services know where the definitions are."""
    import yaml

    from perf_assets.defs.operate.launch import DEFINITIONS

    server = {"socket": str(socket), "location_name": DEFINITIONS}
    path = home / "service_logs" / "workspace.yaml"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(yaml.safe_dump({"load_from": [{"grpc_server": server}]}))
    return path
