"""The predicted time of an iteration of a lattice solver on a machine."""

from __future__ import annotations

import math
import operator
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from onehop.error import BadInput
from onehop.lattice import Geometry
from onehop.machine import (
    Machine,
    Simulation,
    Traffic,
    allreduce_traffic,
    message_traffic,
    permutation_traffic,
    simulate,
)
from onehop.machine.reader import machine_of
from onehop.predict.common import Computing, Speed, add_bytes, bounding_level, check_memory, check_ranks
from onehop.text import alternatives, counted

# Bytes of a number of the links, and of a vector.
_SIZES = {"double": (8, 8), "single": (4, 4), "half": (2, 4)}
PRECISIONS = tuple(_SIZES)
SUMS = ("direct", "tree")


@dataclass(frozen=True)
class _HoppingTerm:
    """One application of the hopping term to the sites of one parity; numbers per site that is written."""

    matrix_reals: int
    vector_reals: int
    flops: int


@dataclass(frozen=True)
class _Action:
    """What one iteration does. All its numbers are those that the solvers count themselves."""

    solver: str
    width: int  # of the halo
    vector_reals: int  # of a site
    halo_reals: int  # per site of a face
    terms: tuple[_HoppingTerm, ...]
    arrays: int  # vectors of one parity that the linear algebra reads or writes
    algebra_flops: int  # per real number of a vector
    sums: int  # global sums
    stored_matrices: int  # real numbers per site


def _staggered(lengths: int) -> _Action:
    matrices = 8 * lengths
    flops = 66 * matrices + 6 * (matrices - 1)
    terms = (_HoppingTerm(18 * matrices, 18, flops), _HoppingTerm(18 * matrices, 18, flops + 12))
    width = 3 if lengths > 1 else 1
    return _Action("conjugate gradients", width, 6, 6, terms, 9, 8, 2, 18 * matrices)


def _wilson(clover: bool, recon: int) -> _Action:
    blocks, more = (72, 504) if clover else (0, 0)
    inner = _HoppingTerm(8 * recon + blocks, 48, 1320 + more)
    outer = _HoppingTerm(8 * recon + blocks, 72, 1320 + (more or 48))
    # One iteration of BiCGStab applies the operator twice.
    return _Action("BiCGStab", 1, 24, 12, (inner, outer) * 2, 22, 56, 5, 8 * recon + 2 * blocks)


ACTIONS = ("staggered", "asqtad", "hisq", "wilson", "clover")


def _action(name: str, recon: int) -> _Action:
    if name not in ACTIONS:
        raise BadInput(f"expected the action {alternatives(ACTIONS)}, found {name!r}")
    if recon not in (12, 18):
        raise BadInput(f"expected 12 or 18 numbers per link, found {recon}")
    if name in ("wilson", "clover"):
        return _wilson(name == "clover", recon)
    if recon != 18:
        raise BadInput(f"expected 18 numbers per link of the action {name}, found {recon}")
    return _staggered(1 if name == "staggered" else 2)


def _sizes(precision: str) -> tuple[int, int]:
    if precision not in _SIZES:
        raise BadInput(f"expected the precision double, single or half, found {precision!r}")
    return _SIZES[precision]


def halo_width(action: str) -> int:
    """Return the layers of the halo of an action: 3 with long links, otherwise 1."""
    return _action(action, 18).width


def vector_bytes(action: str, precision: str) -> int:
    """Return the bytes of a vector at one site."""
    return _action(action, 18).vector_reals * _sizes(precision)[1]


def balanced_grid(ranks: int, dimensions: int) -> tuple[int, ...]:
    """Return a grid of ranks whose extents are as equal as their factors allow, the largest last.

    Raise BadInput if there are no ranks or no dimensions.
    """
    if ranks < 1 or dimensions < 1:
        raise BadInput(f"expected ranks and dimensions of at least 1, found {ranks} and {dimensions}")
    grid = [1] * dimensions
    factors = []
    factor = 2
    while ranks > 1:
        while ranks % factor == 0:
            factors.append(factor)
            ranks //= factor
        factor += 1 if factor * factor <= ranks else ranks - factor
    for one in reversed(factors):
        grid[grid.index(min(grid))] *= one
    return tuple(sorted(grid))


