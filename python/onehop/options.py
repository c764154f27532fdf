"""Options: fields of dataclasses that say what they accept, from which a command line and its help are made.

Each field that `option` or `argument` makes is an option of the commands whose dataclass has it. Its type is `int`,
`float`, `str`, `bool`, `tuple[int, ...]` (extents such as 8x8x16) or a list of these, or one of them or None.
"""

from __future__ import annotations

import dataclasses
import functools
import inspect
import math
import numbers
import os
import typing
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from types import NoneType
from typing import Any, ClassVar

from onehop.error import BadInput, WrongType
from onehop.text import alternatives

if typing.TYPE_CHECKING:
    from typing_extensions import Self

LARGEST_SEED = 2**64 - 1  # of the generators of random numbers
LARGEST_INT = 2**31 - 1  # of numbers that are an `int` in C++, such as ranks
LARGEST_SHOTS = 2**31  # of one circuit
LARGEST_SIZE = 2**62  # of elements and bytes
_POWERS = {2**power - less: f"2^{power}{'-1' if less else ''}" for power in range(30, 65) for less in (0, 1)}

_YES_OR_NO = {"1": True, "0": False}


@dataclass(frozen=True, kw_only=True)
class Option:
    """What a field accepts, and its help."""

    help: str
    names: tuple[str, ...] = ()  # on the command line; by default the field's name
    metavar: str = ""  # the value in the help
    choices: tuple[Any, ...] = ()
    low: float | None = None
    high: float | None = None
    above: float | None = None  # every value is above this one
    length: int | None = None  # of extents
    separator: str = ""  # of the items of a list that is one value; without it, the option is repeated
    off: str = ""  # the name that says no
    alone: str | None = None  # the value when none follows the option
    default: str = ""  # in words
    writes: str = ""  # what is written to the file; "checkpoint" for one that is read and written
    positional: bool = False
    # The type of the value on the command line, for a field that takes other values as well. A subclass of float may
    # read a text in its own way, and has the attribute `rule`, which says what it reads.
    kind: Any = None


def option(default: Any, text: str, /, *names: str, **accepted: Any) -> Any:
    """Make the field of an option with a default (`...`: it must be given), a help and names such as "-n", "--ranks".

    `accepted` are further attributes of `Option`.
    """
    metadata = {"option": Option(help=text, names=names, **accepted)}
    if default is ...:
        return dataclasses.field(metadata=metadata)
    if isinstance(default, list):
        return dataclasses.field(default_factory=default.copy, metadata=metadata)
    return dataclasses.field(default=default, metadata=metadata)


def argument(metavar: str, text: str, default: Any = ..., /, **accepted: Any) -> Any:
    """Make the field of an argument without a name; parameters as for `option`."""
    return option(default, text, metavar=metavar, positional=True, **accepted)


def file_option(text: str, writes: str, /, *names: str, **accepted: Any) -> Any:
    """Make the field of an option that names a file to write: `writes` says what is written."""
    return option(None, text, *names, **{"metavar": "FILE", "writes": writes, **accepted})


@dataclass(frozen=True)
class Field:
    """A field of a class of options."""

    name: str
    kind: type  # `int`, `float`, `str` or `bool`: of its value, or of the items
    many: type | None  # `list` or `tuple` for several items
    default: Any  # `...` for a field that has none
    option: Option
    title: str  # heading of its group in the help

    @property
    def names(self) -> tuple[str, ...]:
        """Names on the command line."""
        return self.option.names or (f"--{self.name.replace('_', '-')}",)

    @property
    def long(self) -> str:
        """The name in messages."""
        return self.option.metavar if self.option.positional else max(self.names, key=len)

    @property
    def is_flag(self) -> bool:
        """Whether the option takes no value."""
        return self.kind is bool and self.many is None

    @property
    def range(self) -> str:
        """The range of a number in words, such as "0 to 2^64-1"."""
        low, high, above = self.option.low, self.option.high, self.option.above
        if self.many is tuple and low is None:
            low = 1
        if above is not None:
            return f"above {number_text(above)}" + ("" if high is None else f", at most {number_text(high)}")
        if low is None:
            return "" if high is None else f"at most {number_text(high)}"
        if high is None:
            return f"{number_text(low)} or more"
        return f"{number_text(low)} to {number_text(high)}"

    def rule(self) -> str:
        """What a value must be, for messages: "as a whole number from 1 to 3"."""
        if hasattr(self.kind, "rule"):
            return str(self.kind.rule)
        if self.option.choices:
            return alternatives([str(choice) for choice in self.option.choices])
        if self.many is tuple and self.kind is bool:
            return "as 1 (periodic) or 0 (open), or one of them per dimension, such as 1x1x0"
        if self.many is tuple:
            count = "" if self.option.length is None else f"{self.option.length} "
            example = "x".join(["8"] * (self.option.length or 3))
            return f"as {count}numbers of {self.range} with x between them, for example {example}"
        span = self.range
        if self.kind is float:
            if self.option.above is not None:
                return span if self.option.high is not None else f"{span} and finite"
            return "as a finite number" + (f" of {span}" if span else "")
        return "as a whole number" + (f" {'from' if ' to ' in span else 'of'} {span}" if span else "")

    def accepts(self, value: Any) -> bool:
        """Whether a number or a text is among the choices and in the range."""
        if self.option.choices:
            return value in self.option.choices
        if isinstance(value, (bool, str)):
            return True
        low = 1 if self.many is tuple and self.option.low is None else self.option.low
        return (
            math.isfinite(value)
            and (low is None or value >= low)
            and (self.option.high is None or value <= self.option.high)
            and (self.option.above is None or value > self.option.above)
        )

    def require(self, value: Any) -> None:
        """Raise BadInput unless a value is a number that the field accepts, or None where that is the default."""
        if value is None and self.default is None:
            return
        if not isinstance(value, numbers.Real) or not self.accepts(value):
            rule = self.rule().removeprefix("as ")
            what = rule if "number" in rule else f"a number {rule}"
            raise BadInput(f"{self.name}: expected {what}, found {value!r}")

    def read(self, text: str, name: str = "") -> Any:
        """Return the value that a text stands for, or raise BadInput if the field accepts no such value."""
        separator = "x" if self.many is tuple else self.option.separator
        parts = text.split(separator) if separator else [text]
        convert = _YES_OR_NO.__getitem__ if self.kind is bool else self.kind
        try:
            values = [convert(part) for part in parts]
        except (KeyError, ValueError):
            values = []
        wrong_length = self.option.length is not None and len(values) != self.option.length
        if not values or wrong_length or not all(self.accepts(value) for value in values):
            raise BadInput(f"expected {name or self.long} {self.rule()}, found {text!r}")
        return tuple(values) if self.many is tuple else values if separator else values[0]


