"""The page of the fleet: every machine with its state, what to do first, nothing of the data as HTML."""

import base64
import io
import re
from dataclasses import replace
from datetime import timedelta

import pytest

from perf_assets.core.addresses import MODELS_FIRST
from perf_assets.reports.fleet.facts import VectorState
from perf_assets.reports.fleet.page import (
    Tone,
    age,
    champion_errors,
    fleet_findings,
    fleet_page,
    next_actions,
    state_words,
)
from perf_assets.reports.style import BLUE
from tests.reports.fleets import MLFLOW, NOW, champion, every_state, fleet, well

PNG = b"\x89PNG\r\n\x1a\n"
ATTACK = '"><script>alert(1)</script>&'


@pytest.fixture(scope="module")
def page() -> str:
    return fleet_page(every_state())


def row_of(page: str, machine: str) -> str:
    """Of the table of machines."""
    rows = re.findall(r"<tr><th scope=\"row\">.+?</tr>", page.split('<section id="machines">')[1], flags=re.DOTALL)
    return next(row for row in rows if f">{machine}<" in row)


def said(*machines: object, **changes: object) -> str:
    facts = replace(fleet(*machines), **changes)  # type: ignore[arg-type]
    return "\n".join(f"{found.headline} {found.detail}" for found in fleet_findings(facts))


def test_times_that_are_relative_are_said_to_be() -> None:
    relative = [replace(well(name), relative_times="relative to quartz") for name in ("dane", "ruby")]
    text = said(well(), *relative)
    assert "Times of runs on 2 machines are relative, not in seconds. dane, ruby: relative to quartz." in text
    assert "relative" not in said(well())


def test_every_machine_has_its_row(page: str) -> None:
    row = row_of(page, "quartz")
    assert '<a href="machine-quartz.html">quartz</a>' in row
    assert "5 hours ago" in row
    assert "<td>40</td><td>1,240</td>" in row
    assert (
        f'<a href="{MLFLOW}/#/models/perf-target-quartz/versions/3?workflowType=machine_learning">version 3</a>' in row
    )
    assert "<b>8.0%</b>" in row
    assert "<td>40.0%</td>" in row
    assert "<td>0.28</td>" in row
    assert ">up to date<" in row
    assert "simulated" not in row
    assert ">simulated<" in row_of(page, "epyc-7r13")
    assert "not known" in row_of(page, "epyc-7r13")
    assert "<a " not in row_of(page, "h100")


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({}, ["up to date"]),
        ({"has_drifted": True, "challenger_version": 4}, ["drifted", "challenger 4 waits"]),
        ({"quarantined": {"a": "", "b": ""}, "waiting_count": 3}, ["2 quarantined", "3 waiting"]),
        ({"champion": None, "is_fresh": False}, ["no model yet", "stale"]),
        ({"last_landed_at": None, "is_fresh": False}, ["nothing measured"]),
        ({"champion": champion(1, 0.5, 0.4)}, ["beaten by baseline"]),
        ({"champion": champion(1, None, None)}, ["up to date"]),
    ],
)
def test_states_in_words(changes: dict[str, object], words: list[str]) -> None:
    found = state_words(replace(well(), **changes))  # type: ignore[arg-type]
    assert [word for word, _ in found] == words
    assert (Tone.GOOD in [tone for _, tone in found]) == (words == ["up to date"])


def test_what_drifted_comes_first_and_what_is_well_last(page: str) -> None:
    actions = [(action.machine.machine, action.text) for action in next_actions(every_state().machines)]
    assert [machine for machine, _ in actions] == [
        *("dane", "epyc-7r13", "corona", "h100"),  # what is first for each
        *("dane", "epyc-7r13"),  # what is second
        "quartz",  # well, but could be better
    ]
    texts = re.findall(r"<li><b>(?:<a [^>]+>)?([^<]+)(?:</a>)?</b>: ([^<]+)</li>", page)
    assert texts == actions


def test_many_actions_are_folded_away() -> None:
    busy = [replace(well(f"m{number:02}"), actions=("measure",)) for number in range(13)]
    page = fleet_page(fleet(*busy))
    assert "<summary>3 more</summary>" in page
    assert '<ol class="actions" start="11">' in page
    assert page.count(": measure</li>") == 13


def test_the_summary_says_what_is_not_well() -> None:
    text = said(*every_state().machines, strays=("x",))
    for part in (
        "5 machines (1 simulated), 4 with a champion.",
        "New runs contradicted the champion of dane.",
        "2 bundles of epyc-7r13 are in quarantine.",
        "1 entry of no machine",
        "No model yet of h100.",
        "2 bundles of epyc-7r13 landed, and not ingested yet.",
        "Nothing was measured on corona within the last 30 days.",
        "A newer model waits as challenger on dane. dane version 4: its error is 1.31 times",
        "on held-out runs: 2 of 3 champions. Not so: dane 31.0% against 28.0%; 1 champion could not be judged",
    ):
        assert part in text
    assert "All machines are up to date" not in text


