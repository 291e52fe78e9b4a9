"""miniVite: one phase of Louvain community detection on a random geometric graph; memory latency bounds it.

Every vertex looks up the communities of its neighbours and counts the weight towards each of them in a small map:
gathers, hash lookups and unpredictable branches, hardly any floating point. There is no GPU back end.
"""

from math import log, sqrt

from perf_assets.demo.applications.design import Application, Configuration, Grid
from perf_assets.demo.applications.phases import Exchange, FileTraffic, Phase
from perf_assets.demo.hardware.work import Stream, Work

_EDGE_BYTES = 16.0
"""Target vertex and weight."""


def _generation(vertices: float, edges: float, ranks: int, random_edges: float, is_lcg: bool) -> Phase:
    """Draw points, keep pairs closer than the radius, exchange what crosses ranks, build the rows."""
    candidates = 3 * edges
    draws = 2 * vertices * (0.4 if is_lcg else 1.0)
    return Phase(
        name="generation",
        work=Work(
            double_flops=5 * candidates + 6 * draws,
            divides=0.1 * edges,
            integer_ops=4 * candidates + 14 * draws + 20 * edges,
            branches=1.4 * candidates + 4 * edges,
            mispredict_rate=0.06,
            vector_share=0.1,
            serial_share=0.5,
            streams=(
                Stream(read_bytes=2 * 8 * candidates, reuse_bytes=32 * sqrt(vertices) + 4096),
                Stream(
                    read_bytes=2 * _EDGE_BYTES * edges,
                    written_bytes=3 * _EDGE_BYTES * edges,
                    reuse_bytes=3 * _EDGE_BYTES * edges,
                    run_bytes=24,
                    outstanding_misses=4,
                ),
            ),
        ),
        exchange=Exchange(
            messages=4.0 * (ranks - 1),
            message_bytes=24 * (random_edges + 0.1 * edges / sqrt(max(ranks, 1))),
            reductions=12,
            is_all_to_all=True,
        ),
        files=FileTraffic(read_bytes=4_000, written_bytes=3_000, opened=4),
    )


def _louvain(
    vertices: float, edges: float, ranks: int, random_edges: float, ghosts: float, iterations: float, is_weighted: bool
) -> Phase:
    """Iterations of local moves: neighbours, their communities, the best gain."""
    near, far = (edges - random_edges) * iterations, random_edges * iterations
    visits = edges * iterations
    moves = vertices * iterations
    lookups = visits * (1.15 if is_weighted else 1.0)
    table = 40 * (vertices + ghosts)
    return Phase(
        name="louvain",
        work=Work(
            double_flops=1.2 * visits + 14 * moves,
            divides=moves,
            integer_ops=22 * lookups + 40 * moves,
            branches=8 * lookups + 14 * moves,
            mispredict_rate=0.055,
            vector_share=0.0,
            serial_share=0.02,
            atomic_ops=1.5 * moves,
            atomic_targets=max(vertices / 8, 1.0),
            streams=(
                Stream(read_bytes=_EDGE_BYTES * visits, reuse_bytes=_EDGE_BYTES * edges),
                Stream(read_bytes=16 * near, reuse_bytes=64 * sqrt(vertices) * 24, run_bytes=8, outstanding_misses=4),
                Stream(read_bytes=16 * far, reuse_bytes=table, run_bytes=8, outstanding_misses=3),
                Stream(
                    read_bytes=48 * moves,
                    written_bytes=24 * moves,
                    reuse_bytes=table,
                    run_bytes=24,
                    outstanding_misses=3,
                ),
            ),
            parallel_items=vertices,
            parallel_regions=6 * iterations,
        ),
        scratch=(Stream(read_bytes=60 * lookups, written_bytes=16 * lookups, reuse_bytes=6_000),),
        exchange=Exchange(
            messages=3.0 * (ranks - 1) * iterations,
            message_bytes=32 * ghosts * iterations,
            reductions=3 * iterations,
            is_all_to_all=True,
        ),
    )


def _describe(
    parallel: tuple[int, int], vertices_in_all: int, percent: int, threshold: float, is_lcg: bool, is_weighted: bool
) -> Configuration | None:
    ranks, threads = parallel
    if vertices_in_all // ranks < 4096:
        return None
    vertices = vertices_in_all / ranks
    local_edges = 1.7 * log(vertices_in_all) * vertices
    random_edges = percent / 100 * local_edges
    edges = local_edges + random_edges
    away = (ranks - 1) / ranks
    # Ranks own strips of the unit square: neighbours across the two borders, and the far ends of random edges.
    ghosts = away * (random_edges + 4 * sqrt(vertices_in_all * log(vertices_in_all)))
    iterations = round(8 - 2.5 * log(threshold) / log(10) + 0.6 * log(vertices_in_all) + 0.5 * percent)
    options = f"{' -l' if is_lcg else ''}{' -w' if is_weighted else ''}"
    return Configuration(
        app="miniVite",
        args=f"-n {vertices_in_all} -p {percent} -t {threshold:.0e}{options}",
        ranks=ranks,
        threads=threads,
        footprint_bytes=1e8 + 2 * _EDGE_BYTES * edges + 80 * (vertices + ghosts),
        phases=(
            _generation(vertices, edges, ranks, random_edges, is_lcg),
            _louvain(vertices, edges, ranks, random_edges, ghosts, iterations, is_weighted),
        ),
    )


_PARALLEL = (
    (1, 1), (8, 1), (2, 2), (32, 1), (1, 2), (4, 2), (16, 1), (2, 1), (4, 1),
    (8, 2), (1, 4), (16, 2), (4, 4), (2, 4), (8, 4), (64, 1), (16, 4),
)  # fmt: skip

MINIVITE = Application(
    name="miniVite",
    program="miniVite",
    configuration_count=289,
    has_gpu_back_end=False,
    imbalance=0.08,
    coarse=Grid(
        (
            _PARALLEL,
            tuple(2**power for power in range(18, 26)),
            (0, 1, 2, 5, 10),
            (1e-6, 1e-4),
            (True, False),
            (False, True),
        )
    ),
    fine=Grid(
        (
            _PARALLEL,
            tuple(131072 * step for step in range(2, 260)),
            (0, 1, 2, 3, 5, 8, 10, 15),
            (1e-6, 1e-5, 1e-4),
            (True, False),
            (False, True),
        )
    ),
    describe=_describe,
)
