"""Errors of calls with arguments that no signature of a function of the library takes.

The bindings call `explained` where nanobind would list all signatures of the function, and `onehop.error` calls
`misfit` where a function of Python would raise an error of Python.
"""

from __future__ import annotations

import inspect
import operator
import re
import types
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from onehop import _core
from onehop.arguments import LARGEST, is_sequence, quoted
from onehop.error import WrongType
from onehop.text import counted

_WORDS = {
    "int": "a whole number",
    "float": "a number",
    "complex": "a number",
    "str": "a text",
    "bool": "True or False",
    "bytes": "bytes",
    "None": "None",
    "str | os.PathLike[str]": "a path",
}
_BEGINS = {
    "Callable[": "a function",
    "Progress": "a function",
    "NDArray[": "an array of numbers",
    "Mapping[": "a mapping",
}
_MANY = {
    "int": "whole numbers",
    "float": "numbers",
    "complex": "numbers",
    "str": "texts",
    "bool": "True or False",
}
_VALUE = "arg"  # nanobind's name of the value that a property is set to
_MOST_NAMES = 6  # of parameters that an error lists
_NO_NAMES: Mapping[str, Any] = types.MappingProxyType({})
_SEQUENCE = re.compile(
    r"(?:collections\.abc\.)?(?:Sequence|Iterable)\[(.*)\]$|list\[(.*)\]$|tuple\[([^,]*), \.\.\.\]$"
)
_TUPLE = re.compile(r"tuple\[(.*)\]$")
_ARRAY = re.compile(r"(?:numpy\.)?ndarray(?:\[dtype=(\w+)(?:, shape=\(([^)]*)\))?.*\])?$")


@dataclass(frozen=True)
class _Parameter:
    name: str
    type: str
    required: bool
    positional: bool


def explained(function: Any, positional: Sequence[Any], named: Mapping[str, Any]) -> WrongType | None:
    """Say what is wrong with a call that no signature of a function of `onehop._core` takes.

    The first positional argument of a method is its object. Returns the error to raise; None if the signatures cannot
    be read.
    """
    signatures = getattr(function, "__nb_signature__", ())
    if not signatures:
        return None
    name = (function.__qualname__ or _property(function, positional)).removesuffix(".__init__")
    # The signature that takes the most arguments is the one that was meant.
    found = [_problem(name, signature[0], positional, named) for signature in signatures]
    return WrongType(max(found, key=operator.itemgetter(0))[1])


def misfit(
    function: Any, positional: Sequence[Any], named: Mapping[str, Any], error: Exception
) -> WrongType | None:
    """Say which argument of a function of Python has another type, where it raised an error of Python; None: none."""
    try:
        found = inspect.signature(function).bind(*positional, **named)
    except TypeError:
        return None
    function_name = function.__qualname__.removesuffix(".__init__")
    for name, value in found.arguments.items():
        kind = str(found.signature.parameters[name].annotation)
        what = ""
        if not _fits(value, kind, function.__globals__):
            what = f"{name} to be {_words(kind)}"
        elif isinstance(error, AttributeError) and error.obj is value:
            what = f"{name} to have {error.name!r}"
        elif isinstance(error, OverflowError) and any(abs(one) > LARGEST for one in _integers(value)):
            what = f"{name} in the range of its type"
        if what:
            return WrongType(f"{function_name}: expected {what}, found {_found(value, kind)}")
    return None


def _property(function: Any, positional: Sequence[Any]) -> str:
    """Return the name of a property of the first argument, whose functions have no names themselves."""
    for kind in type(positional[0]).__mro__ if positional else ():
        for name, one in vars(kind).items():
            if isinstance(one, property) and function in (one.fget, one.fset):
                return f"{kind.__name__}.{name}"
    return "property"


