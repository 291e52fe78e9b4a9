"""Page of the fleet: status of every machine, what to do next, and its figures; HTML without outside parts."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from functools import partial
from typing import Any

import pandas as pd
from matplotlib.figure import Figure

from perf_assets.core.addresses import Addresses
from perf_assets.reports.fleet.facts import Champion, FleetFacts, MachineState, Story
from perf_assets.reports.fleet.story import story_charts, story_finding
from perf_assets.reports.machine.numbers import records, times
from perf_assets.reports.scores import error
from perf_assets.reports.site import Chart, chart, in_utc, template
from perf_assets.reports.style import BLUE, MOST_MAPE, ORANGE, Target, dots, errors_axis, written
from perf_assets.reports.xamm.findings import Finding

_NAMED = 6
"""Machines that a sentence names; the table has them all."""


class Tone(StrEnum):
    """Meaning of a word about a machine, and its colour on the page."""

    GOOD = "good"
    WARN = "warn"
    BAD = "bad"


@dataclass(frozen=True)
class Action:
    """Next step, and its machine."""

    machine: MachineState
    text: str


def state_words(state: MachineState) -> list[tuple[str, Tone]]:
    """State of a machine in words, worst first; `up to date` where there is nothing else to say."""
    words = [
        (state.has_drifted, "drifted", Tone.BAD),
        (bool(state.changed), "performs otherwise", Tone.BAD),
        (state.refused_count > 0, f"{state.refused_count} quarantined", Tone.BAD),
        (state.lacks_model, "no model yet", Tone.WARN),
        (_is_beaten(state.champion), "beaten by baseline", Tone.WARN),
        (state.waiting_count > 0, f"{state.waiting_count} waiting", Tone.WARN),
        (state.last_landed_at is None, "nothing measured", Tone.WARN),
        (state.last_landed_at is not None and not state.is_fresh, "stale", Tone.WARN),
        (state.challenger_version is not None, f"challenger {state.challenger_version} waits", Tone.WARN),
    ]
    current = "up to date, teaches the source models" if state.champion is None else "up to date"
    return [(word, tone) for holds, word, tone in words if holds] or [(current, Tone.GOOD)]


def is_current(state: MachineState) -> bool:
    """Whether nothing of a machine needs a person."""
    return all(tone == Tone.GOOD for _, tone in state_words(state))


def next_actions(machines: Iterable[MachineState]) -> list[Action]:
    """Actions of all machines, most urgent first: the first of each machine before the second, bad states before.

    What a machine that is up to date could do comes after everything that the others have to do.
    """
    ranked = []
    for state in machines:
        tones = [tone for _, tone in state_words(state)]
        severity = (-tones.count(Tone.BAD), -tones.count(Tone.WARN))
        ranked += [
            ((is_current(state), rank, not state.has_drifted, *severity, state.machine), Action(state, text))
            for rank, text in enumerate(state.actions)
        ]
    return [action for _, action in sorted(ranked, key=lambda pair: pair[0])]


def fleet_findings(facts: FleetFacts) -> list[Finding]:
    """Status of the fleet: what is not well, worst first."""
    if not facts.machines:
        nothing = Finding("No machine is known yet.", "Land a bundle (perf-assets land), or try perf-assets demo.")
        return [nothing, *_strays(facts)]
    findings = [
        _size(facts),
        *_relative(facts),
        *_changed(facts),
        *_drifted(facts),
        *_quarantined(facts),
        *_strays(facts),
    ]
    findings += _without_model(facts)
    findings += [*_waiting(facts), *_stale(facts), *_challengers(facts), *_errors(facts)]
    if all(is_current(state) for state in facts.machines) and not facts.strays:
        findings.insert(
            1,
            Finding(
                "All machines are up to date.",
                "No drift, no change of speed, nothing stale, quarantined or waiting, no challenger.",
            ),
        )
    return findings


def age(moment: datetime, now: datetime) -> str:
    """Age of a moment, in the largest unit that fits."""
    passed = in_utc(now) - in_utc(moment)
    if passed < timedelta(0):
        return "dated after this page"
    for length, unit in ((timedelta(days=1), "day"), (timedelta(hours=1), "hour"), (timedelta(minutes=1), "minute")):
        if passed >= length:
            return f"{_counted(passed // length, unit)} ago"
    return "just now"


def _size(facts: FleetFacts) -> Finding:
    machines = facts.machines
    simulated = sum(state.is_simulated for state in machines)
    origin = "all simulated" if simulated == len(machines) else f"{simulated} simulated"
    champions = sum(state.champion is not None for state in machines)
    runs, kernels, bundles = (
        sum(getattr(state, name) for state in machines) for name in ("runs_count", "kernels_count", "bundles_count")
    )
    return Finding(
        f"{_counted(len(machines), 'machine')}{f' ({origin})' if simulated else ''}, {champions} with a champion.",
        f"{_counted(runs, 'run')} of applications and {_counted(kernels, 'RAJAPerf timing')} "
        f"from {_counted(bundles, 'bundle')}.",
    )


def _relative(facts: FleetFacts) -> list[Finding]:
    relative = [state for state in facts.machines if state.relative_times]
    if not relative:
        return []
    by_text: dict[str, list[str]] = {}
    for state in relative:
        by_text.setdefault(state.relative_times, []).append(state.machine)
    texts = [f"{', '.join(machines)}: {text}" for text, machines in by_text.items()]
    return [
        Finding(
            f"Times of runs on {_counted(len(relative), 'machine')} are relative, not in seconds.",
            ". ".join(texts) + ". Predictions of these runs are relative in the same way.",
        )
    ]


def _changed(facts: FleetFacts) -> list[Finding]:
    changed = [state for state in facts.machines if state.changed]
    if not changed:
        return []
    texts = [f"{state.machine}: {state.changed}" for state in changed]
    return [Finding(f"RAJAPerf does not run as before on {_names(changed)}.", _listed(texts, ". ") + ".")]


def _drifted(facts: FleetFacts) -> list[Finding]:
    drifted = [state for state in facts.machines if state.has_drifted]
    if not drifted:
        return []
    return [
        Finding(
            f"New runs contradicted the champion of {_names(drifted)}.",
            "More of them were outside of its 90% interval than chance explains, and it is still the champion: "
            "do not rely on its predictions before somebody has looked.",
        )
    ]


def _quarantined(facts: FleetFacts) -> list[Finding]:
    refused = [state for state in facts.machines if state.refused_count]
    count = sum(state.refused_count for state in refused)
    damaged = sum(state.damaged_count for state in facts.machines)
    parts = []
    if refused:
        is_one = count == 1
        parts.append(
            Finding(
                f"{_counted(count, 'bundle')} of {_names(refused)} {'is' if is_one else 'are'} in quarantine.",
                f"{'It is' if is_one else 'They are'} in no table and no model; the reasons are below.",
            )
        )
    if damaged:
        parts.append(
            Finding(
                f"The demo damaged {_counted(damaged, 'bundle')} on purpose, to show quarantine.",
                "Nothing is to be done about them; the reasons for which they were refused are below.",
            )
        )
    return parts


def _strays(facts: FleetFacts) -> list[Finding]:
    if not facts.strays:
        return []
    count = _counted(len(facts.strays), "entry", "entries")
    return [Finding(f"The landing zone has {count} of no machine.", "Nothing was read from there; listed below.")]


def _without_model(facts: FleetFacts) -> list[Finding]:
    lacking = [state for state in facts.machines if state.lacks_model]
    return [Finding(f"No model yet of {_names(lacking)}.", "")] if lacking else []


def _waiting(facts: FleetFacts) -> list[Finding]:
    waiting = [state for state in facts.machines if state.waiting_count]
    count = _counted(sum(state.waiting_count for state in waiting), "bundle")
    return [Finding(f"{count} of {_names(waiting)} landed, and not ingested yet.", "")] if waiting else []


def _stale(facts: FleetFacts) -> list[Finding]:
    stale = [state for state in facts.machines if not state.is_fresh]
    if not stale:
        return []
    return [
        Finding(
            f"Nothing was measured on {_names(stale)} within the last {_counted(facts.fresh_days, 'day')}.",
            "Systems change: new runs would show whether the champions still hold.",
        )
    ]


def _challengers(facts: FleetFacts) -> list[Finding]:
    challenged = [state for state in facts.machines if state.challenger_version is not None]
    if not challenged:
        return []
    reasons = [f"{state.machine} version {state.challenger_version}: {state.challenger_reason}" for state in challenged]
    waits = "A newer model waits" if len(challenged) == 1 else "Newer models wait"
    return [
        Finding(
            f"{waits} as challenger on {_names(challenged)}.",
            _listed([text.rstrip(". ") for text in reasons], "; ") + ".",
        )
    ]


def _errors(facts: FleetFacts) -> list[Finding]:
    """Champions beside the baselines that use nothing but the same runs."""
    judged = [state for state in facts.machines if state.champion is not None and _is_judged(state.champion)]
    with_champion = sum(state.champion is not None for state in facts.machines)
    if not judged:
        return []
    beaten = [state for state in judged if _is_beaten(state.champion)]
    parts = [
        f"{state.machine} {error(state.champion.mape or 0.0)} against {error(state.champion.target_only_mape or 0.0)}"
        for state in beaten
        if state.champion
    ]
    unjudged = _counted(with_champion - len(judged), "champion")
    details = [f"not so: {_listed(parts, ', ')}"] if parts else []
    details += [f"{unjudged} could not be judged for want of runs"] if with_champion > len(judged) else []
    return [
        Finding(
            "Not worse than the best model of the same runs alone (target-only), on held-out runs: "
            f"{len(judged) - len(beaten)} of {_counted(len(judged), 'champion')}.",
            _sentence(details),
        )
    ]


def _is_judged(champion: Champion) -> bool:
    return champion.mape is not None and champion.target_only_mape is not None


def _is_beaten(champion: Champion | None) -> bool:
    """Whether the runs alone predict better; equal is the model of the runs alone itself, where that was chosen."""
    if champion is None or champion.mape is None or champion.target_only_mape is None:
        return False
    return champion.mape > champion.target_only_mape


def _names(states: list[MachineState]) -> str:
    return _listed([state.machine for state in states], ", ")


def _listed(texts: list[str], separator: str) -> str:
    more = len(texts) - _NAMED
    return separator.join(texts[:_NAMED]) + (f" and {more} more" if more > 0 else "")


def _counted(count: int, one: str, many: str = "") -> str:
    return f"{count:,} {one if count == 1 else many or one + 's'}"


def _sentence(parts: list[str]) -> str:
    text = "; ".join(parts)
    return f"{text[:1].upper()}{text[1:]}." if text else ""


def judged(machines: Sequence[MachineState]) -> pd.DataFrame:
    """Machines whose champion's error is known: it, and that of the best target-only baseline."""
    rows = [
        (state.machine, state.champion.version, state.champion.mape, state.champion.target_only_mape)
        for state in machines
        if state.champion is not None and state.champion.mape is not None
    ]
    errors = pd.DataFrame(
        rows, columns=["machine", "champion_version", "champion_mape_ratio", "target_only_mape_ratio"]
    )
    return errors.astype({"target_only_mape_ratio": float})


