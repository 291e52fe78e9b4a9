from itertools import pairwise
from pathlib import Path
from struct import unpack_from

import numpy as np
import pytest
import yaml

from perf_assets.demo.simulated import ProfiledRun
from perf_assets.demo.writers.hpctoolkit_v4 import write_v4_database
from tests.demo.writers.conftest import contents, expected_totals, profiled_run
from tests.peers import hatchet_rows

RUNS = [profiled_run(), profiled_run(ranks=1, threads=1, hosts=1), profiled_run(ranks=3, threads=2, hosts=1, streams=3)]

Cells = dict[tuple[int, int, int], float]
"""Values by profile, context and metric id."""


def text_at(data: bytes, offset: int) -> str:
    return data[offset : data.index(0, offset)].decode()


def profile_cells(data: bytes) -> Cells:
    """All values of `profile.db`."""
    (table,) = unpack_from("<Q", data, 0x18)
    first, count, stride = unpack_from("<QLB", data, table)
    cells: Cells = {}
    for profile in range(count):
        values_count, values, contexts_count, contexts = unpack_from("<QQLxxxxQ", data, first + profile * stride)
        assert values <= contexts
        starts = [unpack_from("<LQ", data, contexts + 12 * index) for index in range(contexts_count)]
        assert starts == sorted(set(starts))
        for (context, start), (_, end) in pairwise([*starts, (0, values_count)]):
            ids = [unpack_from("<Hd", data, values + 10 * index) for index in range(start, end)]
            assert [metric for metric, _ in ids] == sorted({metric for metric, _ in ids})
            cells |= {(profile, context, metric): value for metric, value in ids}
    return cells


def context_cells(data: bytes) -> Cells:
    """All values of `cct.db`."""
    (table,) = unpack_from("<Q", data, 0x18)
    first, count, stride = unpack_from("<QLB", data, table)
    cells: Cells = {}
    for context in range(count):
        values_count, values, metrics_count, metrics = unpack_from("<QQHxxxxxxQ", data, first + context * stride)
        starts = [unpack_from("<HQ", data, metrics + 10 * index) for index in range(metrics_count)]
        for (metric, start), (_, end) in pairwise([*starts, (0, values_count)]):
            found = [unpack_from("<Ld", data, values + 12 * index) for index in range(start, end)]
            cells |= {(profile, context, metric): value for profile, value in found}
    return cells


def id_tuples(meta: bytes, data: bytes) -> list[dict[str, int]]:
    """Identity of each profile but the summary."""
    (names,) = unpack_from("<Q", meta, 0x28)
    pointers, kinds = unpack_from("<QB", meta, names)
    kind_names = [text_at(meta, unpack_from("<Q", meta, pointers + 8 * kind)[0]) for kind in range(kinds)]
    (table,) = unpack_from("<Q", data, 0x18)
    first, count, stride = unpack_from("<QLB", data, table)
    found = []
    for profile in range(1, count):
        (at,) = unpack_from("<Q", data, first + profile * stride + 0x20)
        ids = [unpack_from("<BxHLQ", data, at + 8 + 16 * index) for index in range(unpack_from("<H", data, at)[0])]
        found.append({kind_names[kind]: physical if flags & 1 else logical for kind, flags, logical, physical in ids})
    return found


@pytest.mark.slow
@pytest.mark.parametrize("run", RUNS)
def test_hatchet_reads_the_main_threads(tmp_path: Path, run: ProfiledRun) -> None:
    write_v4_database(tmp_path, run)
    rows = hatchet_rows(tmp_path, "from_hpctoolkit_latest", metric_names=["time", "papi_tot_ins"])
    # hatchet reads the entry point of the main threads only; GPU streams are called from there.
    streams = np.zeros((1, len(run.metrics))) if run.gpu_streams is None else run.gpu_streams
    (_, row), *others = rows[rows["is_root"]].iterrows()
    assert not others
    assert row["time (inc)"] == pytest.approx(run.values[:, 0, 0].sum() + streams[:, 0].sum(), rel=1e-14)
    assert row["papi_tot_ins (inc)"] == np.rint(run.values[:, 0, 1]).sum() + np.rint(streams[:, 1]).sum()
    names = set(rows["name"])
    assert {"function: main", "function: advance", "function: MPI_Allreduce"} <= names


