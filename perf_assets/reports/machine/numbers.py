"""Scores of transfer in numbers and names: methods, medians with their spread over seeds, gains, nearest machines."""

from typing import Any

import numpy as np
import pandas as pd

PRODUCT = "product"
METHODS = {
    PRODUCT: "our model",
    "paired": "blended correction",
    "with_prior": "benchmark expectation, corrected",
    "without_prior": "time on the source, corrected",
    "source_unchanged": "time on the source, unchanged",
    "constant_ratio": "constant ratio of the shots",
    "prior_unchanged": "benchmark expectation, unchanged",
    "prior_constant_ratio": "benchmark expectation, constant ratio",
    "target_ridge": "ridge on the shots alone",
    "target_gp": "Gaussian process on the shots alone",
    "product_source_functions": "functions of the sources",
    "product_source_metric": "features weighted as in the sources",
    "product_alignment": "features aligned to the sources (M_A)",
    "product_target_only": "own features, no source",
    "source_zero_shot": "sources as they are",
    "target_mean": "mean of the shots",
    "target_knn": "neighbours among the shots",
    "target_extra_trees": "extra trees on the shots alone",
    "target_xgboost": "XGBoost on the shots alone",
}
GAIN_SHOTS = 10
"""Runs on the target at which the gain of transfer is looked at."""


def method_name(method: str) -> str:
    """A method in the words of a person; methods that are not known keep their name."""
    return METHODS.get(method, method)


def is_target_only(method: str) -> bool:
    """Whether a method knows the shots and nothing of other machines' times."""
    return method.startswith("target_")


def is_baseline(method: str) -> bool:
    """Whether a method is there to be beaten: shots alone, the source alone, or a constant between the two."""
    return is_target_only(method) or method.startswith("source_") or method == "constant_ratio"


def methods_of(rows: pd.DataFrame) -> list[str]:
    """Methods that occur: known ones in a fixed order, then the others."""
    names = list(dict.fromkeys(rows["method"]))
    return [name for name in METHODS if name in names] + [name for name in names if name not in METHODS]


def by_view(rows: pd.DataFrame) -> list[tuple[str, pd.DataFrame]]:
    """Rows by `seen_as`, in their order; a table that is not there has no columns either."""
    return [] if rows.empty else [(str(name), here) for name, here in rows.groupby("seen_as", sort=False)]


def candidate_tables(candidates: pd.DataFrame) -> list[dict[str, Any]]:
    """A table per view, the smallest log error first, each error relative to that of the best baseline."""
    tables = []
    for view, here in by_view(candidates):
        is_base = here["method"].map(is_baseline).astype(bool)
        rows = here.assign(
            is_baseline=is_base, to_baseline=here["mape_ratio"] / here.loc[is_base, "mape_ratio"].min()
        ).sort_values("log_rmse", kind="stable")
        tables.append(
            {"view": view, "source": here["source"].iloc[0], "shots": here["shots"].iloc[0], "rows": records(rows)}
        )
    return tables


def records(rows: pd.DataFrame) -> list[dict[str, Any]]:
    """Rows by names of columns."""
    return [{str(name): value for name, value in row.items()} for row in rows.to_dict("records")]


def over_seeds(scores: pd.DataFrame, column: str) -> pd.DataFrame:
    """A row per target, source, method and number of shots: `median`, `mean`, `lowest`, `highest` and `seeds`."""
    known = scores.dropna(subset=[column])
    grouped = known.groupby(["target", "source", "method", "shots"], sort=False)[column]
    return grouped.agg(median="median", mean="mean", lowest="min", highest="max", seeds="size").reset_index()


def transfer_gains(matrix: pd.DataFrame) -> pd.DataFrame:
    """A row per pair of machines of `eval_transfer__matrix`: `severity_ratio` and `gain`.

    The gain is log(MAPE of the best target-only method / MAPE of the product) at 10 shots, of medians over seeds: 0
    where transfer is worth nothing, negative where it harms. Pairs that lack one of the three are left out.
    """
    at_shots = matrix[matrix["shots"] == GAIN_SHOTS]
    pair = ["source", "target"]
    errors = at_shots.pivot_table(index=pair, columns="method", values="mape_ratio", aggfunc="median")
    alone = errors[[name for name in errors.columns if is_target_only(str(name))]].min(axis=1)
    product = errors[PRODUCT] if PRODUCT in errors else pd.Series(np.nan, errors.index)
    gains = pd.DataFrame(
        {
            "severity_ratio": at_shots.groupby(pair)["severity_ratio"].first().reindex(errors.index),
            "gain": np.log(alone.astype(float) / product.astype(float)),
        }
    )
    return gains.replace([np.inf, -np.inf], np.nan).dropna().reset_index()


def rank_correlation(first: "pd.Series[float]", second: "pd.Series[float]") -> float | None:
    """Spearman's; None where there are fewer than three pairs, or one side does not vary."""
    if len(first) < 3 or first.nunique() < 2 or second.nunique() < 2:
        return None
    return float(first.rank().corr(second.rank()))


def times(ratio: float) -> str:
    """A factor as people write it."""
    if ratio != ratio:
        return "\N{EN DASH}"
    ratio_text = f"{ratio:.2f}" if ratio < 1000 else ">1,000"
    return ("<0.01" if 0 < ratio < 0.01 else ratio_text) + "\N{MULTIPLICATION SIGN}"


def digits(log_error: float) -> str:
    """A log error to three places."""
    return "\N{EN DASH}" if log_error != log_error else f"{log_error:.3f}"


def own_views(amms: pd.DataFrame, machine: str) -> list[str]:
    """Names under which programs see a machine: its own, and `name (host)`. Ids of machines have no spaces."""
    return [str(name) for name in amms.index if str(name).split(" ")[0] == machine]


def distances(amms: pd.DataFrame, view: str, machine: str) -> "pd.Series[float]":
    """Euclidean distances of AMMs from one view of a machine to all other machines, nearest first."""
    others = amms.drop(index=own_views(amms, machine))
    lengths = np.linalg.norm(others.to_numpy(float) - amms.loc[view].to_numpy(float), axis=1)
    return pd.Series(lengths, index=[str(name) for name in others.index]).sort_values()
