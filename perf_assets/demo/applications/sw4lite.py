"""SW4lite: fourth-order elastic wave propagation; a large stencil bound by memory bandwidth and arithmetic."""

from dataclasses import dataclass
from math import ceil, sqrt

from perf_assets.demo.applications.design import Application, Configuration, Grid
from perf_assets.demo.applications.phases import Exchange, FileTraffic, Phase
from perf_assets.demo.hardware.work import Stream, Work

_REAL = 8.0
_FLOPS_PER_POINT = 1450
"""Spatial operator of a predictor-corrector step with super-grid damping."""


@dataclass(frozen=True)
class _Deck:
    """A family of input decks: a domain and a duration."""

    path: str
    extent: tuple[float, float, float]
    """Metres."""
    duration: float
    """Seconds."""
    wave_speed: float
    """Fastest wave, metres per second."""
    has_topography: bool = False


_DECKS = (
    _Deck("tests/loh1/LOH.1", (30_000, 30_000, 17_000), 9.0, 6_000),
    _Deck("tests/pointsource/pointsource", (20_000, 20_000, 20_000), 6.0, 5_600),
    _Deck("tests/topo/gaussianHill", (15_000, 15_000, 9_000), 8.0, 4_600, has_topography=True),
    _Deck("tests/loh2/LOH.2", (24_000, 24_000, 12_000), 9.0, 6_000),
)


def _steps_phase(points: float, steps: float, ranks: int, deck: _Deck) -> Phase:
    updates = points * steps
    flops = _FLOPS_PER_POINT * (1.45 if deck.has_topography else 1.0) * updates
    edge = points ** (1 / 3)
    plane = edge**2 * 3 * _REAL
    arrays = (18 + (6 if deck.has_topography else 0)) * points * _REAL
    halo = 4 * 2 * edge**2 * 3 * _REAL if ranks > 1 else 0.0
    return Phase(
        name="time steps",
        offloads=True,
        work=Work(
            double_flops=flops,
            integer_ops=0.12 * flops,
            divides=3 * updates,
            branches=0.012 * flops,
            mispredict_rate=0.004,
            vector_share=0.85,
            streams=(
                Stream(read_bytes=1.6 * arrays * steps, written_bytes=0.5 * arrays * steps, reuse_bytes=arrays),
                Stream(read_bytes=45 * _REAL * updates, reuse_bytes=5 * plane),
            ),
            parallel_items=points,
            parallel_regions=14 * steps,
            launches=30 * steps,
            host_syncs=4 * steps,
        ),
        scratch=(
            Stream(
                read_bytes=0.22 * flops * _REAL, written_bytes=0.02 * flops * _REAL, reuse_bytes=5 * edge * 3 * _REAL
            ),
        ),
        to_device_bytes=200 * steps,
        from_device_bytes=600 * steps,
        exchange=Exchange(messages=8 * steps, message_bytes=2 * halo * steps, rounds=2 * steps, reductions=0.1 * steps),
    )


def _host(points: float, steps: float, ranks: int, deck: _Deck) -> Phase:
    """Reading the deck, filling in the material, sources, station and image output."""
    operations = 4e8 + 240 * points + 3e5 * steps
    return Phase(
        name="set-up and output",
        work=Work(
            double_flops=0.12 * operations,
            single_flops=0.02 * operations,
            integer_ops=0.33 * operations,
            math_calls=0.5 * points,
            branches=0.14 * operations,
            mispredict_rate=0.015,
            vector_share=0.1,
            serial_share=0.7,
            streams=(
                Stream(
                    read_bytes=0.22 * operations * _REAL,
                    written_bytes=0.12 * operations * _REAL,
                    reuse_bytes=5e5 + 0.05 * points * _REAL,
                ),
            ),
        ),
        to_device_bytes=18 * points * _REAL,
        from_device_bytes=3 * points * _REAL,
        files=FileTraffic(
            read_bytes=6_000 + (4 * points ** (2 / 3) * _REAL if deck.has_topography else 0),
            written_bytes=4 * points ** (2 / 3) * 4 + 8 * 12 * steps / ranks,
            opened=12,
        ),
    )


def _describe(parallel: tuple[int, int], deck: _Deck, spacing: int) -> Configuration | None:
    ranks, threads = parallel
    points_in_all = 1.0
    for extent in deck.extent:
        points_in_all *= extent / spacing + 1
    points = points_in_all / ranks
    steps = float(ceil(deck.duration * deck.wave_speed * sqrt(1.5) / (1.3 * spacing)))
    return Configuration(
        app="SW4lite",
        args=f"{deck.path}-h{spacing}.in",
        ranks=ranks,
        threads=threads,
        footprint_bytes=1.5e8 + 30 * points * _REAL,
        phases=(_steps_phase(points, steps, ranks, deck), _host(points, steps, ranks, deck)),
    )


SW4LITE = Application(
    name="SW4lite",
    program="sw4lite",
    configuration_count=15,
    has_gpu_back_end=True,
    imbalance=0.025,
    coarse=Grid((((8, 1), (4, 2), (16, 1), (4, 4), (32, 1)), _DECKS, (125, 100, 80, 64, 50))),
    fine=Grid(
        (
            ((8, 1), (4, 2), (16, 1), (4, 4), (32, 1), (2, 4), (12, 1), (24, 1), (8, 2), (8, 4)),
            _DECKS,
            tuple(range(44, 221, 2)),
        )
    ),
    describe=_describe,
)
