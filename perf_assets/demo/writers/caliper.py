"""RAJAPerf's Caliper profiles, one `.cali` file per variant and tuning, as Caliper 2.9 writes them with `spot`.

The text stream holds tree nodes, records that refer to them, and run metadata. Node ids 0 to 11 are built in.
"""

import re
from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path

from perf_assets.demo.simulated import BenchmarkRun, KernelRun
from perf_assets.demo.writers.rajaperf_tables import Column, Suite, arguments

_INT, _UINT, _STRING, _DOUBLE = 1, 2, 3, 5
_ATTRIBUTE_NAME, _ATTRIBUTE_PROPERTIES = 8, 10
_META, _NESTED, _GLOBAL, _RUN_METADATA, _VALUE, _HIDDEN_VALUE, _CATEGORY = 64, 276, 512, 1612, 65, 193, 84
"""Properties that Caliper gives to its kinds of attributes."""

_SECONDS = "inclusive#sum#time.duration"
_KERNEL_FACTS = ("BlockSize", "Bytes/Rep", "Flops/Rep", "Iterations/Rep", "Kernels/Rep", "ProblemSize", "Reps")


def write_caliper(directory: Path, run: BenchmarkRun) -> None:
    """Write `<variant>-<tuning>.cali` for each variant and tuning into `directory`."""
    suite = Suite(run)
    for column in suite.columns:
        text = _profile(suite, column)
        (directory / f"{'-'.join(column)}.cali").write_text(text, encoding="utf-8")


def _escaped(text: str) -> str:
    return re.sub(r"([\\,=\n])", r"\\\1", text)


