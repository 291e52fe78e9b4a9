"""Figures of AMMs: the vectors, the machines on a map, and the kernels that components go with."""

from collections.abc import Sequence
from functools import partial

import numpy as np
import pandas as pd

from perf_assets.reports.scores import origin
from perf_assets.reports.site import Chart, Part, chart, results_page
from perf_assets.reports.xamm import maps

_HOST = " (host)"
"""End of the name under which programs see a machine with GPUs that they do not use."""
_LEAST_MACHINES = 6
"""With fewer machines, every component goes with some kernel by chance."""
_LEAST_CORRELATION = 0.7
_MOST_KERNELS = 2


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
    members_text = "".join(f" {group}: {', '.join(map(str, names))}." for group, names in members.items())
    return chart(
        f"{name}-map",
        "Machines in two principal components of their AMMs: what is near behaves alike.",
        f"Map of {len(amms)} machines in two principal components, {shares.sum():.0%} of the variance.{members_text}",
        partial(maps.machine_map, amms, groups=groups),
        maps.machine_places(amms, groups),
    )


def kinds_of(machines: "pd.Index[str]") -> "pd.Series[str]":
    """Kind of each machine as programs see it: a machine with GPUs, its host alone, or a machine without GPUs."""
    names = set(machines)
    kinds = [
        "hosts of GPUs" if name.endswith(_HOST) else "GPUs" if f"{name}{_HOST}" in names else "CPUs"
        for name in machines
    ]
    return pd.Series(kinds, machines)


def component_kernels(amms: pd.DataFrame, log_seconds: pd.DataFrame, kinds: Sequence[str]) -> pd.DataFrame:
    """Per component of AMMs, what is slow and what is fast where the component is large: kinds of kernels, kernels.

    `log_seconds` are machines x kernel runs, the columns named by kernel; `kinds` says what bounds each of these runs
    (empty: unknown). Compared is the time of a kernel relative to the machine's mean, as an AMM does not say how fast a
    machine is in all. Named are kinds and kernels with a rank correlation over machines of at least 0.7, strongest
    first; none where there are fewer than six machines.
    """
    relative = log_seconds.loc[amms.index].sub(log_seconds.loc[amms.index].mean(axis=1), axis=0)
    by_kernel = relative.T.groupby(level=0).mean().T
    by_kind = relative.T.groupby(np.array(kinds, np.str_)).mean().T.drop(columns="", errors="ignore")
    rows = []
    for component in amms:
        strong = _strong(by_kernel, amms[component])
        of_kinds = _strong(by_kind, amms[component])
        slow, fast = strong[strong > 0].nlargest(_MOST_KERNELS), strong[strong < 0].nsmallest(_MOST_KERNELS)
        rows.append(
            {
                "component": str(component),
                "goes with the time of": _named(of_kinds.sort_values(key=abs, ascending=False)),
                "slow where it is large": _named(slow),
                "fast where it is large": _named(fast),
                "spread": float(np.std(amms[component])),
            }
        )
    return pd.DataFrame(rows)


def _strong(times: pd.DataFrame, component: "pd.Series[float]") -> "pd.Series[float]":
    """Rank correlations of a component with columns of times, of those that it goes with."""
    if len(times) < _LEAST_MACHINES or component.nunique() < 2:
        return pd.Series(dtype=float)
    correlations = times.corrwith(component, method="spearman").dropna()
    return correlations[correlations.abs() >= _LEAST_CORRELATION]


def _named(correlations: "pd.Series[float]") -> str:
    shown = [f"{kernel} ({value:+.2f})".replace("-", "\N{MINUS SIGN}") for kernel, value in correlations.items()]
    return ", ".join(shown) or "\N{EN DASH}"


def amm_page(
    rows: pd.DataFrame, heat_map: Chart, on_a_map: Chart, components: pd.DataFrame, *, is_per_element: bool = False
) -> str:
    """The page of all AMMs; `rows` of `model_amm__machines` say which data they are from."""
    made_of = "its times per element of a node, as machines ran RAJAPerf at different sizes"
    kernels = (
        "What an encoder learned has no names. A component is known by the kernels whose time, relative to the mean of "
        "the machine, goes with it from machine to machine (rank correlation in brackets, at least 0.7; averaged over "
        "sizes; the two strongest). Kinds say what bounds kernels: compute (at least one operation per byte), memory "
        "(a repetition moves 64 MiB or more) or cache (8 MiB or less). A component that goes with none mixes several, "
        "or hardly differs between machines."
    )
    return results_page(
        "Abstract machine models",
        origin(rows),
        f"AMM: a vector per machine as programs see it, made of {made_of if is_per_element else 'its RAJAPerf runs'}.",
        [
            Part("Map of machines", "", [on_a_map]),
            Part("What components stand for", kernels, [], {"Components and the kernels they go with": components}),
            Part("Vectors", "", [heat_map]),
        ],
    )
