"""The page of one machine as HTML without outside parts: what is registered, how good it is, and what to run next."""

from collections.abc import Mapping
from functools import partial
from typing import Any

import numpy as np
import pandas as pd

from perf_assets.core.planned_runs import worth
from perf_assets.reports.fleet.story import draw_scatter
from perf_assets.reports.machine.facts import MachineFacts
from perf_assets.reports.machine.figures import Shown, curve_chart, weights_chart
from perf_assets.reports.machine.findings import drift_finding, machine_findings, severity_finding, verdicts_of
from perf_assets.reports.machine.numbers import (
    PRODUCT,
    by_view,
    candidate_tables,
    digits,
    distances,
    is_target_only,
    method_name,
    methods_of,
    over_seeds,
    own_views,
    records,
    times,
)
from perf_assets.reports.site import Chart, chart, template
from perf_assets.reports.xamm.amm_charts import map_chart, vectors_chart

_TEMPLATE = "machine.html.jinja"
_NEAREST = 6
_CORRESPONDENCES = 25
_NO_REASON = "Not there; no reason was given."


def machine_page(facts: MachineFacts) -> str:
    """The page from the tables of a machine; a part that is not there shows its reason."""
    verdicts = verdicts_of(facts.verdicts)
    page = template(_TEMPLATE, method=method_name, times=times, digits=digits)
    return page.render(
        machine=facts.machine,
        is_simulated=facts.is_simulated,
        host=next((view for view in own_views(facts.amms, facts.machine) if view != facts.machine), ""),
        relative_times=facts.relative_times,
        registered_as=facts.registered_as,
        address=f"models:/perf-target-{facts.machine}@{facts.alias}",
        links=facts.links,
        tracking_uri=facts.tracking_uri,
        sheet=facts.sheet,
        predicted=_predicted(facts),
        findings=machine_findings(facts),
        amm=_amm(facts),
        severity=facts.severity,
        severity_words="" if facts.severity is None else severity_finding(facts.severity),
        candidates=candidate_tables(facts.candidates),
        curve=_scores(facts, Shown.ERROR),
        coverage=_scores(facts, Shown.COVERAGE),
        alignment=_alignment(facts),
        heat_map=_heat_map(facts),
        next_runs=[_planned(view, here) for view, here in by_view(facts.next_runs)],
        views_without=_views_without(facts),
        verdicts=verdicts[::-1],
        drift=drift_finding(verdicts),
        why=lambda part: facts.missing.get(part) or _NO_REASON,
    )


def _amm(facts: MachineFacts) -> dict[str, Any] | None:
    """Distances of each view to its nearest machines, their vectors, and the map of all."""
    views = own_views(facts.amms, facts.machine)
    if not views:
        return None
    nearest = {view: distances(facts.amms, view, facts.machine).head(_NEAREST) for view in views}
    neighbours = list(dict.fromkeys(name for by_name in nearest.values() for name in by_name.index))
    groups = pd.Series("other machines", facts.amms.index)
    groups[neighbours] = f"nearest to {facts.machine}"
    groups[views] = facts.machine
    return {
        "nearest": [(view, list(by_name.items())) for view, by_name in nearest.items()],
        "vectors": vectors_chart(f"{facts.machine}-amm", facts.amms.loc[[*views, *neighbours]], views),
        "map": map_chart(f"{facts.machine}-amm", facts.amms, groups) if neighbours else None,
        "components": facts.amms.shape[1],
    }


def _scores(facts: MachineFacts, shown: Shown) -> dict[str, Any] | None:
    """The figure, and a table per target: methods x numbers of shots."""
    spreads = over_seeds(facts.curve, shown.value) if not facts.curve.empty else facts.curve
    if spreads.empty:
        return None
    middle = shown.middle
    tables = []
    for (target, source), here in spreads.groupby(["target", "source"], sort=False):
        best = here.groupby("shots")[middle].min().to_dict()
        rows: dict[str, dict[int, dict[str, Any]]] = {method: {} for method in methods_of(here)}
        for cell in records(here):
            cell |= {"middle": cell[middle], "is_best": cell[middle] == best[cell["shots"]]}
            rows[cell["method"]][cell["shots"]] = cell
        tables.append({"target": target, "source": source, "shots": sorted(here["shots"].unique()), "rows": rows})
    drawn = _three_lines(facts.curve)
    drawing = curve_chart(facts.machine, facts.curve if drawn.empty or shown is Shown.COVERAGE else drawn, shown)
    return {"chart": drawing, "tables": tables, "seeds": int(spreads["seeds"].max())}


