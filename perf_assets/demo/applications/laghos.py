"""Laghos: Lagrangian hydrodynamics with high-order finite elements; arithmetic and caches bound it.

Most time goes to conjugate-gradient solves with a matrix-free (partially assembled) mass operator, the rest to forces
and to the physics at the quadrature points.
"""

from dataclasses import dataclass
from math import ceil

from perf_assets.demo.applications.design import Application, Configuration, Grid
from perf_assets.demo.applications.phases import Exchange, FileTraffic, Phase
from perf_assets.demo.hardware.work import Stream, Work

_REAL = 8.0


@dataclass(frozen=True)
class _Problem:
    """A test problem of the distribution."""

    options: str
    dimension: int
    zones: int
    """Zones of the mesh before refinement."""
    steps_per_time: float
    """Time steps per unit of time and per refinement-1, order-1 zone."""
    time: float


_PROBLEMS = (
    _Problem("-p 1 -m data/cube01_hex.mesh", 3, 8, 117, 0.6),
    _Problem("-p 1 -m data/square01_quad.mesh", 2, 4, 90, 0.8),
    _Problem("-p 0 -m data/cube01_hex.mesh", 3, 8, 32, 0.75),
    _Problem("-p 3 -m data/rectangle01_quad.mesh", 2, 8, 120, 3.0),
    _Problem("-p 0 -m data/square01_quad.mesh", 2, 4, 28, 0.75),
    _Problem("-p 3 -m data/box01_hex.mesh", 3, 16, 45, 5.0),
)
_STAGES = {2: 2, 4: 4, 7: 2}
"""Runge-Kutta stages by the number of the integrator."""


@dataclass(frozen=True)
class _Zone:
    """Sizes of one zone at kinematic order k."""

    dimension: int
    order: int

    @property
    def nodes(self) -> int:
        """Kinematic unknowns per component."""
        return int((self.order + 1) ** self.dimension)

    @property
    def points(self) -> int:
        """Number of quadrature points."""
        return int((2 * self.order) ** self.dimension)

    @property
    def interpolation_flops(self) -> float:
        """Nodes to quadrature points by sum factorisation, one component."""
        nodes, points = self.order + 1, 2 * self.order
        products = [nodes ** (self.dimension - axis) * points ** (axis + 1) for axis in range(self.dimension)]
        return 2.0 * float(sum(products))


def _mass_solves(zone: _Zone, zones: float, applications: float) -> Phase:
    """Conjugate gradients: one application of the mass operator and the vector updates around it, many times."""
    points, unknowns = zone.points * zones, zones * zone.order**zone.dimension
    flops = (2 * zone.interpolation_flops + zone.points) * zones + 12 * unknowns
    vectors = 5 * unknowns * _REAL
    buffers = zone.points * _REAL
    faces = 2 * zone.dimension * unknowns ** ((zone.dimension - 1) / zone.dimension)
    return Phase(
        name="mass solves",
        offloads=True,
        work=Work(
            double_flops=flops * applications,
            integer_ops=(0.25 * flops + 3 * zone.nodes * zones) * applications,
            branches=(0.06 * flops) * applications,
            mispredict_rate=0.006,
            vector_share=0.7,
            streams=(
                Stream(read_bytes=points * _REAL * applications, reuse_bytes=points * _REAL + vectors),
                Stream(
                    read_bytes=10 * unknowns * _REAL * applications,
                    written_bytes=3 * unknowns * _REAL * applications,
                    reuse_bytes=points * _REAL + vectors,
                ),
                Stream(
                    read_bytes=2 * zone.nodes * zones * 12 * applications,
                    written_bytes=zone.nodes * zones * _REAL * applications,
                    reuse_bytes=vectors,
                    run_bytes=8 * (zone.order + 1),
                    outstanding_misses=6,
                ),
            ),
            parallel_items=points,
            parallel_regions=6 * applications,
            launches=9 * applications,
            host_syncs=2 * applications,
        ),
        scratch=(
            Stream(
                read_bytes=0.5 * flops * _REAL * applications,
                written_bytes=6 * buffers * zones * applications,
                reuse_bytes=6 * buffers,
            ),
        ),
        exchange=Exchange(
            messages=2 * zone.dimension * applications,
            message_bytes=faces * _REAL * applications,
            rounds=applications,
            reductions=2 * applications,
        ),
    )


