"""Findings from the tables of a machine, in words. Every figure and every verdict is computed from the tables."""

import math
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import numpy as np
import pandas as pd

from perf_assets.core.planned_runs import worth
from perf_assets.core.tables.verdicts import PROMOTED
from perf_assets.reports.machine.facts import MachineFacts
from perf_assets.reports.machine.figures import GOAL
from perf_assets.reports.machine.numbers import (
    PRODUCT,
    by_view,
    distances,
    is_baseline,
    method_name,
    over_seeds,
    own_views,
    records,
)
from perf_assets.reports.scores import WORTHLESS, error
from perf_assets.reports.xamm.findings import Finding


@dataclass(frozen=True)
class Verdict:
    """One row; figures that are not known are NaN, as everywhere on the pages."""

    version: int
    judged_at: datetime
    decision: str
    reason: str
    shots: int
    held_out_count: int
    mape_ratio: float
    log_rmse: float
    champion_version: int | None
    champion_log_rmse: float
    target_only_mape_ratio: float
    target_only_log_rmse: float
    new_runs_count: int
    outside_count: int
    allowed_count: int
    has_drifted: bool

    @property
    def is_promoted(self) -> bool:
        """Whether it became champion."""
        return self.decision == PROMOTED


def verdicts_of(rows: pd.DataFrame) -> list[Verdict]:
    """Verdicts in their order, newest last."""
    return [
        Verdict(
            version=int(row["version"]),
            judged_at=pd.Timestamp(row["judged_at"]).to_pydatetime(),
            decision=str(row["decision"]),
            reason=str(row["reason"]),
            shots=int(row["shots"]),
            held_out_count=int(row["held_out_count"]),
            mape_ratio=_number(row["mape_ratio"]),
            log_rmse=_number(row["log_rmse"]),
            champion_version=None if pd.isna(row["champion_version"]) else int(row["champion_version"]),
            champion_log_rmse=_number(row["champion_log_rmse"]),
            target_only_mape_ratio=_number(row["target_only_mape_ratio"]),
            target_only_log_rmse=_number(row["target_only_log_rmse"]),
            new_runs_count=int(row["new_runs_count"]),
            outside_count=int(row["outside_count"]),
            allowed_count=int(row["allowed_count"]),
            has_drifted=bool(row["has_drifted"]),
        )
        for row in records(rows)
    ]


def verdict_findings(verdicts: list[Verdict]) -> list[Finding]:
    """Drift first, where the last verdict has it; else what was decided last."""
    if not verdicts:
        return []
    last, promoted = verdicts[-1], sum(verdict.is_promoted for verdict in verdicts)
    decided = "became champion" if last.is_promoted else f"stays challenger{_beside(last)}"
    counted = f"{len(verdicts)} models were judged so far, {promoted} of them became champion."
    summary = Finding(
        f"Version {last.version}, fitted to {last.shots} shots, {decided}: {_ended(last.reason)}",
        "It is the first that was judged." if len(verdicts) == 1 else counted,
    )
    drift = drift_finding(verdicts)
    return [summary] if drift is None else [drift, summary]


def drift_finding(verdicts: list[Verdict]) -> Finding | None:
    """Finding that new runs contradicted the champion, and what was done; None where the last ones did not."""
    if not verdicts or not verdicts[-1].has_drifted:
        return None
    last = verdicts[-1]
    champion = "the champion" if last.champion_version is None else f"the champion, version {last.champion_version}"
    done = (
        f"version {last.version} was promoted and is the champion now."
        if last.is_promoted
        else f"version {last.version} stays challenger, because: {_ended(last.reason)} Be careful with the champion."
    )
    return Finding(
        f"Drift: new runs contradicted {champion}.",
        f"{last.outside_count} of {last.new_runs_count} new runs were outside its 90% interval, where chance explains "
        f"at most {last.allowed_count}. It was adapted again: {done}",
    )


def _number(value: Any) -> float:
    """The number, or NaN where the table has none, however it marks that."""
    return math.nan if pd.isna(value) else float(value)


