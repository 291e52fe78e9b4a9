"""How fast are the readers against the public ones? Both on the same files, in one run, taking turns.

- kripke, 64 ranks: totals over ranks, against hatchet's `from_hpctoolkit` and `drop_index_levels`
- 15 Quartz .cali files, each four times: kernel times, against thicket (which takes all 60 at once, as files of
  different names) and against caliper-reader (which only parses)
- v4 database: program total, against hatchet's `from_hpctoolkit_latest`

Each time is the smallest of several repetitions. Where the others are right, the numbers must agree, or the benchmark
fails. Last line: one JSON object of ratios, theirs / ours. Needs `../shared/data`, or PERF_ASSETS_SHARED_DATA, and the
development extra.
"""

import argparse
import gc
import json
import math
import shutil
import sys
import tempfile
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from transfer_data import data_folder

from perf_assets.core.measurements import Reading
from perf_assets.readers.read import read

_COPIES = 4
_CALI_FILES = 15


@dataclass(frozen=True)
class Task:
    """One comparison."""

    key: str
    description: str
    goal: float
    ours: Callable[[], Any]
    theirs: Callable[[], Any]
    check: Callable[[Any, Any], None]
    """Raises where the numbers do not agree: ours, theirs."""
    repetitions: int
    turns: int = 1
    """How often ours runs in a repetition, where theirs takes so long that one of ours would be a matter of luck."""


def agree(ours: float, theirs: float, what: str) -> None:
    """End the benchmark where two numbers differ."""
    if not math.isclose(ours, theirs, rel_tol=1e-9):
        raise SystemExit(f"{what}: ours is {ours!r}, theirs {theirs!r}")


def seconds_of(work: Callable[[], Any]) -> tuple[float, Any]:
    """Seconds and result."""
    start = time.perf_counter()
    result = work()
    return time.perf_counter() - start, result


def compare(task: Task) -> tuple[float, float]:
    """Smallest seconds, ours and theirs."""
    ours, theirs = math.inf, math.inf
    for _ in range(task.repetitions):
        for _ in range(task.turns):
            our_seconds, our_result = seconds_of(task.ours)
            ours = min(ours, our_seconds)
        their_seconds, their_result = seconds_of(task.theirs)
        theirs = min(theirs, their_seconds)
        task.check(our_result, their_result)
    return ours, theirs


def kripke(root: Path, hatchet: Any) -> Task:
    """HPCToolkit's experiment.xml with a metric-db of each rank."""
    database = root / "hpctoolkit" / "kripke"

    def theirs() -> Any:
        frame = hatchet.GraphFrame.from_hpctoolkit(str(database))
        frame.drop_index_levels()
        return frame

    def check(ours: Reading, frame: Any) -> None:
        total = ours.profiles[0].metrics["CPUTIME (usec)"]
        mean = sum(float(frame.dataframe.loc[entry, "time (inc)"]) for entry in frame.graph.roots)
        agree(total.mean_over_ranks, mean, "kripke, mean over ranks")
        agree(total.sum, mean * 64, "kripke, sum over 64 ranks")

    return Task(
        "kripke_vs_hatchet", "kripke, 64 ranks: hatchet", 30, lambda: read(database), theirs, check, repetitions=5
    )


def v4(root: Path, hatchet: Any) -> Task:
    """HPCToolkit's meta.db and profile.db."""
    database = root / "hpctoolkit" / "v4_pingpong"

    def check(ours: Reading, frame: Any) -> None:
        theirs = sum(float(frame.dataframe.loc[entry, "time (inc)"]) for entry in frame.graph.roots)
        agree(ours.profiles[0].metrics["CPUTIME (sec)"].sum, theirs, "v4, sum over ranks")

    return Task(
        "v4_vs_hatchet",
        "v4_pingpong: hatchet",
        10,
        lambda: read(database),
        lambda: hatchet.GraphFrame.from_hpctoolkit_latest(str(database)),
        check,
        repetitions=300,
    )


def caliper_files(root: Path, directory: Path, times: int) -> list[Path]:
    """The Quartz files, each several times, under different names."""
    files = sorted((root / "rajaperf" / "quartz_cali").rglob("*.cali"))
    if len(files) != _CALI_FILES:
        raise SystemExit(f"{root} has {len(files)} Quartz .cali files instead of {_CALI_FILES}")
    copies = [directory / f"{number}-{file.name}" for number in range(times) for file in files]
    for copy, file in zip(copies, files * times, strict=True):
        shutil.copyfile(file, copy)
    return copies


