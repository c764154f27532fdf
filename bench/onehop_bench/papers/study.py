"""What a study of one paper consists of: rows that compare, parameters that were fitted, and panels that are drawn."""

from __future__ import annotations

import functools
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from onehop.machine import Machine, load_machine
from onehop.machine.reader import tomllib

__all__ = [
    "Bars",
    "Curve",
    "Panel",
    "Parameter",
    "Prediction",
    "Row",
    "Study",
    "changed_machine",
    "published",
    "solve_two",
]


@functools.cache
def published() -> dict[str, Any]:
    """Return the figures of the papers, as in published.toml."""
    return tomllib.loads(Path(__file__).with_name("published.toml").read_text(encoding="utf-8"))


@dataclass(frozen=True)
class Row:
    """One number of a paper beside that of the model. A paper may give a range."""

    case: str
    unit: str
    model: float
    low: float
    high: float
    fitted: bool = False

    @property
    def factor(self) -> float:
        """Return model over paper: over the nearer end of a range, and 1 inside it."""
        if self.low <= self.model <= self.high:
            return 1.0
        return self.model / (self.low if self.model < self.low else self.high)


@dataclass(frozen=True)
class Parameter:
    """A number that was fitted, and on what."""

    name: str
    value: float
    unit: str
    fitted_on: str


@dataclass(frozen=True)
class Prediction:
    """A number that no paper has, and what bounds it."""

    case: str
    value: float
    unit: str
    bound: str


@dataclass(frozen=True)
class Curve:
    """Points of one line. Those of a paper are drawn as markers, those of the model as a line."""

    label: str
    x: list[float]
    y: list[float]
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
    """Everything that the model says about one paper."""

    name: str
    source: str
    parameters: list[Parameter] = field(default_factory=list)
    rows: list[Row] = field(default_factory=list)
    predictions: list[Prediction] = field(default_factory=list)
    panels: list[Panel] = field(default_factory=list)
    columns: int = 2

    def row(self, case: str) -> Row:
        """Return the row of a case."""
        return next(row for row in self.rows if row.case == case)

    def to_dict(self) -> dict[str, Any]:
        """Return the study as JSON takes it, with the factor of every row."""
        rows = [{**asdict(row), "factor": row.factor} for row in self.rows]
        return {**asdict(self), "rows": rows}


def changed_machine(
    machine: Machine | str, levels: Mapping[int, Mapping[str, Any]], *, memory: float | None = None
) -> Machine:
    """Return a machine with some numbers of its levels replaced, such as `{1: {"overhead": 1e-6}}`, or its memory."""
    described = load_machine(machine) if isinstance(machine, str) else machine
    data = json.loads(described.to_json())
    for number, values in levels.items():
        level = data["levels"][number]
        for key, value in values.items():
            if isinstance(level[key], dict):
                level[key] = {"value": value, "basis": "guessed", "source": "a study of a paper"}
            else:
                level[key] = value
    if memory is not None:
        data["memory"] = {"value": memory, "basis": "published", "source": "a study of a paper"}
    return Machine.from_json(json.dumps(data))


def solve_two(
    error: Callable[[float, float], Sequence[float]], start: Sequence[float]
) -> tuple[float, float]:
    """Return the two parameters for which two errors vanish, by Newton's method with finite differences."""
    a, b = start
    for _ in range(20):
        first, second = error(a, b)
        if abs(first) + abs(second) < 1e-12:
            break
        step_a, step_b = 1e-3 * a, 1e-3 * b
        right, up = error(a + step_a, b), error(a, b + step_b)
        ja, jc = (right[0] - first) / step_a, (right[1] - second) / step_a
        jb, jd = (up[0] - first) / step_b, (up[1] - second) / step_b
        determinant = ja * jd - jb * jc
        a -= (first * jd - second * jb) / determinant
        b -= (second * ja - first * jc) / determinant
    return a, b
