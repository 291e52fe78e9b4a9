"""What a target model is made of, from a run's configuration and the lake."""

from typing import TYPE_CHECKING

from perf_assets.defs.code_versions import code_version
from perf_assets.defs.resources import LakeResource

if TYPE_CHECKING:
    from perf_assets.workflows.adapt import AdaptationInputs

NOT_MADE = "not_made"
"""Metadata of the observation that tells why there is no target model."""


def inputs_of(
    lake: LakeResource,
    machine: str,
    seed: int = 0,
    source_version: int | None = None,
    most_shots: int | None = None,
) -> "AdaptationInputs":
    """The source model, the machine's description and its runs; refuses where one of the first two is missing."""
    from perf_assets.models.target.model import TargetSettings
    from perf_assets.workflows.adapt import adaptation_inputs

    settings = TargetSettings() if most_shots is None else TargetSettings(most_shots=most_shots)
    code = code_version(adaptation_inputs.__module__)
    return adaptation_inputs(lake.lake(), machine, lake.fleet_runs(machine), seed, code, source_version, settings)
