"""HPCToolkit databases of format version 4 (`meta.db`, `profile.db`, `cct.db`; 2022.10 and later)."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from itertools import accumulate
from pathlib import Path
from struct import Struct, pack

import numpy as np
from numpy.typing import NDArray

from perf_assets.demo.simulated import ProfiledRun
from perf_assets.demo.writers.calling_tree import tree_flags, tree_with_entries
from perf_assets.demo.writers.hpctoolkit_v4_meta import (
    ID_KINDS,
    SCOPES,
    aligned,
    contexts_count,
    file_header,
    meta_db,
    scope_sums,
)
from perf_assets.demo.writers.thread_profiles import (
    FIRST_GPU_THREAD,
    ThreadKind,
    ThreadProfile,
    host_id,
    invented,
    profiles_of,
)


@lru_cache(maxsize=64)
def taxonomy(metrics: tuple[str, ...]) -> str:
    """The text of `metrics/default.yaml`: how a viewer presents the metrics."""
    inputs, roots = ["version: 0", "inputs:"], ["roots:"]
    for metric in metrics:
        anchor = re.sub(r"[^A-Za-z0-9_]", lambda found: f"x{ord(found.group()):02x}_", metric) + "-sum-x5b_0x0x5d_"
        quoted = '"' + metric.replace("\\", "\\\\").replace('"', '\\"') + '"'
        for scope in ("execution", "lex_aware", "function"):
            inputs += [
                f"  - &{anchor}-{scope}",
                f"    metric: {quoted}",
                f"    scope: {scope}",
                "    formula: $$",
                "    combine: sum",
            ]
        roots += [
            f"  - name: {quoted}",
            f"    description: {quoted}",
            "    variants:",
            "      Sum:",
            "        render: [number, percent]",
            "        formula:",
            "          inclusive:",
            f"            standard: *{anchor}-execution",
            "          exclusive:",
            f"            custom: *{anchor}-lex_aware",
            f"            standard: *{anchor}-function",
        ]
    return "\n".join(inputs + roots) + "\n"


_METRIC_CELL = np.dtype([("id", "<u2"), ("value", "<f8")])
_CONTEXT_INDEX = np.dtype([("id", "<u4"), ("start", "<u8")])
_PROFILE_CELL = np.dtype([("id", "<u4"), ("value", "<f8")])
_METRIC_INDEX = np.dtype([("id", "<u2"), ("start", "<u8")])

_TABLE = Struct("<QLBxxx")
_PROFILE_INFO = Struct("<QQLxxxxQQLxxxx")
_CONTEXT_INFO = Struct("<QQHxxxxxxQ")
_ID = Struct("<BxHLQ")


def write_v4_database(directory: Path, run: ProfiledRun) -> None:
    """Write the database's files into `directory`; there are no traces."""
    flags = tree_flags(run)
    values, profiles = _values(run), profiles_of(run)
    # hpcprof lists profiles in the order in which its threads finished them.
    order = sorted(range(len(profiles)), key=lambda index: invented(run.seed, f"profile {index}"))
    profiles = [profiles[index] for index in order]
    values = np.concatenate([values.sum(axis=0, keepdims=True), values[order]])
    (directory / "meta.db").write_bytes(meta_db(run.program, run.metrics, *flags))
    (directory / "profile.db").write_bytes(_profile_db(run, profiles, values))
    (directory / "cct.db").write_bytes(_cct_db(values))
    (directory / "metrics").mkdir(exist_ok=True)
    (directory / "metrics" / "default.yaml").write_text(taxonomy(run.metrics), encoding="utf-8")


def _values(run: ProfiledRun) -> NDArray[np.float64]:
    """All values of all profiles; shape (profiles, contexts, metric ids)."""
    flags = tree_flags(run)
    tree = tree_with_entries(*flags)
    sums = scope_sums(*flags) @ tree.spread(run)
    shaped = sums.reshape(len(sums), len(SCOPES), contexts_count(tree), len(run.metrics))
    return shaped.transpose(0, 2, 3, 1).reshape(len(sums), contexts_count(tree), -1)


def _id_tuple(run: ProfiledRun, profile: ThreadProfile) -> bytes:
    ids = [("NODE", 1, profile.host, host_id(run, profile.host)), ("RANK", 0, profile.rank, profile.rank)]
    if profile.kind is ThreadKind.GPU:
        stream = profile.thread - FIRST_GPU_THREAD
        ids += [("GPUDEVICE", 0, 0, 0), ("GPUCONTEXT", 0, 0, 0), ("GPUSTREAM", 0, stream, stream)]
    else:
        ids.append(("THREAD", 0, profile.thread, profile.thread))
    return pack("<Q", len(ids)) + b"".join(
        _ID.pack(ID_KINDS.index(kind), flags, logical, physical) for kind, flags, logical, physical in ids
    )


