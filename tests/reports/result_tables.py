"""Small tables of vectors and of schedules."""

import numpy as np
import pandas as pd

from perf_assets.reports.schedule.page import GanttBar

PROTOCOLS, METHODS, APPS = ("sample", "app"), ("vae_dnn", "best", "majority"), ("Kripke", "Laghos", "miniVite")
STRATEGIES = ("practice", "predictor", "predictor, moldable")
DAY = 86_400.0


def vector_rows(samples: int = 12) -> pd.DataFrame:
    """A row per protocol, method and held-out sample."""
    random = np.random.default_rng(0)
    return pd.DataFrame(
        [
            {
                "protocol": protocol,
                "method": method,
                "app": APPS[sample % len(APPS)],
                "absolute_error": random.uniform(0.01, 0.2),
                "is_same_order": bool(random.random() < 0.6),
                "majority_gap": random.normal(),
                "is_majority_order": sample % 2 == 0,
            }
            for protocol in PROTOCOLS
            for method in METHODS
            for sample in range(samples)
        ]
    )


def vector_entries(samples: int = 30) -> pd.DataFrame:
    """A row per protocol, method, held-out sample and machine."""
    random = np.random.default_rng(1)
    rows = pd.DataFrame(
        [
            {"protocol": protocol, "method": method, "target_machine": machine}
            for protocol in PROTOCOLS
            for method in METHODS[:2]
            for _ in range(samples)
            for machine in ("dane", "quartz")
        ]
    )
    true = random.uniform(0.2, 1, len(rows))
    return rows.assign(relative_time=true, predicted_relative_time=true * random.uniform(0.9, 1.1, len(rows)))


def vector_scores() -> pd.DataFrame:
    """Means by protocol and method."""
    names = ["r2", "r2_per_machine", "mae_ratio", "mape_ratio", "same_order_ratio", "top1_ratio", "regret_ratio"]
    rows = [{"protocol": protocol, "method": method} for protocol in PROTOCOLS for method in METHODS]
    return pd.DataFrame(rows).assign(**dict.fromkeys(names, 0.5), auc_ratio=np.nan, is_simulated=True)


def growth() -> pd.DataFrame:
    """Rows of `eval_vector__growth`."""
    return pd.DataFrame(
        [
            {"machine": machine, "shots": shots, "seed": 0, "method": method, "mape_ratio": level * scale / shots}
            for machine, scale in (("dane", 1.0), ("tioga", 1.7), ("h100", 4.0))
            for shots in (2, 5, 10)
            for method, level in (("head", 0.5), ("constant", 0.9))
        ]
    )


def schedule_rows() -> pd.DataFrame:
    """Rows of `out_schedule__turnaround`: three loads, and two shaken traces at full load."""
    return pd.DataFrame(
        [
            {
                "strategy": strategy,
                "load_ratio": load,
                "repetition": repetition,
                "turnaround_mean_seconds": 3600.0 * (number + 1) * load * (1 + repetition / 10),
                "bounded_slowdown_mean": 5.0 * (number + 1) * (1 + repetition / 10),
                "trace": "t.swf",
                "machine": "h100",
                "nodes_count": 8,
                "is_trace_simulated": False,
                "is_simulated": True,
            }
            for number, strategy in enumerate(STRATEGIES)
            for load in (0.6, 0.8, 1.0)
            for repetition in range(3 if load == 1.0 else 1)
        ]
    )


def busy_day() -> dict[str, list[GanttBar]]:
    """Two panels of a few jobs."""
    jobs = [GanttBar(DAY + 3600.0 * n, DAY + 3600.0 * (n + 2), n % 4, 1 + n % 3, n % 2 == 0, n == 3) for n in range(6)]
    return {"practice": jobs, "predictor, moldable": jobs[:4]}


def modelx_rows() -> pd.DataFrame:
    """ModelX's table: a transfer with two numbers of shots, and one without shared features, where sources harm."""
    shared = {
        "sources": "comd + cg", "target": "kripke", "features": "shared", "seeds": 10, "zero_shot": 0.17,
        "linear_probe": 0.025, "fine_tune": 0.04, "target_best_method": "target_gp", "oracle_100x": 0.0001,
        "oracle_100x_spread": 0.0, "winner": "product", "matches_oracle": False, "coverage_90": 0.9,
        "chosen": "source_functions",
    }  # fmt: skip
    few = {**shared, "shots": 8, "severity": 0.5, "product": 0.011, "target_best": 0.015, "improvement": 56.0}
    more = {**shared, "shots": 28, "severity": 0.6, "product": 0.00054, "target_best": 0.0023, "improvement": 97.84}
    other = {
        **few, "target": "<b>$new$", "features": "not shared", "severity": 1.0, "zero_shot": float("nan"),
        "product": 0.035, "improvement": -40.0, "winner": "target_best",
    }  # fmt: skip
    unknown = {**other, "shots": 28, "severity": float("nan")}
    return pd.DataFrame([{**row, "mape": 0.08} for row in (few, more, other, unknown)])