@dataclass(frozen=True)
class SolverPrediction:
    """The predicted time of one iteration of a solver. Seconds of the parts add up to `predicted_seconds`.

    Attributes
    ----------
    machine, action, precision, solver : str
        Name of the machine, of the quark action, the precision, and the algorithm.
    ranks : int
        Number of ranks.
    predicted_seconds : float
        Time of one iteration.
    hopping_seconds : float
        Time of the hopping terms, without the halo.
    halo_seconds : float
        Time by which halos take longer than the interior that is computed meanwhile.
    algebra_seconds : float
        Time of the linear algebra.
    sum_seconds : float
        Time of the global sums.
    arithmetic_seconds : float
        The part of `hopping_seconds` and `algebra_seconds` that multiply-adds limit instead of memory.
    counts_arithmetic : bool
        Whether the machine file gives the rate of multiply-adds. Without it only memory and messages count.
    hopping_terms, sums : int
        Number of hopping terms on half of the sites, and of global sums.
    flops, bytes : float
        Floating-point operations of a rank, and bytes that it reads and writes in memory.
    gflops : float
        Rate of a rank in GFLOP/s.
    bytes_by_level : dict of str to int
        Bytes that all ranks together send, by the level of the machine that they cross.
    bound : str
        What takes the largest part of the time.
    """

    machine: str
    action: str
    precision: str
    solver: str
    ranks: int
    predicted_seconds: float
    hopping_seconds: float
    halo_seconds: float
    algebra_seconds: float
    sum_seconds: float
    arithmetic_seconds: float
    counts_arithmetic: bool
    hopping_terms: int
    sums: int
    flops: float
    bytes: float
    gflops: float
    bytes_by_level: dict[str, int]
    bound: str

    def to_dict(self) -> dict[str, Any]:
        """The prediction as an object for JSON."""
        return asdict(self)


def _sum_rounds(ranks: int, machine: Machine, sums: str) -> list[Simulation]:
    """Simulate one global sum of two numbers."""
    if sums == "direct":
        return [simulate(allreduce_traffic(ranks, 2, dtype="float64", algorithm="one_shot"), machine)]
    steps = ranks.bit_length() - 1
    if ranks != 1 << steps:
        raise BadInput(
            f"expected a number of ranks that is a power of two for sums along a tree, found {ranks}"
        )
    found = []
    for step in range(steps):
        # A swap of a bit sends half of a rank's elements to the partner.
        permutation = list(range(2 + steps))
        permutation[0], permutation[2 + step] = 2 + step, 0
        traffic = permutation_traffic(2 + steps, local=2, permutation=permutation, dtype="float64")
        found.append(simulate(traffic, machine))
    return found


def _halo(geometry: Geometry, action: _Action, size: int) -> Traffic:
    """Return the messages that carry the faces of one parity; both faces to one neighbour are one message."""
    ranks = np.arange(math.prod(geometry.grid))
    sites = math.prod(geometry.block)
    columns = []
    stride = 1
    for cuts, extent in zip(geometry.grid, geometry.block, strict=True):
        place = ranks // stride % cuts
        face = sites // extent * action.width * action.halo_reals * size // 2
        for step in () if cuts == 1 else (1,) if cuts == 2 else (1, -1):
            to = ranks + ((place + step) % cuts - place) * stride
            columns.append(np.stack([ranks, to, np.full_like(ranks, face * (2 if cuts == 2 else 1))]))
        stride *= cuts
    table = np.concatenate(columns, axis=1)
    # As in a plan, every rank begins with the next higher rank.
    order = np.lexsort(((table[1] - table[0]) % len(ranks), table[0]))
    return message_traffic(len(ranks), [list(zip(*table[:, order].tolist(), strict=True))])


