"""Methods, embeddings and protocols in the words of a person."""

PROTOCOLS = {"loao": "unseen application", "lomo": "unseen machine"}
TREES = {"xgboost": "XGBoost", "random_forest": "random forest", "bagging": "bagging", "adaboost": "AdaBoost"}
DESCRIPTIONS = {
    "raw": "raw counters",
    "onehot": "raw + machine id",
    "spec": "raw + specification",
    "embedding": "embedding (TabNet)",
    "embedding_nn": "embedding (NN)",
    "embedding_ae": "embedding (AE)",
    "embedding_vae": "embedding (VAE)",
    "embedding_amm": "embedding + AMM (mean)",
    "embedding_amm_l2": "embedding + AMM (L2)",
    "embedding_amm_variance": "embedding + AMM (variance)",
    "embedding_amm_spread": "embedding + AMM (spread of each component)",
    "embedding_amm_fleet_max": "embedding + AMM (mean, fleet_max)",
    "embedding_amm_none": "embedding + AMM (mean, no normalisation)",
    "raw_amm": "raw + AMM",
    "raw_amm_fleet_max": "raw + AMM (fleet_max)",
    "raw_relative_amm": "raw + relative AMM",
    "anchored": "trees on benchmark ratio",
    "anchored_spec": "trees on benchmark ratio + spec.",
}
OTHERS = {
    "benchmark_mean": "mean benchmark ratio",
    "attention": "attention over kernels",
    "bilinear": "bilinear",
    "mixture": "mixture of known machines",
    "best": "best (blend, cross-validated)",
}
EMBEDDINGS = {"raw": "raw counters", "tabnet": "TabNet (attention)", "nn": "NN", "ae": "AE", "vae": "VAE"}


def split(method: str) -> tuple[str, str]:
    """`raw_random_forest` -> `raw`, `random_forest`; no second part where there are no trees."""
    for trees in TREES:
        if method.endswith(f"_{trees}"):
            return method.removesuffix(f"_{trees}"), trees
    return method, ""


def describe(method: str) -> str:
    """Description of run and machines in words, without the downstream model."""
    described = split(method)[0]
    return DESCRIPTIONS.get(described) or OTHERS.get(described) or method


def full_name(method: str) -> str:
    """Name of a method with its downstream model."""
    trees = split(method)[1]
    return f"{describe(method)}, {TREES[trees]}" if trees else describe(method)
