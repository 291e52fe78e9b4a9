"""Numbers behind the pictures of relative-performance vectors."""

import numpy as np
import pandas as pd

NAMES = {
    "vae_dnn": "sigma-VAE + DNN",
    "random_forest": "random forest",
    "xgboost": "XGBoost",
    "pairwise": "pairs of machines",
    "majority": "majority order",
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
    columns = ["protocol", "method", "target_machine", "relative_time", "predicted_relative_time"]
    found: pd.DataFrame = pd.concat(parts, ignore_index=True)[columns]
    return found


def roc_curves(rows: pd.DataFrame) -> pd.DataFrame:
    """Does the majority order hold? Columns protocol, method, false_positive_ratio, true_positive_ratio; all seeds."""
    parts = [pd.DataFrame(columns=["protocol", "method", "false_positive_ratio", "true_positive_ratio"])]
    for (protocol, method), here in rows.groupby(["protocol", "method"], sort=False):
        holds = here.sort_values("majority_gap", ascending=False)["is_majority_order"].to_numpy(bool)
        if method == "majority" or not holds.any() or holds.all():
            continue
        misses, hits = (np.concatenate([[0.0], np.cumsum(said) / said.sum()]) for said in (~holds, holds))
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
    found = both.groupby([*keys[:1], "last", *keys[1:]], sort=True)[column].mean().reset_index()
    return found.drop(columns="last")


def grown(rows: pd.DataFrame) -> pd.DataFrame:
    """Errors of each machine that joins, with the median over machines and seeds."""
    found = rows[rows["method"].isin(GROWTH_NAMES)][["method", "shots", "machine", "seed", "mape_ratio"]]
    return found.assign(
        median_mape_ratio=found.groupby(["method", "shots"])["mape_ratio"].transform("median")
    ).sort_values(["method", "shots"], kind="stable", ignore_index=True)
