"""What is transfer worth? Real data: seven GPUs in all ordered pairs, airfoil noise, StarCraft players.

Unpaired: squared log error of the product relative to the best target-only method (the one that is best in hindsight,
by its mean over seeds), geometric mean over pairs; with the counters' own names and with all target names replaced.
Paired: MAPE on a GPU never seen, 0 to 50 shots. Beside each figure stands its goal.

Last line: one JSON object. Needs `../shared/data`, or PERF_ASSETS_SHARED_DATA. Arguments: the number of seeds (10), and
`unpaired`, `tables` or `paired` for a part only. With 10 seeds all takes more than an hour on two cores.
"""

import json
import os
import re
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
from perf_assets.models.transfer_evaluation import Evaluation, evaluate_transfer

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
SHARES = {"1pct": 0.01, "5pct": 0.05}


class Tally:
    """What came out so far."""

    def __init__(self, seeds: int) -> None:
        self.seeds = seeds
        self.ratios: dict[str, list[float]] = {}
        self.coverage: list[float] = []
        self.gains: list[tuple[float, float]] = []
        """Severity and ratio of every transfer."""

    def run(self, group: str, what: str, task: TransferTask, share: float) -> Evaluation:
        """Evaluate one transfer and print its line."""
        count = max(8, round(share * len(task.target)))
        found = evaluate_transfer(task, count, self.seeds, is_full=False)
        self.ratios.setdefault(group, []).append(found.ratio())
        self.coverage += found.coverage
        if found.severity:
            self.gains.append((float(np.median(found.severity)), found.ratio()))
        best = found.target_best
        print(
            f"{group:14s} {what:24s} {count:4d} shots: {found.ratio():6.3f} of {best}, coverage "
            f"{np.mean(found.coverage):.0%}, adapted in {found.adapt_seconds:.2f} s",
            flush=True,
        )
        return found


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
    for first, second in permutations(tables, 2):
        for task, kind in both_namings(sources[first], tables[second]):
            for label, share in SHARES.items():
                tally.run(f"{kind}_{label}", f"{first} -> {second}", task, share)


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
            found = tally.run(f"tables_{label}", f"{first.name} -> {second.name}", task, share)
            if "source_zero_shot" in found.scores:
                print(f"{'':14s} relative to the source as it is: {found.ratio(to='source_zero_shot'):.3f} (goal 1.0)")


def paired(folder: Path, seeds: int) -> dict[str, float]:
    """Median MAPE on GPUs never seen, by number of shots."""
    roles = Roles(PAIR_KEY, "AppName", "Duration", BENCHMARK, (PAIRED_NOT_COUNTERS,))
    samples = pair_tables(gpu_frames(folder), roles)
    sources = [samples.machines.index(name) for name in PAIRED_SOURCES]
    counts = tuple(PAIRED_GOALS)
    targets = range(len(samples.machines))
    rows = evaluate_paired(samples, sources, targets, counts, range(seeds), ("without_prior", "paired"), print)
    medians = {}
    for count, (goal, mean_goal) in PAIRED_GOALS.items():
        found = summary(rows, "paired", count)
        median, mean = found["median"], found["mean"]
        print(
            f"paired, {count:2d} shots: median {median:.1%} (goal {goal:.1%}), mean {mean:.1%} (goal {mean_goal:.1%})"
        )
        medians[str(count)] = round(found["median"], 4)
    return medians


def main(seeds: int, part: str) -> None:
    """Evaluate, print the tables and the JSON line."""
    folder, tally = data_folder(), Tally(seeds)
    if part in ("all", "unpaired"):
        unpaired(folder, tally)
    if part in ("all", "tables"):
        plain_tables(folder, tally)
    medians = paired(folder, seeds) if part in ("all", "paired") else {}
    result: dict[str, object] = {}
    print()
    for name, goal in GOALS.items():
        if name in tally.ratios:
            ratios = np.array(tally.ratios[name])
            result[name] = round(float(np.exp(np.log(ratios).mean())), 4)
            gaining = np.mean(ratios <= 1)
            print(
                f"{name:14s} {result[name]} (goal {goal}), worst pair {ratios.max():.3f}, {gaining:.0%} of pairs gain"
            )
    if tally.ratios:
        result["worst_ratio"] = round(max(max(values) for values in tally.ratios.values()), 4)
        result["coverage_90"] = round(float(np.mean(tally.coverage)), 4)
        print(f"worst ratio    {result['worst_ratio']} (goal 1.05)")
        print(f"coverage of 90% intervals {result['coverage_90']} (goal 0.85 to 0.95)")
        print_severity(tally)
    print(json.dumps({**result, "paired_mape": medians}))


def print_severity(tally: Tally) -> None:
    """Does severity tell what transfer will be worth?"""
    severity, ratio = np.array(tally.gains).T
    for low, high in ((0.0, 0.25), (0.25, 0.5), (0.5, 1.01)):
        inside = (severity >= low) & (severity < high)
        if inside.any():
            mean = np.exp(np.log(ratio[inside]).mean())
            print(
                f"severity {low:.2f} to {min(high, 1):.2f}: {inside.sum()} transfers, geometric mean ratio {mean:.2f}"
            )


if __name__ == "__main__":
    numbers = [argument for argument in sys.argv[1:] if re.fullmatch(r"\d+", argument)]
    parts = [argument for argument in sys.argv[1:] if argument in ("unpaired", "tables", "paired")]
    main(int(numbers[0]) if numbers else 10, parts[0] if parts else "all")