def cali_thicket(files: list[Path], thicket: Any) -> Task:
    """Kernel times of all files, against one Thicket of them."""

    def theirs() -> Any:
        return thicket.Thicket.from_caliperreader([str(file) for file in files], disable_tqdm=True)

    def check(readings: list[Reading], found: Any) -> None:
        # Thicket keeps one of the files with the same content, so compare a kernel's mean over all of them. Ours is the
        # time of a repetition, in seconds by the unit of the file; theirs is the bare number of a pass, in nanoseconds.
        timings = [timing for reading in readings for timing in reading.timings if timing.kernel == "Stream_TRIAD"]
        ours = sum((timing.seconds_per_rep or 0.0) * (timing.reps or 0) for timing in timings) / len(timings)
        rows = found.dataframe[found.dataframe["name"] == "Stream_TRIAD"]
        agree(ours, float(rows["time"].mean()) / _per_second(float(rows["time"].mean()), ours), "Stream_TRIAD")

    return Task(
        "cali_vs_thicket", f"{len(files)} .cali: thicket", 60,
        lambda: [read(file) for file in files], theirs, check, repetitions=3, turns=10,
    )  # fmt: skip


def _per_second(theirs: float, ours: float) -> float:
    """Thicket drops units: a second is 1, 1e6 or 1e9 of its numbers, whichever is nearest."""
    return min((1.0, 1e6, 1e9), key=lambda scale: abs(math.log(theirs / scale / ours)))


def cali_reader(files: list[Path], caliperreader: Any) -> Task:
    """Kernel times of all files, against parsing alone."""

    def theirs() -> Any:
        readers = []
        for file in files:
            reader = caliperreader.CaliperReader()
            reader.read(str(file))
            readers.append(reader)
        return readers

    def check(readings: list[Reading], readers: list[Any]) -> None:
        for reading, reader in zip(readings, readers, strict=True):
            paths = [record["path"] for record in reader.records if isinstance(record.get("path"), list)]
            kernels = {path[-1] for path in paths if len(path) == 3 and path[0] == "RAJAPerf"}
            if kernels != {timing.kernel for timing in reading.timings}:
                raise SystemExit("ours and caliper-reader find different kernels")

    return Task(
        "cali_vs_caliper_reader", f"{len(files)} .cali: caliper-reader", 2,
        lambda: [read(file) for file in files], theirs, check, repetitions=25,
    )  # fmt: skip


def main() -> int:
    """Print the table and the JSON line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--quick", action="store_true", help="seconds instead of minutes, figures without meaning")
    is_quick = parser.parse_args().quick
    root = data_folder()
    warnings.simplefilter("ignore")
    try:
        import caliperreader
        import hatchet
        import thicket
    except ImportError as error:
        print(f"{error.name} is not installed: pip install -c constraints.txt -e '.[dev]'", file=sys.stderr)
        return 2
    # What was imported is no garbage; going through it again and again would be added to the times of both.
    gc.collect()
    gc.freeze()
    ratios = {}
    print(f"{'task':32}{'ours ms':>10}{'theirs ms':>12}{'ratio':>9}{'goal':>7}  met")
    with tempfile.TemporaryDirectory(prefix="readers-") as directory:
        files = caliper_files(root, Path(directory), 1 if is_quick else _COPIES)
        tasks = (
            kripke(root, hatchet), cali_thicket(files, thicket), cali_reader(files, caliperreader), v4(root, hatchet),
        )  # fmt: skip
        for task in tasks:
            ours, theirs = compare(replace(task, repetitions=1, turns=1) if is_quick else task)
            ratios[task.key] = round(theirs / ours, 2)
            met = "yes" if theirs / ours >= task.goal else "NO"
            print(
                f"{task.description:32}{ours * 1e3:10.2f}{theirs * 1e3:12.2f}{theirs / ours:9.1f}{task.goal:7}  {met}"
            )
    print(json.dumps(ratios))
    return 0


if __name__ == "__main__":
    sys.exit(main())
