"""Figures of AMMs: the vectors, and the machines on a map."""

from collections.abc import Sequence
from functools import partial

import pandas as pd

from perf_assets.reports.scores import origin
from perf_assets.reports.site import Chart, Part, chart, results_page
from perf_assets.reports.xamm import maps


def vectors_chart(name: str, amms: pd.DataFrame, own: Sequence[str] = ()) -> Chart:
    """AMMs of machines (index) by component (columns), the machines' `own` names in bold."""
    beside = f" {', '.join(own)} beside the nearest machines." if own else ""
    return chart(
        f"{name}-vectors",
        "Components of AMMs; machines that are similar stand together.",
        f"Heat map of the AMMs of {len(amms)} machines, {amms.shape[1]} components each.{beside}",
        partial(maps.amm_heat_map, amms, own=own),
        amms.rename_axis(index="machine").rename(columns=str).reset_index(),
    )


def map_chart(name: str, amms: pd.DataFrame, groups: "pd.Series[str] | None" = None) -> Chart:
    """All machines in two dimensions; `groups` (by machine) gives colours."""
    _, shares = maps.principal_components(amms)
    members = {} if groups is None else {group: list(here.index) for group, here in groups.groupby(groups)}
    said = "".join(f" {group}: {', '.join(map(str, names))}." for group, names in members.items())
    return chart(
        f"{name}-map",
        "Machines in two principal components of their AMMs: what is near behaves alike.",
        f"Map of {len(amms)} machines in two principal components, {shares.sum():.0%} of the variance.{said}",
        partial(maps.machine_map, amms, groups=groups),
        maps.machine_places(amms, groups),
    )


def amm_page(rows: pd.DataFrame, heat_map: Chart, on_a_map: Chart) -> str:
    """The page of all AMMs; `rows` of `model_amm__vectors` say which data they are from."""
    return results_page(
        "Machine models (AMM)",
        origin(rows),
        "A vector for each machine as programs see it, made of its RAJAPerf runs.",
        [Part("Vectors", "", [heat_map]), Part("Map of machines", "", [on_a_map])],
    )