def _beside(verdict: Verdict) -> str:
    return "" if verdict.champion_version is None else f" of version {verdict.champion_version}"


def _ended(reason: str) -> str:
    return reason if reason.endswith((".", "!", "?")) else f"{reason}."


_STABLE = 0.8
_EASY, _HARD = 0.3, 0.7
"""Severities below and above which a transfer is called easy and hard; predictions warn above the second."""


def machine_findings(facts: MachineFacts) -> list[Finding]:
    """Findings on the parts that are there."""
    findings: list[Finding | None] = [*verdict_findings(verdicts_of(facts.verdicts))]
    findings += [chosen_finding(view, here) for view, here in by_view(facts.candidates)]
    if not facts.curve.empty:
        findings += _curves(over_seeds(facts.curve, "mape_ratio"))
        findings += _coverages(over_seeds(facts.curve, "coverage_90_ratio"))
    findings += [] if facts.severity is None else [severity_finding(facts.severity)]
    findings += [_neighbours(facts.amms, view, facts.machine) for view in own_views(facts.amms, facts.machine)]
    findings += [] if facts.alignment.empty else [_aligned(facts.alignment, facts.alignment_source)]
    findings += [_plan(view, here) for view, here in by_view(facts.next_runs)]
    return [finding for finding in findings if finding is not None]


def severity_finding(severity: float) -> Finding:
    """Severity of the transfer in words, beside the number that `models`, MLflow and the fleet's page show."""
    level = "easy" if severity < _EASY else "hard" if severity > _HARD else "of middle difficulty"
    return Finding(
        f"Severity {severity:.2f}: the transfer is {level}.",
        "Severity is 0 where the reference machine predicts the shots as well as runs of its own, and 1 where it says "
        "no more of them than chance.",
    )


def chosen_finding(view: str, here: pd.DataFrame) -> Finding | None:
    """The chosen model of a view beside the best baseline, on the same held-out shots."""
    chosen = here[here["is_chosen"]]
    if chosen.empty:
        return None
    ours = chosen.iloc[0]
    is_base = here["method"].map(is_baseline).astype(bool)
    headline = (
        f"{view}: {method_name(ours['method'])} was chosen, from runs on {ours['source']}; "
        f"MAPE {error(ours['mape_ratio'])} on {ours['shots']} held-out shots"
    )
    details = []
    if is_base.any():
        base = here[is_base].sort_values("mape_ratio").iloc[0]
        headline += f", {_against(ours['mape_ratio'], base['mape_ratio'])} the best baseline"
        details.append(f"Best baseline: {method_name(base['method'])} ({error(base['mape_ratio'])})")
    best = here.sort_values("log_rmse", kind="stable").iloc[0]
    if best["log_rmse"] < ours["log_rmse"]:
        details.append(
            f"smallest log error of all: {method_name(best['method'])} ({best['log_rmse']:.3f} against "
            f"{ours['log_rmse']:.3f} of the chosen one)"
        )
    else:
        details.append(f"of all {len(here)} methods the chosen one has the smallest log error ({ours['log_rmse']:.3f})")
    return Finding(headline + ".", _sentence(details))


def _against(ours: float, theirs: float) -> str:
    if error(ours) == error(theirs):
        return "about the same as that of"
    factor = theirs / ours if ours > 0 else np.inf
    if factor * WORTHLESS < 1:
        return f"more than {WORTHLESS:.0f} times larger than that of"
    if not np.isfinite(factor) or factor > WORTHLESS:
        return f"more than {WORTHLESS:.0f} times smaller than that of"
    if f"{factor:.1f}" == "1.0":
        return "about the same as that of"
    return f"{factor:.1f} times smaller than that of" if factor > 1 else f"{1 / factor:.1f} times larger than that of"


def _curves(spreads: pd.DataFrame) -> list[Finding | None]:
    """Findings per target: the product at the fewest and the most shots, and where it beats the baselines."""
    return [
        _curve(f"{target} from {source}", here.pivot(index="shots", columns="method", values="median").sort_index())
        for (target, source), here in spreads.groupby(["target", "source"], sort=False)
    ]


