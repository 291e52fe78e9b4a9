"""How well is the time known at widths, and of applications, that nobody ran?

Widths: every number of tasks of ModelX's four applications, and every number of ranks of Kripke under power caps (two
inputs), is left out in turn; a model learns from all other runs and predicts these. Applications: each of ModelX's four
from 1 and 5% of its runs; the scaling model and the forms learn from these alone, the transfer also from the three
others. Beside the scaling model: nearest measured width, power law, Amdahl, Extra-P's form.

Machines: six SPEChpc codes on two CPUs, each the target of the other. The reference ran ten numbers of ranks (drawn at
random from 1 to 72), the target five of them; the target model is asked about all others, from the reference's run on
the nearest number of ranks. Beside it: the target model's answer about that run as it is (what it said before it could
be asked about other ranks), and the scaling model and the forms of the target's own runs alone.

Errors are mean absolute percentage errors. `inside` is the share of runs inside the scaling model's 90% interval, and
`wider` how many times wider the interval is (in logarithms) than at the runs it was fitted to.

Last line: one JSON object. Needs `../shared/data`, or PERF_ASSETS_SHARED_DATA.
"""

import argparse
import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from transfer_data import data_folder

from perf_assets.core.shots import Shots
from perf_assets.features.fleet.samples import configuration_name
from perf_assets.features.tables.paired import Roles, pair_tables
from perf_assets.features.tables.unpaired import TransferTable, transfer_table
from perf_assets.models.common.questions import Questions
from perf_assets.models.scaling.forms import FORMS
from perf_assets.models.scaling.model import Parameters, ScalingModel
from perf_assets.models.target.model import AdaptedTarget
from perf_assets.models.target.view import adapt_view
from perf_assets.models.transfer.model import fit_product
from perf_assets.models.transfer.task import TransferTask

APPS = ("comd", "cg", "ft", "kripke")
SHARES = ("1%", "5%")
CPUS = ("icelake-8360y", "sapphirerapids-8470")
MOST_RANKS, WIDTHS, WIDTHS_THERE = 72, 10, 5
"""Ranks that both CPUs have, numbers of ranks that the reference machine ran, and the target."""
RUN_TIME = ("^Avg", "Power")
"""Columns of Kripke under power caps that are measured during the run."""
OURS, TRANSFER = "scaling model", "transfer"
MOVED, UNMOVED = "target model", "target model, nearest run"
_METHODS = (MOVED, UNMOVED, TRANSFER, OURS, *FORMS)


def tables(folder: Path, most: int) -> Iterator[tuple[TransferTable, str]]:
    """Tables of runs, at most so many rows of each, with the parameter that is their width."""
    for app in APPS:
        frame = _some(pd.read_csv(folder / "modelx_apps" / f"{app}.csv"), most)
        yield transfer_table(app, frame, "runtime_seconds", drop=("^nodes$",)), "tasks"
    for size in ("2000", "12000"):
        frame = _some(pd.read_csv(folder / "kripke_power" / f"kripke_16nodes_{size}.csv.gz"), most)
        yield transfer_table(f"kripke_{size}", frame, "ExecTime", drop=RUN_TIME), "Ranks"


def _some(frame: pd.DataFrame, most: int) -> pd.DataFrame:
    return frame.sample(most, random_state=0) if len(frame) > most else frame


def scored(table: TransferTable, width: str, known: np.ndarray, asked: np.ndarray) -> dict[str, Any]:
    """Errors of all methods that learn from some rows of a table, on others."""
    place, seconds = table.counter_names.index(width), np.exp(table.target)
    values = table.counters
    parameters = Parameters.fit(values[known], table.is_level)
    model = ScalingModel.fit(values[known], seconds[known], place, table.is_level)
    times, own = model.predict(values[asked]), model.predict(values[known])
    found: dict[str, Any] = {OURS: _mape(times.seconds, seconds[asked])}
    for name, fit in FORMS.items():
        found[name] = _mape(fit(parameters, values[known], seconds[known], place)(values[asked]), seconds[asked])
    found["inside"] = float(np.mean((times.lower <= seconds[asked]) & (seconds[asked] <= times.upper)))
    found["wider"] = float(np.log(times.upper / times.lower).mean() / np.log(own.upper / own.lower).mean())
    return found


