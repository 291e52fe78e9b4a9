"""Content of the page of a machine."""

from collections.abc import Mapping
from dataclasses import dataclass, field

import pandas as pd


@dataclass(frozen=True)
class MachineFacts:
    """Tables of one machine; what is not there is empty or None, with a reason in `missing`."""

    machine: str
    is_simulated: bool
    registered_as: str
    """Name and version in MLflow, as in `perf-target-dane version 3`."""
    amms: pd.DataFrame
    """AMMs of all machines: index machine as seen by programs, columns components."""
    candidates: pd.DataFrame
    """seen_as, source, shots, method, mape_ratio, log_rmse, is_chosen: on held-out shots."""
    curve: pd.DataFrame
    """Rows of `eval_transfer__scores` of this machine."""
    severity: float | None
    """Severity of the transfer, 0 (easy) to 1, as registered with the version; of the hardest view."""
    alignment: pd.DataFrame
    """source_counter, target_counter, weight, importance, stability, is_same_name; most important first."""
    alignment_weights: pd.DataFrame
    """Source counters x target counters: the whole map."""
    alignment_source: str
    """Machine whose counters are aligned with."""
    catalogue_proposal: str
    """YAML for the site's counter catalogue; empty where there is nothing to propose."""
    next_runs: pd.DataFrame
    """seen_as, rank, configuration, app, error_before_ratio, error_after_ratio, node_hours."""
    verdicts: pd.DataFrame
    """Rows of `eval_target__verdicts` of this machine, newest last."""
    missing: dict[str, str]
    """Reasons why parts are missing, by their names here."""
    alias: str = "champion"
    """Alias of the version that the page shows: `challenger` where nothing was promoted yet."""
    tracking_uri: str = ""
    """Address of the MLflow store, as a program gives it."""
    links: Mapping[str, str] = field(default_factory=dict)
    """Addresses of its pages in Dagster and MLflow, by what they show."""
    sheet: Mapping[str, str] = field(default_factory=dict)
    """Content of its data sheet by property; empty where it has none."""
    predicted: pd.DataFrame = field(default_factory=pd.DataFrame)
    """seen_as, configuration, measured_seconds, predicted_seconds: of runs that the fit did not see."""
    relative_times: str = ""
    """Machine that times of its runs are relative to, as in `relative to quartz`; empty where they are seconds."""
    are_kept_aside: bool = False
    """Whether these runs never landed; else each was held out of those that did."""
