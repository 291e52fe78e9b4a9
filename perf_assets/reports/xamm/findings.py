"""Findings from the scores in words, and beside the paper's figures. Who wins is read from the table, never typed."""

from dataclasses import dataclass

import pandas as pd

from perf_assets.reports.names import PROTOCOLS, TREES, describe, full_name
from perf_assets.reports.scores import (
    ALL,
    Change,
    ScorePlace,
    arrow,
    change,
    change_over,
    hardest_fold,
    over_seeds,
    percent,
    ranking,
    scenarios,
)

INPUTS, EMBEDDINGS, OPTIONS, MACHINES = "raw_vs_embedding_vs_amm", "embeddings", "amm_options", "machine_descriptions"
_WORDS = {"better": "beats", "worse": "does not beat", "no clear difference": "is not clearly different from"}

_CARRIES = 0.4
"""Share of the sum over folds from which on one of them carries the mean."""


@dataclass(frozen=True)
class PaperClaim:
    """A figure of the paper, and where its like is found in our table."""

    number: int
    """Number of the paper's experiment."""
    what: str
    paper: float
    """Change of MAPE: -0.5 is half the error."""
    experiment: str
    scenarios: tuple[str, ...]
    """More than one: the mean of their changes."""
    method: str
    baseline: str

    @property
    def places(self) -> tuple[ScorePlace, ...]:
        """Rows of the table that it is compared with."""
        return tuple(ScorePlace(self.experiment, "loao", scenario) for scenario in self.scenarios)

    @property
    def where(self) -> str:
        """Scenarios in the words of a person."""
        return " and ".join(map(arrow, self.scenarios))


def _whole(what: str, paper: float, scenarios: tuple[str, ...], trees: str = "xgboost") -> PaperClaim:
    return PaperClaim(
        number=1,
        what=what,
        paper=paper,
        experiment=INPUTS,
        scenarios=scenarios,
        method=f"embedding_amm_{trees}",
        baseline=f"raw_{trees}",
    )


def _part(number: int, what: str, paper: float, place: tuple[str, str], methods: tuple[str, str]) -> PaperClaim:
    experiment, scenario = place
    method, baseline = (name if name == "best" else f"{name}_xgboost" for name in methods)
    return PaperClaim(
        number=number,
        what=what,
        paper=paper,
        experiment=experiment,
        scenarios=(scenario,),
        method=method,
        baseline=baseline,
    )


_CPU, _TO_GPU, _GPU = "CPU->CPU", "CPU->GPU", "GPU->GPU"
_ADDED, _AGAINST_RAW = ("embedding_amm", "embedding"), ("embedding", "raw")
_L2, _VARIANCE = ("embedding_amm_l2", "embedding_amm"), ("embedding_amm_variance", "embedding_amm")

CLAIMS = (
    _whole("embedding + AMM against raw, XGBoost", -0.4964, (_CPU,)),
    _whole("embedding + AMM against raw, XGBoost", -0.9907, (_TO_GPU,)),
    *(
        _whole(f"embedding + AMM against raw, {TREES[trees]}", paper, (_CPU, _TO_GPU), trees)
        for trees, paper in (
            ("adaboost", -0.847),
            ("bagging", -0.675),
            ("random_forest", -0.6385),
            ("xgboost", -0.7435),
        )
    ),
    _part(1, "our best (blend, XGBoost in it) against raw", -0.4964, (MACHINES, _CPU), ("best", "raw")),
    _part(1, "our best (blend, XGBoost in it) against raw", -0.9907, (MACHINES, _TO_GPU), ("best", "raw")),
    _part(2, "attention embedding against raw, XGBoost", -0.203, (EMBEDDINGS, _CPU), _AGAINST_RAW),
    _part(2, "attention embedding against raw, XGBoost", -0.0331, (EMBEDDINGS, _TO_GPU), _AGAINST_RAW),
    _part(3, "AMM added to the embedding, XGBoost", -0.032, (INPUTS, _CPU), _ADDED),
    _part(3, "AMM added to the embedding, XGBoost", -0.224, (INPUTS, _TO_GPU), _ADDED),
    _part(3, "AMM added to the embedding, XGBoost", -0.368, (INPUTS, _GPU), _ADDED),
    _part(4, "AMM option 2 (L2) against option 1 (mean)", -0.255, (OPTIONS, _CPU), _L2),
    _part(4, "AMM option 2 (L2) against option 1 (mean)", -0.0264, (OPTIONS, _TO_GPU), _L2),
    _part(4, "AMM option 3 (variance) against option 1 (mean)", -0.1046, (OPTIONS, _CPU), _VARIANCE),
    _part(4, "AMM option 3 (variance) against option 1 (mean)", -0.0505, (OPTIONS, _TO_GPU), _VARIANCE),
)
"""Figures of the paper, by its experiments: 1 the whole method, 2 embeddings, 3 AMMs, 4 options of the AMM."""


@dataclass(frozen=True)
class PaperComparison:
    """A claim with what our table has for it."""

    claim: PaperClaim
    ours: Change

    @property
    def is_reached(self) -> bool:
        """Whether our error falls at least as much."""
        return self.ours.relative <= self.claim.paper


@dataclass(frozen=True)
class Finding:
    """A statement, and the figures behind it."""

    headline: str
    detail: str


