"""Can few-shot transfer lose? Families of data, each reported with what was chosen on the other families.

Families: `nvprof_gpus` (all ordered pairs of seven GPUs), `modelx_apps` (each of ModelX's four applications from the
three others together, and all ordered pairs), `kripke_power` (two inputs under power caps, either way), `spechpc` (six
codes on two CPUs, either way), `uci` (airfoil halves; airfoil and StarCraft players, which share no feature),
`simulated_fleet` (machines of the demo, each from its reference machine).

A setting is the prior probability that the sources are of no use. For each family it is chosen on all other families
(smallest geometric mean of product / target-only choice over their transfers, at 1% and 5% together) and reported on
the family that had no part in it. All else has no setting: weights follow from the evidence of the shots.

Per family and number of shots: geometric mean and worst, over transfers, of the squared log error (mean over seeds) of
the product relative to the best target-only method in hindsight (of six), and to the target-only choice, which never
sees a source; coverage of the 90% intervals; median severity. At the end: what severity tells (Spearman correlation
over all transfers with log(error of the source as it is / error of the supervised model on all rows of the pool)).

Shots are at least 8 and at most 200; test rows are half of a table, 2,000 at most. Last line: one JSON object; progress
goes to stderr. Needs `../shared/data`, or PERF_ASSETS_SHARED_DATA.
"""

import argparse
import json
import sys
from collections.abc import Callable, Sequence
from itertools import permutations
from pathlib import Path

import numpy as np
import pandas as pd
from scipy.stats import spearmanr
from transfer_data import GPU_NOT_FEATURES, data_folder, gpu_frames

from perf_assets.features.tables.unpaired import TransferTable, transfer_table
from perf_assets.models.common.averaged_gp import AverageSettings
from perf_assets.models.transfer.baselines import TARGET_CHOICE, TARGET_ONLY, supervised, target_baselines
from perf_assets.models.transfer.evaluation import Split
from perf_assets.models.transfer.model import fit_product
from perf_assets.models.transfer.task import TransferTask

SHARES = {"1pct": 0.01, "5pct": 0.05}
PRIORS = (0.2, 0.5, 0.8)
"""Settings to choose from."""
LEAST_SHOTS, MOST_SHOTS, MOST_TEST_ROWS = 8, 200, 2000
GOALS = {"geomean": 0.9, "worst": 1.15, "worst_vs_target_choice": 1.05}
NVPROF_GEOMEAN = {"1pct": 0.25, "5pct": 0.4}
FLEET_PAIRS = 12

Transfer = tuple[Sequence[TransferTable], TransferTable]


def nvprof_gpus(folder: Path) -> list[Transfer]:
    """All ordered pairs of GPUs."""
    tables = [transfer_table(n, f, "Duration", drop=GPU_NOT_FEATURES) for n, f in gpu_frames(folder).items()]
    return [([first], second) for first, second in permutations(tables, 2)]


def modelx_apps(folder: Path) -> list[Transfer]:
    """Each application from all others, and all ordered pairs."""
    tables = [
        transfer_table(app, pd.read_csv(folder / "modelx_apps" / f"{app}.csv"), "runtime_seconds")
        for app in ("comd", "cg", "ft", "kripke")
    ]
    from_all: list[Transfer] = [([other for other in tables if other is not one], one) for one in tables]
    return from_all + [([first], second) for first, second in permutations(tables, 2)]


def kripke_power(folder: Path) -> list[Transfer]:
    """Two inputs, either way; what was measured during the run is left out."""
    tables = [
        transfer_table(
            f"kripke_{size}",
            pd.read_csv(folder / "kripke_power" / f"kripke_16nodes_{size}.csv.gz"),
            "ExecTime",
            drop=("^Avg", "Power"),
        )
        for size in (2000, 12000)
    ]
    return [([first], second) for first, second in permutations(tables, 2)]


def spechpc(folder: Path) -> list[Transfer]:
    """Two CPUs, either way; derived rates and events that count time or energy are left out."""
    drop = ("^mean_", "^sum_", "ENERGY", "CLK_UNHALTED", "TOPDOWN", "STALL", "CYCLE")
    tables = [
        transfer_table(cpu, pd.read_csv(folder / "spechpc" / f"{cpu}.csv"), "runtime_s", drop=drop)
        for cpu in ("icelake-8360y", "sapphirerapids-8470")
    ]
    return [([first], second) for first, second in permutations(tables, 2)]


