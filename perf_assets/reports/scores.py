"""Summary of a table of scores: means and spreads, changes against a baseline, winners. Nothing is typed in."""

from collections.abc import Sequence
from dataclasses import dataclass

import pandas as pd

from perf_assets.reports.names import describe

ALL = "all"
SCENARIOS = ("CPU->CPU", "CPU->GPU", "GPU->CPU", "GPU->GPU")
_AGGREGATES = {"mean": "mape", "median": "median"}
WORTHLESS = 100.0
"""Errors above this ratio are all the same to a reader."""


@dataclass(frozen=True)
class ScorePlace:
    """Place of a comparison of methods: rows of one experiment, one protocol and one scenario."""

    experiment: str
    protocol: str
    scenario: str


@dataclass(frozen=True)
class Change:
    """MAPE of a method against that of a baseline, over the seeds that both have: -0.5 is half the error."""

    mape: float
    baseline_mape: float
    relative: float
    """Change of the means over held-out folds."""
    of_medians: float
    """Change of the medians over held-out folds, which one hard fold does not carry."""
    lowest: float
    highest: float
    """`relative` of single seeds."""
    seeds: int

    @property
    def verdict(self) -> str:
        """`better` or `worse` where all seeds agree."""
        if self.highest < 0:
            return "better"
        return "worse" if self.lowest > 0 else "no clear difference"


def scenarios(scores: pd.DataFrame) -> list[str]:
    """Scenarios that occur, in a fixed order, without `all`."""
    return [name for name in SCENARIOS if (scores["scenario"] == name).any()]


def at(scores: pd.DataFrame, place: ScorePlace) -> pd.DataFrame:
    """Rows of a place."""
    here = scores[["experiment", "protocol", "scenario"]] == [place.experiment, place.protocol, place.scenario]
    return scores[here.all(axis=1)]


def over_seeds(scores: pd.DataFrame) -> pd.DataFrame:
    """A row per experiment, protocol, method and scenario, methods in the order of the table.

    `mape` is the mean over held-out folds and seeds, `spread` the standard deviation over seeds of the mean over folds
    (0 where there is one seed), `median` the median over folds, and the other scores are means.
    """
    keys = ["experiment", "protocol", "method", "scenario"]
    by_seed = scores.groupby([*keys, "seed"], sort=False).agg(
        mape=("mape_ratio", "mean"),
        median=("mape_ratio", "median"),
        log_rmse=("log_rmse", "mean"),
        within_10=("within_10_ratio", "mean"),
        within_25=("within_25_ratio", "mean"),
    )
    grouped = by_seed.groupby(keys, sort=False)
    means = grouped.mean()
    means.insert(1, "spread", grouped["mape"].std(ddof=0))
    return means.assign(seeds=grouped.size()).reset_index()


def change(scores: pd.DataFrame, place: ScorePlace, method: str, baseline: str) -> Change | None:
    """A method against a baseline; None where the table lacks one of them."""
    return change_over(scores, (place,), method, baseline)


def change_over(scores: pd.DataFrame, places: Sequence[ScorePlace], method: str, baseline: str) -> Change | None:
    """Mean of the changes in several places; None where the table lacks one of the methods in one of them."""
    by_place = {place: _by_seed(scores, place, method, baseline) for place in places}
    each = pd.concat(by_place, names=["place", "seed"])
    seeds = each.groupby("seed").size()
    complete = seeds.index[seeds == len(places)]
    if complete.empty:
        return None
    each = each[each.index.isin(complete, level="seed")]
    means = each.groupby("place", sort=False).mean()
    by_seed = (each["mape"] / each["baseline_mape"] - 1).groupby("seed").mean()
    return Change(
        mape=float(means["mape"].mean()),
        baseline_mape=float(means["baseline_mape"].mean()),
        relative=float((means["mape"] / means["baseline_mape"] - 1).mean()),
        of_medians=float((means["median"] / means["baseline_median"] - 1).mean()),
        lowest=float(by_seed.min()),
        highest=float(by_seed.max()),
        seeds=len(complete),
    )


def _by_seed(scores: pd.DataFrame, place: ScorePlace, method: str, baseline: str) -> pd.DataFrame:
    """Mean and median over held-out folds of both methods, a row per seed that both have."""
    here = at(scores, place)
    by_prefix = {
        prefix: here[here["method"] == name].groupby("seed")["mape_ratio"].agg(["mean", "median"])
        for prefix, name in (("", method), ("baseline_", baseline))
    }
    columns = {f"{prefix}{new}": table[old] for prefix, table in by_prefix.items() for old, new in _AGGREGATES.items()}
    return pd.DataFrame(columns).dropna()


def ranking(scores: pd.DataFrame, place: ScorePlace) -> list[tuple[str, float]]:
    """Methods with their MAPE, the best one first."""
    means = over_seeds(at(scores, place)).sort_values("mape")
    return [(str(method), float(mape)) for method, mape in zip(means["method"], means["mape"], strict=True)]


def hardest_fold(scores: pd.DataFrame, place: ScorePlace, method: str) -> tuple[str, float] | None:
    """The held-out fold with the largest MAPE, and its share of the sum over folds."""
    here = at(scores, place)
    by_fold = here[here["method"] == method].groupby("held_out")["mape_ratio"].mean()
    return None if by_fold.empty else (str(by_fold.idxmax()), float(by_fold.max() / by_fold.sum()))


def origin(rows: pd.DataFrame) -> str:
    """Origin of the data behind the figures."""
    if rows["is_simulated"].all():
        return "simulated fleet"
    return "measured and simulated machines" if rows["is_simulated"].any() else "measured machines"


def arrow(scenario: str) -> str:
    """`CPU->GPU` as people write it."""
    return scenario.replace("->", " → ")


def percent(ratio: float, *, signed: bool = False) -> str:
    """0.123 as 12.3%, 12.3 as 1,230%."""
    digits = 1 if abs(ratio) < 1 else 0
    return f"{100 * ratio:{'+' if signed else ''},.{digits}f}%".replace("-", "\N{MINUS SIGN}")


def error(ratio: float) -> str:
    """An error as a percentage; all that is beyond use reads the same."""
    if ratio != ratio:
        return "not known"
    return percent(ratio) if ratio < WORTHLESS else f">{WORTHLESS:,.0%}"


def markdown(scores: pd.DataFrame, experiment: str, protocol: str) -> str:
    """MAPE by method and scenario as a Markdown table."""
    chosen = over_seeds(scores[(scores["experiment"] == experiment) & (scores["protocol"] == protocol)])
    columns = [*scenarios(scores), ALL]
    lines = ["| method | " + " | ".join(columns) + " |", "|---|" + "---:|" * len(columns)]
    for method in dict.fromkeys(chosen["method"]):
        of_method = chosen[chosen["method"] == method].set_index("scenario")
        cells = [_cell(of_method.loc[name]) if name in of_method.index else "" for name in columns]
        lines.append(f"| {describe(method)} (`{method}`) | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def _cell(row: "pd.Series[float]") -> str:
    return f"{percent(row['mape'])} " + (f"± {percent(row['spread'])}" if row["seeds"] > 1 else "(1 seed)")