def number_text(number: float) -> str:
    """Return a limit as the help shows it, such as 2^64-1."""
    return _POWERS.get(number) or f"{number:g}" if abs(number) >= 2**30 else f"{number:.9g}"


def filled(target: Any, **values: Any) -> Any:
    """Return an object of the library, such as a struct of options, with its attributes set to these values."""
    for name, value in values.items():
        setattr(target, name, value)
    return target


class Options:
    """The base class of dataclasses of options. `title` heads in the help the options that a class adds."""

    title: ClassVar[str] = "Options"
    _given: ClassVar[frozenset[str]] = frozenset()

    @classmethod
    def of(cls, function: str, keywords: Mapping[str, Any]) -> Self:
        """Return the options with which a function was called; `function` is its name in the error."""
        known = {field.name: field for field in dataclasses.fields(cls)}  # type: ignore[arg-type]
        for name in keywords:
            if name not in known:
                raise TypeError(f"{function}() got an unexpected keyword argument {name!r}")
        for name, field in known.items():
            if name not in keywords and field.default is field.default_factory is dataclasses.MISSING:
                raise TypeError(f"{function}() missing a required keyword argument: {name!r}")
        for name, value in keywords.items():
            if str(known[name].type).startswith("Callable") and not (value is None or callable(value)):
                raise WrongType(f"{name}: expected a function, found {value!r}")
        for field in fields_of(cls):
            if field.name not in keywords or field.many is not None:
                continue
            found = keywords[field.name]
            is_text = str(known[field.name].type).startswith("str") and field.kind is str
            if (is_text and not (found is None or isinstance(found, str | os.PathLike))) or (
                field.kind is bool and isinstance(found, Iterable)
            ):
                expected = "a text" if is_text else "True or False"
                raise WrongType(
                    f"{field.name}: expected {expected}, found {' '.join(repr(found).split()):.60}"
                )
            if field.kind is float:
                several = "Sequence" in str(known[field.name].type) and isinstance(found, (list, tuple))
                for value in found if several else [found]:
                    field.require(value)
        return cls(**keywords)

    def part(self, kind: type[Options]) -> dict[str, Any]:
        """Return the options of a class that this one extends, as keywords of the function that takes them."""
        return {field.name: getattr(self, field.name) for field in fields_of(kind)}

    def given(self, names: Iterable[str]) -> list[str]:
        """Return the long names of those of these fields that the command line has."""
        return [field.long for field in fields_of(type(self)) if field.name in set(names) & self._given]

    def refuse(self, names: Iterable[str], why: str) -> None:
        """Raise BadInput if the command line has one of these fields, which would have no effect.

        The message is the name of the option, followed by `why`.
        """
        for name in self.given(names):
            raise BadInput(f"{name} {why}; leave it out")


@functools.cache
def fields_of(kind: type[Options]) -> list[Field]:
    """Return the fields of a class that are options, in the order of their declaration."""
    types = typing.get_type_hints(kind)
    titles = {
        name: owner.__dict__.get("title", "Options")
        for owner in reversed(kind.__mro__)
        for name in inspect.get_annotations(owner)
    }
    found = []
    for field in dataclasses.fields(kind):  # type: ignore[arg-type]
        if "option" not in field.metadata:
            continue
        default = field.default
        if field.default_factory is not dataclasses.MISSING:
            default = field.default_factory()
        if default is dataclasses.MISSING:
            default = ...
        declared = field.metadata["option"]
        item, many = _kind(declared.kind or types[field.name])
        found.append(Field(field.name, item, many, default, declared, titles[field.name]))
    return found


def _kind(hint: Any) -> tuple[type, type | None]:
    """Return the type of the items, and the type of the sequence that has them, if there is one."""
    parts = [part for part in typing.get_args(hint) if part not in (NoneType, ...)]
    origin = typing.get_origin(hint)
    if origin in (list, tuple):
        return parts[0], origin
    return _kind(parts[0]) if parts else (hint, None)
