"""Content of the page of the fleet."""

from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING

from perf_assets.core.manifest import DAMAGED_ON_PURPOSE

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True)
class Champion:
    """The target model that people get for a machine."""

    version: int
    judged_at: datetime
    shots: int
    """Runs on the machine that it was fitted to."""
    mape: float | None
    """Mean |predicted / true - 1| on held-out runs; None where there were too few to hold out."""
    target_only_mape: float | None
    """Error of the best baseline that uses nothing but these runs."""
    severity: float | None
    """Severity of the transfer, 0 (easy) to 1."""


@dataclass(frozen=True)
class MachineState:
    """One machine of the fleet."""

    machine: str
    is_simulated: bool
    relative_times: str
    """Machine that times of its runs are relative to, as in `relative to quartz`; empty where they are seconds."""
    bundles_count: int
    runs_count: int
    kernels_count: int
    """RAJAPerf timings."""
    last_landed_at: datetime | None
    """Time of its newest measurement (UTC)."""
    is_fresh: bool
    """Whether that is recent enough."""
    quarantined: dict[str, str]
    """Reason by refused bundle."""
    waiting_count: int
    """Bundles that landed and are not in the record."""
    champion: Champion | None
    challenger_version: int | None
    """A newer model that was not good enough to be promoted."""
    challenger_reason: str
    has_drifted: bool
    """Whether the last new runs contradicted the champion of that time, and it is still the champion."""
    page: str | None
    """File name of its own page, in the same folder."""
    actions: tuple[str, ...]
    """Next steps, most urgent first."""
    changed: str = ""
    """Change that its RAJAPerf runs show, in a sentence; empty where nothing changed."""
    is_source: bool = False
    """Whether the source models in use learned from it: it needs no model of its own."""

    @property
    def refused_count(self) -> int:
        """Bundles in quarantine that somebody should look at: not those that the demo damages."""
        return sum(DAMAGED_ON_PURPOSE not in bundle for bundle in self.quarantined)

    @property
    def damaged_count(self) -> int:
        """Bundles in quarantine that the demo damaged on purpose."""
        return len(self.quarantined) - self.refused_count

    @property
    def lacks_model(self) -> bool:
        """Whether it should have a model, and has none."""
        return self.champion is None and not self.is_source


@dataclass(frozen=True)
class VectorState:
    """The model of relative-performance vectors that people get."""

    version: int | None
    """Champion; None where there is none yet."""
    challenger_version: int | None
    """A newer model that was not good enough to be promoted."""
    trained_at: datetime | None
    machines: tuple[str, ...]
    """Machines that it speaks of."""
    absent_machines: tuple[str, ...]
    """Machines with enough runs that it does not speak of."""
    limit_days: int
    """Age up to which it is called current."""

    def problems(self, now: datetime) -> list[str]:
        """Reasons why the machine is stale; empty where it is not."""
        if self.version is None or self.trained_at is None:
            return []
        age = (now - self.trained_at).days
        problems = [f"was trained {age} days ago (limit {self.limit_days})"] if age > self.limit_days else []
        return problems + ([f"does not speak of {', '.join(self.absent_machines)}"] if self.absent_machines else [])


@dataclass(frozen=True)
class Story:
    """Errors of models of machines by the number of runs that they were given."""

    curve: "pd.DataFrame"
    """machine, shots, kept_aside, ours, target_only, unchanged, coverage."""
    runs: "pd.DataFrame"
    """machine, measured_seconds, predicted_seconds: by the model of all runs that landed; may be empty."""
    are_kept_aside: bool
    """Whether the test runs never landed; else they were held out of the runs that did."""
    is_simulated: bool

    @property
    def last(self) -> "pd.DataFrame":
        """Row with most runs per machine."""
        return self.curve.loc[self.curve.groupby("machine")["shots"].idxmax()].sort_values("machine")

    @property
    def test_runs(self) -> str:
        """Name of the runs that errors refer to."""
        return "runs kept aside" if self.are_kept_aside else "held-out runs"


@dataclass(frozen=True)
class FleetFacts:
    """The whole fleet at one moment."""

    made_at: datetime
    machines: tuple[MachineState, ...]
    fresh_days: int
    """Age of the newest measurement up to which a machine is called fresh."""
    source_versions: dict[str, int]
    """Version of `perf-source` by alias."""
    trained_at: datetime | None
    """Time at which the source models were trained (UTC)."""
    strays: tuple[str, ...]
    """Content of the landing zone that belongs to no machine, with the reason."""
    dagster_url: str
    mlflow_url: str
    pages: dict[str, str]
    """Title by file name of the other pages in the same folder, those of machines left out."""
    vectors: VectorState | None = None
    story: Story | None = None
    """Worth of a few runs; None where nothing was scored yet."""
