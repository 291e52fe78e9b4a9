"""The state of a fleet in words: of each machine, of all of them, and what to do next."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum

from perf_assets.reports.fleet.facts import Champion, FleetFacts, MachineState
from perf_assets.reports.scores import error
from perf_assets.reports.site import in_utc
from perf_assets.reports.xamm.findings import Finding

_NAMED = 6
"""Machines that a sentence names; the table has them all."""


class Tone(StrEnum):
    """How a word about a machine is meant, and its colour on the page."""

    GOOD = "good"
    WARN = "warn"
    BAD = "bad"


@dataclass(frozen=True)
class Action:
    """What to do next, and for which machine."""

    machine: MachineState
    text: str


def state_words(state: MachineState) -> list[tuple[str, Tone]]:
    """What is to be known of a machine, worst first; `up to date` where there is nothing else to say."""
    words = [
        (state.has_drifted, "drifted", Tone.BAD),
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
    found = [_size(facts), *_drifted(facts), *_quarantined(facts), *_strays(facts), *_without_model(facts)]
    found += [*_waiting(facts), *_stale(facts), *_challengers(facts), *_errors(facts)]
    if all(is_current(state) for state in facts.machines) and not facts.strays:
        found.insert(
            1,
            Finding("All machines are up to date.", "No drift, nothing stale, quarantined or waiting, no challenger."),
        )
    return found


def age(moment: datetime, now: datetime) -> str:
    """How long ago, in the largest unit that fits."""
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


def _drifted(facts: FleetFacts) -> list[Finding]:
    found = [state for state in facts.machines if state.has_drifted]
    if not found:
        return []
    return [
        Finding(
            f"New runs contradicted the champion of {_names(found)}.",
            "More of them were outside of its 90% interval than chance explains, and it is still the champion: "
            "do not rely on its predictions before somebody has looked.",
        )
    ]


def _quarantined(facts: FleetFacts) -> list[Finding]:
    found = [state for state in facts.machines if state.refused_count]
    count = sum(state.refused_count for state in found)
    damaged = sum(state.damaged_count for state in facts.machines)
    parts = []
    if found:
        is_one = count == 1
        parts.append(
            Finding(
                f"{_counted(count, 'bundle')} of {_names(found)} {'is' if is_one else 'are'} in quarantine.",
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
    found = [state for state in facts.machines if state.lacks_model]
    return [Finding(f"No model yet of {_names(found)}.", "")] if found else []


def _waiting(facts: FleetFacts) -> list[Finding]:
    found = [state for state in facts.machines if state.waiting_count]
    count = _counted(sum(state.waiting_count for state in found), "bundle")
    return [Finding(f"{count} of {_names(found)} landed, and not ingested yet.", "")] if found else []


def _stale(facts: FleetFacts) -> list[Finding]:
    found = [state for state in facts.machines if not state.is_fresh]
    if not found:
        return []
    return [
        Finding(
            f"Nothing was measured on {_names(found)} within the last {_counted(facts.fresh_days, 'day')}.",
            "Systems change: new runs would show whether the champions still hold.",
        )
    ]


def _challengers(facts: FleetFacts) -> list[Finding]:
    found = [state for state in facts.machines if state.challenger_version is not None]
    if not found:
        return []
    reasons = [f"{state.machine} version {state.challenger_version}: {state.challenger_reason}" for state in found]
    waits = "A newer model waits" if len(found) == 1 else "Newer models wait"
    return [
        Finding(
            f"{waits} as challenger on {_names(found)}.", _listed([text.rstrip(". ") for text in reasons], "; ") + "."
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


def _names(found: list[MachineState]) -> str:
    return _listed([state.machine for state in found], ", ")


def _listed(texts: list[str], separator: str) -> str:
    more = len(texts) - _NAMED
    return separator.join(texts[:_NAMED]) + (f" and {more} more" if more > 0 else "")


def _counted(count: int, one: str, many: str = "") -> str:
    return f"{count:,} {one if count == 1 else many or one + 's'}"


def _sentence(parts: list[str]) -> str:
    text = "; ".join(parts)
    return f"{text[:1].upper()}{text[1:]}." if text else ""
