"""What the paths of xAMM's configuration file name, read."""

from pathlib import Path
from typing import TYPE_CHECKING

from perf_assets.cli.support.tables import read_table
from perf_assets.core.errors import BadInputError
from perf_assets.core.xamm_config import AmmReference, XammConfig

if TYPE_CHECKING:
    from perf_assets.core.measurements import KernelTiming
    from perf_assets.features.tables.xamm_applications import ApplicationTable
    from perf_assets.features.tables.xamm_benchmarks import BenchmarkTable
    from perf_assets.features.tables.xamm_pairs import PairAmms

_TABLE_ENDINGS = (".csv", ".tsv", ".txt", ".parquet")


def read_benchmarks(path: Path) -> "BenchmarkTable":
    """Benchmark runs of one machine or of many: tables, or RAJAPerf outputs."""
    from perf_assets.features.tables.xamm_benchmarks import benchmark_table, suite_tables

    if not path.exists():
        raise BadInputError(f"machine_data_path: {path} does not exist")
    timings: dict[str, list[KernelTiming]] = {}
    tables = {}
    for entry in _entries(path):
        name = entry.stem if entry.is_file() else entry.name
        if name in timings or name in tables:
            raise BadInputError(f"machine_data_path: two entries of {path.name} are named {name!r}")
        if _is_rajaperf(entry):
            from perf_assets.readers.read import read

            timings[name] = read(entry, "rajaperf").timings
        elif entry.is_file():
            tables[name] = read_table(entry)
        else:
            raise BadInputError(f"machine_data_path: no RAJAPerf results in the folder {entry}")
    if not timings and not tables:
        raise BadInputError(f"machine_data_path: no table and no RAJAPerf results in {path}")
    return benchmark_table({**tables, **(suite_tables(timings) if timings else {})})


def read_applications(field: str, path: Path, features: "tuple[str, ...] | None" = None) -> "ApplicationTable":
    """A table of application runs."""
    from perf_assets.features.tables.xamm_applications import application_table

    if not path.is_file():
        raise BadInputError(f"{field}: {path} is no file")
    return application_table(read_table(path), path.name, features)


def read_pair_amms(config: XammConfig, table: "ApplicationTable") -> "PairAmms | None":
    """AMMs of each row's machines; None where the configuration sets none."""
    from perf_assets.features.tables.xamm_applications import SOURCE, TARGET
    from perf_assets.features.tables.xamm_pairs import AmmSide, pair_amms
    from perf_assets.storage.amm_files import read_amms

    def side(field: str, column: str, given: AmmReference) -> AmmSide:
        if not given.file.is_file():
            raise BadInputError(f"{field}: {given.file} is no file: make it with 'func: amm'")
        stored = read_amms(given.file)
        return AmmSide(field, column, given.file.name, stored.encoder_version, stored.vectors, given.machine)

    if config.amm_pair is None:
        return None
    source, target = config.amm_pair
    return pair_amms(table, side("src_machine_amm", SOURCE, source), side("target_machine_amm", TARGET, target))


def _entries(path: Path) -> list[Path]:
    """One a machine: the file, the folder with RAJAPerf reports in it, or all tables and sub-folders of a folder."""
    if path.is_file():
        return [path]
    found = sorted(entry for entry in path.iterdir() if not entry.name.startswith("."))
    files = [entry for entry in found if entry.is_file()]
    if any(_is_rajaperf(file) for file in files):
        return [path]
    return [entry for entry in found if entry.is_dir() or entry.suffix.lower() in _TABLE_ENDINGS]


def _is_rajaperf(path: Path) -> bool:
    """Whether a file is an output of RAJAPerf, or a folder holds some."""
    from perf_assets.readers.files import scan
    from perf_assets.readers.formats import kind_of
    from perf_assets.readers.read import RAJAPERF_KINDS

    return any(kind_of(source.head) in RAJAPERF_KINDS for source in scan(path))
