"""The page of a machine: its target model with all that is known of it, gathered and written."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import numpy as np
import pandas as pd

from perf_assets.core.addresses import noted_addresses
from perf_assets.core.errors import BadInputError
from perf_assets.core.paths import has_registry, mlflow_tracking_uri
from perf_assets.core.tables.landing import SPECS
from perf_assets.core.tables.models import AMMS, TRANSFER_SCORES
from perf_assets.core.tables.verdicts import VERDICTS
from perf_assets.core.text import without_passwords
from perf_assets.reports.machine.facts import MachineFacts
from perf_assets.storage.amm_files import of_one_encoder
from perf_assets.storage.pages import machine_page_name, store_page
from perf_assets.storage.results import rows_of, stored
from perf_assets.workflows.fleet import Fleet
from perf_assets.workflows.machines.readiness import Item, Readiness
from perf_assets.workflows.models.kept_aside import scored
from perf_assets.workflows.models.paired_inputs import reference_machine

if TYPE_CHECKING:
    from perf_assets.models.transfer.alignment_table import CounterAlignment

_ASSET = "model_target__adapted"
_BUDGET = 10
"""Next runs that the page shows."""
PREDICTED = ["seen_as", "configuration", "measured_seconds", "predicted_seconds"]
_Part = TypeVar("_Part")


@dataclass(frozen=True, eq=False)
class _ShownModel:
    """Facts of a target model for its page, however it was made."""

    reference: str
    """Machine whose counters are aligned with."""
    candidates: pd.DataFrame
    planned: Callable[[Fleet], pd.DataFrame]
    """Next runs on the machine."""
    held_out: pd.DataFrame
    """Measured times beside predictions of a fit that did not see them: columns `PREDICTED`."""
    severity: float | None


def write_machine_page(fleet: Fleet, machine: str) -> tuple[Path, Path | None]:
    """Write the page of a machine, and its proposal for the catalogue; their paths.

    A machine without a target model has a checklist of what it needs for one, and no proposal.
    """
    from perf_assets.reports.machine.page import machine_page

    checklist = write_checklist(fleet, machine)
    if checklist is not None:
        return checklist, None
    facts = machine_facts(fleet, machine)
    page = store_page(fleet.lake, machine_page_name(machine), machine_page(facts))
    name = f"catalogue-{machine}.yaml"
    if facts.catalogue_proposal:
        return page, store_page(fleet.lake, name, facts.catalogue_proposal)
    (fleet.lake.reports / name).unlink(missing_ok=True)
    return page, None


def write_checklist(fleet: Fleet, machine: str) -> Path | None:
    """Write what a machine without a model needs for one as its page; None where it has a model."""
    from perf_assets.reports.site import Part, results_page

    if _has_model(machine):
        return None
    ready = Readiness.of(fleet, machine)
    rows = [(item.name, _state(item), item.summary, item.advice) for item in ready.items]
    table = pd.DataFrame(rows, columns=["step", "state", "what is there", "what to do"])
    part = Part("On the way to a model", f"Next: {ready.next_step}.", (), {f"Checklist of {machine}": table})
    origin = "SIMULATED" if fleet.lake.warehouse.is_file() and fleet.is_simulated(machine) else "measured"
    relative = fleet.relative_times().get(machine) if fleet.lake.warehouse.is_file() else None
    lead = f"{machine} has no target model yet. This page becomes that of its model once there is one."
    if relative:
        lead += f" Times of its runs are {relative}, not in seconds."
    return store_page(fleet.lake, machine_page_name(machine), results_page(f"Machine {machine}", origin, lead, [part]))


def _has_model(machine: str) -> bool:
    if not has_registry():
        return False
    from perf_assets.registry.target import registered_name
    from perf_assets.registry.versions import versions

    return bool(versions(registered_name(machine)))


def _state(item: Item) -> str:
    if item.is_done:
        return "done"
    return "missing" if item.is_needed else "would help"


def machine_facts(fleet: Fleet, machine: str) -> MachineFacts:
    """All that the page of a machine with a target model shows; what is not there has its reason."""
    from perf_assets.registry.target import is_unpaired, registered_name, shown_version
    from perf_assets.registry.versions import CHAMPION

    addresses = noted_addresses()
    alias, number = shown_version(machine)
    missing: dict[str, str] = {}
    model = _unpaired(machine, number) if is_unpaired(machine, number) else _paired(machine, number)
    nothing = pd.DataFrame()
    amms = _part_or_reason(missing, ("amms",), lambda: _amms(fleet))
    curve = _part_or_reason(missing, ("curve",), lambda: _curve(fleet, machine))
    plan = _part_or_reason(missing, ("next_runs",), lambda: model.planned(fleet))
    aligned = _part_or_reason(missing, ("alignment",), lambda: _aligned(fleet, machine, model.reference))
    verdicts, aside = rows_of(fleet.lake, VERDICTS, machine), _kept_aside(fleet, machine)
    predicted = model.held_out if aside.empty else aside
    if predicted.empty:
        missing["predicted"] = f"no run of {machine} was held out yet: five runs of applications are enough"
    if model.severity is None:
        missing["severity"] = f"{machine} has too few runs to tell"
    if model.candidates.empty:
        missing["candidates"] = f"{machine} has too few runs to choose on"
    return MachineFacts(
        machine=machine,
        is_simulated=fleet.is_simulated(machine),
        relative_times=fleet.relative_times().get(machine, ""),
        registered_as=_named(machine, number) + ("" if alias == CHAMPION else ", not promoted"),
        amms=nothing if amms is None else amms,
        candidates=model.candidates,
        curve=nothing if curve is None else curve,
        severity=model.severity,
        alignment=aligned.rows if aligned else nothing,
        alignment_weights=aligned.weights if aligned else nothing,
        alignment_source=model.reference,
        catalogue_proposal=aligned.proposal if aligned else "",
        next_runs=nothing if plan is None else plan,
        verdicts=nothing if verdicts is None else verdicts,
        missing=missing,
        alias=alias,
        links={
            "Partition in Dagster": addresses.partition(_ASSET, machine),
            f"Version {number} in MLflow": addresses.version(registered_name(machine), number),
        },
        tracking_uri=without_passwords(mlflow_tracking_uri()),
        sheet=_sheet(fleet, machine),
        predicted=predicted,
        are_kept_aside=not aside.empty,
    )


def _sheet(fleet: Fleet, machine: str) -> dict[str, str]:
    """The data sheet in the words of a person; empty where there is none."""
    from perf_assets.reports.machine.page import sheet_rows

    rows = fleet.warehouse.frame(f"SELECT * FROM {SPECS.name} WHERE machine = ?", [machine])
    return {} if rows.empty else sheet_rows({str(name): value for name, value in rows.iloc[0].to_dict().items()})


def _kept_aside(fleet: Fleet, machine: str) -> pd.DataFrame:
    """Runs that never landed, beside predictions of the model of all landed runs; empty where none are kept aside."""
    rows = scored(fleet.lake)
    own = rows[rows["machine"] == machine] if len(rows) else rows
    if own.empty:
        return pd.DataFrame(columns=PREDICTED)
    last: pd.DataFrame = own[own["shots"] == own["shots"].max()].rename(columns={"target": "seen_as"})
    return last[PREDICTED]


def _paired(machine: str, number: int) -> _ShownModel:
    from perf_assets.features.fleet.samples import NODES_QUERY, nodes_by_configuration
    from perf_assets.models.target.planner import next_runs
    from perf_assets.registry.target import candidate_table, load_target

    adapted, _ = load_target(machine, number)

    def planned(fleet: Fleet) -> pd.DataFrame:
        """Next runs, priced by the nodes that their configurations use."""
        return next_runs(adapted, _BUDGET, nodes_by_configuration(fleet.warehouse.frame(NODES_QUERY)))

    samples = adapted.samples
    place = {name: row for row, name in enumerate(samples.configurations)}
    held_out = [
        (name, run, np.exp(samples.log_seconds[samples.machines.index(name), place[run]]), np.exp(log_seconds))
        for name, view in adapted.views.items()
        for run, log_seconds in view.held_out.items()
    ]
    predicted = pd.DataFrame(held_out, columns=PREDICTED)
    hardest = max((view.severity for view in adapted.views.values() if view.severity is not None), default=None)
    return _ShownModel(reference_machine(adapted), candidate_table(adapted), planned, predicted, hardest)


def _unpaired(machine: str, number: int) -> _ShownModel:
    from perf_assets.registry.target import registered_name
    from perf_assets.registry.transfer import candidate_table, load_transfer

    adapted = load_transfer(registered_name(machine), number)

    def planned(fleet: Fleet) -> pd.DataFrame:
        raise BadInputError(
            f"none of its configurations ran on another machine: run on {machine} what {adapted.sources[0]} has run, "
            "and its model starts from there"
        )

    candidates = candidate_table(adapted).drop(columns="weight", errors="ignore")
    measured = np.exp if adapted.is_log else np.asarray
    held_out = [
        (machine, name, float(measured(adapted.rows[name])), float(measured(predicted)))
        for name, predicted in adapted.held_out.items()
    ]
    predicted = pd.DataFrame(held_out, columns=PREDICTED)
    return _ShownModel(adapted.sources[0], candidates, planned, predicted, adapted.severity)


def _part_or_reason(missing: dict[str, str], names: tuple[str, ...], part: Callable[[], _Part]) -> _Part | None:
    """A part of the page, or None with the reason in `missing`, under each of the part's names."""
    try:
        return part()
    except BadInputError as error:
        missing.update(dict.fromkeys(names, str(error)))
        return None