def beside_the_paper(scores: pd.DataFrame) -> list[PaperComparison]:
    """All claims that the table has figures for."""
    changes = [(claim, change_over(scores, claim.places, claim.method, claim.baseline)) for claim in CLAIMS]
    return [PaperComparison(claim, ours) for claim, ours in changes if ours is not None]


def findings(scores: pd.DataFrame) -> list[Finding]:
    """Everything worth saying, the paper's questions first."""
    raw, spec = "raw_xgboost", "spec_xgboost"
    asked = [
        (EMBEDDINGS, "loao", "embedding_xgboost", raw),
        (INPUTS, "loao", "embedding_amm_xgboost", raw),
        (INPUTS, "loao", "embedding_amm_xgboost", "embedding_xgboost"),
        (MACHINES, "lomo", "raw_amm_xgboost", spec),
        (MACHINES, "lomo", "raw_amm_fleet_max_xgboost", spec),
        (MACHINES, "lomo", "embedding_amm_xgboost", spec),
        (MACHINES, "lomo", "raw_relative_amm_xgboost", spec),
        (MACHINES, "lomo", "anchored_xgboost", spec),
        (MACHINES, "lomo", "mixture", spec),
        (MACHINES, "lomo", "best", spec),
    ]
    findings = [versus(scores, *question) for question in asked]
    for experiment, protocol in ((EMBEDDINGS, "loao"), (OPTIONS, "loao"), (MACHINES, "loao"), (MACHINES, "lomo")):
        findings.append(winners(scores, experiment, protocol))
    findings += [hardest(scores, protocol) for protocol in PROTOCOLS]
    findings.append(few_seeds(scores))
    return [finding for finding in findings if finding is not None]


def versus(scores: pd.DataFrame, experiment: str, protocol: str, method: str, baseline: str) -> Finding | None:
    """A method against a baseline, over all pairs and in each scenario."""
    over_all = change(scores, ScorePlace(experiment, protocol, ALL), method, baseline)
    if over_all is None:
        return None
    by_verdict: dict[str, list[str]] = {}
    for scenario in scenarios(scores):
        here = change(scores, ScorePlace(experiment, protocol, scenario), method, baseline)
        if here is not None:
            by_verdict.setdefault(here.verdict, []).append(f"{arrow(scenario)} ({percent(here.relative, signed=True)})")
    disagree = over_all.verdict != "no clear difference" and (over_all.relative < 0) != (over_all.of_medians < 0)
    but = " in the mean over folds, but in the median it is the other way round" if disagree else ""
    headline = (
        f"{_capital(PROTOCOLS[protocol])}: {describe(method)} {_WORDS[over_all.verdict]} {describe(baseline)} over all "
        f"pairs{but} ({percent(over_all.mape)} against {percent(over_all.baseline_mape)}, "
        f"{percent(over_all.relative, signed=True)}; medians over folds {percent(over_all.of_medians, signed=True)}"
        f"{'; one seed' if over_all.seeds == 1 else ''})."
    )
    parts = [f"{verdict}: {', '.join(places)}" for verdict, places in by_verdict.items()]
    return Finding(headline, _capital("; ".join(parts)) + ".")


def winners(scores: pd.DataFrame, experiment: str, protocol: str) -> Finding | None:
    """The best method over all pairs and in each scenario, and where `best` stands."""
    ranked = ranking(scores, ScorePlace(experiment, protocol, ALL))
    if not ranked:
        return None
    method, mape = ranked[0]
    topic = f"{_capital(PROTOCOLS[protocol])}, {experiment.replace('_', ' ')}"
    headline = f"{topic}: smallest error over all pairs by {full_name(method)} ({percent(mape)})."
    details = []
    for scenario in scenarios(scores):
        here = ranking(scores, ScorePlace(experiment, protocol, scenario))
        if here:
            details.append(f"{arrow(scenario)}: {describe(here[0][0])} ({percent(here[0][1])})")
    text = "; ".join(details) + "."
    position = [name for name, _ in ranked].index("best") + 1 if "best" in dict(ranked) else None
    if position is not None:
        text += f" What would be registered (best) is number {position} of {len(ranked)} over all pairs."
    return Finding(headline, text)


def hardest(scores: pd.DataFrame, protocol: str) -> Finding | None:
    """Whether one held-out fold carries the mean of the winner."""
    place = ScorePlace(MACHINES, protocol, ALL)
    ranked = ranking(scores, place)
    fold = hardest_fold(scores, place, ranked[0][0]) if ranked else None
    if fold is None:
        return None
    name, share = fold
    folds = scores.loc[scores["protocol"] == protocol, "held_out"].nunique()
    return Finding(
        f"{_capital(PROTOCOLS[protocol])}: {name} is the hardest to predict; it has {share:.0%} of the sum of the "
        f"errors over {folds} folds, of the best method.",
        "A mean over folds says little where one fold carries it: read the medians and the table by fold as well."
        if share > _CARRIES
        else "No single fold carries the mean.",
    )


def few_seeds(scores: pd.DataFrame) -> Finding | None:
    """Methods whose spread is not known."""
    seeds = over_seeds(scores).groupby("method", sort=False)["seeds"].max()
    fewer = seeds[seeds < seeds.max()]
    if fewer.empty:
        return None
    listed = ", ".join(f"{describe(str(name))} ({count})" for name, count in fewer.items())
    return Finding(
        f"Fewer seeds than the {seeds.max()} of the others: {listed}.",
        "They take long; with one seed the spread is not known.",
    )


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]