@dataclass(frozen=True)
class _Sparse:
    """One plane of values without its zeros."""

    cells_count: int
    cells: bytes
    """(column, value) pairs."""
    indices_count: int
    indices: bytes
    """(row, first cell) pairs."""


class _Blocks:
    """Value blocks, each an array of values and an array of indices into it, one after the other."""

    def __init__(self, start: int, value_alignment: int, index_alignment: int) -> None:
        self._parts: list[bytes] = []
        self._value_alignment, self._index_alignment = value_alignment, index_alignment
        self.end = start

    def append(self, values: bytes, indices: bytes) -> tuple[int, int]:
        """Place one block; return the positions of its two arrays."""
        return self._place(values, self._value_alignment), self._place(indices, self._index_alignment)

    def _place(self, data: bytes, alignment: int) -> int:
        at = aligned(self.end, alignment)
        self._parts += (b"\0" * (at - self.end), data)
        self.end = at + len(data)
        return at

    def finished(self, footer: bytes, alignment: int) -> bytes:
        """All blocks and the footer of the file."""
        self._place(footer, alignment)
        return b"".join(self._parts)


def _sparse(cube: NDArray[np.float64], cell: np.dtype[np.void], index: np.dtype[np.void]) -> Iterator[_Sparse]:
    """The values of each plane that are not zero, row by row."""
    planes, rows, columns = np.nonzero(cube)
    cells = np.empty(len(planes), cell)
    cells["id"], cells["value"] = columns, cube[planes, rows, columns]
    counts = np.count_nonzero(cube, axis=2)
    first = 0
    for in_rows in counts:
        used = np.flatnonzero(in_rows)
        indices = np.empty(len(used), index)
        indices["id"], indices["start"] = used, (np.cumsum(in_rows) - in_rows)[used]
        last = first + int(in_rows.sum())
        yield _Sparse(last - first, cells[first:last].tobytes(), len(used), indices.tobytes())
        first = last


def _profile_db(run: ProfiledRun, profiles: list[ThreadProfile], values: NDArray[np.float64]) -> bytes:
    """The values by profile; `values` has the summary first."""
    tuples = [_id_tuple(run, profile) for profile in profiles]
    infos_at = 0x30
    infos_size = _TABLE.size + _PROFILE_INFO.size * len(values)
    tuples_at = infos_at + infos_size
    tuples_size = sum(len(item) for item in tuples)
    tuple_places = [0, *accumulate((len(item) for item in tuples[:-1]), initial=tuples_at)]
    blocks = _Blocks(tuples_at + tuples_size, 2, 4)
    infos = []
    for plane, id_tuple in zip(_sparse(values, _METRIC_CELL, _CONTEXT_INDEX), tuple_places, strict=True):
        cells_at, indices_at = blocks.append(plane.cells, plane.indices)
        is_summary = id_tuple == 0
        infos.append(
            _PROFILE_INFO.pack(plane.cells_count, cells_at, plane.indices_count, indices_at, id_tuple, is_summary)
        )
    table = _TABLE.pack(infos_at + _TABLE.size, len(infos), _PROFILE_INFO.size)
    header = file_header("prof", (infos_size, infos_at), (tuples_size, tuples_at))
    return b"".join([header, table, *infos, *tuples, blocks.finished(b"_prof.db", 8)])


def _cct_db(values: NDArray[np.float64]) -> bytes:
    """Values of `profile.db` by context and without the summary; profiles keep their numbers."""
    by_context = values.transpose(1, 2, 0).copy()
    by_context[:, :, 0] = 0.0
    infos_at = 0x30
    infos_size = _TABLE.size + _CONTEXT_INFO.size * len(by_context)
    blocks = _Blocks(infos_at + infos_size, 4, 2)
    infos = []
    for plane in _sparse(by_context, _PROFILE_CELL, _METRIC_INDEX):
        cells_at, indices_at = blocks.append(plane.cells, plane.indices)
        infos.append(_CONTEXT_INFO.pack(plane.cells_count, cells_at, plane.indices_count, indices_at))
    table = _TABLE.pack(infos_at + _TABLE.size, len(infos), _CONTEXT_INFO.size)
    header = file_header("ctxt", (infos_size, infos_at)).ljust(infos_at, b"\0")
    return b"".join([header, table, *infos, blocks.finished(b"__ctx.db", 4)])
