"""Largest age of the newest measurement of a machine: from a site's file, or the default."""

from pathlib import Path

from pydantic import BaseModel, ConfigDict, Field

from perf_assets.core.yaml_text import read_settings

FILE_NAME = "freshness.yaml"


class Freshness(BaseModel):
    """Days up to which a machine is called fresh."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    default_days: int = Field(default=30, ge=1)
    machines: dict[str, int] = Field(default_factory=dict)
    """Other limits, by machine."""
    vector_days: int = Field(default=14, ge=1)
    """Age up to which the vector model is called current: two weekly trainings."""

    def days(self, machine: str) -> int:
        """Limit of a machine."""
        return self.machines.get(machine, self.default_days)


def load_freshness(lake: Path) -> Freshness:
    """Read the freshness rules of a lake's root folder."""
    return read_settings(Freshness, lake / FILE_NAME)
