"""A lake of measured data from a folder of public data sets, laid out as `Folder` says: what `demo --real` lands.

Profiles and reports land as they are. Tables become samples: their columns are renamed, the time to `wall_seconds`, and
what holds the answer (rates, energies) is left out. A table of relative speeds has times relative to a machine of its
own: they say so in each row, and campaigns that were measured in different ways differ in an argument, so that
they are never compared.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from perf_assets.core.errors import BadInputError
from perf_assets.core.manifest import BundleFacts
from perf_assets.core.measurements import RELATIVE_TIME
from perf_assets.readers.bundle import AGGREGATION_TAG, SUM_OVER_RANKS
from perf_assets.storage.aliases import Aliases
from perf_assets.storage.landing import copying
from perf_assets.workflows.landing.land import plan_landing

if TYPE_CHECKING:
    import pandas as pd

AS_THEY_ARE = (
    ("rajaperf/quartz_cali", None),
    ("rajaperf/lassen_cali", None),
    ("rajaperf/llnl_fleet/*.cali", None),
    ("rajaperf/h100_csv_2026", "h100"),
    ("rajaperf/epyc-vm_2024/t*", "epyc-vm"),
    ("caliper/lulesh_opal", None),
    ("jobs", "eagle"),
)
"""Files that tools wrote, and their machine where no file names it."""
CAMPAIGNS = (
    ("quartz", "ruby", "lassen"),
    ("borax", "boraxo", "dane", "mammoth", "matrix-cpu", "tioga-cpu", "tioga-gpu"),
)
"""Machines of the relative speeds that were measured in one way."""
TRANSCRIBED = {
    "spr-ddr": "dane",
    "p9-v100": "lassen",
    "cas-a100": "cas-a100",
    "epyc-mi250x": "tioga-gpu",
    "epyc-mi300a": "rzadams",
}
"""Machines of the transcribed kernel times, and the machine that they describe: the same one, but for poodle's spr-ddr,
which has the processors of dane."""
MEASURED_ON = "measured on"
"""Label of RAJAPerf runs that were transcribed; its value is the machine's name there."""
_LEAST_SPEED = 0.1
_TABLE = "runs.csv"


@dataclass(frozen=True)
class RealBundle:
    """A bundle that lands, and where it is from."""

    origin: str
    facts: BundleFacts
    write: Callable[[Path], None]


def real_bundles(folder: Path, aliases: Aliases) -> list[RealBundle]:
    """All bundles of what is in a folder; an error where nothing of it is known."""
    if not folder.is_dir():
        raise BadInputError(f"--real {folder}: there is no such folder")
    bundles = [
        *_files(folder, aliases),
        *_transcribed(folder),
        *_relative_speeds(folder),
        *_processors(folder),
        *_gpus(folder),
    ]
    if not bundles:
        known = ", ".join(sorted({pattern.partition("/")[0] for pattern, _ in AS_THEY_ARE}))
        raise BadInputError(
            f"--real {folder}: nothing there is known; it has folders like {known}, llnl_relative, spechpc, nvprof_gpus"
        )
    return bundles


def _files(folder: Path, aliases: Aliases) -> Iterator[RealBundle]:
    for pattern, machine in AS_THEY_ARE:
        given = {} if machine is None else {"machine": machine}
        for path in sorted(folder.glob(pattern)):
            for planned in plan_landing([path], given, aliases):
                origin = planned.shown_path.removeprefix(f"{folder}/")
                yield RealBundle(origin, planned.facts, copying(planned.path, planned.files))


def _transcribed(folder: Path) -> Iterator[RealBundle]:
    """Kernel times that were transcribed into one table, as RAJAPerf's own reports."""
    import pandas as pd

    file = folder / "rajaperf" / "llnl_fleet" / "timings.csv"
    if not file.is_file():
        return
    for name, rows in pd.read_csv(file).groupby("machine"):
        if name in TRANSCRIBED:
            facts = BundleFacts(
                machine=TRANSCRIBED[str(name)],
                kind="rajaperf",
                tags={MEASURED_ON: str(name)},
                collected_at=_changed_at(file),
            )
            yield RealBundle(str(file.relative_to(folder)), facts, partial(_write_reports, rows))


