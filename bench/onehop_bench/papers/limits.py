"""Beyond the papers: how far state vectors, lattices and all-reduce scale to 65,536 ranks, and what bounds each."""

from __future__ import annotations

import math
from dataclasses import dataclass

from onehop.machine import Machine, Simulation, allreduce_traffic, load_machine, simulate
from onehop.predict.common import bounding_level
from onehop_bench.papers.grids import direct_sum_seconds, dslash_traffic, neighbour_places, sum_seconds
from onehop_bench.papers.study import Curve, Study, changed_machine

LARGEST = 65536
# Qubits whose amplitudes, in single precision, fill a quarter to half of the memory of a processor.
_QUBITS = {"genesis": 33, "h100": 32, "fugaku": 29, "mira": 26, "cluster-100gbe": 27}
# Sites of a rank in each dimension, and ranks of a node in four dimensions where neighbours shall be one hop apart.
_SITES = {"genesis": 32, "h100": 32, "fugaku": 16, "mira": 8, "cluster-100gbe": 8}
_IN_NODE = {"fugaku": (1, 1, 2, 2), "mira": (2, 2, 2, 2)}
_GRIDS = ((4, 4, 4, 4), (4, 4, 8, 8), (8, 8, 8, 8), (16, 16, 16, 16))
_SITE = 864  # bytes that a Wilson hopping term in single precision reads and writes at a site
_SPINOR = 12 * 4
_HOPPING_TERMS, _SUMS = 4, 2  # of an iteration of conjugate gradients with the even-odd operator
_ARRAY = 256 << 20
_TITLES = {
    "genesis": "Genesis",
    "h100": "H100, 8 per host",
    "fugaku": "Fugaku",
    "mira": "Mira",
    "cluster-100gbe": "100 GbE, 64 cores per host",
}


