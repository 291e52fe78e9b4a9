"""What a target model is made of, from a run's configuration and the lake."""

from typing import TYPE_CHECKING

from perf_assets.defs.resources import LakeResource
from perf_assets.defs.specs import MODELS_VERSION

if TYPE_CHECKING:
    from perf_assets.workflows.adapt import AdaptationInputs

NOT_MADE = "not_made"
"""Metadata of the observation that tells why there is no target model."""


def inputs_of(lake: LakeResource, machine: str, seed: int = 0, source_version: int | None = None) -> "AdaptationInputs":
    """The source model, the machine's description and its runs; refuses where one of the first two is missing."""
    from perf_assets.workflows.adapt import adaptation_inputs

    return adaptation_inputs(lake.lake(), machine, lake.fleet_runs(machine), seed, MODELS_VERSION, source_version)
