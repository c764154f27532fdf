"""What a study of one paper consists of: rows that compare, parameters that were fitted, and panels that are drawn."""

from __future__ import annotations

import functools
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from onehop.machine import Machine, load_machine
from onehop.machine.reader import tomllib
from onehop_bench.result import Row


@functools.cache
def published() -> dict[str, Any]:
    """Return the figures of the papers, as in published.toml."""
    return tomllib.loads(Path(__file__).with_name("published.toml").read_text(encoding="utf-8"))


def factor_of(model: float, low: float, high: float) -> float:
    """Return model over paper: over the nearer end of a range, and 1 inside it."""
    return model / min(max(model, low), high)


@dataclass(frozen=True)
class Curve:
    """Points of one line. Those of a paper are drawn as markers, those of the model as a line."""

    label: str
    x: Sequence[float]
    y: Sequence[float]
    paper: bool = False
    style: int = 0


@dataclass(frozen=True)
class Bars:
    """Groups of bars: the model's number and the paper's range for each name."""

    names: list[str]
    model: list[float]
    low: list[float]
    high: list[float]


@dataclass(frozen=True)
class Panel:
    """One plot of a figure. `x_kind` is "bytes", "count" or "names"; `headroom` leaves space for the legend."""

    title: str
    x_label: str
    y_label: str
    x_kind: str
    curves: list[Curve] = field(default_factory=list)
    bars: Bars | None = None
    log_y: bool = True
    headroom: float = 1.0


@dataclass
class Study:
    """Everything that the model says about one paper.

    `parameters` are the fitted numbers, with what they were fitted on. `rows` have a `case`, its `unit`, the number of
    the `model`, those of the paper from `low` to `high`, and their `factor`. `predictions` have a `case`, `value` and
    `unit` that no paper has, and what bounds it.
    """

    name: str
    source: str
    parameters: list[Row] = field(default_factory=list)
    rows: list[Row] = field(default_factory=list)
    predictions: list[Row] = field(default_factory=list)
    panels: list[Panel] = field(default_factory=list)
    columns: int = 2

    @staticmethod
    def of(name: str, *, columns: int) -> Study:
        """Begin the study of a paper with the numbers that are fitted."""
        figures = published()[name]
        return Study(name, figures["source"], [Row(one) for one in figures["fitted"]], columns=columns)

    def fitted(self) -> list[float]:
        """Return the values of the fitted numbers, in their units."""
        return [one.value for one in self.parameters]

    def predict(self, case: str, value: float, unit: str = "", bound: str = "") -> None:
        """Add a prediction."""
        self.predictions.append(Row(case=case, value=value, unit=unit, bound=bound))

    def compare(
        self, case: str, unit: str, model: float, paper: Sequence[float], *, fitted: bool = False
    ) -> None:
        """Add a row: `paper` is a number, or the ends of a range."""
        low, high = paper[0], paper[-1]
        factor = factor_of(model, low, high)
        self.rows.append(
            Row(case=case, unit=unit, model=model, low=low, high=high, fitted=fitted, factor=factor)
        )

    def draw(self, title: str, x_label: str, y_label: str, curves: list[Curve], **look: Any) -> None:
        """Add a panel of curves over sizes in bytes, or else over counts."""
        kind = "bytes" if x_label.startswith("size") else "count"
        self.panels.append(Panel(title, x_label, y_label, kind, curves, **look))

    def draw_bars(self, title: str, y_label: str, bars: Bars) -> None:
        """Add a panel of bars."""
        self.panels.append(Panel(title, "", y_label, "names", bars=bars, log_y=False))

    def row(self, case: str) -> Row:
        """Return the row of a case."""
        return next(row for row in self.rows if row.case == case)

    def to_dict(self) -> dict[str, Any]:
        """Return the study as JSON takes it."""
        return {**vars(self), "panels": [asdict(panel) for panel in self.panels]}


def changed_machine(
    machine: Machine | str, levels: Mapping[int, Mapping[str, Any]], *, memory: float | None = None
) -> Machine:
    """Return a machine with some numbers of its levels replaced, such as `{1: {"overhead": 1e-6}}`, or its memory."""

    def sourced(value: Any, basis: str) -> dict[str, Any]:
        return {"value": value, "basis": basis, "source": "a study of a paper"}

    described = load_machine(machine) if isinstance(machine, str) else machine
    data = json.loads(described.to_json())
    for number, values in levels.items():
        level = data["levels"][number]
        for key, value in values.items():
            level[key] = sourced(value, "guessed") if isinstance(level[key], dict) else value
    if memory is not None:
        data["memory"] = sourced(memory, "published")
    return Machine.from_json(json.dumps(data))
