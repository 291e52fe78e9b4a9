"""Numbers behind the pictures of relative-performance vectors."""

import numpy as np
import pandas as pd

NAMES = {
    "vae_dnn": "sigma-VAE + DNN",
    "random_forest": "random forest",
    "xgboost": "XGBoost",
    "pairwise": "pairs of machines",
    "majority": "majority order",
    "mean": "mean vector",
    "best": "best (blend)",
}
GROWTH_NAMES = {
    "head": "head on the frozen net",
    "constant": "mean of the shots",
    "from_nothing": "forest on the shots alone",
    "retrained": "retrained on all runs",
}
PROTOCOLS = {"sample": "unseen configuration", "app": "unseen application"}
EVERY = "all samples"
MEASURED = "measured"
FAMOUS_APP = "Laghos"
"""Application whose vector Figure 3 of the paper shows."""
_DRAWN_METHODS = ("vae_dnn", "random_forest", "best")
_DRAWN_POINTS = 4000


def method_names(rows: pd.DataFrame) -> list[str]:
    """Methods in the order of a table."""
    return list(dict.fromkeys(rows["method"]))


def drawn_entries(entries: pd.DataFrame) -> pd.DataFrame:
    """Entries of held-out vectors as a picture has them: of three methods, at most 4,000 of each and each protocol."""
    known = [name for name in _DRAWN_METHODS if (entries["method"] == name).any()]
    chosen = known or method_names(entries)[: len(_DRAWN_METHODS)]
    parts = [
        here.sample(min(len(here), _DRAWN_POINTS), random_state=0)
        for protocol in dict.fromkeys(entries["protocol"])
        for method in chosen
        if len(here := entries[(entries["protocol"] == protocol) & (entries["method"] == method)])
    ]
    columns = ["protocol", "method", "app", "target_machine", "relative_time", "predicted_relative_time"]
    drawn: pd.DataFrame = pd.concat(parts, ignore_index=True)[columns]
    return drawn


def shown_app(vectors: pd.DataFrame) -> str:
    """Laghos, as in the paper; where it did not run, the application with the most entries."""
    apps = vectors["app"]
    return FAMOUS_APP if (apps == FAMOUS_APP).any() else str(apps.mode()[0])


def application_vector(vectors: pd.DataFrame, entries: pd.DataFrame, app: str) -> pd.DataFrame:
    """Medians of an application's relative times by machine, as measured and as predicted for unseen configurations.

    Both are of the same held-out samples; where none of the application was held out, all its vectors are measured.
    Columns: origin (`measured`, or a method), target_machine, relative_time, and the tenth and the ninetieth percentile
    of what is measured.
    """
    asked = drawn_entries(entries)
    asked = asked[(asked["protocol"] == "sample") & (asked["app"] == app)]
    known = vectors[vectors["app"] == app] if asked.empty else asked[asked["method"] == asked["method"].iloc[0]]
    measured = known.groupby("target_machine")["relative_time"]
    low, middle, high = (measured.quantile(share) for share in (0.1, 0.5, 0.9))
    rows = pd.DataFrame({"relative_time": middle, "lower_relative_time": low, "upper_relative_time": high})
    parts = [rows.assign(origin=MEASURED).reset_index()]
    for method, here in asked.groupby("method", sort=False):
        medians = here.groupby("target_machine")["predicted_relative_time"].median().rename("relative_time")
        parts.append(medians.reset_index().assign(origin=NAMES.get(str(method), str(method))))
    vector: pd.DataFrame = pd.concat(parts, ignore_index=True)
    return vector[["origin", "target_machine", "relative_time", "lower_relative_time", "upper_relative_time"]]


def relative_times_by_machine(vectors: pd.DataFrame) -> pd.DataFrame:
    """Five percentiles of relative times, and their number, by machine."""
    times = vectors.groupby("target_machine")["relative_time"]
    columns = {f"percentile_{share}": times.quantile(share / 100) for share in (5, 25, 50, 75, 95)}
    return pd.DataFrame({**columns, "configurations_count": times.size()}).reset_index()


def roc_curves(rows: pd.DataFrame) -> pd.DataFrame:
    """Does the majority order hold? Columns protocol, method, false_positive_ratio, true_positive_ratio; all seeds."""
    parts = [pd.DataFrame(columns=["protocol", "method", "false_positive_ratio", "true_positive_ratio"])]
    for (protocol, method), here in rows.groupby(["protocol", "method"], sort=False):
        holds = here.sort_values("majority_gap", ascending=False)["is_majority_order"].to_numpy(bool)
        if method == "majority" or not holds.any() or holds.all():
            continue
        misses, hits = (np.concatenate([[0.0], np.cumsum(side) / side.sum()]) for side in (~holds, holds))
        parts.append(
            pd.DataFrame(
                {
                    "protocol": protocol,
                    "method": method,
                    "false_positive_ratio": misses,
                    "true_positive_ratio": hits,
                }
            )
        )
    return pd.concat(parts[1:] or parts, ignore_index=True)


def means_by_application(rows: pd.DataFrame, column: str) -> pd.DataFrame:
    """Mean of a column by protocol, application (and all samples) and method."""
    keys = ["protocol", "app", "method"]
    values = rows[keys].assign(**{column: rows[column].astype(float)})
    both = pd.concat([values, values.assign(app=EVERY)], ignore_index=True)
    # Applications by name, then all samples.
    both["last"] = both["app"] == EVERY
    means = both.groupby([*keys[:1], "last", *keys[1:]], sort=True)[column].mean().reset_index()
    return means.drop(columns="last")


def grown(rows: pd.DataFrame) -> pd.DataFrame:
    """Errors of each machine that joins, with the median over machines and seeds."""
    errors = rows[rows["method"].isin(GROWTH_NAMES)][["method", "shots", "machine", "seed", "mape_ratio"]]
    return errors.assign(
        median_mape_ratio=errors.groupby(["method", "shots"])["mape_ratio"].transform("median")
    ).sort_values(["method", "shots"], kind="stable", ignore_index=True)
