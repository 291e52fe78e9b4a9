"""Tables of a made-up machine: all of them, or none."""

from dataclasses import fields, replace

import numpy as np
import pandas as pd

from perf_assets.core.tables.verdicts import CHALLENGER, PROMOTED
from perf_assets.reports.machine.facts import MachineFacts

VIEWS = ("dane", "dane (host)")
SHOTS = (0, 5, 10, 20, 50)
LEVELS = {
    "source_unchanged": 0.33,
    "without_prior": 0.12,
    "with_prior": 0.11,
    "product": 0.10,
    "target_ridge": 4.0,
    "target_gp": 9.0,
}
COVERAGES = {"product": 1.0, "with_prior": 0.97, "without_prior": 0.93, "target_gp": 0.8}


def learned(method: str, shots: int) -> float:
    """How much smaller the error is with so many shots."""
    return 1.0 if method == "source_unchanged" else float((1 + shots / 10) ** 0.5)


def curve(*, is_simulated: bool = True) -> pd.DataFrame:
    """MAPE = level x 1.5 for the host / what was learned x (1 + seed / 10); target-only methods need shots."""
    rows = [
        {
            "machine": "dane",
            "target": view,
            "source": "quartz",
            "shots": shots,
            "seed": seed,
            "method": method,
            "mape_ratio": level * (1.5 if view.endswith(")") else 1.0) * (1 + seed / 10) / learned(method, shots),
            "log_rmse": 0.2,
            "coverage_90_ratio": COVERAGES.get(method, np.nan) - 0.002 * shots - 0.01 * seed,
            "is_simulated": is_simulated,
        }
        for view in VIEWS
        for shots in SHOTS
        for seed in range(5)
        for method, level in LEVELS.items()
        if shots or not method.startswith("target_")
    ]
    return pd.DataFrame(rows)


def candidates(chosen: str = "product") -> pd.DataFrame:
    """On held-out shots: errors as the levels say."""
    return pd.DataFrame(
        [
            (view, "quartz", 40, method, level, level * 1.1, method == chosen)
            for view in VIEWS
            for method, level in LEVELS.items()
        ],
        columns=["seen_as", "source", "shots", "method", "mape_ratio", "log_rmse", "is_chosen"],
    )


def matrix(machines: int = 5) -> pd.DataFrame:
    """All pairs: the farther apart, the more severe and the smaller the gain. One more pair has no severity."""
    rows = [
        {
            "target": f"m{target}",
            "source": f"m{source}",
            "shots": shots,
            "seed": seed,
            "method": method,
            "mape_ratio": error * (1 + seed / 10),
            "severity_ratio": distance / machines if (source, target) != (0, 1) else np.nan,
            "is_simulated": True,
        }
        for source in range(machines)
        for target in range(machines)
        if source != target
        for distance in [abs(source - target) + 0.01 * source]
        for shots in (5, 10)
        for seed in range(3)
        for method, error in {"product": 0.05 * distance, "target_ridge": 0.4, "target_gp": 0.5}.items()
    ]
    return pd.DataFrame(rows)


def weights(rows: int, columns: int) -> pd.DataFrame:
    """Noise, and a large weight for each source counter."""
    generator = np.random.default_rng(0)
    values = generator.normal(0, 0.08, (rows, columns))
    values[np.arange(rows), generator.permutation(max(rows, columns))[:rows] % columns] = generator.uniform(
        0.4, 1, rows
    )
    sources = [f"PAPI_SRC_COUNTER_{n}" for n in range(rows)]
    targets = [f"perf::target_counter_{n}:umask_{n % 7}" for n in range(columns)]
    return pd.DataFrame(values, index=sources, columns=targets)


def amms(machines: int = 14, components: int = 16) -> pd.DataFrame:
    """Random vectors, those of dane first."""
    names = [*VIEWS, "quartz", *(f"machine-{n}" for n in range(machines - 3))]
    return pd.DataFrame(np.random.default_rng(1).normal(size=(machines, components)), index=names)


def kernel_times(of: pd.DataFrame) -> pd.DataFrame:
    """Logarithms of times, two sizes of three kernels: a large first component slows SLOW, not FAST."""
    first, noise = of.iloc[:, 0].to_numpy(), np.random.default_rng(2).normal(scale=0.01, size=(len(of), 6))
    speeds = np.arange(len(of))[:, None] + noise
    speeds[:, :2] += first[:, None]
    speeds[:, 2:4] -= first[:, None]
    return pd.DataFrame(speeds, of.index, ["SLOW", "SLOW", "FAST", "FAST", "NEITHER", "NEITHER"])


