"""What is transfer worth? Real data: seven GPUs in all ordered pairs, airfoil noise, StarCraft players.

Unpaired: squared log error of the product relative to the best target-only method (the one that is best in hindsight,
by its mean over seeds), geometric mean over pairs; with the counters' own names and with all target names replaced.
Paired: MAPE on a GPU never seen, 0 to 50 shots. Beside each figure stands its goal.

Last line: one JSON object; progress goes to stderr. Needs `../shared/data`, or PERF_ASSETS_SHARED_DATA. A seed over all
pairs takes some 6 minutes of one core. With `--keep FILE` every transfer is stored when it is done, and a run that was
stopped, or asked for fewer seeds, goes on from there; delete the file when the code has changed.
"""

import argparse
import json
import os
import sys
from collections.abc import Iterator
from dataclasses import replace
from itertools import permutations
from pathlib import Path

import numpy as np
import pandas as pd

from perf_assets.features.pairing import Roles, pair_tables
from perf_assets.features.transfer_tables import TransferTable, same_counters, transfer_table
from perf_assets.models.candidates import TransferTask
from perf_assets.models.paired_evaluation import evaluate_paired, summary
from perf_assets.models.source_models import Source, fit_sources
from perf_assets.models.transfer_evaluation import TARGET_ONLY, evaluate_transfer

NOT_COUNTERS = (
    r"^(unnamed_0|Unnamed: 0|compute_version|gpu_id|l1_cache_used|max_clock_rate|num_of_cores|L2|bus|memory_clock)$",
    r"^(bandwith|AppId|Device|Context|Stream|Kernel)$",
)
OWN_RUNTIME = r"(?i)cycle|throughput|utilization|ipc|activity"
"""Counters that hold the machine's own run time."""
PAIR_KEY = ("AppName", "Input.Size", "Block.X", "Block.Y")
BENCHMARK = ("vectorAdd", "matrix_sum_normal")
PAIRED_NOT_COUNTERS = r"^(Unnamed: 0|AppId|Device|Context|Stream|Kernel|l1_cache_used)$"
PAIRED_SOURCES = ("Tesla-K40", "GTX-680")
GOALS = {"unpaired_1pct": 0.4, "unpaired_5pct": 0.6, "renamed_1pct": 0.85, "renamed_5pct": 0.85}
PAIRED_GOALS = {0: (0.11, 0.12), 5: (0.085, 0.095), 10: (0.075, 0.08), 50: (0.05, 0.055)}
PROMISE = 1.05
"""Mean error relative to the best target-only method: more is never to be, for any transfer."""
SHARES = {"1pct": 0.01, "5pct": 0.05}


class Tally:
    """What came out so far: a record for every transfer and seed."""

    def __init__(self, seeds: int, kept: Path | None) -> None:
        self.seeds = seeds
        self._kept = kept
        lines = kept.read_text().splitlines() if kept and kept.exists() else []
        found = map(json.loads, lines)
        self._records = {(r["group"], r["what"], r["seed"]): r for r in found if r["seed"] < seeds}

    def run(self, group: str, what: str, task: TransferTask, share: float, seed: int) -> None:
        """Evaluate one transfer, unless it is known."""
        if (group, what, seed) in self._records:
            return
        count = max(8, round(share * len(task.target)))
        found = evaluate_transfer(task, count, 1, first_seed=seed, is_full=False)
        record = {
            "group": group,
            "what": what,
            "seed": seed,
            "shots": count,
            "errors": {method: score["log_mse"][0] for method, score in found.scores.items()},
            "coverage": found.coverage[0],
            "severity": found.severity[0] if found.severity else None,
            "adapt_seconds": found.adapt_seconds,
        }
        self._records[(group, what, seed)] = record
        if self._kept:
            with self._kept.open("a") as file:
                file.write(json.dumps(record) + "\n")
        print(f"seed {seed} {group} {what}: {found.ratio():.3f}", file=sys.stderr, flush=True)

    def transfers(self) -> dict[tuple[str, str], pd.DataFrame]:
        """Records of every group and transfer, a row for each seed."""
        every = pd.DataFrame(list(self._records.values()))
        return {
            (str(g), str(w)): rows.sort_values("seed") for (g, w), rows in every.groupby(["group", "what"], sort=False)
        }

    def ratios(self) -> dict[str, dict[str, float]]:
        """By group and transfer: mean error of the product over that of the best target-only method."""
        found: dict[str, dict[str, float]] = {}
        for (group, what), rows in self.transfers().items():
            errors = mean_errors(rows)
            best = min(error for method, error in errors.items() if method.startswith(TARGET_ONLY))
            found.setdefault(group, {})[what] = errors["product"] / best
        return found