@pytest.mark.parametrize("run", RUNS)
def test_program_totals_are_over_all_entry_points(tmp_path: Path, run: ProfiledRun) -> None:
    write_v4_database(tmp_path, run)
    cells = profile_cells((tmp_path / "profile.db").read_bytes())
    for number, total in enumerate(expected_totals(run).values()):
        execution = 4 * number + 3
        assert cells.get((0, 0, execution), 0.0) == pytest.approx(total, rel=1e-14)
    assert all(cells.values())


def test_summary_is_the_sum_and_contexts_are_the_profiles_turned(tmp_path: Path) -> None:
    write_v4_database(tmp_path, profiled_run(streams=2))
    cells = profile_cells((tmp_path / "profile.db").read_bytes())
    turned = context_cells((tmp_path / "cct.db").read_bytes())
    assert turned == {key: value for key, value in cells.items() if key[0]}
    summary = {key[1:]: value for key, value in cells.items() if not key[0]}
    for (context, metric), value in summary.items():
        parts = [value for (_, *place), value in turned.items() if place == [context, metric]]
        assert value == pytest.approx(sum(parts), rel=1e-14)


def test_profiles_are_unordered_and_may_be_empty(tmp_path: Path) -> None:
    run = profiled_run(ranks=6, threads=2, hosts=2, streams=2)
    run.values[3, 1] = 0.0
    write_v4_database(tmp_path, run)
    meta, data = (tmp_path / "meta.db").read_bytes(), (tmp_path / "profile.db").read_bytes()
    found = id_tuples(meta, data)
    threads = [(identity["RANK"], identity["THREAD"]) for identity in found if "THREAD" in identity]
    assert sorted(threads) == [(rank, thread) for rank in range(6) for thread in range(2)]
    assert threads != sorted(threads)
    streams = [identity for identity in found if "GPUSTREAM" in identity]
    assert [set(identity) for identity in streams] == [{"NODE", "RANK", "GPUDEVICE", "GPUCONTEXT", "GPUSTREAM"}] * 2
    assert len({identity["NODE"] for identity in found}) == 2
    empty = 1 + next(n for n, identity in enumerate(found) if (identity["RANK"], identity.get("THREAD")) == (3, 1))
    assert not [key for key in profile_cells(data) if key[0] == empty]


def test_scopes_propagate_as_described(tmp_path: Path) -> None:
    """Follow the propagation bits from the instructions up and find the values of the other scopes."""
    run = profiled_run(ranks=1, threads=2, hosts=1)
    write_v4_database(tmp_path, run)
    meta = (tmp_path / "meta.db").read_bytes()
    parents, stops = context_tree(meta)
    cells = profile_cells((tmp_path / "profile.db").read_bytes())
    points = {(profile, context): value for (profile, context, metric), value in cells.items() if metric == 4}
    assert points
    function: dict[tuple[int, int], float] = {}
    execution: dict[tuple[int, int], float] = {}
    for (profile, context), value in points.items():
        place, is_inside = context, True
        while True:
            execution[(profile, place)] = execution.get((profile, place), 0.0) + value
            if is_inside:
                function[(profile, place)] = function.get((profile, place), 0.0) + value
            if not place:
                break
            is_inside = is_inside and not stops[place]
            place = parents[place]
    assert function == {key[:2]: value for key, value in cells.items() if key[2] == 5}
    assert execution == {key[:2]: value for key, value in cells.items() if key[2] == 7}


def context_tree(meta: bytes) -> tuple[dict[int, int], dict[int, bool]]:
    """Parent of each context, and whether its values stay out of its parent's function."""
    (section,) = unpack_from("<Q", meta, 0x48)
    first, count, stride = unpack_from("<QHB", meta, section)
    parents: dict[int, int] = {}
    stops: dict[int, bool] = {}

    def children(size: int, at: int, parent: int) -> None:
        end = at + size
        while at < end:
            below_size, below, context, words, propagation = unpack_from("<QQLxxxBH", meta, at)
            parents[context], stops[context] = parent, not propagation & 1
            children(below_size, below, context)
            at += 32 + 8 * words

    for entry in range(count):
        size, at, context = unpack_from("<QQL", meta, first + entry * stride)
        parents[context], stops[context] = 0, True
        children(size, at, context)
    return parents, stops


