"""What the periods of a machine say to people."""

from datetime import date

import pandas as pd
import pytest

from perf_assets.features.fleet.benchmark_history import levels, with_kinds
from perf_assets.workflows.machines.health import MachineHealth, periods_of

GROUP = {"setting": "size 1", "place": "node", "kind": "memory"}


def period(day: str, ratio: float, recent: float | None = None, **other: object) -> dict[str, object]:
    return {
        **GROUP,
        "began_at": pd.Timestamp(day),
        "time_ratio": ratio,
        "recent_time_ratio": ratio if recent is None else recent,
        "environment": "gcc 12",
        **other,
    }


@pytest.mark.parametrize(
    ("rows", "said"),
    [
        ([period("2026-10-01", 1.0)], ""),
        (
            [period("2026-10-01", 1.0), period("2026-11-03", 1.087)],
            "memory bandwidth fell by 8% since 2026-11-03",
        ),
        (
            [period("2026-10-01", 1.0), period("2026-11-03", 0.9, environment="gcc 13")],
            "memory bandwidth rose by 11% since 2026-11-03, with other software",
        ),
        # Two steps down are one change since the first; a change that was undone before is another.
        (
            [period("2026-10-01", 1.0), period("2026-11-03", 1.1), period("2026-11-20", 1.2)],
            "memory bandwidth fell by 17% since 2026-11-03",
        ),
        (
            [
                period("2026-09-01", 1.0),
                period("2026-10-01", 1.2),
                period("2026-10-10", 1.0),
                period("2026-11-03", 1.2),
            ],
            "memory bandwidth fell by 17% since 2026-11-03",
        ),
        # Too small to tell, mended, mended in the last runs.
        ([period("2026-10-01", 1.0), period("2026-11-03", 1.015)], ""),
        ([period("2026-09-01", 1.0), period("2026-10-01", 1.2), period("2026-10-10", 1.0)], ""),
        ([period("2026-10-01", 1.0), period("2026-11-03", 1.2, recent=1.01)], ""),
        # Of two settings the greater change; of two groups both.
        (
            [
                *[period("2026-10-01", 1.0), period("2026-11-03", 1.2)],
                *[period("2026-10-01", 1.0, setting="size 2"), period("2026-11-04", 1.3, setting="size 2")],
                *[period("2026-10-01", 1.0, place="device"), period("2026-11-05", 1.1, place="device")],
            ],
            "memory bandwidth fell by 23% since 2026-11-04; memory bandwidth of the GPU fell by 9% since 2026-11-05",
        ),
    ],
)
def test_what_is_said(rows: list[dict[str, object]], said: str) -> None:
    assert MachineHealth.of_periods(pd.DataFrame(rows)).text == said


def test_what_a_person_accepted_is_as_it_should_be() -> None:
    rows = pd.DataFrame([period("2026-10-01", 1.0), period("2026-11-03", 1.2), period("2026-11-20", 1.3)])
    assert "fell by 23% since 2026-11-03" in MachineHealth.of_periods(rows, date(2026, 11, 2)).text
    assert "fell by 8% since 2026-11-20" in MachineHealth.of_periods(rows, date(2026, 11, 3)).text
    assert MachineHealth.of_periods(rows, date(2026, 12, 1)).text == ""


def history(nights: int) -> pd.DataFrame:
    """Two kernels on all cores and one of them on a GPU; all take 1% longer every night."""
    kernels = [
        ("Stream_TRIAD", "node", 1e9, 1e8),
        ("Polybench_GEMM", "node", 1e6, 1e9),
        ("Stream_TRIAD", "device", 1e6, 1e5),
    ]
    rows = [
        {
            "run": f"night {night}",
            "collected_at": pd.Timestamp("2026-01-01") + pd.Timedelta(days=night),
            "setting": "size 1",
            "place": place,
            "kernel": kernel,
            "problem_size": 100,
            "variant": f"Base_{place}",
            "tuning": "default",
            "seconds_per_rep": 1.01**night,
            "bytes_per_rep": moved,
            "flops_per_rep": flops,
            "environment": "gcc",
        }
        for night in range(nights)
        for kernel, place, moved, flops in kernels
    ]
    return pd.DataFrame(rows)


def test_groups_are_held_against_their_first_run() -> None:
    found = levels(with_kinds(history(4)))
    assert set(zip(found["place"], found["kind"], strict=True)) == {
        ("node", "memory"),
        ("node", "compute"),
        ("device", "memory"),
    }
    assert found["run"].nunique() == 3, "the first run is what the others are held against"
    assert found.groupby("run")["level"].median().tolist() == pytest.approx(
        [0.00995 * night for night in (1, 2, 3)], rel=1e-3
    )
    rows = periods_of(found)
    assert len(rows) == 3
    assert rows["runs_count"].tolist() == [3, 3, 3]