def uci(folder: Path) -> list[Transfer]:
    """Airfoil to its other half; airfoil to StarCraft and back."""
    airfoil = pd.read_csv(folder / "uci" / "airfoil_self_noise.dat", sep=r"\s+")
    players = pd.read_csv(folder / "uci" / "SkillCraft1_Dataset.csv", na_values="?").drop(columns="GameID")
    halves = np.array_split(np.random.default_rng(0).permutation(len(airfoil)), 2)
    first, second = (transfer_table(f"airfoil_{i}", airfoil.iloc[rows], "Pressure") for i, rows in enumerate(halves))
    whole = transfer_table("airfoil", airfoil, "Pressure")
    other = transfer_table("skillcraft", players, "ActionLatency")
    return [([first], second), ([whole], other), ([other], whole)]


def simulated_fleet(folder: Path) -> list[Transfer]:
    """Machines of the demo from their reference machines, by counters and application, not paired."""
    from families_paired import simulated_fleet as fleet

    family = fleet()
    samples = family.samples

    def table(machine: int) -> TransferTable:
        runs = ~samples.is_benchmark & np.isfinite(samples.log_seconds[machine])
        frame = pd.DataFrame(samples.counters[machine][runs], columns=list(samples.counter_names))
        frame = frame.assign(app=samples.apps[runs], seconds=np.exp(samples.log_seconds[machine][runs]))
        return transfer_table(samples.machines[machine], frame, "seconds")

    return [([table(source)], table(target)) for source, target in family.pairs[:FLEET_PAIRS]]


FAMILIES: dict[str, Callable[[Path], list[Transfer]]] = {
    "modelx_apps": modelx_apps,
    "spechpc": spechpc,
    "uci": uci,
    "kripke_power": kripke_power,
    "simulated_fleet": simulated_fleet,
    "nvprof_gpus": nvprof_gpus,
}


def record(family: str, task: TransferTask, label: str, seed: int) -> dict[str, object]:
    """Errors of all methods and settings on one draw of shots and test rows."""
    share = SHARES[label]
    count = int(np.clip(round(share * len(task.target)), LEAST_SHOTS, MOST_SHOTS))
    split = Split.draw(np.arange(len(task.target)), seed)
    shots, test = split.shots(count), split.test[:MOST_TEST_ROWS]
    true = task.target.target[test]
    errors: dict[str, float] = {}
    coverage: dict[str, float] = {}
    severity = None
    for prior in PRIORS:
        product = fit_product(task, shots, seed, settings=AverageSettings(target_only_prior=prior))
        predicted = product.predict_rows(test)
        errors[f"product {prior}"] = float(np.mean((predicted - true) ** 2))
        coverage[str(prior)] = product.interval.coverage(predicted, true)
        severity = product.severity.rescaled if product.severity else None
    for name, fit in target_baselines(task.target).items():
        errors[name] = float(np.mean((fit(shots, seed)(test) - true) ** 2))
    if task.groups:
        errors["source"] = float(np.mean((task.expected[test].mean(axis=1) - true) ** 2))
    else:
        level = np.mean([table.target.mean() for source in task.sources for table in source.tables])
        errors["source"] = float(np.mean((level - true) ** 2))
    if seed == 0 and label == "1pct":
        errors["supervised"] = float(np.mean((supervised(task.target, split.pool[:2000], seed)(test) - true) ** 2))
    what = f"{'+'.join(source.name for source in task.sources)} -> {task.target.name}"
    return {
        "family": family,
        "what": what,
        "share": label,
        "shots": count,
        "seed": seed,
        "errors": errors,
        "coverage": coverage,
        "severity": severity,
    }


def run(names: Sequence[str], seeds: int, most: int | None, kept: Path | None) -> pd.DataFrame:
    """Records of all families; those in the file `kept` are not computed again."""
    lines = kept.read_text().splitlines() if kept and kept.exists() else []
    known = {(r["family"], r["what"], r["share"], r["seed"]): r for r in map(json.loads, lines)}
    folder, found = data_folder(), []
    for name in names:
        for tables, target in FAMILIES[name](folder)[:most]:
            task = TransferTask.of(tables, target)
            what = f"{'+'.join(source.name for source in task.sources)} -> {target.name}"
            for label in SHARES:
                for seed in range(seeds):
                    one = known.get((name, what, label, seed))
                    if one is None:
                        one = record(name, task, label, seed)
                        if kept:
                            with kept.open("a") as file:
                                file.write(json.dumps(one) + "\n")
                    found.append(one)
            print(f"{name}: {what} done", file=sys.stderr, flush=True)
    return pd.DataFrame(found)