def test_entry_points_follow_the_threads(tmp_path: Path) -> None:
    for threads, expected in ((1, ["main thread"]), (2, ["main thread", "application thread"])):
        directory = tmp_path / str(threads)
        directory.mkdir()
        write_v4_database(directory, profiled_run(threads=threads))
        meta = (directory / "meta.db").read_bytes()
        (section,) = unpack_from("<Q", meta, 0x48)
        first, count, stride = unpack_from("<QHB", meta, section)
        names = [text_at(meta, unpack_from("<Q", meta, first + entry * stride + 0x18)[0]) for entry in range(count)]
        assert names == expected


def test_viewer_finds_the_metrics(tmp_path: Path) -> None:
    run = profiled_run()
    write_v4_database(tmp_path, run)
    described = yaml.safe_load((tmp_path / "metrics/default.yaml").read_text())
    assert [root["name"] for root in described["roots"]] == list(run.metrics)
    assert described["roots"][0]["variants"]["Sum"]["formula"]["inclusive"]["standard"]["scope"] == "execution"


def test_same_run_same_bytes(tmp_path: Path) -> None:
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        write_v4_database(tmp_path / name, profiled_run(streams=2))
    assert contents(tmp_path / "one") == contents(tmp_path / "two")


def test_layout_is_the_real_one(tmp_path: Path, shared_data: Path) -> None:
    real = shared_data / "hpctoolkit/v4_pingpong"
    write_v4_database(tmp_path, profiled_run(ranks=2, threads=1, hosts=1, metrics=("CPUTIME (sec)", "PAPI_TOT_INS")))
    for name in ("meta.db", "profile.db", "cct.db"):
        ours, theirs = (tmp_path / name).read_bytes(), (real / name).read_bytes()
        assert ours[:16] == theirs[:16]
        assert ours[-8:] == theirs[-8:]
        assert unpack_from("<Q", ours, 0x18) == unpack_from("<Q", theirs, 0x18)
    ours, theirs = (tmp_path / "meta.db").read_bytes(), (real / "meta.db").read_bytes()
    assert sizes_in_meta(ours) == sizes_in_meta(theirs)
    assert scopes_in_meta(ours) == scopes_in_meta(theirs)
    assert order_of_sections(ours) == order_of_sections(theirs)
    for name in ("profile.db", "cct.db"):
        tables = [(directory / name).read_bytes() for directory in (tmp_path, real)]
        strides = [unpack_from("<B", data, unpack_from("<Q", data, 0x18)[0] + 12) for data in tables]
        assert strides[0] == strides[1]


def sizes_in_meta(meta: bytes) -> list[int]:
    """Strides of all arrays."""
    metrics, contexts = unpack_from("<Q", meta, 0x38)[0], unpack_from("<Q", meta, 0x48)[0]
    tables = [unpack_from("<Q", meta, 0x18 + 16 * section)[0] for section in (5, 6, 7)]
    return [
        *unpack_from("<BBB", meta, metrics + 0xC),
        *unpack_from("<B", meta, metrics + 0x1A),
        *unpack_from("<B", meta, contexts + 0xA),
        *(unpack_from("<H", meta, table + 0xC)[0] for table in tables),
    ]


def scopes_in_meta(meta: bytes) -> list[tuple[str, int, int]]:
    """Name, type and propagation bit of each scope."""
    (metrics,) = unpack_from("<Q", meta, 0x38)
    first, count, stride = unpack_from("<QHB", meta, metrics + 0x10)
    found = [unpack_from("<QBB", meta, first + stride * scope) for scope in range(count)]
    return [(text_at(meta, name), kind, bit) for name, kind, bit in found]


def order_of_sections(meta: bytes) -> list[int]:
    """Sections by their place in the file."""
    return sorted(range(8), key=lambda section: unpack_from("<Q", meta, 0x18 + 16 * section)[0])