def _write_reports(rows: "pd.DataFrame", into: Path) -> None:
    """Write a machine's times as the reports of RAJAPerf since v2025.12: sizes, bytes and operations are of a rank."""
    per_rep = rows["seconds_avg_per_rank"] / rows["reps"]
    columns = {
        "kernel": "Kernel",
        "variant": "Variant",
        "tuning": "Tuning",
        "problem_size": "Problem size",
        "reps": "Reps",
        "bytes_per_rep": "BytesMoved/rep",
        "flops_per_rep": "FLOPS/rep",
    }
    named = rows.rename(columns=columns)[[*columns.values()]].assign(Checksum="PASSED")
    named["Mean time per rep (sec.)"] = per_rep
    details = named[["Kernel", "Problem size", "Reps", "BytesMoved/rep", "FLOPS/rep"]].drop_duplicates("Kernel")
    times = named[["Kernel", "Variant", "Tuning", "Problem size", "Checksum", "Mean time per rep (sec.)"]]
    title = f"Kernels run on {int(rows['ranks'].iloc[0])} MPI ranks\n"
    for name, report in (("details", details), ("run-data", times)):
        (into / f"RAJAPerf-kernel-{name}.csv").write_text(title + report.to_csv(index=False), encoding="ascii")


def _relative_speeds(folder: Path) -> Iterator[RealBundle]:
    import pandas as pd

    file = folder / "llnl_relative" / "relative_speed.csv"
    if not file.is_file():
        return
    table = pd.read_csv(file, dtype={"app": str, "args": str})
    for number, machines in enumerate(CAMPAIGNS, 1):
        for machine in (name for name in machines if name in table):
            there = table[table[machine] >= _LEAST_SPEED]
            rows = pd.DataFrame(
                {
                    "app": there["app"],
                    "args": there["args"] + f" campaign={number}",
                    "ranks": there["ranks"],
                    "wall_seconds": 1 / there[machine],
                    RELATIVE_TIME: "to quartz",
                }
            )
            yield _samples(file, folder, machine, rows, {RELATIVE_TIME: "to quartz"})


def _processors(folder: Path) -> Iterator[RealBundle]:
    import pandas as pd

    for file in sorted((folder / "spechpc").glob("*.csv")):
        table = pd.read_csv(file)
        # Energies hold the run time, as rates do.
        counts = [str(name) for name in table if re.match(r"ev_(?!.*ENERGY)", str(name))]
        rows = table[["app", "ranks", *counts]].assign(args="tiny", wall_seconds=table["runtime_s"])
        yield _samples(file, folder, file.stem.lower(), rows, {AGGREGATION_TAG: SUM_OVER_RANKS})


def _gpus(folder: Path) -> Iterator[RealBundle]:
    import pandas as pd

    for file in sorted((folder / "nvprof_gpus").glob("*.csv")):
        table = pd.read_csv(file, low_memory=False)
        args = table[["Input.Size", "Block.X", "Block.Y"]].astype(str).agg(" ".join, axis=1)
        rows = table.drop(columns=["AppName", "Input.Size", "Block.X", "Block.Y", "Duration"])
        rows = rows.assign(app=table["AppName"], args=args, gpus=1, wall_seconds=table["Duration"])
        yield _samples(file, folder, file.stem.lower(), rows, {})


def _samples(file: Path, folder: Path, machine: str, rows: "pd.DataFrame", tags: Mapping[str, str]) -> RealBundle:
    facts = BundleFacts(
        machine=machine,
        kind="samples",
        target="wall_seconds",
        tags=dict(tags),
        collected_at=_changed_at(file),
    )
    return RealBundle(
        str(file.relative_to(folder)), facts, lambda into: rows.to_csv(into / _TABLE, index=False, encoding="utf-8")
    )


def _changed_at(file: Path) -> datetime:
    return datetime.fromtimestamp(int(file.stat().st_mtime), UTC)


def machines_of(bundles: Sequence[RealBundle]) -> list[str]:
    """Machines that bundles are of, sorted."""
    return sorted({bundle.facts.machine for bundle in bundles})
