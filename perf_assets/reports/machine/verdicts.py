"""What became of the target models of a machine: rows of `eval_target__verdicts`, in words."""

import math
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import pandas as pd

from perf_assets.core.tables.verdicts import PROMOTED
from perf_assets.reports.machine.numbers import records
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
    """In their order, newest last."""
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
    counted = "One model was judged so far" if len(verdicts) == 1 else f"{len(verdicts)} models were judged so far"
    summary = Finding(
        f"Version {last.version}, fitted to {last.shots} shots, {decided}: {_ended(last.reason)}",
        f"{counted}, {promoted} of them became champion.",
    )
    found = drift_finding(verdicts)
    return [summary] if found is None else [found, summary]


def drift_finding(verdicts: list[Verdict]) -> Finding | None:
    """That new runs contradicted the champion, and what was done; None where the last ones did not."""
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
    """NaN for each of the ways in which tables say that there is none."""
    return math.nan if pd.isna(value) else float(value)


def _beside(verdict: Verdict) -> str:
    return "" if verdict.champion_version is None else f" of version {verdict.champion_version}"


def _ended(reason: str) -> str:
    return reason if reason.endswith((".", "!", "?")) else f"{reason}."
