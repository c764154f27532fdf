"""QWS on Fugaku: interfaces of a node, and weak scaling of an iteration of a clover solver."""

from __future__ import annotations

import math

from onehop.machine import load_machine, message_traffic, simulate
from onehop.machine.rails import compare_rails
from onehop.text import counted
from onehop_bench.papers.grids import direct_sum_seconds, dslash_traffic, neighbour_places, sum_seconds
from onehop_bench.papers.study import Bars, Curve, Study, changed_machine, published

_LOCAL = (32, 6, 4, 3)  # sites of a rank, QWS's CASE0; x, y, z, t
_IN_NODE = (1, 1, 2, 2)  # ranks of a node
# Nodes per dimension. Where there are two, both neighbours are the same node; these grids avoid it.
_NODES = ((1, 1, 1, 1), (4, 1, 1, 1), (4, 4, 1, 1), (4, 4, 4, 1), (4, 4, 4, 4), (8, 8, 4, 4), (8, 8, 8, 8))
_SPINOR = 12 * 4  # half a spinor: 12 floats
_HOPPING_TERMS = 4  # of one iteration of BiCGStab with the even-odd clover operator
# Bytes that a hopping term on half of the sites reads and writes at one of them: links and spinors (864), and two
# clover blocks.
_SITE = 864 + 2 * 36 * 4


def _weak_scaling(study: Study) -> None:
    machine = load_machine("fugaku")
    faces = [math.prod(_LOCAL) // extent // 2 * _SPINOR for extent in _LOCAL]
    compute = math.prod(_LOCAL) / 2 * _SITE / machine.memory_bandwidth.value
    counts = [float(math.prod(nodes)) for nodes in _NODES]
    curves: dict[str, list[float]] = {"neighbours one hop apart": [], "row-major ranks": []}
    exchange = []
    for nodes in _NODES:
        grid = [count * inner for count, inner in zip(nodes, _IN_NODE, strict=True)]
        traffic = dslash_traffic(grid, faces)
        torus = changed_machine(machine, {1: {"extents": list(nodes)}})
        sums = 2 * sum_seconds(machine, traffic.ranks)
        near = simulate(traffic, torus, ranks=neighbour_places(nodes, _IN_NODE), compute=compute).seconds
        far = simulate(traffic, machine, compute=compute).seconds
        exchange.append(near)
        curves["neighbours one hop apart"].append((_HOPPING_TERMS * near + sums) * 1e6)
        curves["row-major ranks"].append((_HOPPING_TERMS * far + sums) * 1e6)
    # The talk has no times against the number of nodes, only the words "good weak scaling": nothing to compare with.
    large = counts.index(256.0)
    case = "hopping term, 4096 nodes over 256, neighbours one hop apart"
    study.predict(case, exchange[-1] / exchange[large], "x")
    for count, us in zip(counts, curves["neighbours one hop apart"], strict=True):
        if count in (1, counts[large], counts[-1]):
            case = f"an iteration, {counted(int(count), 'node', commas=True)}, neighbours one hop apart"
            study.predict(case, us, "µs")
    for title, seconds in (
        ("by doubling", sum_seconds),
        ("direct, as onehop makes them", direct_sum_seconds),
    ):
        case = f"two sums of an iteration on 4096 nodes, {title}"
        study.predict(case, 2 * seconds(machine, traffic.ranks) * 1e6, "µs")
    near_us, far_us = (curves[name][-1] for name in ("neighbours one hop apart", "row-major ranks"))
    case = "an iteration on 4096 nodes, row-major ranks over neighbours one hop apart"
    study.predict(case, far_us / near_us, "x")
    lines = [
        Curve(f"{name}, model", counts, us, style=style) for style, (name, us) in enumerate(curves.items())
    ]
    lines.append(Curve("computing alone", counts, [_HOPPING_TERMS * compute * 1e6] * len(counts), style=5))
    study.draw("an iteration of the clover solver", "nodes", "time in µs", lines, log_y=False)


def qws() -> Study:
    """Predict the bandwidths of the talk's patterns of interfaces, and weak scaling on Fugaku."""
    figures = published()["qws"]
    study = Study.of("qws", columns=2)
    found = compare_rails(
        figures["ranks_per_node"], 6, figures["local_lattice"], injected=figures["injected_gb_per_s"]
    )
    model = {one["name"]: one["talk"]["gb_per_s"] for one in found["assignments"]}
    names, paper = ["pattern 1", "round robin"], []
    for name in names:
        paper.append(figures[f"{name.replace(' ', '_')}_gb_per_s"])
        study.compare(f"interfaces, {name}", "GB/s", model[name], paper[-1:])
    put = simulate(message_traffic(2, [[(0, 1, 8)]]), "fugaku", ranks=[0, 4]).seconds * 1e6
    study.compare("put of 8 bytes", "µs", put, [figures["put_us"]], fitted=True)
    bars = Bars(names, [model[name] for name in names], paper, paper)
    study.draw_bars("interfaces of a node", "bandwidth in GB/s", bars)
    _weak_scaling(study)
    return study
