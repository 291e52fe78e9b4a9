"""Scores of registered models and verdicts on them in the UI: as materialisations, and as results of checks."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import dagster as dg

from perf_assets.core.tables.schema import Table
from perf_assets.core.tables.verdicts import PROMOTED
from perf_assets.core.text import markdown_rows
from perf_assets.defs.ingest.checks import partitioned_spec
from perf_assets.defs.resources import LakeResource
from perf_assets.storage.results import rows_of

if TYPE_CHECKING:
    import pandas as pd

_COLUMNS = ("version", "decision", "shots", "log_rmse", "champion_log_rmse", "target_only_log_rmse", "reason")
_NUMBERS = ("log_rmse", "champion_log_rmse", "target_only_log_rmse", "mape_ratio", "target_only_mape_ratio")


def verdict_result(
    context: dg.AssetExecutionContext, name: str, rows: "pd.DataFrame", file: Path, columns: Sequence[str] = _COLUMNS
) -> dg.MaterializeResult[None]:
    """Verdicts on a registered model, newest last: the last decision with its reason, the history, where it is."""
    newest = rows.iloc[-1]
    context.log.info(f"{name} version {newest['version']}: {newest['decision']}, {newest['reason']}")
    count = "dagster/partition_row_count" if context.has_partition_key else "dagster/row_count"
    return dg.MaterializeResult(
        metadata={
            count: len(rows),
            "decision": str(newest["decision"]),
            "reason": str(newest["reason"]),
            "history": dg.MetadataValue.md(markdown_rows(rows[::-1][list(columns)], ".3f")),
            "record": dg.MetadataValue.path(file),
        },
        data_version=dg.DataVersion(f"version {newest['version']} {newest['decision']}"),
    )


def curve_result(rows: "pd.DataFrame", index: Sequence[str], file: Path) -> dg.MaterializeResult[None]:
    """Learning curve of a partition: its errors over the number of shots, by the columns in `index`; where it is.

    With the coverage of our model's 90% intervals at the largest number of shots, as a number that has a history.
    """
    table = rows.pivot_table(index=list(index), columns="shots", values="mape_ratio").reset_index()
    ours = rows[rows["method"] == "product"]
    held = ours.loc[ours["shots"] == ours["shots"].max()].filter(regex="^coverage_90").mean().dropna().tolist()
    return dg.MaterializeResult(
        metadata={
            "dagster/partition_row_count": len(rows),
            **({"coverage_90": held[0]} if held else {}),
            "mape_by_shots": dg.MetadataValue.md(markdown_rows(table, ".3f")),
            "record": dg.MetadataValue.path(file),
        }
    )


def verdict_check(
    name: str, asset: str, verdicts: Table, partitions: dg.DynamicPartitionsDefinition, rows: str
) -> dg.AssetChecksDefinition:
    """Check of the models of partitions, from their stored verdicts; `rows` is what models are held against: runs."""
    part = verdicts.key[0]
    descriptions = {
        "not_worse": f"The newest model is not worse than the champion and the best model of the {rows} alone on "
        f"held-out {rows}; otherwise it stays @challenger",
        "champion_holds": f"{rows.capitalize()} that the champion had not seen lie in its 90% intervals as often as "
        f"promised; otherwise the {part} has drifted, and is adapted to anew",
    }
    specs = [
        partitioned_spec(asset, check, text, blocking=False, additional_deps=[verdicts.name], partitions=partitions)
        for check, text in descriptions.items()
    ]

    @dg.multi_asset_check(specs=specs, name=name)
    def check(context: dg.AssetCheckExecutionContext, lake: LakeResource) -> Iterator[dg.AssetCheckResult]:
        stored = rows_of(lake.lake(), verdicts, context.partition_key)
        if stored is None:
            raise dg.Failure(f"the {part} {context.partition_key} has no judged model: run 'perf-assets adapt'")
        yield from _verdict_results(asset, stored)

    return check


def _verdict_results(asset: str, rows: "pd.DataFrame") -> Iterator[dg.AssetCheckResult]:
    """The last verdict, with its numbers and thresholds."""
    last = rows.iloc[-1]
    yield dg.AssetCheckResult(
        asset_key=asset,
        check_name="not_worse",
        passed=last["decision"] == PROMOTED,
        severity=dg.AssetCheckSeverity.WARN,
        metadata={
            "decision": str(last["decision"]),
            "reason": str(last["reason"]),
            "version": int(last["version"]),
            "held_out_runs_count": int(last["held_out_count"]),
            "threshold_of_squared_error_ratio": float(last["threshold_ratio"]),
            **{name: float(last[name]) for name in _NUMBERS if last[name] == last[name]},
        },
    )
    yield dg.AssetCheckResult(
        asset_key=asset,
        check_name="champion_holds",
        passed=not last["has_drifted"],
        severity=dg.AssetCheckSeverity.ERROR,
        metadata={
            "new_runs_count": int(last["new_runs_count"]),
            "outside_of_interval_count": int(last["outside_count"]),
            "threshold": int(last["allowed_count"]),
            "what_was_done": f"adapted to anew: version {last['version']}, {last['decision']}",
        },
    )
