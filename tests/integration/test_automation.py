"""New machine data lands, and without another command its model is the champion in MLflow."""

import pytest

from tests.integration.joining import Joined

pytestmark = [pytest.mark.integration, pytest.mark.timeout(1800), pytest.mark.xdist_group("live")]


def test_a_new_machine_gets_its_champion_by_itself(joined: Joined) -> None:
    assert joined.champions == (1, 2)
    assert [len(runs) for runs in joined.runs] == [1, 1, 2]


def test_the_same_content_starts_nothing(joined: Joined) -> None:
    assert joined.runs[1] == joined.runs[0]


def test_runs_of_the_machine_make_its_model_better(joined: Joined) -> None:
    before, after = joined.errors
    assert after < before, joined.errors


def test_source_models_stay_as_they_are(joined: Joined) -> None:
    before, after = joined.sources
    assert before == after


def test_the_model_says_where_it_comes_from(joined: Joined) -> None:
    assert joined.tags["dagster_run_id"] == joined.runs[2][0]
    for tag in ("machine", "source_version", "amm_version", "manifests_digest", "severity", "code_version"):
        assert tag in joined.tags, tag


def test_the_page_of_the_machine_follows(joined: Joined) -> None:
    assert "version 2" in joined.page
