"""Draws a study: the model as lines, the paper as markers. Line styles and markers tell curves apart in grey."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

from onehop.figure import empty_figure, save_figure
from onehop.text import bytes_text
from onehop_bench.papers.study import Bars, Curve, Panel, Study

_WIDTH = 8.3  # inches: 800 pixels on a page
_COLOURS = ("#000000", "#0072b2", "#d55e00", "#009e73", "#cc79a7", "#7f7f7f", "#e69f00", "#56b4e9")
_LINES = ("-", "--", "-.", ":", (0, (5, 1, 1, 1, 1, 1)), (0, (1, 3)), (0, (8, 2)), (0, (3, 1, 1, 1)))
_MARKERS = ("o", "s", "^", "D", "v", "x", "P", "*")


def _draw_curve(axes: Any, curve: Curve) -> None:
    number = curve.style % len(_COLOURS)
    looks: dict[str, Any] = {"color": _COLOURS[number], "label": curve.label}
    if curve.paper:
        looks |= {"linestyle": "none", "marker": _MARKERS[number], "markersize": 5, "fillstyle": "none"}
    else:
        looks |= {"linestyle": _LINES[number], "linewidth": 1.5}
    axes.plot(curve.x, curve.y, **looks)


def _size_ticks(axes: Any, sizes: list[float]) -> None:
    """Label every few powers of two, so that labels do not meet."""
    low, high = (int(end).bit_length() - 1 for end in (min(sizes), max(sizes)))
    step = max(1, (high - low + 4) // 5)
    ticks = [1 << power for power in range(low, high + 1, step)]
    axes.set_xticks(ticks, [bytes_text(tick).replace(" ", "\n") for tick in ticks], fontsize=8)
    axes.xaxis.minorticks_off()


def _value_ticks(axes: Any, values: list[float]) -> None:
    """Label 1, 2 and 5 of every power of ten on a short logarithmic axis, and powers of ten on a long one."""
    low, high = math.floor(math.log10(min(values))), math.ceil(math.log10(max(values)))
    parts = (1, 2, 5) if high - low <= 4 else (1,)
    ticks = [part * 10.0**power for power in range(low, high + 1) for part in parts]
    inside = [tick for tick in ticks if 0.7 * min(values) <= tick <= 1.5 * max(values)]
    axes.set_yticks(inside, [f"{tick:,g}" for tick in inside], fontsize=8)
    axes.yaxis.minorticks_off()


def _draw_bars(axes: Any, bars: Bars) -> None:
    places = range(len(bars.names))
    axes.bar(
        [place - 0.2 for place in places], bars.model, 0.38, color="#56b4e9", edgecolor="black", label="model"
    )
    middle = [(low + high) / 2 for low, high in zip(bars.low, bars.high, strict=True)]
    spread = [(high - low) / 2 for low, high in zip(bars.low, bars.high, strict=True)]
    axes.bar(
        [place + 0.2 for place in places],
        middle,
        0.38,
        yerr=spread if any(spread) else None,
        facecolor="none",
        edgecolor="black",
        hatch="//",
        capsize=4,
        label="paper",
    )
    for place, value, low, high in zip(places, bars.model, bars.low, bars.high, strict=True):
        axes.text(place - 0.2, value, f"{value:.3g}", ha="center", va="bottom", fontsize=6)
        text = f"{low:.3g}" if low == high else f"{low:.3g}\nto\n{high:.3g}"
        axes.text(place + 0.2, high * 1.01, text, ha="center", va="bottom", fontsize=6)
    axes.set_xticks(list(places), [name.replace(", ", ",\n") for name in bars.names], fontsize=8)
    axes.set_ylim(0, 1.3 * max(*bars.model, *bars.high))


def _draw_panel(axes: Any, panel: Panel, legend: bool) -> None:
    for curve in panel.curves:
        _draw_curve(axes, curve)
    if panel.bars is not None:
        _draw_bars(axes, panel.bars)
    if panel.curves:
        axes.set_xscale("log", base=2)
        if panel.log_y:
            axes.set_yscale("log")
            _value_ticks(axes, [one for curve in panel.curves for one in curve.y])
            axes.set_ylim(top=axes.get_ylim()[1] * panel.headroom)
        else:
            axes.set_ylim(0, axes.get_ylim()[1] * panel.headroom)
        x = [one for curve in panel.curves for one in curve.x]
        if panel.x_kind == "bytes":
            _size_ticks(axes, x)
        else:
            ticks = sorted(set(x))
            ticks = ticks[(len(ticks) - 1) % 4 :: 4] if len(ticks) > 8 else ticks
            axes.set_xticks(ticks, [f"{tick:,.0f}" for tick in ticks], fontsize=8)
            axes.xaxis.minorticks_off()
    axes.set_title(panel.title, fontsize=9)
    axes.set_xlabel(panel.x_label, fontsize=9)
    axes.set_ylabel(panel.y_label, fontsize=9)
    axes.tick_params(axis="y", labelsize=8)
    axes.grid(visible=True, axis="y", linewidth=0.4, color="0.5", alpha=0.3)
    axes.set_axisbelow(True)
    if legend:
        axes.legend(fontsize=7, frameon=False, loc="upper left" if panel.headroom > 1 else "best")


def draw_study(study: Study, folder: Path) -> Path:
    """Draw the panels of a study into `folder`/paper_NAME.svg, and return the file.

    Raise Error if matplotlib is not installed, and BadInput if the file cannot be written.
    """
    rows = -(-len(study.panels) // study.columns)
    figure = empty_figure(_WIDTH, 3.2 * rows)
    all_axes = figure.subplots(rows, study.columns, squeeze=False).ravel()
    labels = [[curve.label for curve in panel.curves] for panel in study.panels]
    shared = bool(labels[0]) and all(one == labels[0] for one in labels)
    for axes, panel in zip(all_axes, study.panels, strict=False):
        _draw_panel(axes, panel, not shared)
    if shared:
        lines, names = all_axes[0].get_legend_handles_labels()
        figure.legend(lines, names, loc="outside lower center", ncols=len(names), fontsize=8, frameon=False)
    for axes in all_axes[len(study.panels) :]:
        axes.set_visible(False)
    file = folder / f"paper_{study.name}.svg"
    save_figure(figure, str(file))
    return file