def predict_solver(
    extents: Sequence[int],
    machine: Machine | str | Path,
    ranks: int = 1,
    *,
    grid: Sequence[int] | None = None,
    action: str = "hisq",
    precision: str = "double",
    recon: int = 18,
    sums: str = "direct",
) -> SolverPrediction:
    """Predict how long one iteration of a solver takes on a machine with one rank per processor.

    An iteration applies hopping terms to half of the sites (two for staggered quarks, four for Wilson quarks with
    BiCGStab), does linear algebra, and sums over all ranks. Memory traffic runs at the bandwidth of the machine. A part
    takes the time of its arithmetic instead if that is longer and the machine file gives the rate of multiply-adds, of
    which each counts as two operations. Halos take the time that `onehop.machine.simulate` gives while the interior is
    computed, and the boundary follows.

    Parameters
    ----------
    extents : sequence of int
        Number of sites of the whole lattice in each direction, x first.
    machine : Machine, str or path
        The machine, the name of an installed one, or the path of a TOML file.
    ranks : int
        Number of ranks, for the grid with the smallest surface.
    grid : sequence of int, optional
        Number of ranks in each direction, instead of `ranks`.
    action : {"staggered", "asqtad", "hisq", "wilson", "clover"}
        The quark action.
    precision : {"double", "single", "half"}
        Precision of the iteration. half: links of 16 bits, vectors in single precision.
    recon : {18, 12}
        Real numbers kept per link (Wilson and clover only).
    sums : {"direct", "tree"}
        Whether every rank sends its part of a sum to all others, as onehop does, or pairs of ranks exchange it in
        log2(ranks) steps.

    Raises
    ------
    BadInput
        A name is unknown, the grid does not divide the lattice, or the machine has too few processors or too little
        memory.

    Examples
    --------
    >>> found = onehop.predict.predict_solver((64, 64, 64, 64), "perlmutter", 64)
    >>> found.hopping_terms, found.sums
    (2, 2)
    """
    described = machine_of(machine)
    try:
        extents = [operator.index(one) for one in extents]
    except TypeError as error:
        raise BadInput(f"expected a lattice of four whole numbers of sites, found {extents!r}") from error
    if len(extents) != 4:
        raise BadInput(f"expected a lattice of four whole numbers of sites, found {len(extents)}")
    quark = _action(action, recon)
    link_size, size = _sizes(precision)
    if sums not in SUMS:
        raise BadInput(f"expected sums direct or tree, found {sums!r}")
    if grid is not None:
        ranks = math.prod(grid)
    check_ranks(ranks, described)
    geometry = Geometry(extents, grid, ranks=ranks, width=quark.width)
    sites = math.prod(geometry.block) // 2  # of one parity
    need = 2 * sites * (quark.stored_matrices * link_size + 6 * quark.vector_reals * size)
    check_memory(need, described, f"the {action} action on {counted(ranks, 'rank')}", "use more ranks")
    speed = Speed.of(described, precision)
    total = {level.name: 0 for level in described.levels}
    hopping = _hopping_times(geometry, quark, speed, (link_size, size), total)
    algebra_bytes = quark.arrays * quark.vector_reals * size * sites
    algebra = speed.timed(algebra_bytes, quark.algebra_flops * quark.vector_reals * sites)
    summing = 0.0
    if ranks > 1:
        for found in _sum_rounds(ranks, described, sums):
            summing += quark.sums * found.seconds
            add_bytes(total, found.bytes_by_level, quark.sums)
    computing = hopping.computing + algebra
    parts = hopping.exposed | {
        "memory bandwidth": computing.memory,
        "multiply-adds": computing.arithmetic,
        "global sums": summing,
    }
    waiting = sum(hopping.exposed.values())
    seconds = computing.seconds + waiting + summing
    flops = float(
        sites * (sum(term.flops for term in quark.terms) + quark.algebra_flops * quark.vector_reals)
    )
    return SolverPrediction(
        machine=described.name,
        action=action,
        precision=precision,
        solver=quark.solver,
        ranks=ranks,
        predicted_seconds=seconds,
        hopping_seconds=hopping.computing.seconds,
        halo_seconds=waiting,
        algebra_seconds=algebra.seconds,
        sum_seconds=summing,
        arithmetic_seconds=computing.arithmetic,
        counts_arithmetic=speed.flops > 0,
        hopping_terms=len(quark.terms),
        sums=quark.sums,
        flops=flops,
        bytes=hopping.bytes + algebra_bytes,
        gflops=flops / seconds / 1e9,
        bytes_by_level=total,
        bound=max(parts, key=lambda part: parts[part]),
    )


@dataclass(frozen=True)
class _HoppingTimes:
    """The hopping terms of one iteration: seconds of computing, and of waiting for halos by what bounds these.

    `bytes` of one rank's memory are read and written.
    """

    computing: Computing
    exposed: dict[str, float]
    bytes: float


def _hopping_times(
    geometry: Geometry, quark: _Action, speed: Speed, sizes: tuple[int, int], total: dict[str, int]
) -> _HoppingTimes:
    """Time the hopping terms; `sizes` are bytes of a number of links and vectors. Adds the halos' bytes to `total`."""
    link_size, size = sizes
    sites = math.prod(geometry.block) // 2
    interior = _interior(geometry, quark.width)
    computing = Computing()
    moved = 0.0
    exposed: dict[str, float] = {}
    traffic = _halo(geometry, quark, size) if math.prod(geometry.grid) > 1 else None
    exchanged: dict[float, Simulation] = {}
    for term in quark.terms:
        per_site = term.matrix_reals * link_size + term.vector_reals * size
        moved += sites * per_site
        computing += speed.timed(sites * per_site, sites * term.flops)
        if traffic is None:
            continue
        inside = speed.timed(interior * per_site, interior * term.flops).seconds
        if inside not in exchanged:
            exchanged[inside] = simulate(traffic, speed.machine, compute=inside)
        found = exchanged[inside]
        bound = f"halo: {bounding_level(found)}"
        exposed[bound] = exposed.get(bound, 0.0) + max(0.0, found.seconds - inside)
        add_bytes(total, found.bytes_by_level)
    return _HoppingTimes(computing, exposed, moved)


def _interior(geometry: Geometry, width: int) -> int:
    """Return the sites of one parity that need no ghosts."""
    extents = (
        max(0, sites - 2 * width) if cuts > 1 else sites
        for sites, cuts in zip(geometry.block, geometry.grid, strict=True)
    )
    return math.prod(extents) // 2