def champion_errors(machines: Sequence[MachineState], target: Target) -> Figure:
    """A row for each machine whose champion's error is known: it, and that of the best target-only baseline."""
    errors = judged(machines)
    ours, alone = (errors[f"{name}_mape_ratio"].tolist() for name in ("champion", "target_only"))
    figure = Figure(figsize=(8.6, 0.36 * len(errors) + 1.4), layout="constrained")
    axes = figure.subplots()
    rows = range(len(errors))
    for row, pair in enumerate(zip(ours, alone, strict=True)):
        axes.plot([100 * min(ratio, MOST_MAPE) for ratio in pair], [row, row], color="#9aa5b1", linewidth=2, zorder=1)
    known = [row for row in rows if not math.isnan(alone[row])]
    dots(axes, known, [alone[row] for row in known], color="white", markeredgecolor=ORANGE, markeredgewidth=2)
    dots(axes, rows, ours, color=BLUE, markersize=9)
    errors_axis(axes, [*ours, *(alone[row] for row in known)], errors["machine"].tolist())
    for row in known:
        ratio = times(ours[row] / alone[row]) if alone[row] > 0 else times(math.nan)
        axes.annotate(
            ratio,
            (1, row),
            (6, 0),
            xycoords=axes.get_yaxis_transform(),
            textcoords="offset points",
            va="center",
            size=9,
        )
    axes.plot([], [], "o", color=BLUE, markersize=9, label="champion")
    axes.plot(
        [],
        [],
        "o",
        color="white",
        markeredgecolor=ORANGE,
        markeredgewidth=2,
        markersize=8,
        label="best target-only baseline",
    )
    figure.legend(loc="outside upper center", ncols=2, frameon=False, fontsize=9)
    figure.supxlabel("MAPE on held-out runs; at the right: champion / baseline, below 1 the champion is better", size=8)
    return written(figure, target)


