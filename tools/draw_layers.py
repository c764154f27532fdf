"""Draw which parts of the C++ sources include which, as docs/figures/layers.svg shows it.

    draw_layers.py FILE.svg

A part stands above all parts that it includes. An arrow is left out if other arrows lead to the same part. Parts that
may include anything (bindings, benchmarks, tests) are left out, too.
"""

from __future__ import annotations

import functools
import sys
from pathlib import Path

from check_layers import Edge, check_cpp, tomllib

ROOT = Path(__file__).resolve().parents[1]
# The columns from left to right, each with the folder whose parts it holds, and its colour.
COLUMNS = {
    "quantum": "#cfe8f7",
    "src": "#ececec",
    "lattice": "#fbe3c8",
    "poisson": "#fbe3c8",
    "collectives": "#d5efe3",
    "c": "#f7ddea",
    "compat": "#f7ddea",
    "machine": "#f6f2c4",
}
WIDTH, HEIGHT = 1.0, 0.56  # of a box; rows are 1 apart
PITCH = WIDTH + 0.2  # between boxes of a row
# Parts that stand to the right (or left) of their usual place, so that arrows do not cross or pass behind boxes.
SHIFT = {
    "quantum/state": -PITCH / 2,
    "quantum/placement": PITCH / 2,
    "quantum/engine": PITCH / 2,
    "src/codec": 1.25 * PITCH,
    "src/group": -1.25 * PITCH,
}


def below(edges: set[Edge]) -> dict[str, set[str]]:
    """Return the parts that each part includes."""
    graph: dict[str, set[str]] = {}
    for own, other in edges:
        graph.setdefault(own, set()).add(other)
        graph.setdefault(other, set())
    return graph


def rows(graph: dict[str, set[str]]) -> dict[str, int]:
    """Return the row of each part: 0 for those that include nothing, and one above the highest included part."""

    @functools.cache
    def row(part: str) -> int:
        return 1 + max((row(other) for other in graph[part]), default=-1)

    return {part: row(part) for part in graph}


def reduced(graph: dict[str, set[str]]) -> set[Edge]:
    """Return the edges that no chain of other edges replaces (the transitive reduction)."""

    @functools.cache
    def reach(part: str) -> frozenset[str]:
        return frozenset(graph[part]).union(*(reach(other) for other in graph[part]))

    return {
        (own, other)
        for own, others in graph.items()
        for other in others
        if not any(other in reach(middle) for middle in others)
    }


def places(graph: dict[str, set[str]]) -> dict[str, tuple[float, float]]:
    """Return the centre of each part's box."""
    levels = rows(graph)
    found: dict[str, tuple[float, float]] = {}
    left = 0.0
    for folder in COLUMNS:
        lines: dict[int, list[str]] = {}
        for part in sorted(graph):
            if part.split("/")[0] == folder:
                lines.setdefault(levels[part], []).append(part)
        width = max(map(len, lines.values()), default=0) * PITCH
        for level, parts in lines.items():
            for i, part in enumerate(parts):
                centre = left + (i + 0.5) * width / len(parts)
                found[part] = (centre + SHIFT.get(part, 0.0), float(level))
        left += width + 0.15
    return found


def draw(edges: set[Edge], file: str) -> None:
    """Draw the parts and write the figure."""
    from matplotlib.patches import FancyBboxPatch

    from onehop.figure import empty_figure, save_figure

    graph = below(edges)
    centres = places(graph)
    figure = empty_figure(11.0, 6.2)
    axes = figure.add_subplot()
    for own, other in sorted(reduced(graph)):
        (x, y), (x2, y2) = centres[own], centres[other]
        arrow = {"arrowstyle": "-|>", "color": "0.45", "linewidth": 0.8, "shrinkA": 0, "shrinkB": 0}
        note = axes.annotate("", (x2, y2 + HEIGHT / 2), (x, y - HEIGHT / 2), arrowprops=arrow)
        note.arrow_patch.set_gid(f"{own}--{other}")
    for part, (x, y) in centres.items():
        box = FancyBboxPatch(
            (x - WIDTH / 2, y - HEIGHT / 2),
            WIDTH,
            HEIGHT,
            boxstyle="round,pad=0,rounding_size=0.08",
            facecolor=COLUMNS[part.split("/")[0]],
            edgecolor="0.3",
            linewidth=0.8,
            zorder=3,
        )
        axes.add_patch(box)
        axes.text(x, y, part.replace("/", "/\n"), ha="center", va="center", fontsize=7, zorder=4, color="0.1")
    axes.set_xlim(min(x for x, _ in centres.values()) - WIDTH, max(x for x, _ in centres.values()) + WIDTH)
    axes.set_ylim(-0.4, max(y for _, y in centres.values()) + 0.4)
    axes.set_axis_off()
    save_figure(figure, file)


def main() -> int:
    """Draw the parts of this tree; return the exit code."""
    if len(sys.argv) != 2 or sys.argv[1].startswith("-"):
        print(__doc__)
        return 2
    table = tomllib.loads((ROOT / "tools/layers.toml").read_text(encoding="utf-8"))
    _, edges = check_cpp(ROOT, table)
    draw({(own, other) for own, other in edges if own in table["cpp"] and other in table["cpp"]}, sys.argv[1])
    return 0


if __name__ == "__main__":
    sys.path.insert(0, str(ROOT / "python"))
    raise SystemExit(main())
