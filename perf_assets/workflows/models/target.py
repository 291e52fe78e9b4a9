"""The life of a machine's target model: made from a source model or from other machines' counters, judged, scored."""

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pydantic import BaseModel, Field

from perf_assets.core.catalogue import Resolved
from perf_assets.core.errors import BadInputError, RegistryError, UnreadableFileError
from perf_assets.core.paths import mlflow_tracking_uri
from perf_assets.core.tables.verdicts import VERDICTS
from perf_assets.core.text import without_passwords
from perf_assets.storage.results import rows_of, store
from perf_assets.workflows.fleet import Fleet
from perf_assets.workflows.machines.readiness import Readiness
from perf_assets.workflows.models.paired_inputs import (
    AdaptationInputs,
    adaptation_inputs,
    adapting,
    reference_machine,
    target_tags,
)

if TYPE_CHECKING:
    import pandas as pd

    from perf_assets.models.target.model import AdaptedTarget
    from perf_assets.models.transfer.adapted import AdaptedTransfer
    from perf_assets.reports.machine.card import CardFacts
    from perf_assets.workflows.models.judge import Contest
    from perf_assets.workflows.models.unpaired_inputs import UnpairedInputs

Progress = Callable[[str], None]
_COVERAGE = 0.9
_PICTURE = "candidates.png"


class TargetRequest(BaseModel, frozen=True):
    """Request for a target model."""

    seed: int = Field(default=0, ge=0)
    most_shots: int = Field(default=200, ge=1)
    """Most runs on the machine that its model is fitted to."""
    source_version: int | None = None
    """Version of `perf-source` to start from; None is the one in use."""
    only_if_changed: bool = True
    """Whether to keep the registered version where it was made of the same data."""


@dataclass(frozen=True, eq=False)
class MadeTarget:
    """A registered version of a target model."""

    version: int
    digest: str
    """Digest of what the model was made of."""
    is_kept: bool
    shots: Mapping[str, int]
    """Runs of the machine that it was fitted to, by how programs see the machine."""
    candidates: "pd.DataFrame"
    """Candidates and baselines on held-out runs; empty where there were too few runs, or nothing was fitted."""
    picture: bytes | None
    """Errors of the candidates, as PNG."""


def target_inputs(fleet: Fleet, machine: str, code: str, request: TargetRequest) -> "AdaptationInputs | UnpairedInputs":
    """Inputs of a machine's target model.

    A source model and the machine's description, where its runs pair with those of another machine or it has none.
    Without enough RAJAPerf runs there is no description: then the runs that it shares with others, without a prior.
    Where none is shared, the counters of its runs beside those of the other machines. `code` is the version of the
    code that makes models. Refuses, with the reason, where none of it can be done.
    """
    from perf_assets.models.target.model import TargetSettings
    from perf_assets.workflows.models.unpaired_inputs import unpaired_inputs

    runs = fleet.runs(machine)
    paired, advice, why = None, "", f"none of its {len(runs)} configurations ran on another machine"
    settings = TargetSettings(most_shots=request.most_shots)
    asked = (fleet.lake, machine, runs, request.seed, code, request.source_version, settings)
    try:
        paired = adaptation_inputs(*asked)
        if paired.pairs_count or runs.empty:
            return paired
    except (RegistryError, UnreadableFileError):
        raise
    except BadInputError as error:
        if runs.empty:
            raise BadInputError(Readiness.of(fleet, machine).missing or str(error)) from None
        ready = Readiness.of(fleet, machine)
        why = (
            ready.sources.summary if ready.kernels.is_done else f"{machine} is not described ({ready.kernels.summary})"
        )
        advice = "" if ready.sources.is_done else f": {ready.sources.advice}"
        with suppress(BadInputError):
            shared = adaptation_inputs(*asked, is_described=False)
            if shared.pairs_count:
                return shared
    try:
        return unpaired_inputs(fleet, machine, why, request.seed, code)
    except BadInputError as error:
        if paired is not None:
            return paired
        raise BadInputError(f"{why}; nor can it be adapted from counters of other machines: {error}{advice}") from None