class _Stream:
    """Lines of a file, and the numbers of its nodes."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self._next = 12
        self._known: dict[tuple[int, str, int], int] = {}

    def node(self, attribute: int, data: str, parent: int = -1) -> int:
        """Number of a node, which is written where it is new."""
        key = (attribute, data, parent)
        if key not in self._known:
            self._known[key] = self._next
            below = "" if parent < 0 else f",parent={parent}"
            self.lines.append(f"__rec=node,id={self._next},attr={attribute},data={_escaped(data)}{below}")
            self._next += 1
        return self._known[key]

    def attribute(self, name: str, kind: int, properties: int) -> int:
        """Number of an attribute whose type is node `kind`, or a node with more metadata below the type."""
        return self.node(_ATTRIBUTE_NAME, name, self.node(_ATTRIBUTE_PROPERTIES, str(properties), kind))

    def record(self, references: Iterable[int], values: dict[int, str]) -> None:
        """Write one record into the file."""
        refs, names = "=".join(map(str, references)), "=".join(map(str, values))
        self.lines.append(f"__rec=ctx,ref={refs},attr={names},data={'='.join(values.values())}")


class _Metrics:
    """The attributes of the values in a record."""

    def __init__(self, stream: _Stream) -> None:
        alias = stream.attribute("attribute.alias", _STRING, _META)
        unit = stream.attribute("attribute.unit", _STRING, _META)
        seconds = stream.node(unit, "sec", _DOUBLE)

        def value(name: str, title: str, kind: int) -> int:
            return stream.attribute(name, stream.node(alias, title, kind), _VALUE)

        self._times = [
            value(f"min#{_SECONDS}", "Min time/rank", seconds),
            value(f"max#{_SECONDS}", "Max time/rank", seconds),
            value(f"avg#{_SECONDS}", "Avg time/rank", seconds),
        ]
        self._sum = stream.attribute(f"avg.sum#{_SECONDS}", _DOUBLE, _HIDDEN_VALUE)
        self._count = stream.attribute(f"avg.count#{_SECONDS}", _UINT, _HIDDEN_VALUE)
        self._total = value(f"sum#{_SECONDS}", "Total time", seconds)
        self._facts = [value(f"any#any#max#{name}", name, _DOUBLE) for name in _KERNEL_FACTS]

    def values(self, seconds: float, ranks: int, facts: tuple[int, ...]) -> dict[int, str]:
        """Content of a record: time of one rank, and facts of a kernel."""
        numbers = dict.fromkeys(self._times, f"{seconds:f}")
        numbers |= {self._sum: f"{seconds * ranks:f}", self._count: str(ranks), self._total: f"{seconds * ranks:f}"}
        return numbers | {attribute: f"{fact:f}" for attribute, fact in zip(self._facts, facts, strict=True)}


def _facts(kernel: KernelRun) -> tuple[int, ...]:
    block = re.search(r"\d+$", kernel.tuning)
    return (
        int(block[0]) if block and kernel.tuning.startswith("block_") else 0,
        kernel.bytes_per_rep,
        kernel.flops_per_rep,
        kernel.iterations_per_rep,
        kernel.kernels_per_rep,
        kernel.problem_size,
        kernel.reps,
    )


def _largest(kernels: Iterable[KernelRun]) -> tuple[int, ...]:
    """Facts that a region above several kernels shows: the largest of theirs."""
    return tuple(max(column) for column in zip(*map(_facts, kernels), strict=True))


def _seconds(kernels: Iterable[KernelRun]) -> float:
    return sum(sum(kernel.pass_seconds) for kernel in kernels)


def _profile(suite: Suite, column: Column) -> str:
    kernels = [cell for (_, place), cell in suite.cells.items() if place == column]
    groups: defaultdict[str, list[KernelRun]] = defaultdict(list)
    for kernel in kernels:
        groups[kernel.kernel.partition("_")[0]].append(kernel)
    ranks = max(suite.run.ranks, 1)
    stream = _Stream()
    metrics = _Metrics(stream)
    channel = stream.node(stream.attribute("spot.channel", _STRING, _META), "regionprofile")
    # Outside the kernels the program sets up its data and computes checksums.
    stream.record([channel], metrics.values(_seconds(suite.run.kernels) * 1.5, ranks, _largest(kernels)))
    region = stream.attribute("annotation", _STRING, _NESTED)
    suite_node = stream.node(region, "RAJAPerf")
    stream.record([suite_node, channel], metrics.values(_seconds(kernels), ranks, _largest(kernels)))
    for group, members in groups.items():
        group_node = stream.node(region, group, suite_node)
        stream.record([group_node, channel], metrics.values(_seconds(members), ranks, _largest(members)))
        for kernel in members:
            node = stream.node(region, kernel.kernel, group_node)
            stream.record([node, channel], metrics.values(_seconds([kernel]), ranks, _facts(kernel)))
    _globals(stream, suite, column)
    return "\n".join(stream.lines) + "\n"


def _globals(stream: _Stream, suite: Suite, column: Column) -> None:
    """Write the run metadata: what the profiler says, and what the program says."""
    version = stream.node(stream.attribute("cali.caliper.version", _STRING, _RUN_METADATA), "2.9.0-dev")
    names = [f"{kind}#{_SECONDS}" for kind in ("min", "max", "avg", "sum")]
    names += [f"any#any#max#{name}" for name in _KERNEL_FACTS]
    profiler = version
    for name, kind, value in (
        ("spot.metrics", _STRING, ",".join(names)),
        ("spot.timeseries.metrics", _STRING, ""),
        ("spot.format.version", _INT, "2"),
        ("spot.options", _STRING, ""),
        ("spot.channels", _STRING, "regionprofile"),
    ):
        profiler = stream.node(stream.attribute(name, kind, _GLOBAL), value, profiler)
    program = stream.node(stream.attribute("cali.channel", _STRING, _RUN_METADATA), "spot")
    for name, (adiak_type, category, value) in _metadata(suite, column).items():
        attribute = stream.attribute(name, _adiak_type(stream, adiak_type, category), _RUN_METADATA)
        program = stream.node(attribute, value, program)
    stream.lines.append(f"__rec=globals,ref={profiler}={program}")


def _adiak_type(stream: _Stream, kind: str, category: str) -> int:
    """The node that describes values of the metadata library Adiak."""
    base = {"double": _DOUBLE, "date": _UINT}.get(kind, _STRING)
    typed = stream.node(stream.attribute("adiak.type", _STRING, _CATEGORY), kind, base)
    general = stream.node(stream.attribute("adiak.category", _INT, _CATEGORY), "2", typed)
    return stream.node(stream.attribute("adiak.subcategory", _STRING, _CATEGORY), category, general)


def _metadata(suite: Suite, column: Column) -> dict[str, tuple[str, str, str]]:
    """Name: Adiak type, category, value."""
    run: BenchmarkRun = suite.run
    compiler_version = run.compiler.rpartition("-")[2]
    words = arguments(suite)
    texts = {
        "perfsuite_version": "1.10.0",
        "raja_version": "2022.10.5",
        "cmake_build_type": "Release",
        "cmake_cxx_flags": " -Wall -Wextra     ",
        "rajaperf_compiler": run.compiler,
        "compiler_version": compiler_version,
        "compiler": run.compiler,
        "SizeMeaning": "Direct",
        "omp_version": "4.5",
        "omp_max_threads": str(run.threads),
        "variant": column[0],
        "tuning": column[1],
    }
    return {
        "user": ("string", "runinfo", "perf"),
        "launchdate": ("date", "runinfo", str(run.launched_at)),
        "cmdline": ("set of string", "runinfo", f"[{','.join(words)}]"),
        "cluster": ("string", "host", run.machine),
        "ProblemSizeRunParam": ("double", "none", f"{run.requested_size:f}"),
        **{name: ("string", "none", text) for name, text in texts.items()},
    }