def mean_errors(rows: pd.DataFrame) -> dict[str, float]:
    """Squared log error by method, mean over the seeds."""
    return {str(name): float(error) for name, error in pd.DataFrame(rows["errors"].tolist()).mean().items()}


def data_folder() -> Path:
    """Where the real measurements are."""
    given = os.environ.get("PERF_ASSETS_SHARED_DATA")
    folder = Path(given) if given else Path(__file__).resolve().parents[2] / "shared" / "data"
    if not folder.is_dir():
        sys.exit(f"no measurements at {folder}; set PERF_ASSETS_SHARED_DATA to where they are")
    return folder


def levels(frame: pd.DataFrame) -> pd.DataFrame:
    """`Low (3)` to 3."""
    for name in frame.select_dtypes(object):
        found = frame[name].astype(str).str.extract(r"^[A-Za-z]+ \((\d+)\)$")[0]
        if found.notna().all():
            frame[name] = found.astype(float)
    return frame


def gpu_frames(folder: Path) -> dict[str, pd.DataFrame]:
    """Table by GPU."""
    return {p.stem: levels(pd.read_csv(p, low_memory=False)) for p in sorted((folder / "nvprof_gpus").glob("*.csv"))}


def unpaired(folder: Path, tally: Tally) -> None:
    """All ordered pairs of GPUs."""
    tables = {
        name: transfer_table(name, frame, "Duration", drop=(*NOT_COUNTERS, OWN_RUNTIME))
        for name, frame in gpu_frames(folder).items()
    }
    sources = {name: fit_sources([table]) for name, table in tables.items()}
    for seed in range(tally.seeds):
        for first, second in permutations(tables, 2):
            for task, kind in both_namings(sources[first], tables[second]):
                for label, share in SHARES.items():
                    tally.run(f"{kind}_{label}", f"{first} -> {second}", task, share, seed)


def both_namings(sources: tuple[Source, ...], target: TransferTable) -> Iterator[tuple[TransferTask, str]]:
    """The transfer as it is, and with all target counter names replaced."""
    names = sources[0].rows.counter_names
    yield TransferTask(sources, target, (same_counters(names, target.counter_names),)), "unpaired"
    renamed = replace(target, counter_names=tuple(f"t{i}" for i in range(len(target.counter_names))))
    yield TransferTask(sources, renamed, ({},)), "renamed"


def plain_tables(folder: Path, tally: Tally) -> None:
    """Airfoil to its other half (relative to the source model), airfoil to StarCraft and back."""
    airfoil = pd.read_csv(folder / "uci" / "airfoil_self_noise.dat", sep=r"\s+")
    players = pd.read_csv(folder / "uci" / "SkillCraft1_Dataset.csv", na_values="?")
    order = np.random.default_rng(0).permutation(len(airfoil))
    parts = enumerate(np.array_split(order, 2))
    halves = [transfer_table(f"airfoil_{i}", airfoil.iloc[rows], "Pressure") for i, rows in parts]
    whole = transfer_table("airfoil", airfoil, "Pressure")
    other = transfer_table("skillcraft", players, "ActionLatency")
    for first, second in ((halves[0], halves[1]), (whole, other), (other, whole)):
        sources = fit_sources([first])
        task = TransferTask(sources, second, (same_counters(first.counter_names, second.counter_names),))
        for label, share in SHARES.items():
            for seed in range(tally.seeds):
                tally.run(f"tables_{label}", f"{first.name} -> {second.name}", task, share, seed)


