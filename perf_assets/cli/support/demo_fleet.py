"""The simulated fleet as it lands: machines that are known, machines that arrive late, and what has landed of them."""

import json
import os
import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass, field
from multiprocessing import get_context
from multiprocessing.connection import Connection
from typing import TYPE_CHECKING

from perf_assets.cli.support.output import say_stage
from perf_assets.core.errors import BadInputError
from perf_assets.infra.threads import thread_budget
from perf_assets.storage.lake import Lake
from perf_assets.storage.landing import land

if TYPE_CHECKING:
    from pathlib import Path

    from perf_assets.demo.late import LateMachine
    from perf_assets.demo.simulated import SimulatedBundle

_DRAWS = 3
"""Random draws of runs behind a learning curve."""
_FULL_BENCHMARK = 1.0
"""RAJAPerf is run in full whatever the scale: machines are described by it."""


@dataclass
class DemoState:
    """Part of the simulated fleet that has landed in a lake."""

    scale: float
    seed: int
    batches: dict[str, int] = field(default_factory=dict)
    """Late machine -> how many times ten of its runs have landed."""

    @classmethod
    def load(cls, lake: Lake) -> "DemoState":
        """Read the state of a lake's demo; refuses a lake without one."""
        try:
            return cls(**json.loads(_state_file(lake).read_text()))
        except (OSError, ValueError, TypeError):
            raise BadInputError(f"there is no demo in {lake.root}: run 'perf-assets demo' first") from None

    def save(self, lake: Lake) -> None:
        """Write into the lake, whole or not at all."""
        from perf_assets.infra.files import write_bytes

        _state_file(lake).parent.mkdir(parents=True, exist_ok=True)
        write_bytes(_state_file(lake), json.dumps(asdict(self), indent=1).encode())

    def machine(self, name: str) -> "LateMachine":
        """A late machine as this demo simulates it."""
        from perf_assets.demo.fleet_machines import load_machines
        from perf_assets.demo.late import LateMachine

        return LateMachine.of(load_machines()[name], self.scale, self.seed)


@dataclass(frozen=True)
class Arrival:
    """Outcome of the arrival of machines."""

    failures: dict[str, str]
    """Reasons why machines could not be ingested."""
    problem: str = ""
    """Reasons why models could not be made."""


def arrive_known(state: DemoState, machines: Sequence[str], is_shown: bool) -> Arrival:
    """Land and ingest everything of machines that are known; the training that follows describes them."""
    from perf_assets.demo.fleet import fleet_bundles

    lake = Lake.default()
    bundles = fleet_bundles(state.scale, state.seed, machines, benchmark_scale=_FULL_BENCHMARK)
    _land(lake, bundles, "landing" if is_shown else "")
    return Arrival(_ingest(machines, is_shown=is_shown, describes=False))


def arrive_late(state: DemoState, machines: Sequence[str], is_shown: bool) -> Arrival:
    """Land RAJAPerf and the first runs of late machines, keep others aside, ingest, and adapt models."""
    from perf_assets.defs.operate.launch import adapt_machines
    from perf_assets.workflows.models.kept_aside import store_truth

    lake = Lake.default()
    for name in machines:
        machine = state.machine(name)
        store_truth(lake, name, machine.truth())
        runs = [bundle for batch in range(state.batches[name]) for bundle in machine.batch(batch)]
        _land(lake, [*machine.benchmark(), *runs], f"landing {name}" if is_shown else "")
    failures = _ingest(machines, is_shown=is_shown, describes=True)
    try:
        adapt_machines([name for name in machines if name not in failures], state.seed, _DRAWS, say_stage)
    except BadInputError as error:
        return Arrival(failures, str(error))
    return Arrival(failures)


Arrive = Callable[[DemoState, Sequence[str], bool], Arrival]


def in_two_processes(arrive: Arrive, state: DemoState, machines: Sequence[str]) -> Arrival:
    """Let machines arrive, half of them in a second process where there are two cores."""
    if len(machines) < 2 or thread_budget() < 2:
        return arrive(state, machines, True) if machines else Arrival({})
    context = get_context("spawn")
    receiving, sending = context.Pipe(duplex=False)
    other = context.Process(target=_arrive_elsewhere, args=(sending, arrive, state, machines[1::2]), daemon=True)
    other.start()
    sending.close()
    mine = arrive(state, machines[::2], True)
    try:
        theirs = receiving.recv()
    except EOFError:
        raise RuntimeError(f"the process of {', '.join(machines[1::2])} ended without a result") from None
    finally:
        other.join()
    if isinstance(theirs, Exception):
        raise theirs
    return Arrival(mine.failures | theirs.failures, "; ".join(filter(None, (mine.problem, theirs.problem))))


def _arrive_elsewhere(sending: Connection, arrive: Arrive, state: DemoState, machines: Sequence[str]) -> None:
    """The second process: sends what became of its machines, or why it failed."""
    try:
        sending.send(arrive(state, machines, False))
    except Exception as error:
        sending.send(error)
    sys.stderr.flush()
    # DuckDB's binding prints pages of "leaked" objects while Python takes itself apart: end before that.
    os._exit(0)


def _ingest(machines: Sequence[str], *, is_shown: bool, describes: bool) -> dict[str, str]:
    """Reasons why machines could not be ingested."""
    if is_shown:
        from perf_assets.cli.commands.landing.ingest import ingest_with_progress

        outcomes = ingest_with_progress(list(machines), describes=describes)
    else:
        from perf_assets.defs.operate.launch import ingest_machines

        outcomes = list(ingest_machines(machines, lambda machine: None, describes=describes))
    return {outcome.machine: outcome.failure for outcome in outcomes if outcome.failure}


def land_next(lake: Lake, chosen: str | None) -> tuple[str, int, int]:
    """Land the next ten runs of a late machine, by default of the one with fewest: it, and its runs before and now."""
    from perf_assets.demo.late import RUNS_AT_A_TIME

    state = DemoState.load(lake)
    if not state.batches:
        raise BadInputError("no machine of this demo arrived late: run 'perf-assets demo' without --machine")
    if chosen is not None and chosen not in state.batches:
        raise BadInputError(f"{chosen} did not arrive late in this demo: choose from {', '.join(state.batches)}")
    name = chosen or min(state.batches, key=lambda machine: state.batches[machine])
    machine, batches = state.machine(name), state.batches[name]
    bundles = machine.batch(batches)
    if not bundles:
        raise BadInputError(f"all runs of {name} have landed but those that are kept aside as truth")
    for bundle in bundles:
        land(lake, bundle.facts, bundle.name, bundle.write)
    state.batches[name] = batches + 1
    state.save(lake)
    landed = min(len(machine.landing), RUNS_AT_A_TIME * (batches + 1))
    return name, RUNS_AT_A_TIME * batches, landed


def _land(lake: Lake, bundles: "Iterable[SimulatedBundle]", title: str) -> None:
    """Land bundles and show the progress, unless there is no title."""
    from rich.console import Console
    from rich.progress import Progress, SpinnerColumn, TextColumn

    columns = (SpinnerColumn(), TextColumn("{task.description}"))
    with Progress(*columns, console=Console(stderr=True), disable=not title) as progress:
        task = progress.add_task(title)
        for count, bundle in enumerate(bundles, start=1):
            land(lake, bundle.facts, bundle.name, bundle.write)
            progress.update(task, description=f"{title}: {bundle.facts.machine}, {count} bundles")


def _state_file(lake: Lake) -> "Path":
    return lake.root / "demo" / "demo.json"