def _problem(
    function: str, signature: str, positional: Sequence[Any], named: Mapping[str, Any]
) -> tuple[int, str]:
    """Return the number of good arguments before the first bad one, and what is wrong with it."""
    parameters, result = _parameters(signature)
    if parameters and parameters[0].name == "self":
        parameters, positional = parameters[1:], positional[1:]
    given = [one for one in parameters if one.positional]
    names = [one.name for one in parameters]
    takes = (
        f"; it takes {_listed(names, result)}" if len(names) <= _MOST_NAMES and _VALUE not in names else ""
    )
    values = {one.name: value for one, value in zip(given, positional, strict=False)}
    for name, value in named.items():
        if name not in names:
            return len(
                values
            ), f"{function}: there is no argument {name!r}; expected one of ({', '.join(names)})"
        values[name] = value
    for k, one in enumerate(parameters):
        if one.name in values and not _fits(values[one.name], one.type):
            what = _words(one.type) if one.name == _VALUE else f"{one.name} to be {_words(one.type)}"
            return k, f"{function}: expected {what}, found {_found(values[one.name], one.type)}{takes}"
    if len(positional) > len(given):
        many = counted(len(given), "argument") + (" without names" if len(given) < len(names) else "")
        return len(given), f"{function}: expected at most {many}, found {len(positional)}{takes}"
    for one in parameters:
        if one.required and one.name not in values:
            return len(
                values
            ), f"{function}: expected {one.name}, {_words(one.type)}, found no such argument{takes}"
    numbers = [
        (number, one.name)
        for one in parameters
        if "int" in one.type and one.name in values
        for number in _integers(values[one.name])
    ]
    if numbers:
        number, name = max(numbers, key=lambda found: (abs(found[0]) >= 2**31, found[0] < 0, abs(found[0])))
        what = "a whole number" if name == _VALUE else f"{name} to be a whole number"
        return len(values), (
            f"{function}: expected {what} in the range of its type, found {quoted(number)}{takes}"
        )
    wanted = ", ".join(f"{one.name}: {_words(one.type)}" for one in parameters)
    types = ", ".join(_found(value, "") for value in values.values())
    return len(values), f"{function}: expected {wanted or 'no arguments'}, found {types}"


def _integers(value: Any) -> Iterator[int]:
    """Yield a whole number, or all in a sequence of them."""
    if isinstance(value, int | np.integer):
        yield int(value)
    elif is_sequence(value):
        for one in value:
            yield from _integers(one)


def _listed(names: Sequence[str], result: str) -> str:
    returned = "" if result in ("None", "") else f" and returns {_words(result)}"
    return (f"({', '.join(names)})" if names else "no arguments") + returned


def _split(text: str, separator: str) -> list[str]:
    """Split a text where a separator is in no brackets."""
    parts, depth, start = [], 0, 0
    for place, letter in enumerate(text):
        depth += (letter in "[(") - (letter in "])")
        if letter == separator and depth == 0:
            parts.append(text[start:place].strip())
            start = place + 1
    return [one for one in (*parts, text[start:].strip()) if one]


def _parameters(signature: str) -> tuple[list[_Parameter], str]:
    r"""Read `def name(a: T, *, b: U = \0) -> R`, in which nanobind puts marks for default values."""
    inside, _, result = signature[signature.index("(") + 1 :].rpartition(" -> ")
    found, positional = [], True
    for part in _split(inside.rstrip()[:-1], ","):
        if part.startswith("*"):
            positional = False
        elif part != "/":
            name, _, rest = part.partition(":")
            kind, *default = _split(rest, "=") or [""]
            found.append(_Parameter(name.strip(), kind, not default, positional))
    return found, result.strip().rstrip(":")


def _class_of(kind: str, known: Mapping[str, Any]) -> type | None:
    name = kind.rpartition(".")[2]
    found = known.get(name) or getattr(_core, name, None)
    return found if isinstance(found, type) and found is not Any else None


def _fits(value: Any, kind: str, names: Mapping[str, Any] = _NO_NAMES) -> bool:
    """Whether a value may have this type; True for types that are not known here, nor by their names."""
    choices = _split(kind, "|")
    if len(choices) > 1:
        return any(_fits(value, one, names) for one in choices)
    sequence = _SEQUENCE.match(kind)
    if sequence:
        inside = sequence[sequence.lastindex or 1]
        return is_sequence(value) and all(_fits(one, inside, names) for one in value)
    if parts := _TUPLE.match(kind):
        kinds = _split(parts[1], ",")
        return is_sequence(value) and len(value) == len(kinds) and all(map(_fits, value, kinds))
    if array := _ARRAY.match(kind):
        return _is_array(value, array[1], array[2])
    if kind.startswith(("Callable[", "Progress")):
        return callable(value)
    if kind.startswith("NDArray["):
        return np.asarray(value).dtype.kind in "biufc"
    if kind.startswith("Mapping["):
        return isinstance(value, Mapping)
    known = _class_of(kind, names)
    if known is not None:
        return isinstance(value, known)
    return _CHECKS.get(kind, lambda _value: True)(value)


