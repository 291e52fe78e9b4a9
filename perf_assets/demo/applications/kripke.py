"""Kripke: discrete-ordinates transport; memory bandwidth and the sweep's wavefront bound it.

The order of the loops over directions (D), groups (G) and zones (Z), outermost first, is an option: it decides what
is reused from cache, what vectorises, and how long the dependent chains are.
"""

from dataclasses import dataclass
from math import prod

from perf_assets.demo.applications.design import Application, Configuration, Grid
from perf_assets.demo.applications.phases import Exchange, FileTraffic, Phase
from perf_assets.demo.hardware.work import Stream, Work

_REAL = 8.0
_MOMENTS = 25
"""Legendre order 4."""
_DIRECTION_SETS = 8
"""One per octant, the fewest possible."""


@dataclass(frozen=True)
class _Block:
    """Part of the problem on one rank."""

    zones: float
    groups: float
    directions: float
    layout: str
    group_sets: int

    @property
    def unknowns(self) -> float:
        """Number of angular fluxes."""
        return self.zones * self.groups * self.directions

    @property
    def moments(self) -> float:
        """Number of flux moments."""
        return self.zones * self.groups * _MOMENTS

    @property
    def set_groups(self) -> float:
        """Groups that are swept together."""
        return self.groups / self.group_sets

    @property
    def set_directions(self) -> float:
        """Directions that are swept together."""
        return self.directions / _DIRECTION_SETS

    @property
    def edge(self) -> float:
        """Zones along one edge."""
        return float(self.zones ** (1 / 3))

    @property
    def inner(self) -> str:
        """Length of the innermost loop."""
        return self.layout[-1]


def _moment_reuse(block: _Block) -> tuple[float, float]:
    """Bytes between two uses of a moment and of an angular flux in the moment transforms."""
    groups, directions, zones = block.set_groups, block.set_directions, block.zones
    return {
        "DGZ": (2 * groups * zones * _REAL, directions * groups * zones * _REAL),
        "DZG": (2 * groups * zones * _REAL, directions * groups * zones * _REAL),
        "GDZ": (2 * zones * _REAL, directions * zones * _REAL),
        "GZD": (2 * directions * _REAL, directions * _REAL),
        "ZDG": (2 * groups * _REAL, directions * groups * _REAL),
        "ZGD": (2 * directions * _REAL, directions * _REAL),
    }[block.layout]


def _transforms(block: _Block, iterations: float) -> Phase:
    """LTimes and LPlusTimes: moments from angular fluxes and back."""
    products = 2.0 * _MOMENTS * block.unknowns * iterations
    moment_reuse, flux_reuse = _moment_reuse(block)
    flux = block.unknowns * _REAL
    in_register = block.inner == "D"
    sums = 2 * block.moments * iterations if in_register else products
    first_touch = Stream(
        read_bytes=1.5 * flux * iterations, written_bytes=0.5 * flux * iterations, reuse_bytes=2 * flux
    )
    work = Work(
        double_flops=2 * products,
        integer_ops=0.5 * products,
        branches=0.25 * products,
        mispredict_rate=0.002,
        vector_share=0.35 if in_register else 0.9,
        chained_flops=0.1 * products if in_register else 0.0,
        streams=(
            first_touch,
            Stream(read_bytes=sums * _REAL, written_bytes=sums * _REAL, reuse_bytes=moment_reuse),
            Stream(read_bytes=products * _REAL, reuse_bytes=flux_reuse),
        ),
        parallel_items=block.zones * block.set_groups,
        parallel_regions=2 * iterations * block.group_sets * _DIRECTION_SETS,
    )
    # On the device a thread owns one (group, zone) and keeps its sums in registers, whatever the layout.
    on_device = Work(
        double_flops=2 * products,
        integer_ops=0.6 * products,
        streams=(
            first_touch,
            Stream(
                read_bytes=products * _REAL,
                reuse_bytes=block.set_directions * 64 * _REAL,
                run_bytes=32 if block.inner == "Z" else 16,
            ),
            Stream(
                read_bytes=2 * block.moments * _REAL * iterations * _DIRECTION_SETS,
                written_bytes=2 * block.moments * _REAL * iterations * _DIRECTION_SETS,
                reuse_bytes=block.moments * _REAL,
            ),
        ),
        parallel_items=block.zones * block.set_groups,
        launches=2 * iterations * block.group_sets * _DIRECTION_SETS,
    )
    return Phase(name="transforms", offloads=True, work=work, device_work=on_device)


def _scattering(block: _Block, iterations: float) -> Phase:
    """Moments of one group feed those of every other."""
    products = block.moments * block.groups * iterations
    inner_bytes = (block.zones if block.inner == "Z" else block.groups) * _REAL
    return Phase(
        name="scattering",
        offloads=True,
        work=Work(
            double_flops=2 * products,
            integer_ops=0.8 * products,
            branches=0.2 * products,
            mispredict_rate=0.004,
            vector_share=0.6 if block.inner == "Z" else 0.75,
            streams=(
                Stream(read_bytes=2 * products * _REAL, written_bytes=products * _REAL, reuse_bytes=2 * inner_bytes),
                Stream(
                    read_bytes=block.moments * _REAL * iterations,
                    written_bytes=block.moments * _REAL * iterations,
                    reuse_bytes=2 * block.moments * _REAL,
                ),
                Stream(
                    read_bytes=block.zones * block.groups * 4 * iterations,
                    reuse_bytes=block.zones * 12,
                    run_bytes=16,
                    outstanding_misses=6,
                ),
            ),
            parallel_items=block.zones * block.groups,
            parallel_regions=iterations,
            launches=2 * iterations,
        ),
    )