def _forces(zone: _Zone, zones: float, stages: float) -> Phase:
    """Corner forces and their transpose: stress at the points against gradients of the velocity."""
    points, dimension = zone.points * zones, zone.dimension
    flops = 2 * dimension * dimension * zone.interpolation_flops * zones + 4 * dimension * dimension * points
    stress = dimension * dimension * points * _REAL
    return Phase(
        name="forces",
        offloads=True,
        work=Work(
            double_flops=flops * stages,
            integer_ops=0.25 * flops * stages,
            branches=0.05 * flops * stages,
            mispredict_rate=0.006,
            vector_share=0.65,
            streams=(Stream(read_bytes=2 * stress * stages, reuse_bytes=stress),),
            parallel_items=points,
            parallel_regions=4 * stages,
            launches=8 * stages,
        ),
        scratch=(
            Stream(
                read_bytes=0.5 * flops * _REAL * stages,
                written_bytes=0.15 * flops * _REAL * stages,
                reuse_bytes=4 * dimension * zone.points * _REAL,
            ),
        ),
    )


def _point_physics(zone: _Zone, zones: float, stages: float) -> Phase:
    """Equation of state and artificial viscosity: small singular-value problems with branches at every point."""
    points, dimension = zone.points * zones, zone.dimension
    flops = (560 if dimension == 3 else 160) * points
    state = (2 * dimension * dimension + 6) * points * _REAL
    return Phase(
        name="point physics",
        offloads=True,
        work=Work(
            double_flops=flops * stages,
            integer_ops=0.3 * flops * stages,
            divides=(9 if dimension == 3 else 5) * points * stages,
            math_calls=(3 if dimension == 3 else 1) * points * stages,
            branches=0.08 * flops * stages,
            mispredict_rate=0.02,
            vector_share=0.15,
            chained_flops=0.25 * flops * stages,
            streams=(Stream(read_bytes=0.6 * state * stages, written_bytes=0.4 * state * stages, reuse_bytes=state),),
            parallel_items=points,
            parallel_regions=2 * stages,
            launches=4 * stages,
            host_syncs=stages,
        ),
        scratch=(Stream(read_bytes=0.5 * flops * _REAL * stages, written_bytes=0.2 * flops * stages, reuse_bytes=800),),
        from_device_bytes=64 * stages,
        exchange=Exchange(reductions=stages),
    )


def _stepping(zone: _Zone, zones: float, steps: float) -> Phase:
    """Set-up, time-step control and printing: pointer-rich code on the host."""
    unknowns = zones * zone.order**zone.dimension * zone.dimension
    operations = 3e8 + 900 * zones * zone.nodes + 4e5 * steps
    return Phase(
        name="stepping",
        work=Work(
            double_flops=0.02 * operations,
            integer_ops=0.4 * operations,
            branches=0.18 * operations,
            mispredict_rate=0.025,
            vector_share=0.05,
            serial_share=0.8,
            streams=(
                Stream(
                    read_bytes=0.28 * operations * _REAL,
                    written_bytes=0.12 * operations * _REAL,
                    reuse_bytes=1e5 + 0.02 * unknowns * _REAL,
                    run_bytes=24,
                    outstanding_misses=3,
                ),
            ),
        ),
        to_device_bytes=12 * unknowns * _REAL,
        from_device_bytes=2 * unknowns * _REAL,
        exchange=Exchange(reductions=2 * steps),
        files=FileTraffic(read_bytes=40_000 + 60 * zones, written_bytes=120 * steps, opened=9),
    )


def _describe(
    ranks: int, problem: _Problem, refinement: int, order: int, integrator: int, max_steps: int
) -> Configuration | None:
    zones_in_all = problem.zones * 2 ** (problem.dimension * refinement)
    if zones_in_all < 8 * ranks:
        return None
    zones = float(ceil(zones_in_all / ranks))
    zone = _Zone(problem.dimension, order)
    steps = float(min(max_steps, ceil(problem.steps_per_time * problem.time * 2**refinement * order)))
    stages = _STAGES[integrator] * steps
    applications = problem.dimension * (14 + 6 * order) * stages
    return Configuration(
        app="Laghos",
        args=f"{problem.options} -rs {refinement} -ok {order} -ot {order - 1} -s {integrator} "
        f"-tf {problem.time} -ms {max_steps} -pa",
        ranks=ranks,
        threads=1,
        footprint_bytes=1.5e8 + zones * (zone.points * 40 + zone.nodes * 30) * _REAL,
        phases=(
            _mass_solves(zone, zones, applications),
            _forces(zone, zones, stages),
            _point_physics(zone, zones, stages),
            _stepping(zone, zones, steps),
        ),
    )


_RANKS = (1, 2, 3, 4, 6, 8, 9, 12, 16, 24, 32)

LAGHOS = Application(
    name="Laghos",
    program="laghos",
    configuration_count=154,
    has_gpu_back_end=True,
    imbalance=0.03,
    coarse=Grid((_RANKS, _PROBLEMS, (2, 3, 4, 5), (2, 3, 4), (7, 4), (500, 2000))),
    fine=Grid((_RANKS, _PROBLEMS, (2, 3, 4, 5, 6), (1, 2, 3, 4, 5), (7, 4, 2), tuple(range(100, 3000, 20)))),
    describe=_describe,
)