def _is_array(value: Any, kind: str | None, shape: str | None) -> bool:
    """Whether nanobind makes an array of this type and number of dimensions from a value that holds an array."""
    if not hasattr(value, "__array__") and not hasattr(value, "__dlpack__"):
        return False
    found = np.asarray(value)
    dimensions = found.ndim if shape is None else len(_split(shape, ","))
    return found.ndim == dimensions and (kind is None or found.dtype.kind in "biufc")


def _works(convert: Callable[[Any], Any]) -> Callable[[Any], bool]:
    def check(value: Any) -> bool:
        try:
            convert(value)
        except (TypeError, ValueError, OverflowError):
            return False
        return not isinstance(value, str | bytes)

    return check


_CHECKS: dict[str, Callable[[Any], bool]] = {
    "int": _works(operator.index),
    "float": _works(float),
    "complex": _works(complex),
    "str": lambda value: isinstance(value, str),
    "bytes": lambda value: isinstance(value, bytes),
    "bool": lambda value: isinstance(value, bool),
    "None": lambda value: value is None,
}


def _short(kind: str) -> str:
    return re.sub(r"[\w.]+\.(\w+)", r"\1", kind)


def _words(kind: str) -> str:
    """Describe a type."""
    if kind in _WORDS:
        return _WORDS[kind]
    choices = _split(kind, "|")
    if len(choices) > 1:
        return " or ".join(map(_words, choices))
    sequence = _SEQUENCE.match(kind)
    if sequence:
        inside = sequence[sequence.lastindex or 1]
        return f"a sequence of {_many(inside)}"
    if array := _ARRAY.match(kind):
        return "an array" + _details(array[1], array[2] and len(_split(array[2], ",")))
    for begin, words in _BEGINS.items():
        if kind.startswith(begin):
            return words
    return _with_article(_short(kind))


def _many(kind: str) -> str:
    """Describe items of a type."""
    if sequence := _SEQUENCE.match(kind):
        return f"sequences of {_many(sequence[sequence.lastindex or 1])}"
    if parts := _TUPLE.match(kind):
        kinds = _split(parts[1], ",")
        if len(set(kinds)) == 1:
            return f"tuples of {len(kinds)} {_many(kinds[0])}"
    return _MANY.get(kind, _short(kind))


def _details(kind: str | None, dimensions: int | None) -> str:
    """Describe the elements and dimensions of an array."""
    elements = f" of {kind}" if kind else ""
    return elements + (f" with {counted(dimensions, 'dimension')}" if dimensions is not None else "")


def _with_article(noun: str) -> str:
    return f"{'an' if noun[:1].lower() in 'aeiou' else 'a'} {noun}"


def _found(value: Any, kind: str) -> str:
    """Describe a value: numbers and texts by themselves, others by their types."""
    if value is None or isinstance(value, bool | int | float | complex | str | bytes | np.generic):
        is_whole = kind.startswith("int") and isinstance(value, float) and value.is_integer()
        fix = f"; write {int(value)}" if is_whole else ""
        return quoted(value) + fix
    sequence = _SEQUENCE.match(kind)
    if sequence and is_sequence(value):
        inside = sequence[sequence.lastindex or 1]
        bad = next((one for one in value if not _fits(one, inside)), None)
        return f"one with {_found(bad, inside).removeprefix('one with ')}"
    if _TUPLE.match(kind) and is_sequence(value):
        return quoted(value)
    if isinstance(value, np.ndarray):
        return "an array" + (_details(str(value.dtype), value.ndim) if _ARRAY.match(kind) else "")
    return _with_article(type(value).__name__)
