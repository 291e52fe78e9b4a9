"""Made-up fleets: machines in every state, one that is well, none."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

from perf_assets.reports.fleet.facts import Champion, FleetFacts, MachineState

NOW = datetime(2026, 11, 16, 10, 0, tzinfo=UTC)
MLFLOW = "http://127.0.0.1:5000"


def champion(version: int = 3, mape: float | None = 0.08, alone: float | None = 0.4) -> Champion:
    return Champion(version, NOW - timedelta(days=2), 40, mape, alone, 0.28)


def well(machine: str = "quartz") -> MachineState:
    """Fresh, with a good champion, nothing to do."""
    return MachineState(
        machine=machine,
        is_simulated=False,
        relative_times="",
        bundles_count=41,
        runs_count=40,
        kernels_count=1240,
        last_landed_at=NOW - timedelta(hours=5),
        is_fresh=True,
        quarantined={},
        waiting_count=0,
        champion=champion(),
        challenger_version=None,
        challenger_reason="",
        has_drifted=False,
        page=f"machine-{machine}.html",
        actions=(),
    )


def fleet(*machines: MachineState, strays: tuple[str, ...] = ()) -> FleetFacts:
    return FleetFacts(
        made_at=NOW,
        machines=machines,
        fresh_days=30,
        source_versions={"with-amm": 5, "without-amm": 4},
        trained_at=NOW - timedelta(days=6),
        strays=strays,
        dagster_url="http://127.0.0.1:3000",
        mlflow_url=MLFLOW,
        pages={"xamm.html": "xAMM experiments (simulated fleet)"},
    )


def every_state() -> FleetFacts:
    """A machine for each thing that is not well, and one that is."""
    drifted = replace(
        well("dane"),
        has_drifted=True,
        champion=champion(3, 0.31, 0.28),
        challenger_version=4,
        challenger_reason="its error is 1.31 times that of version 3",
        actions=(
            "new runs contradict version 3: look at what changed on the machine (system software, clocks)",
            "land 10 more runs, then perf-assets adapt dane",
        ),
    )
    refused = replace(
        well("epyc-7r13"),
        is_simulated=True,
        quarantined={
            "kripke-0412": "sha256 of profile.cali is not that of the manifest: copy the bundle again",
            "laghos-<b>7": "wall_seconds is -3: must be above 0",
        },
        waiting_count=2,
        champion=champion(1, None, None),
        actions=("mend or remove 2 bundles in quarantine", "run perf-assets ingest: 2 bundles wait"),
    )
    new = replace(
        well("h100"),
        champion=None,
        page=None,
        runs_count=0,
        kernels_count=62,
        actions=("land runs of applications: 5 are enough to start",),
    )
    stale = replace(
        well("corona"),
        last_landed_at=NOW - timedelta(days=90),
        is_fresh=False,
        champion=champion(7, 0.04, 35.0),
        actions=("measure again: nothing new for 90 days",),
    )
    hopeful = replace(well("quartz"), actions=("best next run: Kripke --groups 64 ranks=32 (8.0% to 7.1%)",))
    return fleet(stale, drifted, refused, new, hopeful, strays=("landing/readme.txt: no folder of a machine",))