def test_the_summary_says_when_all_is_well() -> None:
    text = said(well(), well("ruby"))
    assert "All machines are up to date." in text
    assert "simulated" not in text
    assert "contradicted" not in text
    assert "All machines are up to date" not in said(well(), strays=("x",))
    assert "(all simulated)" in said(replace(well(), is_simulated=True))


def test_a_mark_that_all_machines_have_is_shown_once() -> None:
    page = fleet_page(fleet(replace(well(), is_simulated=True)))
    assert "all machines are simulated" in page
    assert ">simulated<" not in page


def test_long_lists_of_names_end() -> None:
    text = said(*(replace(well(f"m{number}"), champion=None) for number in range(9)))
    assert "No model yet of m0, m1, m2, m3, m4, m5 and 3 more." in text


def test_a_fleet_without_machines_has_a_page() -> None:
    page = fleet_page(replace(fleet(), source_versions={}, trained_at=None))
    assert "No machine is known yet." in page
    assert "Not trained yet" in page
    assert "<img" not in page


def test_ages_in_words() -> None:
    ages = [timedelta(seconds=5), timedelta(minutes=1), timedelta(hours=47), timedelta(days=90), -timedelta(hours=1)]
    assert [age(NOW - passed, NOW) for passed in ages] == [
        *("just now", "1 minute ago", "1 day ago", "90 days ago", "dated after this page"),
    ]
    assert age((NOW - timedelta(hours=2)).replace(tzinfo=None), NOW) == "2 hours ago"


def test_quarantine_strays_and_source_models_are_listed(page: str) -> None:
    assert '<td class="text">sha256 of profile.cali is not that of the manifest: copy the bundle again</td>' in page
    assert "laghos-&lt;b&gt;7" in page
    assert "<li>landing/readme.txt: no folder of a machine</li>" in page
    assert f'<a href="{MLFLOW}/#/models/perf-source/versions/5?{MODELS_FIRST}">version 5</a>' in page
    assert "Trained 2026-11-10 10:00 UTC (6 days ago)" in page
    assert "Made 2026-11-16 10:00 UTC." in page


def test_text_of_the_data_is_escaped() -> None:
    attacked = replace(
        well(ATTACK),
        quarantined={ATTACK: ATTACK},
        actions=(ATTACK,),
        challenger_version=2,
        challenger_reason=ATTACK,
        page=ATTACK,
    )
    page = fleet_page(replace(fleet(attacked, strays=(ATTACK,)), source_versions={ATTACK: 1}, mlflow_url=ATTACK))
    assert page.count("<script") == 1, "the page's own"


def test_the_page_needs_nothing_from_outside(page: str) -> None:
    assert not re.search(r"<script [^>]*src|<link|@import|url\(|srcset", page)
    sources = re.findall(r'src="([^"]+)"', page)
    assert len(sources) == 1
    assert base64.b64decode(sources[0].removeprefix("data:image/png;base64,"), validate=True).startswith(PNG)


def test_the_picture_has_words_in_its_place(page: str) -> None:
    assert 'alt="Error of the champion beside the best target-only baseline: smaller on 2 of 3 machines. corona' in page
    assert "dane 31.0% against 28.0%" in page.split('alt="')[1].split('"')[0]


def test_a_row_of_the_picture_for_each_champion_that_was_judged() -> None:
    machines = every_state().machines
    axes = champion_errors(machines, io.BytesIO()).axes[0]
    assert [label.get_text() for label in axes.get_yticklabels()] == ["corona", "dane", "quartz"]
    ours = [line.get_xdata()[0] for line in axes.lines if line.get_color() == BLUE and len(line.get_xdata())]
    assert ours == pytest.approx([4.0, 31.0, 8.0])
    assert {"3,500%", "<0.01\N{MULTIPLICATION SIGN}", "1.11\N{MULTIPLICATION SIGN}"} < {
        text.get_text() for text in axes.texts
    }
    alone = champion_errors([replace(well(), champion=champion(1, 0.1, None))], io.BytesIO()).axes[0]
    assert not alone.texts


def test_the_vector_model_is_current_or_says_why_it_is_stale() -> None:
    current = VectorState(
        version=7,
        challenger_version=None,
        trained_at=NOW - timedelta(days=3),
        machines=("dane", "quartz"),
        absent_machines=(),
        limit_days=14,
    )
    facts = replace(fleet(well("dane")), vectors=current)
    shown = section(fleet_page(facts))
    assert "version 7" in shown
    assert ">current<" in shown
    assert "for dane, quartz." in shown
    stale = replace(current, trained_at=NOW - timedelta(days=20), absent_machines=("h100",), challenger_version=8)
    shown = section(fleet_page(replace(facts, vectors=stale)))
    assert ">stale<" in shown
    assert "It was trained 20 days ago (limit 14); it does not speak of h100." in shown.replace("\n", " ")
    assert "Version 8 waits as @challenger" in shown
    assert "Not trained yet: run perf-assets vectors" in section(fleet_page(fleet(well("dane"))))


def section(page: str) -> str:
    found = re.search(r'<section id="vectors">.*?</section>', page, re.DOTALL)
    assert found is not None
    return found[0]
