"""What became of a machine's models, on its page: the newest first, and drift where everybody sees it."""

from dataclasses import replace

import pandas as pd
import pytest

from perf_assets.core.tables.verdicts import CHALLENGER, PROMOTED, VERDICTS
from perf_assets.reports.machine.findings import drift_finding, verdict_findings, verdicts_of
from perf_assets.reports.machine.page import machine_page
from tests.reports import machine_tables as tables


def page_of(rows: pd.DataFrame) -> str:
    return machine_page(replace(tables.empty(), verdicts=rows))


@pytest.fixture(scope="module")
def page() -> str:
    return page_of(tables.verdicts())


def test_the_made_up_rows_are_rows_of_the_table() -> None:
    assert set(tables.verdicts().columns) == {column.name for column in VERDICTS.columns}


def test_verdicts_are_listed_newest_first(page: str) -> None:
    section = page.split('<section id="verdicts">')[1].split("</section>")[0]
    places = [section.index(f"<b>{version}</b>") for version in (4, 3, 2)]
    assert places == sorted(places)
    assert "2026-11-15 09:00 UTC" in section
    assert '<td>0.150</td><td>0.131<span class="spread under">version 3</span></td><td>4.400</td>' in section
    assert "11 of 20" in section
    assert "at most 5 by chance" in section
    assert "no new runs" in section
    assert "<td>not known</td><td>not known</td>" in section  # the first had too few runs to be judged
    assert "its error is 1.31 times that of version 3" in section
    assert section.count('class="tag good">promoted<') == 2
    assert section.count('class="tag">challenger<') == 1


def test_drift_is_said_before_everything_else(page: str) -> None:
    assert page.index('<section id="drift" class="warning">') < page.index('<section id="use">')
    assert "Drift: new runs contradicted the champion, version 3." in page
    assert "11 of 20 new runs were outside its 90% interval, where chance explains at most 5." in page
    assert "version 4 stays challenger, because: its error is 1.31 times that of version 3." in page
    assert '<a class="skip" href="#drift">' in page


def test_without_drift_there_is_no_warning() -> None:
    page = page_of(tables.verdicts(has_drifted=False))
    assert "Drift" not in page
    assert 'id="drift"' not in page
    assert "Version 4, fitted to 60 shots, stays challenger of version 3: its error is" in page
    assert "3 models were judged so far, 2 of them became champion." in page


def test_a_promotion_after_drift_is_said() -> None:
    found = drift_finding(verdicts_of(tables.verdicts(PROMOTED)))
    assert found is not None
    assert found.detail.endswith("It was adapted again: version 4 was promoted and is the champion now.")


def test_drift_that_was_long_ago_is_no_warning() -> None:
    rows = tables.verdicts(CHALLENGER, has_drifted=False)
    rows.loc[1, "has_drifted"] = True
    assert drift_finding(verdicts_of(rows)) is None
    assert verdict_findings([]) == []


def test_tables_may_say_nothing_in_several_ways() -> None:
    rows = tables.verdicts().convert_dtypes()
    assert str(rows["champion_version"].dtype) == "Int64"
    assert "version 3" in page_of(rows)
    assert "reason of verdicts" in page_of(pd.DataFrame())


def test_text_of_the_data_is_escaped() -> None:
    attacked = tables.verdicts().assign(reason="<script>alert(1)</script>")
    assert page_of(attacked).count("<script") == 1, "the page's own"