def _three_lines(curve: pd.DataFrame) -> pd.DataFrame:
    """Scores of our model, the time unchanged, and of each target the best model of the shots alone.

    The table shows our own variants and the other baselines: their lines would hide what matters.
    """
    alone = curve[curve["method"].map(is_target_only)]
    kept = curve["method"].isin((PRODUCT, "source_unchanged"))
    if len(alone):
        medians = alone.groupby(["target", "method", "shots"])["mape_ratio"].median()
        # By logarithms: one number of shots where all are far off would decide alone.
        means = np.log(medians.clip(lower=1e-9)).groupby(["target", "method"]).mean()
        best = means.unstack("method").idxmin(axis=1)
        kept |= curve["method"] == curve["target"].map(best)
    return curve[kept]


def _predicted(facts: MachineFacts) -> Chart | None:
    """Predicted against measured, of runs that the fit did not see."""
    if facts.predicted.empty:
        return None
    runs = facts.predicted.rename(columns={"seen_as": "machine"})
    ratio = (runs["predicted_seconds"] / runs["measured_seconds"] - 1).abs()
    which = "runs that were kept aside" if facts.are_kept_aside else "runs, each predicted by a fit that did not see it"
    return chart(
        f"{facts.machine}-predicted",
        f"Predicted against measured: {len(runs)} {which}.",
        f"{(ratio <= 0.1).mean():.0%} within 10%, {(ratio <= 0.25).mean():.0%} within 25%.",
        partial(draw_scatter, runs, unit=f"time, {facts.relative_times}" if facts.relative_times else "seconds"),
        runs,
    )


def _alignment(facts: MachineFacts) -> dict[str, Any] | None:
    if facts.alignment.empty:
        return None
    return {
        "source": facts.alignment_source,
        "rows": records(facts.alignment.head(_CORRESPONDENCES)),
        "count": len(facts.alignment),
        "proposal": facts.catalogue_proposal,
    }


def _heat_map(facts: MachineFacts) -> Chart | None:
    """The whole map, source counters in the order of the table: most important first."""
    weights = facts.alignment_weights
    if weights.empty:
        return None
    if not facts.alignment.empty:
        first = [name for name in facts.alignment["source_counter"] if name in weights.index]
        weights = weights.reindex([*dict.fromkeys(first), *(name for name in weights.index if name not in set(first))])
    return weights_chart(facts.machine, facts.alignment_source, weights)


def _planned(view: str, here: pd.DataFrame) -> tuple[str, list[dict[str, Any]], str]:
    """A view, its runs that are worth it, and why no other is, where none is."""
    runs = here.sort_values("rank")
    chosen = runs[runs["is_worth_it"]]
    return view, records(chosen), "" if len(chosen) else " ".join(worth(view, records(runs)))


def _views_without(facts: MachineFacts) -> dict[str, list[str]]:
    """Names under which programs see the machine that a table which is there says nothing of."""
    columns = {"candidates": "seen_as", "curve": "target", "next_runs": "seen_as"}
    seen = {
        part: dict.fromkeys(getattr(facts, part)[name]) for part, name in columns.items() if len(getattr(facts, part))
    }
    every = dict.fromkeys([*own_views(facts.amms, facts.machine), *(name for names in seen.values() for name in names)])
    return {part: [str(name) for name in every if name not in seen.get(part, every)] for part in columns}


def sheet_rows(row: Mapping[str, Any]) -> dict[str, str]:
    """Rows of a page from a row of `core_machines__specs`; what the sheet does not say is left out."""
    known = {name: value for name, value in row.items() if value is not None and value == value}
    shown = {
        "machine": _text(known, "{name}"),
        "processor": _text(known, "{cpu_sockets:.0f} x {cpu_model}, {cpu_cores_per_socket:.0f} cores each"),
        "clock": _scaled(known, "cpu_clock_hertz", 1e9, "GHz"),
        "vector width": _text(known, "{cpu_simd_bits:.0f} bits, {cpu_fma_units:.0f} units"),
        "L2 of a core": _scaled(known, "l2_bytes", 2**20, "MiB"),
        "L3 of a socket": _scaled(known, "l3_bytes", 2**20, "MiB"),
        "memory": _scaled(known, "memory_capacity_bytes", 1e9, "GB"),
        "memory bandwidth": _scaled(known, "memory_bandwidth_bytes_per_second", 1e9, "GB/s"),
        "GPUs": _text(known, "{gpu_count:.0f} x {gpu_model}"),
        "GPU peak, double precision": _scaled(known, "gpu_peak_double_flops", 1e12, "Tflop/s"),
        "GPU memory bandwidth": _scaled(known, "gpu_bandwidth_bytes_per_second", 1e9, "GB/s"),
        "network": _scaled(known, "network_bandwidth_bytes_per_second", 1e9, "GB/s"),
    }
    return {name: text for name, text in shown.items() if text}


def _text(known: Mapping[str, Any], words: str) -> str:
    try:
        return words.format(**known)
    except KeyError:
        return ""


def _scaled(known: Mapping[str, Any], name: str, unit: float, words: str) -> str:
    return f"{known[name] / unit:,.4g} {words}" if name in known else ""
