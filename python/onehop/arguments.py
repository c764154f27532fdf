"""Arguments of Python functions as the numbers that C++ takes: whatever they are not is one clear error."""

from __future__ import annotations

import operator
from collections.abc import Iterable, Mapping
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from onehop._core import RailAssignment
from onehop.error import BadInput, WrongType

T = TypeVar("T")
LARGEST = 2**63 - 1
_LONGEST = 60  # characters of a value that an error quotes
_CIRCUITS = {  # what takes circuits of other packages
    "builtins": "; onehop.quantum.load_qasm and parse_qasm read one",
    "qiskit": "; onehop.quantum.from_qiskit converts it",
    **{one: f"; onehop.{one} runs it" for one in ("cirq", "pytket")},
}


def quoted(value: object) -> str:
    """Return a value as an error quotes it: on one line, and cut if it is long."""
    text = " ".join(repr(value).split())
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}..."


def _name(number: int) -> str:
    return {LARGEST: "2^63 - 1", 2**31 - 1: "2^31 - 1", 2**64 - 1: "2^64 - 1"}.get(number, str(number))


def instance(value: Any, kind: type[T], name: str) -> T:
    """Return an object of a class, or raise WrongType, which `name` begins."""
    if isinstance(value, kind):
        return value
    package = type(value).__module__.partition(".")[0]
    advice = _CIRCUITS.get(package, "") if kind.__name__ == "Circuit" else ""
    found = f"one of {package}" if advice and package != "builtins" else quoted(value)
    raise WrongType(f"{name}: expected a {kind.__name__}, found {found}{advice}")


def is_sequence(value: Any) -> bool:
    """Whether an argument has items, as texts and arrays without dimensions do not."""
    if isinstance(value, np.ndarray) and value.ndim == 0:
        return False
    return isinstance(value, Iterable) and not isinstance(value, str | bytes | Mapping)


def items(values: Any, name: str) -> list[Any]:
    """Return the items of a sequence that is no text, or raise WrongType, which `name` begins."""
    if is_sequence(values):
        return list(values)
    raise WrongType(f"{name}: expected a sequence, found {quoted(values)}")


def whole_number(value: Any, name: str, least: int = -LARGEST, most: int = LARGEST) -> int:
    """Return a whole number, of Python or of NumPy, from `least` to `most`.

    Raises WrongType if it is none, and BadInput if it is out of range; `name` begins the error.
    """
    try:
        number = operator.index(value)
    except TypeError as error:
        raise WrongType(f"{name}: expected a whole number, found {quoted(value)}") from error
    if not least <= number <= most:
        raise BadInput(
            f"{name}: expected a whole number from {_name(least)} to {_name(most)}, found {quoted(number)}"
        )
    return number


def whole_numbers(values: Any, name: str, least: int = -LARGEST, most: int = LARGEST) -> list[int]:
    """Return a sequence as whole numbers. Parameters and errors are those of `whole_number`."""
    listed = items(values, name)
    try:
        numbers = [operator.index(one) for one in listed]
    except TypeError:
        return [whole_number(one, name) for one in listed]  # which names the wrong one
    if numbers and not (least <= min(numbers) and max(numbers) <= most):
        return [whole_number(one, name, least, most) for one in numbers]
    return numbers


def require_seed(value: Any, name: str = "seed") -> int:
    """Return a seed as an int. Raises BadInput unless it is a whole number of 64 bits."""
    return whole_number(value, name, 0, 2**64 - 1)


def real_number(value: Any, name: str) -> float:
    """Return a real number, which may be infinite or NaN, or raise BadInput, which `name` begins."""
    try:
        if isinstance(value, str | bytes):
            raise TypeError
        return float(value)
    except (TypeError, ValueError, OverflowError) as error:
        raise BadInput(f"{name}: expected a number, found {quoted(value)}") from error


def real_numbers(values: Any, name: str) -> list[float]:
    """Return a sequence as real numbers. Parameters and errors are those of `real_number`."""
    return [real_number(one, name) for one in items(values, name)]


def complex_array(values: Any, name: str) -> NDArray[np.complex128]:
    """Return numbers, or nested sequences of them, as a contiguous array, or raise BadInput."""
    try:
        if isinstance(values, np.ma.MaskedArray):  # what its mask hides is no number
            raise TypeError
        found = np.asarray(values)
        texts = found.dtype == object and any(isinstance(one, str | bytes) for one in found.flat)
        if texts or found.dtype.kind not in "biufcO":  # NumPy would read texts and dates as numbers
            raise TypeError
        return np.asarray(found, np.complex128, order="C")
    except (TypeError, ValueError, OverflowError) as error:
        raise BadInput(f"{name}: expected an array of numbers, found {quoted(values)}") from error


def nearest_unitary(values: NDArray[np.complex128]) -> NDArray[np.complex128]:
    """Return the unitary matrix nearest to one that is unitary within 1e-6, or to a diagonal; others as they are."""
    with np.errstate(all="ignore"):  # infinities are refused later
        product = abs(values) ** 2 if values.ndim == 1 else values @ values.conj().T
        found = abs(product - (1 if values.ndim == 1 else np.eye(len(values)))).max(initial=0)
    if (
        not 1e-9 < found <= 1e-6
    ):  # exact to `Circuit.validate`, or not within the rounding of single precision
        return values
    if values.ndim == 1:
        return values / abs(values)
    left, _, right = np.linalg.svd(values)
    return np.ascontiguousarray(left @ right)


def finite_array(values: Any, name: str) -> NDArray[np.complex128]:
    """Return finite numbers as `complex_array` does, or raise BadInput."""
    found = complex_array(values, name)
    # The sum of finite numbers is finite but where it overflows, and needs no further memory.
    with np.errstate(invalid="ignore", over="ignore"):
        if not np.isfinite(found.sum()) and not (good := np.isfinite(found)).all():
            where = [int(index) for index in np.argwhere(~good)[0]]
            raise BadInput(f"{name}: expected finite numbers, found {found[tuple(where)]} at index {where}")
    return found


def yes_or_no(value: Any, name: str) -> bool:
    """Return a truth value, of Python or of NumPy, or raise BadInput, which `name` begins."""
    if isinstance(value, bool | np.bool_):
        return bool(value)
    raise BadInput(f"{name}: expected True or False, found {quoted(value)}")


def truth(value: Any, name: str) -> bool:
    """Return a truth value that may be written as 0 or 1, or raise BadInput, which `name` begins."""
    if isinstance(value, int | np.integer) and value in (0, 1):
        return bool(value)
    return yes_or_no(value, name)


def listed_rails(
    rails: Any, expected: str = "one list of RailAssignment for each round"
) -> list[list[RailAssignment]]:
    """Return the argument `rails=` as lists, one for each round. Raises BadInput if this is something else."""
    if not is_sequence(rails):
        raise BadInput(f"rails: expected {expected}, found {rails!r}")
    listed = []
    for number, one in enumerate(rails):
        if not is_sequence(one):
            raise BadInput(f"rails: expected {expected}, found {one!r} for round {number}")
        listed.append(list(one))
        for entry in listed[-1]:
            if not isinstance(entry, RailAssignment):
                raise BadInput(f"rails: expected a RailAssignment in round {number}, found {entry!r}")
    return listed
