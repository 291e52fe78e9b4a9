"""When assets are made again by themselves, beyond the run that a landing starts."""

import dagster as dg

_UPDATED = dg.AutomationCondition.any_deps_updated()
_IDLE = ~dg.AutomationCondition.in_progress() & ~dg.AutomationCondition.any_deps_in_progress()
# A training whose models are no good moves no alias: machines go on with the source models before.
_CHECKED = dg.AutomationCondition.all_deps_blocking_checks_passed().ignore(
    dg.AssetSelection.assets("model_source__with_amm")
)

FOLLOWS = (_UPDATED.since_last_handled() & _IDLE).with_label("follows what it is made of")
"""A machine that is missing upstream does not hold up the others: what is not there is said on the pages."""

FOLLOWS_MODEL = (
    _UPDATED.ignore(dg.AssetSelection.assets("core_runs__counters_wide")).since_last_handled() & _IDLE
).with_label("follows the model that it judges")
"""The rows that models are compared on do not ask for a verdict: a model made of them does."""

FOLLOWS_ONCE_MADE = (
    _UPDATED.ignore(dg.AssetSelection.assets("model_target__adapted")).since_last_handled()
    & _IDLE
    & ~dg.AutomationCondition.missing()
).with_label("follows champions and runs, once somebody has asked for it")
"""A model that was registered is no champion yet: the verdict on it is what counts."""

FOLLOWS_CHECKED = (_UPDATED.since_last_handled() & _IDLE & _CHECKED).with_label(
    "follows what it is made of, once the blocking checks of that have passed"
)
FOLLOWS_LANDING = (
    _UPDATED.ignore(dg.AssetSelection.assets("model_amm__encoder")).since_last_handled() & _IDLE & _CHECKED
).with_label("follows what landed; a new encoder describes all machines itself")
