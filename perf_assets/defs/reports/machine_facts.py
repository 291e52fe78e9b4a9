"""Gathers what the page of a machine shows."""

from typing import TYPE_CHECKING

from perf_assets.core.catalogue import load_catalogue
from perf_assets.core.errors import BadInputError
from perf_assets.core.paths import mlflow_tracking_uri
from perf_assets.core.tables.landing import SPECS
from perf_assets.core.tables.models import AMMS, TRANSFER_SCORES
from perf_assets.core.tables.runs import COUNTERS_WIDE
from perf_assets.core.tables.verdicts import VERDICTS
from perf_assets.core.text import without_passwords
from perf_assets.defs.resources import LakeResource
from perf_assets.storage.amm_files import of_one_encoder
from perf_assets.storage.results import rows_of, stored

if TYPE_CHECKING:
    import pandas as pd

    from perf_assets.models.target.model import AdaptedTarget
    from perf_assets.models.transfer.counters import CounterAlignment
    from perf_assets.reports.machine.facts import MachineFacts

_BUDGET = 10
"""Next runs that the page shows."""


def machine_facts(lake: LakeResource, machine: str) -> "MachineFacts":
    """Of a machine that has a target model."""
    import pandas as pd

    from perf_assets.registry.target import candidate_table, shown_of
    from perf_assets.registry.versions import CHAMPION
    from perf_assets.reports.machine.facts import MachineFacts
    from perf_assets.workflows.adapt import reference_machine

    alias, number, adapted = shown_of(machine)
    missing: dict[str, str] = {}
    nothing = pd.DataFrame()
    amms, curve, plan, aligned = nothing, nothing, nothing, None
    try:
        amm_rows, _ = of_one_encoder(stored(lake.lake(), AMMS, "perf-assets train"))
        amms = amm_rows.pivot(index="seen_as", columns="component", values="value")
    except BadInputError as error:
        missing["amms"] = str(error)
    try:
        rows = stored(lake.lake(), TRANSFER_SCORES, "perf-assets adapt")
        curve = rows[rows["machine"] == machine]
        if curve.empty:
            missing["curve"] = f"{machine} has too few runs to hold some out"
    except BadInputError as error:
        missing["curve"] = str(error)
    try:
        plan = _planned(lake, adapted, _BUDGET)
    except BadInputError as error:
        missing["next_runs"] = str(error)
    try:
        aligned = _aligned(lake, adapted)
    except BadInputError as error:
        missing["alignment"] = missing["severity"] = str(error)
    predicted, are_kept_aside = _predicted(lake, adapted)
    if predicted.empty:
        missing["predicted"] = f"no run of {machine} was held out yet: five runs of applications are enough"
    verdicts = rows_of(lake.lake(), VERDICTS, machine)
    candidates = candidate_table(adapted)
    if candidates.empty:
        missing["candidates"] = f"{machine} has too few runs to choose on"
    return MachineFacts(
        machine,
        lake.is_simulated(machine),
        _named(machine, number) + ("" if alias == CHAMPION else ", not promoted"),
        amms,
        candidates,
        curve,
        aligned.severity if aligned else None,
        aligned.rows if aligned else nothing,
        aligned.weights if aligned else nothing,
        reference_machine(adapted),
        aligned.proposal if aligned else "",
        plan,
        nothing if verdicts is None else verdicts,
        missing,
        alias,
        without_passwords(mlflow_tracking_uri()),
        _sheet(lake, machine),
        predicted,
        are_kept_aside,
    )


def _sheet(lake: LakeResource, machine: str) -> dict[str, str]:
    """The data sheet in the words of a person."""
    from perf_assets.reports.machine.sheet import sheet_rows

    rows = lake.warehouse().frame(f"SELECT * FROM {SPECS.name} WHERE machine = ?", [machine])
    return {} if rows.empty else sheet_rows({str(name): value for name, value in rows.iloc[0].to_dict().items()})


def _predicted(lake: LakeResource, adapted: "AdaptedTarget") -> "tuple[pd.DataFrame, bool]":
    """Runs beside what a fit that did not see them said; whether these are runs that were kept aside."""
    import numpy as np
    import pandas as pd

    from perf_assets.workflows.kept_aside import scored

    aside = scored(lake.lake())
    if len(aside) and (own := aside[aside["machine"] == adapted.machine]).shape[0]:
        last = own[own["shots"] == own["shots"].max()].rename(columns={"target": "seen_as"})
        return last[["seen_as", "configuration", "measured_seconds", "predicted_seconds"]], True
    samples = adapted.samples
    place = {name: row for row, name in enumerate(samples.configurations)}
    rows = [
        (name, run, np.exp(samples.log_seconds[samples.machines.index(name), place[run]]), np.exp(said))
        for name, view in adapted.views.items()
        for run, said in view.held_out.items()
    ]
    return pd.DataFrame(rows, columns=["seen_as", "configuration", "measured_seconds", "predicted_seconds"]), False


def _named(machine: str, number: int) -> str:
    """Name and version with the chain behind it, as in `perf-target-dane version 3, from perf-source version 2`."""
    from perf_assets.registry.lineage import chain
    from perf_assets.registry.target import registered_name

    own, *links = chain(registered_name(machine), number)
    behind = [f"{link.name} version {link.version or link.identity}" for link in links]
    manifests = f" and {own.manifests_count} manifests" if own.manifests_count else ""
    return f"{own.name} version {number}" + (f", from {', '.join(behind)}{manifests}" if behind else "")


def _planned(lake: LakeResource, adapted: "AdaptedTarget", budget: int) -> "pd.DataFrame":
    """Next runs on a machine, priced by the nodes that its configurations use."""
    from perf_assets.features.fleet.samples import NODES_QUERY, nodes_by_configuration
    from perf_assets.models.target.next_runs import next_runs

    return next_runs(adapted, budget, nodes_by_configuration(lake.warehouse().frame(NODES_QUERY)))


def _aligned(lake: LakeResource, adapted: "AdaptedTarget") -> "CounterAlignment":
    from perf_assets.models.transfer.counters import align_counters
    from perf_assets.workflows.adapt import reference_machine

    source = reference_machine(adapted)
    tables = [_runs(lake, name) for name in (source, adapted.machine)]
    catalogue = load_catalogue(lake.lake().site_catalogues())
    return align_counters(source, tables[0], adapted.machine, tables[1], catalogue)


def _runs(lake: LakeResource, machine: str) -> "pd.DataFrame":
    """Runs of a machine with its counters under their own names."""
    found = lake.warehouse().frame(
        "SELECT count(*) AS n FROM information_schema.tables WHERE table_schema = ? AND table_name = ?",
        [COUNTERS_WIDE, machine],
    )
    if not found["n"].iloc[0]:
        raise BadInputError(f"{machine} ran no application with counters")
    return lake.warehouse().frame(f'SELECT * FROM {COUNTERS_WIDE}."{machine}"')
