"""What benchmarks/families.py chooses and sums up: a family has no part in its own setting."""

from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

_FOLDER = Path(__file__).resolve().parents[2] / "benchmarks"


@pytest.fixture
def families(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.syspath_prepend(_FOLDER)
    return import_module("families")


def rows(**best: float) -> pd.DataFrame:
    """Two transfers of each family, the product being twice as good with the prior that is named."""
    return pd.DataFrame(
        {"family": family, "prior": prior, "share": "1pct", "vs_choice": 0.5 if prior == one else 1.0}
        for family, one in best.items()
        for prior in (0.2, 0.5, 0.8)
        for _ in range(2)
    )


def test_a_setting_is_chosen_on_the_other_families(families: Any) -> None:
    found = rows(uci=0.2, spechpc=0.8, kripke_power=0.8)
    assert families.chosen_prior(found, "uci") == 0.8
    found.loc[found["family"] == "uci", "vs_choice"] = 1e-6
    assert families.chosen_prior(found, "uci") == 0.8
    assert families.chosen_prior(rows(uci=0.2), "uci") == families.AverageSettings().target_only_prior


def test_severity_is_worth_as_much_as_it_orders_transfers(families: Any) -> None:
    known = pd.DataFrame({"prior": families.PRIORS[0], "share": "1pct", "severity": [0.1, 0.4, 0.5, 0.9]})
    known = known.assign(supervised=0.1, source=[0.1, 0.2, 0.9, 8.0])
    assert families.figure_of_merit(known) == pytest.approx(1)
    assert families.figure_of_merit(known.assign(severity=[0.9, 0.5, 0.4, 0.1])) == pytest.approx(-1)
    assert families.figure_of_merit(known.iloc[:3]) is None


def test_errors_are_averaged_over_seeds_before_they_are_compared(families: Any) -> None:
    def record(seed: int, product: float, gp: float, ridge: float) -> dict[str, object]:
        errors = {f"product {prior}": product for prior in families.PRIORS}
        errors |= {"target_gp": gp, "target_ridge": ridge, "source": 2.0}
        coverage = {str(prior): 0.9 for prior in families.PRIORS}
        facts = {"family": "uci", "what": "a -> b", "share": "5pct", "shots": 8, "seed": seed, "severity": 0.5}
        return {**facts, "errors": errors, "coverage": coverage}

    found = families.summaries(pd.DataFrame([record(0, 0.1, 0.4, 0.1), record(1, 0.3, 0.4, 0.5)]))
    assert found["ratio"].unique() == pytest.approx([0.2 / 0.3])
    assert found["vs_choice"].unique() == pytest.approx([0.2 / 0.4])
    assert np.isnan(found["supervised"]).all()