def _curve(title: str, medians: pd.DataFrame) -> Finding | None:
    if PRODUCT not in medians or medians[PRODUCT].dropna().empty:
        return None
    ours = medians[PRODUCT].dropna()
    ends = [f"{error(ours[shots])} with {shots} shots" for shots in dict.fromkeys((ours.index[0], ours.index[-1]))]
    others = medians.drop(columns=PRODUCT).reindex(ours.index)
    base = others[[name for name in others.columns if is_baseline(str(name))]].dropna(how="all")
    details = []
    if not base.empty:
        lost = base.index[~(ours[base.index] < base.min(axis=1))]
        text = f"Smaller than that of every baseline at {_share(len(base) - len(lost), len(base))} numbers of shots"
        at_lost = [
            f"{shots} shots: {method_name(str(base.loc[shots].idxmin()))} {error(base.loc[shots].min())}, "
            f"ours {error(ours[shots])}"
            for shots in lost
        ]
        details.append(text + (f" (not at {'; at '.join(at_lost)})" if at_lost else ""))
    every = others.dropna(how="all")
    if not every.empty:
        best = int((ours[every.index] <= every.min(axis=1)).sum())
        details.append(f"smallest of all methods, other corrections too, at {_share(best, len(every))}")
    return Finding(f"{title}: median MAPE of our model {', '.join(ends)}.", _sentence(details))


def _share(part: int, whole: int) -> str:
    return f"all {whole}" if part == whole > 1 else f"{part} of {whole}"


def _coverages(spreads: pd.DataFrame) -> list[Finding | None]:
    """Findings per target: how often the product's interval holds the truth."""
    ours = spreads[spreads["method"] == PRODUCT]
    return [
        _coverage(f"{target} from {source}", here.set_index("shots")["mean"].sort_index())
        for (target, source), here in ours.groupby(["target", "source"], sort=False)
    ]


def _coverage(title: str, means: "pd.Series[float]") -> Finding:
    low, high = f"{means.min():.0%}", f"{means.max():.0%}"
    held = low if low == high else f"{low} to {high}"
    outside = [
        f"{shots} shots ({value:.0%}, {'too narrow' if value < GOAL[0] else 'too wide'})"
        for shots, value in means.items()
        if not GOAL[0] <= value <= GOAL[1]
    ]
    return Finding(
        f"{title}: the 90% interval of our model holds {held} of the test rows.",
        f"Outside of {GOAL[0]:.0%} to {GOAL[1]:.0%} with {', '.join(outside)}."
        if outside
        else f"Between {GOAL[0]:.0%} and {GOAL[1]:.0%} at every number of shots.",
    )


def _neighbours(amms: pd.DataFrame, view: str, machine: str) -> Finding | None:
    nearest = distances(amms, view, machine)
    if nearest.empty:
        return None
    listed = ", ".join(f"{name} ({distance:.2f})" for name, distance in nearest.head(3).items())
    return Finding(
        f"{view}: nearest by AMM is {nearest.index[0]}.",
        f"Distances: {listed}; median over all {len(nearest)} others {nearest.median():.2f}.",
    )


def _aligned(alignment: pd.DataFrame, source: str) -> Finding:
    stable = int((alignment["stability"] >= _STABLE).sum())
    same = int(alignment["is_same_name"].sum())
    first = alignment.iloc[0]
    return Finding(
        f"Counters: {stable} of {len(alignment)} correspondences with {source} are the same in at least "
        f"{_STABLE:.0%} of folds.",
        f"In {same} of {len(alignment)} the name is the same on both machines. The most important counter of {source}, "
        f"{first['source_counter']}, is replaced by {first['target_counter']} (weight {first['weight']:.2f}, "
        f"the same in {first['stability']:.0%} of folds).",
    )


def _plan(view: str, here: pd.DataFrame) -> Finding:
    return Finding(*worth(view, here.sort_values("rank").to_dict("records")))


def _sentence(parts: list[str]) -> str:
    text = "; ".join(parts)
    return f"{text[:1].upper()}{text[1:]}." if text else ""
