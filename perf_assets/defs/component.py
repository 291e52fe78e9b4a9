"""The platform as a component of another Dagster project."""

import os
from pathlib import Path

import dagster as dg

from perf_assets.core.errors import BadInputError
from perf_assets.defs.build import build_definitions
from perf_assets.defs.resources import LakeResource


def part_of_another_project(lake: Path) -> dg.Definitions:
    """All assets, checks, jobs, sensors and schedules over a lake, to be merged with those of another project.

    Every process that loads them works on this lake: `PERF_ASSETS_LAKE` is set for it and for those that it starts.
    Executor and loggers are those of the other project. Refuses where the environment names another lake.
    """
    named = os.environ.setdefault("PERF_ASSETS_LAKE", str(lake))
    if Path(named) != lake:
        raise BadInputError(f"PERF_ASSETS_LAKE is {named}, and the component names {lake}: a process has one lake")
    return build_definitions(LakeResource(root=str(lake)), is_part=True)


class PerfAssets(dg.Component, dg.Model, dg.Resolvable):
    """Performance data and models of machines over one lake."""

    lake: str
    """Folder of the lake, an absolute path."""

    def build_defs(self, context: dg.ComponentLoadContext) -> dg.Definitions:
        """Everything over the lake."""
        return part_of_another_project(Path(self.lake))