def summaries(records: pd.DataFrame) -> pd.DataFrame:
    """One row per transfer and number of shots: mean errors over seeds."""
    rows = []
    for (family, what, share), here in records.groupby(["family", "what", "share"], sort=False):
        errors = pd.DataFrame(here["errors"].tolist()).mean()
        coverage = pd.DataFrame(here["coverage"].tolist()).mean()
        best = errors[[name for name in errors.index if name.startswith(TARGET_ONLY)]].min()
        for prior in PRIORS:
            product = errors[f"product {prior}"]
            rows.append(
                {
                    "family": family,
                    "what": what,
                    "share": share,
                    "prior": prior,
                    "shots": int(here["shots"].iloc[0]),
                    "ratio": product / best,
                    "vs_choice": product / errors[TARGET_CHOICE],
                    "coverage": coverage[str(prior)],
                    "severity": here["severity"].astype(float).median(),
                    "source": errors["source"],
                    "supervised": errors.get("supervised", np.nan),
                }
            )
    return pd.DataFrame(rows)


def chosen_prior(rows: pd.DataFrame, family: str) -> float:
    """The setting with the smallest geometric mean on all other families, each family counting the same."""
    others = rows[rows["family"] != family]
    if others.empty:
        return AverageSettings().target_only_prior
    logs = np.log(others["vs_choice"]).groupby([others["prior"], others["family"]]).mean()
    return float(logs.groupby("prior").mean().idxmin())


def figure_of_merit(rows: pd.DataFrame) -> float | None:
    """Spearman correlation of severity and log(error of the source as it is / of the supervised model)."""
    once = rows[(rows["prior"] == PRIORS[0]) & (rows["share"] == "1pct") & rows["supervised"].notna()]
    once = once[once["severity"].notna()]
    if len(once) < 4:
        return None
    return float(spearmanr(once["severity"], np.log(once["source"] / once["supervised"])).statistic)


def main() -> None:
    """Evaluate, print a row per family and the JSON line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--families", nargs="+", choices=tuple(FAMILIES), default=list(FAMILIES))
    parser.add_argument("--keep", type=Path, metavar="FILE", help="store records here, and go on from those in it")
    parser.add_argument("--quick", action="store_true", help="two small families, two transfers each, one seed")
    parser.add_argument("--paired", action="store_true", help="score the paired model, too (families_paired.py)")
    given = parser.parse_args()
    asked = (["spechpc", "uci"], 1, 2, None) if given.quick else (given.families, given.seeds, None, given.keep)
    rows = summaries(run(*asked))
    found: dict[str, dict[str, dict[str, float]]] = {}
    print("family           share  transfers  prior  geomean (goal)  worst (1.15)  worst/choice (1.05)  coverage")
    for family in rows["family"].unique():
        prior = chosen_prior(rows, str(family))
        for share in SHARES:
            here = rows[(rows["family"] == family) & (rows["share"] == share) & (rows["prior"] == prior)]
            figures = {
                "geomean": float(np.exp(np.log(here["ratio"]).mean())),
                "worst": float(here["ratio"].max()),
                "worst_vs_target_choice": float(here["vs_choice"].max()),
                "coverage_90": float(here["coverage"].mean()),
            }
            found.setdefault(str(family), {})[share] = {name: round(value, 4) for name, value in figures.items()}
            goal = NVPROF_GEOMEAN[share] if family == "nvprof_gpus" else GOALS["geomean"]
            print(
                f"{family:16s} {share:5s} {len(here):6d} {prior:10.1f} {figures['geomean']:9.3f} ({goal:.2f})"
                f" {figures['worst']:12.2f} {figures['worst_vs_target_choice']:18.2f} {figures['coverage_90']:12.1%}"
            )
    default = rows[rows["prior"] == AverageSettings().target_only_prior]
    print(default.sort_values("ratio", ascending=False).head(12).to_string(index=False, float_format="%.3f"))
    merit = figure_of_merit(rows)
    print(f"severity: Spearman correlation {merit if merit is None else round(merit, 3)} (goal 0.6)")
    coverage = round(float(default["coverage"].mean()), 4)
    result: dict[str, object] = {"families": found, "coverage_90": coverage, "severity_spearman": merit}
    if given.paired:
        from families_paired import paired_families

        result["paired"] = paired_families(given.seeds, progress=lambda line: print(line, file=sys.stderr, flush=True))
    print(json.dumps(result))


if __name__ == "__main__":
    main()