def make_target(
    fleet: Fleet, machine: str, code: str, request: TargetRequest, run_tags: Mapping[str, str], progress: Progress
) -> MadeTarget:
    """Adapt and register; or keep the version that was made of the same data."""
    from perf_assets.registry.target import registered_name
    from perf_assets.registry.versions import made_of

    inputs = target_inputs(fleet, machine, code, request)
    with adapting(fleet.lake, machine):
        kept = made_of(registered_name(machine), inputs.digest) if request.only_if_changed else None
        if kept is not None:
            import pandas as pd

            progress(f"{registered_name(machine)} version {kept} was made of the same data and is kept")
            return MadeTarget(kept, inputs.digest, True, {}, pd.DataFrame(), None)
        if isinstance(inputs, AdaptationInputs):
            return _register_paired(fleet, inputs, run_tags, progress)
        return _register_unpaired(fleet, inputs, run_tags, progress)


def _register_paired(
    fleet: Fleet, inputs: AdaptationInputs, run_tags: Mapping[str, str], progress: Progress
) -> MadeTarget:
    from perf_assets.registry.target import candidate_table, register_target

    adapted = inputs.adapt(progress)
    tags = {**target_tags(inputs, fleet.provenance(inputs.machine)), **run_tags}
    formulas = fleet.formulas(reference_machine(adapted))
    files = _papers(adapted, formulas, tags)
    return MadeTarget(
        version=register_target(adapted, formulas, tags, files).version,
        digest=inputs.digest,
        is_kept=False,
        shots={name: view.shots for name, view in adapted.views.items()},
        candidates=candidate_table(adapted),
        picture=files.get(_PICTURE),
    )


def _register_unpaired(
    fleet: Fleet, inputs: "UnpairedInputs", run_tags: Mapping[str, str], progress: Progress
) -> MadeTarget:
    from perf_assets.registry.target import registered_name
    from perf_assets.registry.transfer import candidate_table, register_transfer
    from perf_assets.workflows.models.datasets import papers

    name = registered_name(inputs.machine)
    adapted = inputs.adapt(progress)
    tags = {**inputs.tags(fleet.provenance(inputs.machine)), **run_tags}
    files = papers(adapted, tags, name)
    return MadeTarget(
        version=register_transfer(adapted, tags, files, name=name).version,
        digest=inputs.digest,
        is_kept=False,
        shots={inputs.machine: adapted.shots},
        candidates=candidate_table(adapted),
        picture=files.get(_PICTURE),
    )


def judge_machine(fleet: Fleet, machine: str) -> "pd.DataFrame":
    """All verdicts on a machine's models, with that on the newest, stored; it is promoted, or stays a challenger."""
    from perf_assets.registry.target import is_unpaired, registered_name
    from perf_assets.registry.versions import newest_version

    with adapting(fleet.lake, machine):
        newest = newest_version(registered_name(machine))
        contest: Contest[Any] = (
            _unpaired_contest(fleet, machine) if is_unpaired(machine, newest) else _paired_contest(fleet, machine)
        )
        rows = contest.judge_newest(rows_of(fleet.lake, VERDICTS, machine))
        store(fleet.lake, fleet.warehouse, VERDICTS, rows, machine)
    return rows


def _paired_contest(fleet: Fleet, machine: str) -> "Contest[AdaptedTarget]":
    from perf_assets.models.target.model import AdaptedTarget
    from perf_assets.models.target.promotion import compare, drift
    from perf_assets.registry.target import registered_name
    from perf_assets.workflows.models.judge import Contest

    def facts(new: "AdaptedTarget") -> dict[str, object]:
        severities = [view.severity for view in new.views.values() if view.severity is not None]
        return {
            "machine": machine,
            "shots": sum(view.shots for view in new.views.values()),
            "severity_ratio": max(severities, default=None),
            "is_simulated": fleet.is_simulated(machine),
        }

    return Contest(
        name=registered_name(machine),
        load=AdaptedTarget.load,
        compare=compare,
        drift=lambda champion, new: drift(champion, new.samples),
        facts=facts,
    )


