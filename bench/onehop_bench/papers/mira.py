"""Mira: ping-pong, halo in five dimensions, and what mapping and qspi bring to a HISQ solver."""

from __future__ import annotations

import functools
import itertools
import math

from onehop.machine import Machine, Simulation, halo_traffic, load_machine, message_traffic, simulate
from onehop_bench.papers.grids import dslash_traffic
from onehop_bench.papers.study import Bars, Curve, Study, changed_machine, published

_CORES = 16
_SIZES = [1 << power for power in range(3, 23)]
# The halo of Fig. 2: a torus of 4 nodes in each of five dimensions, on which both neighbours have their own link.
_TORUS = (4, 4, 4, 4, 4)
# 128 nodes of Mira in the order E, D, C, B, A, which is that of consecutive ranks.
_BLOCK = (2, 4, 4, 2, 2)
# The lattice of 128 nodes with 12^4 sites each, and how MILC cuts it for 4,096 ranks; t, z, y, x.
_LATTICE = (24, 48, 48, 48)
_RANKS = (4, 8, 8, 16)
_NODES = (2, 4, 4, 4)
_FLOP_PER_SITE = 1187  # one iteration of conjugate gradients, as MILC counts it
_HALO_SITES = 3  # long links reach three sites; half of the sites, with 6 floats each, travel


def _ping_pong(machine: Machine, size: int) -> float:
    return simulate(message_traffic(2, [[(0, 1, size)]]), machine, ranks=[0, _CORES]).seconds


def _halo(machine: Machine, size: int) -> float:
    """Return the seconds in which every node of the torus exchanges a message with all ten neighbours."""
    torus = changed_machine(machine, {1: {"extents": list(_TORUS)}})
    traffic = dslash_traffic(_TORUS, [size] * len(_TORUS))
    return simulate(traffic, torus, ranks=[_CORES * node for node in range(traffic.ranks)]).seconds


def _block_places() -> list[int]:
    """Return the place of every rank if a node has a block of 12^4 sites and neighbouring nodes are one hop apart."""
    inner = [ranks // nodes for ranks, nodes in zip(_RANKS, _NODES, strict=True)]
    places = []
    for position in itertools.product(*map(range, _RANKS)):
        t, z, y, x = (one // size for one, size in zip(position, inner, strict=True))
        b, a = ((0, 0), (0, 1), (1, 1), (1, 0))[x]  # a ring of four nodes in two dimensions of two
        node = t + 2 * (z + 4 * (y + 4 * (b + 2 * a)))
        rank = 0
        for one, size in zip(position, inner, strict=True):
            rank = rank * size + one % size
        places.append(math.prod(inner) * node + rank)
    return places


@functools.cache
def hisq_exchange(mapped: bool) -> Simulation:
    """Simulate an exchange of the HISQ operator, 32 ranks on each of 128 nodes, row-major or in blocks."""
    per_node = math.prod(_RANKS) // math.prod(_NODES)
    machine = changed_machine("mira", {0: {"extents": [per_node]}, 1: {"extents": list(_BLOCK)}})
    traffic = halo_traffic(extents=_LATTICE, grid=_RANKS, width=_HALO_SITES, dtype="float32", fields=3)
    places = _block_places() if mapped else list(range(math.prod(_RANKS)))
    return simulate(traffic, machine, ranks=places)


def _most_bytes(found: Simulation) -> float:
    """Return the bytes of the link of the torus that carries the most."""
    return max(link.bytes for link in found.links if link.level == "system")


def _latencies(study: Study, figures: dict) -> None:
    """Ping-pong and halo: the machine file is fitted to qspi, and MPI's overhead to its ping-pong."""
    overhead = study.fitted()[2] * 1e-6
    machines = {"qspi": load_machine("mira"), "mpi": changed_machine("mira", {1: {"overhead": overhead}})}
    link = figures["link_bytes_per_second"]
    times = {}
    for title, key, measure in (
        ("a message to a neighbour", "pingpong", _ping_pong),
        ("halo in five dimensions", "halo", _halo),
    ):
        curves = []
        for style, (name, machine) in enumerate(machines.items()):
            us = [measure(machine, size) * 1e6 for size in _SIZES]
            times[key, name] = us
            paper = figures[f"{key}_us"][name]
            fitted = name == "qspi" or key == "pingpong"
            study.compare(f"{key}, {name}, short", "µs", us[0], [paper], fitted=fitted)
            curves.append(Curve(f"{name}, model", _SIZES, us, style=style))
            curves.append(Curve(f"{name}, report", [_SIZES[0]], [paper], paper=True, style=style))
        curves.append(Curve("1.8 GB/s", _SIZES, [size / link * 1e6 for size in _SIZES], style=5))
        study.draw(title, "size of the message", "time in µs", curves)
    speedup = figures["speedup"]
    big = next(place for place, size in enumerate(_SIZES) if size > speedup["no_gain_above_bytes"])
    pingpong, halo = (
        [slow / fast for slow, fast in zip(times[key, "mpi"], times[key, "qspi"], strict=True)]
        for key in ("pingpong", "halo")
    )
    study.compare("pingpong, qspi over MPI, short", "x", pingpong[0], [speedup["pingpong_short"]])
    study.compare("pingpong, qspi over MPI, 128 KiB", "x", pingpong[big], [speedup["pingpong_long"]])
    study.compare("halo, qspi over MPI, short", "x", halo[0], [speedup["halo_least"], speedup["halo_most"]])


def _solver(study: Study, figures: dict) -> None:
    """Table 1: computing and MPI's software time are fitted to two of its rows."""
    table = figures["gflops_per_node"]
    flop = math.prod(figures["lattice_per_node"]) * _FLOP_PER_SITE
    row_major, mapped = (2 * hisq_exchange(one).seconds for one in (False, True))
    compute, software = (ms * 1e-3 for ms in study.fitted()[3:])

    def rate(software: float, exchange: float) -> float:
        return flop / (compute + software + exchange) / 1e9

    cases = [
        ("neither", rate(software, row_major), table["none"], table["none"], True),
        ("qspi", rate(0, row_major), table["qspi"], table["qspi"], True),
        ("mapping", rate(software, mapped), table["mapping"], table["mapping"], False),
        ("qspi, mapping", rate(0, mapped), table["two_least"], table["two_most"], False),
    ]
    for name, model, low, high, fitted in cases:
        study.compare(f"HISQ solver, {name}", "GFLOP/s", model, [low, high], fitted=fitted)
    ratio = _most_bytes(hisq_exchange(False)) / _most_bytes(hisq_exchange(True))
    study.predict("bytes of the busiest link, row-major over blocks", ratio, "x")
    names, model, low, high = ([case[part] for case in cases] for part in range(4))
    bars = Bars(names, model, low, high)
    study.draw_bars("HISQ solver, 128 nodes", "GFLOP/s of a node", bars)


def mira() -> Study:
    """Predict the latencies, and the effect of mapping, of the report on qspi."""
    figures = published()["mira"]
    study = Study.of("mira", columns=3)
    _latencies(study, figures)
    _solver(study, figures)
    return study
