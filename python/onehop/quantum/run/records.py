"""Dataclasses as messages: the types of their fields say what is read. Arrays and circuits are parts of the message."""

from __future__ import annotations

import types
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from functools import cache
from typing import Any, TypeVar, Union, get_args, get_origin, get_type_hints

import numpy as np
from numpy.typing import NDArray

from onehop.arguments import quoted
from onehop.error import BadInput
from onehop.quantum.circuit import Circuit
from onehop.quantum.run.serialization import pack, unpack
from onehop.serialization import Message, encode

T = TypeVar("T")


def to_message(tag: str, value: Any) -> bytes:
    """Encode a dataclass, or a list of them."""
    parts: list[NDArray[Any] | bytes] = []
    places: dict[int, int] = {}  # parts that stand in several fields, by their id

    def plain(one: Any) -> Any:
        if isinstance(one, Circuit | np.ndarray):
            place = places.setdefault(id(one), len(parts))
            if place == len(parts):
                parts.append(pack(one) if isinstance(one, Circuit) else one)
            return place
        if is_dataclass(one):
            return [plain(getattr(one, name)) for name in _types(type(one))]
        if isinstance(one, Mapping):
            return [[plain(key), plain(item)] for key, item in one.items()]
        if isinstance(one, list | tuple | set):
            return [plain(item) for item in one]
        if isinstance(one, complex):
            return [one.real, one.imag]
        return one.item() if isinstance(one, np.generic) else one

    return encode(tag, {"value": plain(value)}, parts)


def from_message(message: Message, kind: type[T]) -> T:
    """Return what `to_message` has encoded. Raises BadInput if the message holds nothing of this type."""
    return _Reader(message).read(message.fields.get("value"), kind)


@cache
def _types(kind: type) -> dict[str, Any]:
    """Return the types of the fields that a message holds."""
    hints = get_type_hints(kind)
    return {one.name: hints[one.name] for one in fields(kind) if one.init}


class _Reader:
    def __init__(self, message: Message) -> None:
        self.message = message
        self.circuits: dict[int, Circuit] = {}

    def read(self, plain: Any, kind: Any) -> Any:
        """Return a value of this type. A bool is no number; an int may be a float."""
        origin, inner = get_origin(kind), get_args(kind)
        if origin in (Union, types.UnionType):  # with None, or float | complex
            is_second = plain is None or (isinstance(plain, list) and inner[1] is complex)
            return self.read(plain, inner[is_second])
        if kind is Circuit or origin is np.ndarray:
            return self._part(plain, kind)
        if kind is float and type(plain) is int and plain.bit_length() < 1024:
            return float(plain)
        if kind in (int, float, str, bool, types.NoneType):
            return self._checked(plain, kind)
        if is_dataclass(kind):
            return kind(*self._items(plain, tuple(_types(kind).values())))
        if kind is complex:
            return complex(*self._items(plain, (float, float)))
        if origin is tuple and inner[-1] is not ...:
            return tuple(self._items(plain, inner))
        if origin is dict:
            return dict(self._items(one, inner) for one in self._checked(plain, list))
        return origin(self.read(one, inner[0]) for one in self._checked(plain, list))

    def _items(self, plain: Any, kinds: tuple[Any, ...]) -> list[Any]:
        if len(self._checked(plain, list)) != len(kinds):
            raise self._bad(f"{len(kinds)} items", plain)
        return [self.read(one, kind) for one, kind in zip(plain, kinds, strict=True)]

    def _checked(self, plain: Any, kind: type[T]) -> T:
        if type(plain) is not kind:
            raise self._bad(f"a value of type {kind.__name__}", plain)
        return plain

    def _part(self, place: Any, kind: Any) -> Any:
        if not 0 <= self._checked(place, int) < len(self.message.parts):
            raise self._bad(f"one of {len(self.message.parts)} parts", place)
        if kind is Circuit:
            if place not in self.circuits:
                self.circuits[place] = unpack(self.message.bytes_of(place))
            return self.circuits[place]
        found = self.message.parts[place]
        (dtype,) = get_args(get_args(kind)[1])
        if dtype is not Any and found.dtype != dtype:
            raise self._bad(f"an array of {np.dtype(dtype)}", found.dtype)
        return found.copy()

    def _bad(self, expected: str, found: Any) -> BadInput:
        return BadInput(f"{self.message.tag}: expected {expected}, found {quoted(found)}")