def _unpaired_contest(fleet: Fleet, machine: str) -> "Contest[AdaptedTransfer]":
    from perf_assets.registry.target import registered_name
    from perf_assets.workflows.models.datasets import transfer_contest

    facts = {"machine": machine, "is_simulated": fleet.is_simulated(machine)}
    return transfer_contest(registered_name(machine), fleet.runs_with_counters(machine), facts)


def score_machine(
    fleet: Fleet, machine: str, code: str, seeds: int, shots: Sequence[int], progress: Progress
) -> "pd.DataFrame":
    """Rows of `eval_transfer__scores`: error over the number of shots, beside baselines on the same rows; stored."""
    from perf_assets.core.tables.models import TRANSFER_SCORES
    from perf_assets.models.target.matrix import learning_curve
    from perf_assets.registry.target import log_learning_curve
    from perf_assets.workflows.models.kept_aside import has_truth, score_kept_aside

    inputs = target_inputs(fleet, machine, code, TargetRequest())
    if not isinstance(inputs, AdaptationInputs):
        rows = inputs.learning_curve(seeds, shots, progress)
    elif has_truth(fleet.lake, machine):
        rows = score_kept_aside(fleet.lake, inputs, shots, seeds, progress)
    else:
        rows = learning_curve(inputs.samples, machine, inputs.prior, seeds, progress, shots)
    rows = rows.assign(machine=machine, is_simulated=fleet.is_simulated(machine))
    store(fleet.lake, fleet.warehouse, TRANSFER_SCORES, rows, machine)
    log_learning_curve(machine, rows)
    return rows


def _papers(adapted: "AdaptedTarget", formulas: Sequence[Resolved], tags: dict[str, str]) -> dict[str, bytes]:
    """Files to register with a model: its card, and a picture of its candidates."""
    from perf_assets.registry.target import candidate_table
    from perf_assets.reports.machine.card import model_card
    from perf_assets.reports.machine.figures import candidate_figure
    from perf_assets.reports.site import picture

    candidates = candidate_table(adapted)
    files = {"model_card.md": model_card(_card(adapted, formulas, tags)).encode()}
    if not candidates.empty:
        files[_PICTURE] = picture(lambda target: candidate_figure(candidates, target))
    return files


def _card(adapted: "AdaptedTarget", formulas: Sequence[Resolved], tags: dict[str, str]) -> "CardFacts":
    from perf_assets.registry.store import code_version
    from perf_assets.registry.tables.target import signature
    from perf_assets.registry.target import candidate_table
    from perf_assets.reports.machine.card import CardColumn, CardFacts, CardView

    signed = signature(formulas)
    inputs, outputs = (
        tuple(CardColumn(column.name, column.type.name, column.required) for column in schema)
        for schema in (signed.inputs, signed.outputs)
    )
    severities = [view.severity for view in adapted.views.values() if view.severity is not None]
    return CardFacts(
        machine=adapted.machine,
        is_simulated=tags["is_simulated"] == "true",
        views=tuple(CardView(name, view.source, view.shots, view.chosen) for name, view in adapted.views.items()),
        candidates=candidate_table(adapted),
        coverage_ratio=_COVERAGE,
        severity=max(severities, default=None),
        source_version=int(tags["source_version"]),
        encoder_version=tags["encoder_version"],
        manifests_count=int(tags["manifests_count"]),
        manifests_digest=tags["manifests_digest"],
        tracking_uri=without_passwords(mlflow_tracking_uri()),
        seed=int(tags["seed"]),
        code_version=code_version(),
        dagster_run_id=tags["dagster_run_id"],
        inputs=inputs,
        outputs=outputs,
    )