def paired(folder: Path, seeds: int) -> dict[str, float]:
    """Median MAPE on GPUs never seen, by number of shots."""
    roles = Roles(PAIR_KEY, "AppName", "Duration", BENCHMARK, (PAIRED_NOT_COUNTERS,))
    samples = pair_tables(gpu_frames(folder), roles)
    sources = [samples.machines.index(name) for name in PAIRED_SOURCES]
    counts = tuple(PAIRED_GOALS)
    targets = range(len(samples.machines))
    rows = evaluate_paired(samples, sources, targets, counts, range(seeds), ("without_prior", "paired"), to_stderr)
    medians = {}
    for count, (goal, mean_goal) in PAIRED_GOALS.items():
        found = summary(rows, "paired", count)
        median, mean = found["median"], found["mean"]
        print(
            f"paired, {count:2d} shots: median {median:.1%} (goal {goal:.1%}), mean {mean:.1%} (goal {mean_goal:.1%})"
        )
        medians[str(count)] = round(found["median"], 4)
    return medians


def to_stderr(line: str) -> None:
    """A line of progress."""
    print(line, file=sys.stderr, flush=True)


def main(seeds: int, part: str, kept: Path | None) -> None:
    """Evaluate, print the tables and the JSON line."""
    folder, tally = data_folder(), Tally(seeds, kept)
    if part in ("all", "unpaired"):
        unpaired(folder, tally)
    if part in ("all", "tables"):
        plain_tables(folder, tally)
    result = print_transfers(tally) if part != "paired" else {}
    medians = paired(folder, seeds) if part in ("all", "paired") else {}
    print(json.dumps({**result, "paired_mape": medians}))


def print_transfers(tally: Tally) -> dict[str, float]:
    """Every transfer, then the groups; what of it goes into the last line."""
    result: dict[str, float] = {}
    ratios, transfers = tally.ratios(), tally.transfers()
    for (group, what), rows in transfers.items():
        errors = mean_errors(rows)
        best = min((m for m in errors if m.startswith(TARGET_ONLY)), key=lambda method: errors[method])
        as_it_is = errors["product"] / errors["source_zero_shot"] if "source_zero_shot" in errors else np.nan
        print(
            f"{group:14s} {what:24s} {rows['shots'].iloc[0]:4d} shots, {len(rows)} seeds: "
            f"{ratios[group][what]:6.3f} of {best}, {as_it_is:6.3f} of the source as it is, "
            f"coverage {rows['coverage'].mean():.0%}, adapted in {rows['adapt_seconds'].median():.2f} s"
        )
    print()
    for name, found in ratios.items():
        values = np.array(list(found.values()))
        mean = float(np.exp(np.log(values).mean()))
        gains, kept = np.mean(values <= 1), np.mean(values <= PROMISE)
        print(
            f"{name:14s} {mean:.4f} (goal {GOALS.get(name, 1.0)}), worst {values.max():.3f}, "
            f"at most 1 for {gains:.0%}, at most {PROMISE} for {kept:.0%} of {len(values)} transfers"
        )
        if name in GOALS:
            result[name] = round(mean, 4)
    every = np.concatenate([list(found.values()) for found in ratios.values()])
    result["worst_ratio"] = round(float(every.max()), 4)
    result["coverage_90"] = round(float(np.mean([rows["coverage"].mean() for rows in transfers.values()])), 4)
    quantiles = ", ".join(f"{q:.0%} {np.quantile(every, q):.2f}" for q in (0.5, 0.75, 0.9, 0.95, 0.99, 1.0))
    print(f"worst ratio    {result['worst_ratio']} (goal {PROMISE}); quantiles over all transfers: {quantiles}")
    print(f"coverage of 90% intervals {result['coverage_90']} (goal 0.85 to 0.95)")
    print_severity(ratios, transfers)
    return result


def print_severity(ratios: dict[str, dict[str, float]], transfers: dict[tuple[str, str], pd.DataFrame]) -> None:
    """Does severity tell what transfer will be worth?"""
    found = [(rows["severity"].astype(float).median(), ratios[g][w]) for (g, w), rows in transfers.items()]
    severity, ratio = np.array(found).T
    for low, high in ((0.0, 0.25), (0.25, 0.5), (0.5, 1.01)):
        inside = (severity >= low) & (severity < high)
        if inside.any():
            mean = np.exp(np.log(ratio[inside]).mean())
            print(
                f"severity {low:.2f} to {min(high, 1):.2f}: {inside.sum()} transfers, geometric mean ratio {mean:.2f}"
            )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("seeds", nargs="?", type=int, default=10)
    parser.add_argument("part", nargs="?", default="all", choices=("all", "unpaired", "tables", "paired"))
    parser.add_argument("--keep", type=Path, metavar="FILE")
    given = parser.parse_args()
    main(given.seeds, given.part, given.keep)