def _exchange(machine: Machine, qubits: int, ranks: int) -> Simulation:
    """Simulate the exchange of all bits of the rank number: every rank sends an equal part to every other."""
    # That is the first round of a two-shot all-reduce of as many bytes.
    return simulate(allreduce_traffic(ranks, (8 << qubits) // 4), machine)


def exchange_passes(name: str, ranks: int) -> float:
    """Return how many passes over its amplitudes a rank could make during one exchange of all rank bits."""
    machine = load_machine(name)
    qubits = _QUBITS[name]
    pass_seconds = 2 * (8 << qubits) / machine.memory_bandwidth.value
    return _exchange(machine, qubits, ranks).rounds[0].seconds / pass_seconds


def _dslash(name: str, grid: tuple[int, ...], compute: float) -> Simulation:
    machine = load_machine(name)
    face = _SITES[name] ** 3 // 2 * _SPINOR
    traffic = dslash_traffic(grid, [face] * 4)
    if name not in _IN_NODE:
        return simulate(traffic, machine, compute=compute)
    nodes = tuple(ranks // inner for ranks, inner in zip(grid, _IN_NODE[name], strict=True))
    torus = changed_machine(machine, {1: {"extents": list(nodes)}})
    return simulate(traffic, torus, ranks=neighbour_places(nodes, _IN_NODE[name]), compute=compute)


@dataclass(frozen=True)
class Iteration:
    """Seconds of an iteration of conjugate gradients: computing, hopping terms with their halos, and global sums.

    Sums are made by doubling, or as onehop makes them: every rank sends its part to all others.
    """

    computing: float
    hopping: float
    doubling: float
    direct: float
    halo_bound: str

    def share(self, *, direct: bool = False) -> float:
        """Return the share of computing."""
        return self.computing / (self.hopping + (self.direct if direct else self.doubling))

    def bound(self, *, direct: bool = False) -> str:
        """Return what takes the largest part of the time."""
        if (self.direct if direct else self.doubling) > self.hopping:
            return "global sums"
        return "memory" if self.hopping < 1.1 * self.computing else self.halo_bound


def iteration_of(name: str, grid: tuple[int, ...]) -> Iteration:
    """Predict an iteration of conjugate gradients with the even-odd Wilson operator."""
    machine = load_machine(name)
    compute = _SITES[name] ** 4 / 2 * _SITE / machine.memory_bandwidth.value
    term = _dslash(name, grid, compute)
    ranks = math.prod(grid)
    return Iteration(
        computing=_HOPPING_TERMS * compute,
        hopping=_HOPPING_TERMS * term.seconds,
        doubling=_SUMS * sum_seconds(machine, ranks),
        direct=_SUMS * direct_sum_seconds(machine, ranks),
        halo_bound=bounding_level(term),
    )


def _grids(name: str, largest: int) -> list[tuple[int, ...]]:
    """Return the grids for a machine. On a torus, both neighbours of a node shall be different nodes."""
    inner = _IN_NODE.get(name, (1, 1, 1, 1))
    return [
        grid
        for grid in _GRIDS
        if math.prod(grid) <= largest
        and all(ranks // size > 2 for ranks, size in zip(grid, inner, strict=True))
    ]


def _predict_lattice(study: Study, name: str, one: Iteration) -> None:
    case = f"{_TITLES[name]}: iteration, {_SITES[name]}^4 sites per rank"
    for sums, direct in (("sums by doubling", False), ("onehop's direct sums", True)):
        bound = one.bound(direct=direct)
        seconds = one.computing / one.share(direct=direct)
        summing = one.direct if direct else one.doubling
        study.predict(f"{case}, {sums}", seconds * 1e3, "ms", bound)
        study.predict(f"{case}, {sums}, sums alone", summing * 1e3, "ms", bound)
        study.predict(f"{case}, {sums}, computing", 100 * one.share(direct=direct), "%", bound)


def _predict(study: Study, largest: int, lattice: dict[str, Iteration]) -> None:
    """Add the numbers of the table: `lattice` has an iteration on every machine."""
    for name, qubits in _QUBITS.items():
        found = _exchange(load_machine(name), qubits, largest)
        case = f"{_TITLES[name]}: passes in the time of an exchange"
        study.predict(case, exchange_passes(name, largest), "", bounding_level(found))
        study.predict(f"{_TITLES[name]}: qubits", qubits + largest.bit_length() - 1, "", "memory")
    for name, one in lattice.items():
        _predict_lattice(study, name, one)
    for name in _QUBITS:
        found = simulate(allreduce_traffic(largest, _ARRAY // 4), name)
        case = f"{_TITLES[name]}: all-reduce of 256 MiB"
        study.predict(case, found.seconds * 1e3, "ms", bounding_level(found))


def limits(largest: int = LARGEST) -> Study:
    """Predict up to `largest` ranks, a power of 16, on five machines. No paper has these numbers."""
    study = Study("limits", "beyond the papers", columns=2)
    counts = [1 << power for power in range(1, largest.bit_length())]
    exchanges: list[Curve] = []
    shares: dict[bool, list[Curve]] = {False: [], True: []}
    sums: list[Curve] = []
    lattice: dict[str, Iteration] = {}
    for style, (name, label) in enumerate(_TITLES.items()):
        passes = [exchange_passes(name, ranks) for ranks in counts]
        exchanges.append(Curve(label, counts, passes, style=style))
        found = {grid: iteration_of(name, grid) for grid in _grids(name, largest)}
        lattice[name] = list(found.values())[-1]
        ranks = [math.prod(grid) for grid in found]
        for direct, curves in shares.items():
            percent = [100 * one.share(direct=direct) for one in found.values()]
            curves.append(Curve(label, ranks, percent, style=style))
        # Two-shot all-reduces of 256 MiB of float32.
        ms = [simulate(allreduce_traffic(ranks, _ARRAY // 4), name).seconds * 1e3 for ranks in counts]
        sums.append(Curve(label, counts, ms, style=style))
    share = "computing, % of an iteration"
    study.draw("state vector", "ranks", "passes in the time of an exchange", exchanges)
    study.draw("lattice, sums by doubling", "ranks", share, shares[False], log_y=False)
    study.draw("lattice, onehop's direct sums", "ranks", share, shares[True], log_y=False)
    study.draw("all-reduce of 256 MiB", "ranks", "time in ms", sums)
    _predict(study, largest, lattice)
    return study
