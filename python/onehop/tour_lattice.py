"""The lattice gauge theory steps of `onehop tour`: generate a gauge field, and solve for quarks on it."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

import numpy as np

from onehop.group import Group
from onehop.lattice import Gauge, Geometry, Staggered, Wilson, thermalize, wilson_kappa
from onehop.schedule import count
from onehop.tour import StepResult, _everywhere, _simply_timed, step

BETA, PLAQUETTE = 6.0, 0.5937  # the published plaquette at this beta in infinite volume
SWEEPS, OVER_RELAXATIONS = 24, 2
TOLERANCE = 1e-10


def _extents(group: Group) -> tuple[int, int, int, int]:
    return (8, 8, 8, 4 * max(group.size, 2))


def _field(group: Group, sweeps: int) -> tuple[Gauge, list[float]]:
    """Generate a field whose blocks have at least four sites in time, and return it with its plaquettes."""
    gauge = Gauge(group, _extents(group), (1, 1, 1, group.size))
    history = thermalize(gauge, BETA, sweeps, over_relaxations=OVER_RELAXATIONS)
    return gauge, history


def _norm(group: Group, field: np.ndarray) -> float:
    return float(
        np.sqrt(sum(np.frombuffer(one)[0] for one in group.allgather(np.vdot(field, field).real.tobytes())))
    )


def _random_source(gauge: Gauge, inner: tuple[int, ...]) -> np.ndarray:
    random = np.random.default_rng(24)
    shape = (*gauge.geometry.shape, *inner)
    whole = random.normal(size=shape) + 1j * random.normal(size=shape)
    return whole[gauge.geometry.block_slices(gauge.group.rank)]


def _name(gauge: Gauge) -> str:
    return "x".join(map(str, gauge.geometry.extents))


@step
def gauge_field(group: Group, _seconds: float) -> StepResult:
    """Generate a quenched gauge field by heat bath with over-relaxation."""
    gauge, history = _field(group, SWEEPS)
    mean = float(np.mean(history[-8:]))
    alone, _ = _field_alone(group)
    together, _ = _field(group, 1)
    same = together.gather().tobytes() == alone.gather().tobytes()
    ok = _everywhere(group, abs(mean - PLAQUETTE) < 0.006 and same and gauge.deviation().value < 1e-13)
    halo = Geometry(gauge.geometry.extents, gauge.geometry.grid, parities=1).halo(np.complex128, 9)
    # Each sweep fills the ghosts of a direction's links after each of its two parities.
    fills = SWEEPS * (1 + OVER_RELAXATIONS) * 4 * 2
    return StepResult(
        name=f"Gauge field {_name(gauge)} at beta = {BETA:g}, {SWEEPS} sweeps of heat bath",
        ok=ok,
        checked_against=f"published plaquette {PLAQUETTE}: found {mean:.4f}; "
        f"{'the same' if same else 'NOT the same'} bits as on one rank",
        bytes_moved=count(halo).bytes * fills,
        **asdict(_simply_timed(group, lambda: _field(group, 4))),
    )


def _field_alone(group: Group) -> tuple[Gauge, list[float]]:
    gauge = Gauge(Group.alone(), _extents(group))
    return gauge, thermalize(gauge, BETA, 1, over_relaxations=OVER_RELAXATIONS)


def _solve_step(
    gauge: Gauge, name: str, solve: Any, apply: Any, source: np.ndarray, bytes_each: int
) -> StepResult:
    group = gauge.group
    result = solve(source)
    residual = _norm(group, source - apply(result.solution)) / _norm(group, source)
    ok = _everywhere(group, result.converged and residual <= 2 * TOLERANCE)
    return StepResult(
        name=f"{name} on {_name(gauge)}: {result.iterations} iterations",
        ok=ok,
        checked_against=f"|b - M x| / |b| with the whole operator: {residual:.1e}",
        bytes_moved=bytes_each * result.iterations,
        **asdict(_simply_timed(group, lambda: solve(source))),
    )


@step
def hisq(group: Group, _seconds: float) -> StepResult:
    """Solve for staggered quarks with the fat and long links of HISQ."""
    gauge, _ = _field(group, 4)
    geometry, mass = gauge.geometry, 0.1
    operator = Staggered(gauge, "hisq")
    halo = Geometry(geometry.extents, geometry.grid, width=3).halo(np.complex128, 3)
    return _solve_step(
        gauge,
        f"HISQ quarks, mass {mass:g},",
        lambda source: operator.solve(source, mass, tolerance=TOLERANCE),
        lambda solution: operator.apply(solution, mass),
        _random_source(gauge, (3,)),
        count(halo).bytes,
    )


@step
def clover(group: Group, _seconds: float) -> StepResult:
    """Solve for Wilson quarks with the clover term."""
    gauge, _ = _field(group, 4)
    geometry, mass = gauge.geometry, 0.1
    operator = Wilson(gauge, wilson_kappa(mass), csw=1.0)
    halves = Geometry(geometry.extents, geometry.grid).halo(
        np.complex128, 6
    )  # the halo consists of half spinors
    return _solve_step(
        gauge,
        f"Clover quarks, mass {mass:g},",
        lambda source: operator.solve(source, tolerance=TOLERANCE),
        operator.apply,
        _random_source(gauge, (4, 3)),
        2 * count(halves).bytes,
    )
