"""Named parameters of circuits, and linear expressions of them."""

from __future__ import annotations

import math
import numbers
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np

from onehop.arguments import instance, real_number
from onehop.error import BadInput

__all__ = ["Angle", "Bindings", "Expression", "Parameter"]


class Expression:
    """A linear expression of parameters: a constant plus factors times parameters.

    Expressions are made by adding and subtracting parameters and numbers, and by multiplying and dividing by numbers.
    Products of expressions are not linear: they raise BadInput.

    Parameters
    ----------
    terms : mapping from str to float
        Factor of each parameter.
    constant : float
        Constant.

    Examples
    --------
    >>> theta = quantum.Parameter("theta")
    >>> 2 * theta + 0.5
    <Expression: 2*theta + 0.5>
    """

    def __init__(self, terms: Mapping[str, float], constant: float = 0.0) -> None:
        given = instance(terms, Mapping, "terms")
        self.terms = {name: real_number(factor, f"parameter {name!r}") for name, factor in given.items()}
        self.constant = real_number(constant, "constant")

    def __add__(self, other: Any) -> Expression:
        if isinstance(other, numbers.Real):
            return Expression(self.terms, self.constant + float(other))
        if not isinstance(other, Expression):
            return NotImplemented
        terms = dict(self.terms)
        for name, factor in other.terms.items():
            terms[name] = terms.get(name, 0.0) + factor
        return Expression(terms, self.constant + other.constant)

    def __mul__(self, factor: Any) -> Expression:
        if isinstance(factor, Expression):
            raise BadInput(
                f"expected a linear expression of parameters, found the product of ({self}) and ({factor}); "
                "multiply by numbers only"
            )
        if not isinstance(factor, numbers.Real):
            return NotImplemented
        scaled = {name: one * float(factor) for name, one in self.terms.items()}
        return Expression(scaled, self.constant * float(factor))

    def __truediv__(self, divisor: Any) -> Expression:
        return self * (1 / divisor) if isinstance(divisor, numbers.Real) else NotImplemented

    def __neg__(self) -> Expression:
        return self * -1

    def __sub__(self, other: Any) -> Expression:
        return self + (-other) if isinstance(other, (Expression, numbers.Real)) else NotImplemented

    def __rsub__(self, other: Any) -> Expression:
        return -self + other

    __radd__ = __add__
    __rmul__ = __mul__

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Expression) and self.terms == other.terms and self.constant == other.constant

    def __hash__(self) -> int:
        return hash((frozenset(self.terms.items()), self.constant))

    def __str__(self) -> str:
        parts = [
            name if factor == 1 else f"-{name}" if factor == -1 else f"{factor:g}*{name}"
            for name, factor in self.terms.items()
        ]
        if self.constant or not parts:
            parts.append(f"{self.constant:g}")
        return " + ".join(parts).replace("+ -", "- ")

    def __repr__(self) -> str:
        return f"<{type(self).__name__}: {self}>"


class Parameter(Expression):
    """A named parameter of a circuit; parameters of one name are the same.

    Parameters
    ----------
    name : str
        Name.

    Raises
    ------
    BadInput
        The name is empty.
    """

    def __init__(self, name: str) -> None:
        if not isinstance(name, str) or not name:
            raise BadInput(f"expected a name of a parameter, found {name!r}")
        super().__init__({name: 1.0})
        self.name = name


Angle: TypeAlias = "float | Expression"
"""An angle in radians: a number, or a linear expression of parameters."""

Bindings: TypeAlias = "Mapping[str | Parameter, float] | Sequence[float]"
"""Values of parameters: by name, or in the order of `Circuit.parameters`."""


def placeholder(angle: Angle) -> float:
    """Return a number for the angle of an operation, arbitrary if parameters will give its value."""
    if isinstance(angle, Expression):
        return 0.7390851332151607 if angle.terms else angle.constant
    return real_number(angle, "angle")


def terms_of(angles: Iterable[Angle], names: list[str]) -> list[tuple[float, list[tuple[int, float]]]]:
    """Convert angles for the library; append names of parameters that `names` lacks."""
    converted = []
    for angle in angles:
        if not isinstance(angle, Expression):
            converted.append((real_number(angle, "angle"), []))
            continue
        places = []
        for name, factor in angle.terms.items():
            if name not in names:
                names.append(name)
            places.append((names.index(name), factor))
        converted.append((angle.constant, places))
    return converted


def values_of(circuit: Any, bindings: Bindings) -> list[float]:
    """Return the value of each parameter of a circuit."""
    names = circuit.parameters
    if isinstance(bindings, Mapping):
        given = {one.name if isinstance(one, Parameter) else one: value for one, value in bindings.items()}
        unknown = [str(name) for name in given if name not in names]
        if unknown:
            known = ", ".join(names) or "none"
            raise BadInput(f"there is no parameter {unknown[0]!r}; the circuit has {known}")
        missing = [name for name in names if name not in given]
        if missing:
            raise BadInput(
                f"{_first_use(circuit, missing[0])} has no value; the bindings have {', '.join(given) or 'none'}"
            )
        values = [given[name] for name in names]
    else:
        values = np.asarray(bindings, object).reshape(-1).tolist()
        if len(values) != len(names):
            first = (
                f"{_first_use(circuit, names[len(values)])} has no value: "
                if len(values) < len(names)
                else ""
            )
            raise BadInput(
                f"{first}expected a value for each of {len(names)} parameters ({', '.join(names) or 'none'}), "
                f"found {len(values)}"
            )
    for name, value in zip(names, values, strict=True):
        try:
            finite = isinstance(value, numbers.Real) and math.isfinite(value)
        except OverflowError as error:
            raise BadInput(f"{_first_use(circuit, name)}: expected a number below 1.8e308") from error
        if not finite:
            raise BadInput(f"{_first_use(circuit, name)}: expected a finite number, found {value!r}")
    return [float(value) for value in values]


def rows_of(circuit: Any, bindings: Iterable[Bindings]) -> list[list[float]]:
    """Return the values of each of several bindings."""
    if isinstance(bindings, Mapping):
        raise BadInput("expected a sequence of bindings, found one mapping; put it in a list")
    rows = []
    for number, one in enumerate(bindings):
        try:
            rows.append(values_of(circuit, one))
        except BadInput as error:
            raise BadInput(f"binding {number}: {error}") from None
    return rows


def _first_use(circuit: Any, name: str) -> str:
    """Return the parameter with the first operation that has it."""
    place = circuit.parameters.index(name)
    for index, operation in enumerate(circuit.operations):
        if any(parameter == place for _, terms in operation.angles for parameter, _ in terms):
            return f"operation {index} ({operation.name}): parameter {name!r}"
    return f"parameter {name!r}"