def _sweep(block: _Block, iterations: float, grid: tuple[int, int, int]) -> Phase:
    """Upwind sweep through the zones; ranks work one after another along the wavefront."""
    cells = block.unknowns * iterations
    plane = block.edge**2 * _REAL
    groups, directions = block.set_groups, block.set_directions
    plane_reuse = (
        3
        * plane
        * {
            "DGZ": 1,
            "GDZ": 1,
            "DZG": groups,
            "GZD": directions,
            "ZDG": groups * directions,
            "ZGD": groups * directions,
        }[block.layout]
    )
    run_bytes = {"Z": 64.0, "G": 8 * groups, "D": 8 * directions}[block.inner]
    tasks = _DIRECTION_SETS * block.group_sets
    faces = sum(edge > 1 for edge in grid)
    hyperplanes = 3 * block.edge
    return Phase(
        name="sweep",
        offloads=True,
        work=Work(
            double_flops=13 * cells,
            divides=cells,
            integer_ops=5 * cells,
            branches=1.2 * cells,
            mispredict_rate=0.004,
            vector_share=0.05 if block.inner == "Z" else 0.8,
            chained_flops=3 * cells if block.inner == "Z" else 0.0,
            streams=(
                Stream(
                    read_bytes=cells * _REAL,
                    written_bytes=cells * _REAL,
                    reuse_bytes=2 * block.unknowns * _REAL,
                    run_bytes=min(run_bytes, 64.0),
                ),
                Stream(read_bytes=3 * cells * _REAL, written_bytes=3 * cells * _REAL, reuse_bytes=plane_reuse),
                Stream(read_bytes=cells * _REAL, reuse_bytes=groups * _REAL + 64),
            ),
            parallel_items=groups * directions * max(block.zones / hyperplanes, 1.0),
            parallel_regions=iterations * tasks,
            launches=iterations * tasks * hyperplanes,
        ),
        exchange=Exchange(
            messages=faces * tasks * iterations,
            message_bytes=faces * plane * block.groups * block.directions * iterations,
            rounds=tasks * iterations,
            reductions=iterations,
        ),
        idle_share=(sum(grid) - 3) / tasks,
    )


def _host(block: _Block, iterations: float) -> Phase:
    operations = 2.5e8 + 400 * block.zones + 2e5 * iterations * block.group_sets
    return Phase(
        name="set-up",
        work=Work(
            double_flops=0.03 * operations,
            integer_ops=0.42 * operations,
            branches=0.17 * operations,
            mispredict_rate=0.02,
            vector_share=0.05,
            serial_share=0.9,
            streams=(
                Stream(
                    read_bytes=0.26 * operations * _REAL,
                    written_bytes=0.12 * operations * _REAL,
                    reuse_bytes=2e5,
                    run_bytes=32,
                    outstanding_misses=4,
                ),
            ),
        ),
        to_device_bytes=block.unknowns * _REAL + 3 * block.moments * _REAL,
        from_device_bytes=block.moments * _REAL + 64 * iterations,
        files=FileTraffic(read_bytes=9_000, written_bytes=2_500 + 70 * iterations, opened=6),
    )


def _describe(
    parallel: tuple[tuple[int, int, int], int],
    layout: str,
    zones: tuple[int, int, int],
    groups: int,
    directions: int,
    group_sets: int,
    iterations: int,
) -> Configuration | None:
    grid, threads = parallel
    if any(count < 2 * edge for count, edge in zip(zones, grid, strict=True)):
        return None
    ranks = prod(grid)
    block = _Block(prod(zones) / ranks, groups, directions, layout, group_sets)
    return Configuration(
        app="Kripke",
        args=f"--zones {','.join(map(str, zones))} --groups {groups} --gset {group_sets} --quad {directions} "
        f"--dset {_DIRECTION_SETS} --legendre 4 --layout {layout} --niter {iterations} "
        f"--procs {','.join(map(str, grid))}",
        ranks=ranks,
        threads=threads,
        footprint_bytes=1e8 + (2 * block.unknowns + 3 * block.moments) * _REAL,
        phases=(
            _transforms(block, iterations),
            _scattering(block, iterations),
            _sweep(block, iterations, grid),
            _host(block, iterations),
        ),
    )


_PARALLEL = (
    ((1, 1, 1), 1), ((2, 2, 1), 2), ((2, 1, 1), 1), ((4, 2, 2), 1), ((2, 2, 2), 1), ((1, 1, 1), 2), ((3, 2, 2), 1),
    ((2, 2, 1), 1), ((1, 1, 1), 4), ((4, 4, 2), 1), ((1, 2, 1), 1), ((2, 2, 2), 2), ((2, 1, 1), 4), ((3, 3, 2), 1),
    ((2, 2, 2), 4),
)  # fmt: skip
_LAYOUTS = ("DGZ", "ZGD", "GDZ", "DZG", "ZDG", "GZD")


def _boxes(edges: tuple[int, ...]) -> tuple[tuple[int, int, int], ...]:
    cubes = [(edge, edge, edge) for edge in edges]
    slabs = [(edge, edge, edge // 2) for edge in edges]
    return (*cubes, *slabs)


KRIPKE = Application(
    name="Kripke",
    program="kripke.exe",
    configuration_count=106,
    has_gpu_back_end=True,
    imbalance=0.02,
    coarse=Grid((_PARALLEL, _LAYOUTS, _boxes((16, 24, 32, 48, 64, 96)), (16, 32, 64), (32, 64, 96), (1, 2), (50, 100))),
    fine=Grid(
        (
            _PARALLEL,
            _LAYOUTS,
            _boxes(tuple(range(16, 100, 4))),
            (8, 16, 32, 48, 64, 96),
            (32, 48, 64, 96, 128),
            (1, 2, 4),
            (20, 30, 40, 60, 80, 100, 120),
        )
    ),
    describe=_describe,
)