_TEMPLATE = "fleet.html.jinja"
_ACTIONS = 10
"""Actions that are shown at once; more are folded away."""
_SAID = 8
"""Machines that the text in place of the picture can name; of more it says how many."""


def fleet_page(facts: FleetFacts) -> str:
    """The home page of the platform."""
    actions = next_actions(facts.machines)
    return template(_TEMPLATE).render(
        facts=facts,
        findings=fleet_findings(facts),
        first_actions=actions[:_ACTIONS],
        more_actions=actions[_ACTIONS:],
        words={state.machine: state_words(state) for state in facts.machines},
        simulated_count=sum(state.is_simulated for state in facts.machines),
        quarantined=[
            (state, bundle, reason) for state in facts.machines for bundle, reason in state.quarantined.items()
        ],
        errors=_errors_chart(facts.machines),
        story=_story(facts.story),
        pages_of={state.machine: state.page for state in facts.machines},
        stale_vectors=facts.vectors.problems(facts.made_at) if facts.vectors else [],
        age=lambda moment: age(moment, facts.made_at),
        version_address=partial(_version_address, facts.mlflow_url),
    )


def _story(story: Story | None) -> dict[str, Any] | None:
    """Worth of a few runs: a sentence, a table, figures."""
    if story is None or story.curve.empty:
        return None
    return {
        "finding": story_finding(story),
        "rows": records(story.last),
        "charts": story_charts(story),
        "test_runs": story.test_runs,
        "are_kept_aside": story.are_kept_aside,
        "is_simulated": story.is_simulated,
    }


def _version_address(mlflow_url: str, model: str, version: int) -> str:
    return Addresses(mlflow=mlflow_url.rstrip("/")).version(model, version)


def _errors_chart(machines: tuple[MachineState, ...]) -> Chart | None:
    numbers = judged(machines)
    if numbers.empty:
        return None
    return chart(
        "champion-errors",
        "Error of each champion, and of the best model of its runs alone.",
        _in_words(numbers),
        partial(champion_errors, machines),
        numbers,
    )


def _in_words(numbers: pd.DataFrame) -> str:
    """Text in place of the picture."""
    columns = ["machine", "champion_mape_ratio", "target_only_mape_ratio"]
    judged_machines = list(numbers[columns].dropna().itertuples(index=False, name=None))
    smaller = sum(mape < alone for _, mape, alone in judged_machines)
    where = f"smaller on {smaller} of {len(judged_machines)} machines"
    start = f"Error of the champion beside the best target-only baseline: {where}"
    if not judged_machines or len(judged_machines) > _SAID:
        return f"{start}. The figures are in the table above."
    return (
        f"{start}. "
        + "; ".join(f"{name} {error(mape)} against {error(alone)}" for name, mape, alone in judged_machines)
        + "."
    )