def _amms(fleet: Fleet) -> pd.DataFrame:
    rows, _ = of_one_encoder(stored(fleet.lake, AMMS, "perf-assets train"))
    return rows.pivot(index="seen_as", columns="component", values="value")


def _curve(fleet: Fleet, machine: str) -> pd.DataFrame:
    rows = stored(fleet.lake, TRANSFER_SCORES, "perf-assets adapt")
    if not (rows["machine"] == machine).any():
        raise BadInputError(f"{machine} has too few runs to hold some out")
    return rows[rows["machine"] == machine]


def _named(machine: str, number: int) -> str:
    """Name and version with the chain behind it, as in `perf-target-dane version 3, from perf-source version 2`."""
    from perf_assets.registry.lineage import chain
    from perf_assets.registry.target import registered_name

    own, *links = chain(registered_name(machine), number)
    behind = [f"{link.name} version {link.version or link.identity}" for link in links]
    manifests = f" and {own.manifests_count} landed bundles" if own.manifests_count else ""
    return f"{own.name} version {number}" + (f", from {', '.join(behind)}{manifests}" if behind else "")


def _aligned(fleet: Fleet, machine: str, source: str) -> "CounterAlignment":
    from perf_assets.models.transfer.alignment_table import align_counters

    tables = [fleet.runs_with_counters(name) for name in (source, machine)]
    return align_counters(source, tables[0], machine, tables[1], fleet.catalogue)
