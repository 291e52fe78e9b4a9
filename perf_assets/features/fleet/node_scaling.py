"""Runs of the same problem on different numbers of nodes: how applications scale on the machines of the fleet."""

import pandas as pd

from perf_assets.core.tables.runs import CONFIGURATION, FEATURES
from perf_assets.features.fleet.samples import configuration_name

SCALING_QUERY = f"""
    SELECT machine, {", ".join(CONFIGURATION)}, coalesce(nodes, 1) AS nodes
    FROM {FEATURES.name} WHERE wall_seconds IS NOT NULL ORDER BY ALL
"""
PROBLEM = ("app", "args")
"""What is the same on any number of nodes."""


def scaling_runs(rows: pd.DataFrame, predictions: pd.DataFrame) -> pd.DataFrame:
    """Runs that are predicted to be fastest, one per machine, problem and number of nodes.

    `rows` are of `SCALING_QUERY`, `predictions` of `held_out_predictions` for one or several machines.
    """
    keys = rows[list(CONFIGURATION)].itertuples(index=False, name=None)
    named = rows.assign(configuration=[configuration_name(key) for key in keys])
    found = named.merge(predictions, on=["machine", "configuration"])
    ordered = found.sort_values(["machine", *PROBLEM, "nodes", "predicted_seconds", "configuration"])
    fastest = ordered.drop_duplicates(["machine", *PROBLEM, "nodes"])
    return fastest[["machine", *PROBLEM, "nodes", "seconds", "predicted_seconds", "upper_seconds"]].reset_index(
        drop=True
    )