def alignment(of: pd.DataFrame) -> pd.DataFrame:
    """The largest weight of each row."""
    largest = of.abs().to_numpy().argmax(axis=1)
    return pd.DataFrame(
        [
            (name, of.columns[column], of.iloc[row, column], 1 / (1 + row), 1 - (row % 5) / 5, row == 3)
            for row, (name, column) in enumerate(zip(of.index, largest, strict=True))
        ],
        columns=["source_counter", "target_counter", "weight", "importance", "stability", "is_same_name"],
    )


def next_runs() -> pd.DataFrame:
    """Five runs for each view; one of those without GPUs has no price."""
    rows = [
        {
            "seen_as": view,
            "rank": rank,
            "configuration": f"Kripke --groups {2**rank} --zones 32,32,32 ranks={2**rank} threads=4",
            "app": "Kripke",
            "error_before_ratio": 0.12 - 0.01 * (rank - 1),
            "error_after_ratio": 0.12 - 0.01 * rank,
            "is_worth_it": True,
            "shots": 20,
            "node_hours": np.nan if view.endswith(")") and rank == 2 else 0.25 * rank,
        }
        for view in VIEWS
        for rank in range(1, 6)
    ]
    return pd.DataFrame(rows)


def verdicts(decision: str = CHALLENGER, *, has_drifted: bool = True) -> pd.DataFrame:
    """Three models: the first with too few runs to judge, the second a champion, the last one as asked."""
    shared = {"machine": "dane", "threshold_ratio": 1.0, "is_simulated": True}
    first = shared | {
        "version": 2,
        "judged_at": pd.Timestamp("2026-11-01T08:30Z"),
        "decision": PROMOTED,
        "reason": "the first that was judged",
        "shots": 3,
        "held_out_count": 0,
        "has_drifted": False,
        **dict.fromkeys(("new_runs_count", "outside_count", "allowed_count"), 0),
    }
    second = first | {
        "version": 3,
        "judged_at": pd.Timestamp("2026-11-08T09:00Z"),
        "reason": "smaller error than version 2",
        "shots": 40,
        "held_out_count": 40,
        "mape_ratio": 0.101,
        "log_rmse": 0.11,
        "champion_version": 2,
        "champion_log_rmse": 0.2,
        "target_only_mape_ratio": 4.0,
        "target_only_log_rmse": 4.4,
        "severity_ratio": 0.283,
        "new_runs_count": 37,
        "outside_count": 4,
        "allowed_count": 8,
    }
    third = second | {
        "version": 4,
        "judged_at": pd.Timestamp("2026-11-15T09:00Z"),
        "decision": decision,
        "reason": "its error is 1.31 times that of version 3",
        "shots": 60,
        "champion_version": 3,
        "log_rmse": 0.15,
        "champion_log_rmse": 0.131,
        "new_runs_count": 20,
        "has_drifted": has_drifted,
        "outside_count": 11 if has_drifted else 3,
        "allowed_count": 5,
    }
    return pd.DataFrame([first, second, third])


def full(counters: tuple[int, int] = (40, 52)) -> MachineFacts:
    """Everything is there."""
    whole = weights(*counters)
    return MachineFacts(
        machine="dane",
        is_simulated=True,
        registered_as="perf-target-dane version 3",
        amms=amms(),
        candidates=candidates(),
        curve=curve(),
        severity=0.283,
        alignment=alignment(whole),
        alignment_weights=whole,
        alignment_source="quartz",
        catalogue_proposal="version: 1\nformulas:\n- quantity: l2_misses\n  counters: {L2_RQSTS: 1.0}\n",
        next_runs=next_runs(),
        verdicts=verdicts(),
        missing={},
        sheet={"processor": "2 x Xeon Platinum 8480+, 56 cores each"},
        predicted=pd.DataFrame(
            {
                "seen_as": "dane",
                "configuration": ["Kripke -n 1", "Kripke -n 2"],
                "measured_seconds": [1.0, 10.0],
                "predicted_seconds": [1.1, 9.0],
            }
        ),
    )


def empty() -> MachineFacts:
    """Nothing is there, each part for a reason of its own."""
    tables = [
        field.name for field in fields(MachineFacts) if isinstance(getattr(full((3, 3)), field.name), pd.DataFrame)
    ]
    reasons = {part: f"reason of {part}" for part in [*tables, "severity", "registered_as"]}
    nothing = dict.fromkeys(tables, pd.DataFrame())
    return replace(
        full((3, 3)),
        **nothing,
        severity=None,
        registered_as="",
        catalogue_proposal="",
        is_simulated=False,
        missing=reasons,
    )
