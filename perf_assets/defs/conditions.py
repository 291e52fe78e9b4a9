"""When assets are made again by themselves, beyond the run that a landing starts."""

import dagster as dg

_UPDATED = dg.AutomationCondition.any_deps_updated().since_last_handled()
_IDLE = ~dg.AutomationCondition.in_progress() & ~dg.AutomationCondition.any_deps_in_progress()

FOLLOWS = (_UPDATED & _IDLE).with_label("follows what it is made of")
"""A machine that is missing upstream does not hold up the others: what is not there is said on the pages."""

FOLLOWS_CHECKED = (_UPDATED & _IDLE & dg.AutomationCondition.all_deps_blocking_checks_passed()).with_label(
    "follows what it is made of, once the blocking checks of that have passed"
)

FOLLOWS_LANDING = (
    dg.AutomationCondition.any_deps_updated()
    .ignore(dg.AssetSelection.assets("model_amm__encoder"))
    .since_last_handled()
    & _IDLE
    & dg.AutomationCondition.all_deps_blocking_checks_passed()
).with_label("follows what landed; a new encoder describes all machines itself")