def _mape(predicted: np.ndarray, true: np.ndarray) -> float:
    return float(np.mean(np.abs(predicted / true - 1)))


def widths_left_out(table: TransferTable, width: str, most: int | None) -> Iterator[dict[str, Any]]:
    """A row per width; the smallest and the largest are outside of what was run."""
    column = table.counters[:, table.counter_names.index(width)]
    widths = np.unique(column)
    for left_out in widths[:most]:
        known, asked = np.flatnonzero(column != left_out), np.flatnonzero(column == left_out)
        yield {
            "table": table.name, "left_out": f"{width} {left_out:g}", "is_outside": left_out in (widths[0], widths[-1]),
            "runs": len(known), **scored(table, width, known, asked),
        }  # fmt: skip


def applications_left_out(every: dict[str, TransferTable], share: str, seed: int) -> Iterator[dict[str, Any]]:
    """A row per application: few of its runs, and for the transfer all runs of the others."""
    for name, table in every.items():
        order = np.random.default_rng(seed).permutation(len(table))
        count = Shots.parse(share).count(len(table))
        shots, asked = np.sort(order[:count]), np.sort(order[count:])
        task = TransferTask.of([other for other in every.values() if other is not table], table)
        predicted = np.exp(fit_product(task, shots, seed).predict_rows(asked))
        yield {
            "table": name, "left_out": f"all but {count} runs", "seed": seed, "runs": count,
            TRANSFER: _mape(predicted, np.exp(table.target[asked])), **scored(table, "tasks", shots, asked),
        }  # fmt: skip


def machines_left_out(folder: Path, seed: int, most_apps: int | None) -> Iterator[dict[str, Any]]:
    """A row per CPU and application: the target model at numbers of ranks that neither CPU ran."""
    tables = {name: pd.read_csv(folder / "spechpc" / f"{name}.csv") for name in CPUS}
    paired = pair_tables(tables, Roles(("app", "ranks"), "app", "runtime_s", (), ("^mean_", "^sum_")))
    ranks = np.array([int(float(name.rpartition(" ")[2])) for name in paired.configurations])
    names = [configuration_name((app, "", count, 1)) for app, count in zip(paired.apps, ranks, strict=True)]
    widths = np.random.default_rng(seed).choice(np.arange(1, MOST_RANKS + 1), WIDTHS, replace=False)
    is_known, both = np.isin(ranks, widths), np.isfinite(paired.log_seconds).all(axis=0)
    is_shot = np.isin(ranks, widths[:WIDTHS_THERE])
    for source, target in ((0, 1), (1, 0)):
        shots = np.random.default_rng(seed).permutation(np.flatnonzero(is_shot & both))
        seconds = np.where(is_known, paired.log_seconds, np.nan)
        seconds[target, ~is_shot] = np.nan
        samples = replace(paired, configurations=tuple(names), log_seconds=seconds)
        view = adapt_view(samples, source, target, shots, seed, None)
        model = AdaptedTarget(CPUS[target], samples, {CPUS[target]: view})
        for app in np.unique(paired.apps)[:most_apps]:
            known = np.flatnonzero(is_known & both & (paired.apps == app))
            asked = np.flatnonzero(~is_known & both & (paired.apps == app) & (ranks <= MOST_RANKS))
            near = known[np.abs(np.log(ranks[known] / ranks[asked][:, None])).argmin(axis=1)]
            about = Questions(
                sources=[CPUS[source]] * len(near), targets=[CPUS[target]] * len(near), apps=[str(app)] * len(near),
                configurations=[names[row] for row in near], counters=samples.counters[source, near],
                log_seconds=samples.log_seconds[source, near],
            )  # fmt: skip
            ran = np.flatnonzero(is_shot & both & (paired.apps == app))
            true, own = np.exp(paired.log_seconds[target, asked]), np.exp(paired.log_seconds[target, ran])
            moved = model.predict(replace(about, ranks=ranks[asked].tolist()))
            values, wanted = ranks[ran][:, None].astype(float), ranks[asked][:, None].astype(float)
            parameters = Parameters.fit(values, np.zeros(1, bool))
            row: dict[str, Any] = {
                MOVED: _mape(np.exp(moved.log_time), true),
                UNMOVED: _mape(np.exp(model.predict(about).log_time), true),
                OURS: _mape(ScalingModel.fit(values, own, 0).predict(wanted).seconds, true),
            }
            row |= {name: _mape(fit(parameters, values, own, 0)(wanted), true) for name, fit in FORMS.items()}
            inside = (moved.lower <= np.log(true)) & (np.log(true) <= moved.upper)
            outside = (ranks[asked] < widths.min()) | (ranks[asked] > widths.max())
            half = (moved.upper - moved.lower) / 2
            wider = float(half[outside].mean() / half[~outside].mean()) if 0 < outside.sum() < len(asked) else None
            yield {
                "table": f"{CPUS[target][:9]} {app}", "left_out": f"all but {len(ran)} widths", "seed": seed,
                "runs": len(ran), **row, "inside": float(inside.mean()), "wider": wider,
            }  # fmt: skip


