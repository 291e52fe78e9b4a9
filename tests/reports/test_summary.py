"""What the table of scores says."""

import pytest

from perf_assets.reports.scores import ScorePlace, change, hardest_fold, markdown, over_seeds, percent, ranking
from perf_assets.reports.xamm.findings import CLAIMS, beside_the_paper, findings
from tests.reports.tables import scores

ALL_PAIRS = ScorePlace("machine_descriptions", "lomo", "all")


def test_means_are_over_folds_and_the_spread_over_seeds() -> None:
    found = over_seeds(scores()).set_index(["experiment", "protocol", "method", "scenario"])
    raw = found.loc[("embeddings", "loao", "raw_xgboost", "CPU->CPU")]
    assert raw["mape"] == pytest.approx(0.5 * 2 * 1.05)
    assert raw["spread"] == pytest.approx(0.5 * 2 * 0.05)
    assert raw["seeds"] == 2
    best = found.loc[("machine_descriptions", "lomo", "best", "all")]
    assert (best["spread"], best["seeds"]) == (0, 1)
    assert best["median"] == pytest.approx(0.35 * 1.5 * 0.8)


def test_changes_are_over_the_seeds_of_both() -> None:
    found = change(scores(), ALL_PAIRS, "best", "spec_xgboost")
    assert found is not None
    assert found.seeds == 1
    assert found.relative == found.lowest == found.highest == pytest.approx(0.35 / 0.5 - 1)
    assert found.verdict == "better"
    assert change(scores(), ALL_PAIRS, "best", "onehot_xgboost") is None


def test_a_verdict_needs_all_seeds() -> None:
    table = scores()
    second = (table["method"] == "raw_amm_xgboost") & (table["seed"] == 1)
    table.loc[second, "mape_ratio"] *= 0.5
    found = change(table, ALL_PAIRS, "raw_amm_xgboost", "spec_xgboost")
    assert found is not None
    assert found.lowest < 0 < found.highest
    assert found.verdict == "no clear difference"


def test_ranking_and_the_hardest_fold() -> None:
    assert [name for name, _ in ranking(scores(), ALL_PAIRS)][:3] == ["mixture", "best", "spec_xgboost"]
    assert hardest_fold(scores(), ALL_PAIRS, "mixture") == ("quartz", pytest.approx(0.5))


def test_the_paper_is_compared_with_computed_figures() -> None:
    found = {(c.claim.number, c.claim.what, c.claim.scenarios): c for c in beside_the_paper(scores())}
    whole = "embedding + AMM against raw, XGBoost"
    amm = found[1, whole, ("CPU->CPU",)]
    assert (amm.claim.paper, amm.ours.relative) == (-0.4964, pytest.approx(-0.6))
    assert amm.is_reached
    assert not found[1, whole, ("CPU->GPU",)].is_reached
    option = found[4, "AMM option 2 (L2) against option 1 (mean)", ("CPU->GPU",)]
    assert (option.claim.paper, option.ours.relative) == (-0.0264, pytest.approx(0.25))
    assert found[3, "AMM added to the embedding, XGBoost", ("GPU->GPU",)].claim.paper == -0.368
    # The table has no variance option, AdaBoost or random forest.
    assert len(found) == len(CLAIMS) - 4


def test_a_claim_over_two_scenarios_is_the_mean_of_both_changes() -> None:
    table = scores()
    bagging = (table["method"] == "embedding_amm_bagging") & (table["scenario"] == "CPU->GPU")
    table.loc[bagging, "mape_ratio"] *= 0.5
    (found,) = (c for c in beside_the_paper(table) if c.claim.method == "embedding_amm_bagging")
    assert found.claim.where == "CPU → CPU and CPU → GPU"
    assert (found.claim.paper, found.ours.relative) == (-0.675, pytest.approx((-0.6 - 0.8) / 2))
    assert found.ours.lowest == found.ours.highest == pytest.approx(-0.7)


@pytest.mark.slow
def test_winners_and_losers_are_read_from_the_table() -> None:
    said = "\n".join(f"{finding.headline} {finding.detail}" for finding in findings(scores()))
    assert "embedding (TabNet) beats raw counters over all pairs" in said
    assert "Unseen machine: raw + AMM does not beat raw + specification" in said
    assert "smallest error over all pairs by mixture of known machines" in said
    assert "(best) is number 2 of 5" in said
    assert "Fewer seeds than the 2 of the others: best (blend, cross-validated) (1)" in said
    other = scores()
    other.loc[other["method"] == "raw_amm_xgboost", "mape_ratio"] *= 0.1
    said = "\n".join(finding.headline for finding in findings(other))
    assert "Unseen machine: raw + AMM beats raw + specification" in said
    assert "Unseen machine, machine descriptions: smallest error over all pairs by raw + AMM" in said


def test_a_mean_that_the_median_contradicts_is_named() -> None:
    table = scores()
    worse = (table["method"] == "embedding_xgboost") & (table["held_out"] != "Laghos")
    table = table[table["experiment"] == "embeddings"]
    third = table[table["held_out"] == "Kripke"].assign(held_out="miniVite")
    table.loc[worse, "mape_ratio"] *= 1.5
    third.loc[worse, "mape_ratio"] *= 1.5
    both = table._append(third)
    found = next(f for f in findings(both) if "embedding (TabNet) beats" in f.headline)
    assert "in the median it is the other way round" in found.headline


def test_percentages_are_short() -> None:
    assert [percent(0.1234), percent(12.34), percent(-0.5, signed=True)] == ["12.3%", "1,234%", "\N{MINUS SIGN}50.0%"]


def test_markdown_has_a_row_for_each_method() -> None:
    lines = markdown(scores(), "machine_descriptions", "lomo").splitlines()
    assert lines[0] == "| method | CPU->CPU | CPU->GPU | GPU->CPU | GPU->GPU | all |"
    assert len(lines) == 2 + 5
    assert lines[2].startswith("| raw counters (`raw_xgboost`) | 42.0% ± 2.0% |")
