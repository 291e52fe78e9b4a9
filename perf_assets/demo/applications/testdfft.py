"""TESTDFFT: the distributed 3-D FFT of a cosmology code, forward and back; caches and all-to-all exchange bound it."""

from math import log2, prod

from perf_assets.demo.applications.design import Application, Configuration, Grid
from perf_assets.demo.applications.phases import Exchange, FileTraffic, Phase
from perf_assets.demo.hardware.work import Stream, Work

_COMPLEX = 16.0
_TRANSPOSES = 6
"""Block to pencils along each axis and back to blocks, one transform."""


def _is_smooth(size: int) -> bool:
    """Whether only 2, 3 and 5 divide it: FFT libraries have fast kernels for these."""
    for prime in (2, 3, 5):
        while size % prime == 0:
            size //= prime
    return size == 1


def _transforms(grid: tuple[int, int, int], cells: float, repetitions: float) -> Phase:
    """One-dimensional transforms along the three axes, forward and backward."""
    passes = 2 * repetitions
    penalty = {True: 1.0, False: 2.6}
    flops = sum(
        5 * cells * log2(edge) * penalty[_is_smooth(edge)] * (1.0 if edge & (edge - 1) == 0 else 1.15) for edge in grid
    )
    flops *= passes
    butterflies = sum(max(log2(edge) / 3, 1.0) for edge in grid) * cells * passes
    array = cells * _COMPLEX
    return Phase(
        name="transforms",
        offloads=True,
        work=Work(
            double_flops=flops,
            integer_ops=0.18 * flops,
            branches=0.03 * flops,
            mispredict_rate=0.004,
            vector_share=0.75,
            streams=(
                Stream(read_bytes=3 * array * passes, written_bytes=3 * array * passes, reuse_bytes=2 * array),
                Stream(read_bytes=0.3 * flops * 2, reuse_bytes=max(grid) * _COMPLEX),
            ),
            parallel_items=cells / 8,
            parallel_regions=3 * passes,
            launches=3 * 2 * passes,
            host_syncs=passes,
        ),
        scratch=(
            Stream(
                read_bytes=butterflies * _COMPLEX,
                written_bytes=butterflies * _COMPLEX,
                reuse_bytes=2 * max(grid) * _COMPLEX,
            ),
        ),
    )


def _redistribution(cells: float, ranks: int, repetitions: float) -> Phase:
    """Packing, all-to-all among rows and columns of ranks, unpacking."""
    moved = _TRANSPOSES * 2 * repetitions * cells * _COMPLEX
    partners = max(round(ranks ** (2 / 3)), 1) - (ranks == 1)
    return Phase(
        name="redistribution",
        offloads=True,
        work=Work(
            integer_ops=0.35 * moved / 8,
            branches=0.06 * moved / 8,
            mispredict_rate=0.004,
            vector_share=0.5,
            streams=(
                Stream(
                    read_bytes=moved,
                    written_bytes=moved,
                    reuse_bytes=3 * cells * _COMPLEX,
                    run_bytes=32,
                    outstanding_misses=10,
                ),
            ),
            parallel_items=cells,
            parallel_regions=2 * _TRANSPOSES * 2 * repetitions,
            launches=2 * _TRANSPOSES * 2 * repetitions,
            host_syncs=_TRANSPOSES * 2 * repetitions,
        ),
        exchange=Exchange(
            messages=partners * _TRANSPOSES * 2 * repetitions,
            message_bytes=moved * (ranks - 1) / ranks,
            rounds=_TRANSPOSES * 2 * repetitions,
            reductions=4 * repetitions,
            is_all_to_all=True,
        ),
    )


def _host(cells: float, repetitions: float) -> Phase:
    """Planning, filling the grid with random phases, checking the result."""
    operations = 3e8 + 60 * cells + 25 * cells * repetitions
    return Phase(
        name="plan and check",
        work=Work(
            double_flops=0.2 * operations,
            integer_ops=0.3 * operations,
            math_calls=2 * cells,
            branches=0.13 * operations,
            mispredict_rate=0.01,
            vector_share=0.2,
            serial_share=0.6,
            streams=(
                Stream(
                    read_bytes=0.18 * operations * 8,
                    written_bytes=0.09 * operations * 8,
                    reuse_bytes=2 * cells * _COMPLEX,
                ),
            ),
        ),
        to_device_bytes=cells * _COMPLEX * repetitions,
        from_device_bytes=cells * _COMPLEX * repetitions,
        exchange=Exchange(reductions=6 * repetitions),
        files=FileTraffic(read_bytes=2_000, written_bytes=1_500 + 300 * repetitions, opened=3),
    )


def _describe(parallel: tuple[int, int], grid: tuple[int, int, int], repetitions: int) -> Configuration | None:
    ranks, threads = parallel
    cells = prod(grid) / ranks
    sizes = str(grid[0]) if len(set(grid)) == 1 else " ".join(map(str, grid))
    return Configuration(
        app="TESTDFFT",
        args=f"{repetitions} {sizes}",
        ranks=ranks,
        threads=threads,
        footprint_bytes=1e8 + 3 * cells * _COMPLEX,
        phases=(
            _transforms(grid, cells, repetitions),
            _redistribution(cells, ranks, repetitions),
            _host(cells, repetitions),
        ),
    )


_PARALLEL = (
    (1, 1), (8, 1), (2, 2), (16, 1), (1, 2), (4, 1), (32, 1), (2, 1), (8, 2),
    (4, 2), (16, 2), (1, 4), (64, 1), (4, 4), (2, 4), (12, 1), (8, 4),
)  # fmt: skip


def _grids(edges: tuple[int, ...]) -> tuple[tuple[int, int, int], ...]:
    cubes = [(edge, edge, edge) for edge in edges]
    bricks = [(edge, edge, 2 * edge) for edge in edges if edge <= 256]
    return (*cubes, *bricks)


TESTDFFT = Application(
    name="TESTDFFT",
    program="TestDfft",
    configuration_count=85,
    has_gpu_back_end=True,
    imbalance=0.015,
    coarse=Grid((_PARALLEL, _grids((96, 128, 160, 192, 256, 320, 384, 512)), (20, 50, 100))),
    fine=Grid((_PARALLEL, _grids(tuple(range(64, 513, 8))), (10, 15, 20, 25, 30, 40, 50, 60, 80, 100))),
    describe=_describe,
)