def _print(row: dict[str, Any]) -> None:
    methods = [name for name in _METHODS if name in row]
    errors = ", ".join(f"{name} {row[name]:.1%}" for name in methods)
    wider = "" if row["wider"] is None else f", {row['wider']:.1f} times wider"
    print(f"{row['table']:13s} without {row['left_out']:18s} {errors}; inside {row['inside']:.0%}{wider}", flush=True)


def summary(rows: list[dict[str, Any]]) -> dict[str, float]:
    """Geometric means of errors by method, and coverage."""
    methods = [name for name in _METHODS if name in rows[0]]
    found = {name: float(np.exp(np.mean([np.log(row[name]) for row in rows]))) for name in methods}
    return found | {"inside": float(np.mean([row["inside"] for row in rows]))}


def main() -> None:
    """Score, print, and the JSON line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--rows", type=int, default=1500, help="most rows of a table, drawn at random")
    parser.add_argument("--quick", action="store_true", help="few runs, one width of each table, one seed")
    given = parser.parse_args()
    found = list(tables(data_folder(), 120 if given.quick else given.rows))
    widths = [row for one in found for row in widths_left_out(*one, 1 if given.quick else None)]
    every = {table.name: table for table, _ in found if table.name in APPS}
    seeds = range(1 if given.quick else given.seeds)
    shares = SHARES[-1:] if given.quick else SHARES
    apps = {share: [row for seed in seeds for row in applications_left_out(every, share, seed)] for share in shares}
    machines = [row for seed in seeds for row in machines_left_out(data_folder(), seed, 1 if given.quick else None)]
    for row in (*widths, *(row for rows in apps.values() for row in rows), *machines):
        _print(row)
    parts = {
        "widths inside what was run": [row for row in widths if not row["is_outside"]],
        "widths outside what was run": [row for row in widths if row["is_outside"]],
        **{f"applications from {share} of their runs": rows for share, rows in apps.items()},
        "machines at ranks that neither ran": machines,
    }
    summaries = {name: summary(rows) for name, rows in parts.items() if rows}
    for name, values in summaries.items():
        print(f"{name}: " + ", ".join(f"{method} {value:.1%}" for method, value in values.items()))
    print(json.dumps({"summaries": summaries, "widths": [{k: bool(v) if k == "is_outside" else v for k, v in r.items()}
                      for r in widths], "applications": apps, "machines": machines, "quick": given.quick}))  # fmt: skip


if __name__ == "__main__":
    main()
