"""Conditions under which assets are made again automatically, beyond the run that a landing starts."""

import dagster as dg

_UPDATED = dg.AutomationCondition.any_deps_updated()
_IDLE = ~dg.AutomationCondition.in_progress() & ~dg.AutomationCondition.any_deps_in_progress()
# A tick that sees that a run has made an asset may have looked before that for what is new, and would ask for it again.
_JUST_MADE = (~dg.AutomationCondition.in_progress()).newly_true()
# The run that a landing starts makes a machine's page last. Other assets are asked for once that run is over, and once
# for all of it: in the middle of the run a parent may look newer than a child that is about to be made.
_AFTER_LANDING = (
    _IDLE
    & ~_JUST_MADE
    & ~dg.AutomationCondition.asset_matches("out_report__machine", dg.AutomationCondition.in_progress())
)
# A training whose models are no good moves no alias: machines go on with the source models before.
_CHECKED = dg.AutomationCondition.all_deps_blocking_checks_passed().ignore(
    dg.AssetSelection.assets("model_source__with_amm")
)

WHEN_INPUT_CHANGES = (_UPDATED.since_last_handled() & _AFTER_LANDING).with_label("made again when an input changes")
"""A machine that is missing upstream does not hold up the others: pages say what is missing."""

AFTER_ALL_ELSE = (
    _UPDATED.since_last_handled()
    & _AFTER_LANDING
    & ~dg.AutomationCondition.any_deps_match(dg.AutomationCondition.will_be_requested())
).with_label("made again when an input changes, after all that it shows")
"""In one run with a step that makes nothing, as where no machine joins the vector model, it would be left out."""

WHEN_DATASET_HAS_MODEL = (
    _UPDATED.ignore(dg.AssetSelection.assets("core_datasets__rows")).since_last_handled() & _IDLE
).with_label("made again when the dataset has a new model")
"""The rows that models are compared on do not ask for a verdict: a model made of them does."""

WHEN_MACHINE_HAS_MODEL = (
    _UPDATED.ignore(dg.AssetSelection.assets("core_runs__counters_wide")).since_last_handled() & _AFTER_LANDING
).with_label("made again when the machine has a new model")

WHEN_CHAMPION_CHANGES = (
    _UPDATED.ignore(dg.AssetSelection.assets("model_target__adapted")).since_last_handled()
    & _AFTER_LANDING
    & ~dg.AutomationCondition.missing()
).with_label("made again when champions or runs change, once somebody has asked for it")
"""A model that was registered is not a champion yet: the verdict on it is what counts."""

WHEN_CHECKED_INPUT_CHANGES = (_UPDATED.since_last_handled() & _AFTER_LANDING & _CHECKED).with_label(
    "made again when an input changes and its blocking checks have passed"
)
WHEN_DATA_LANDS = (
    _UPDATED.ignore(dg.AssetSelection.assets("model_amm__encoder")).since_last_handled() & _AFTER_LANDING & _CHECKED
).with_label("made again when the machine's data changes; a new encoder describes all machines itself")
