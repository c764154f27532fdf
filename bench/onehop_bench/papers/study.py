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

    @staticmethod
    def of(name: str, *, columns: int) -> Study:
        """Begin the study of a paper with the numbers that are fitted."""
        figures = published()[name]
        return Study(
            name, figures["source"], [Parameter(**one) for one in figures["fitted"]], columns=columns
        )

    def fitted(self) -> list[float]:
        """Return the values of the fitted numbers, in their units."""
        return [one.value for one in self.parameters]

    def predict(self, case: str, value: float, unit: str = "", bound: str = "") -> None:
        """Add a prediction."""
        self.predictions.append(Prediction(case, value, unit, bound))

    def compare(
        self, case: str, unit: str, model: float, paper: Sequence[float], *, fitted: bool = False
    ) -> None:
        """Add a row: `paper` is a number, or the ends of a range."""
        self.rows.append(Row(case, unit, model, paper[0], paper[-1], fitted))

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
