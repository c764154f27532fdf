"""Messages between processes: a JSON header and raw arrays. Reading a message is strict and runs no code.

A message has a tag (its kind), fields (JSON), and parts (arrays of numbers, or bytes, such as nested messages):

    magic (8 bytes) | length of the header (8 bytes) | header | parts, one after the other

The header is ASCII JSON: `[tag, fields, [[dtype, shape], ...]]`. All numbers are little-endian.
"""

from __future__ import annotations

import json
import math
import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import IO, Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from onehop.error import BadInput, Error, Mismatch, PeerLost, Timeout
from onehop.text import counted

_MAGIC = b"onehop\0\1"
_LENGTH = struct.Struct("<Q")
_DTYPES = {
    code: np.dtype(code) for code in ("|i1", "|u1", "<i4", "<u4", "<i8", "<u8", "<f4", "<f8", "<c8", "<c16")
}
_PIECE = 1 << 20
_MAX_DIMENSIONS = 32
_ERRORS: dict[str, type[Error]] = {
    one.__name__: one for one in (Error, BadInput, Mismatch, Timeout, PeerLost)
}

#: Default limit for the length of a message that is read. Memory grows with the bytes received, not with the announced
#: length.
MAX_BYTES = 1 << 40

T = TypeVar("T")


@dataclass(frozen=True)
class Message:
    """A decoded message: its kind, its JSON fields, and its arrays; bytes are arrays of uint8."""

    tag: str
    fields: Mapping[str, Any] = field(default_factory=dict)
    parts: Sequence[NDArray[Any]] = ()

    def get(self, name: str, kind: type[T], *, least: int | None = None) -> T:
        """Return a field after checking its type, and that a number is not below `least`. Raises BadInput.

        A bool is not accepted as an int; an int is accepted as a float.
        """
        if name not in self.fields:
            raise BadInput(f"{self.tag}: expected a field {name!r}, found {sorted(self.fields)}")
        found = self.fields[name]
        if kind is float and type(found) is int:
            try:
                found = float(found)
            except OverflowError:
                raise BadInput(f"{self.tag}: expected {name} to fit into a float") from None
        if type(found) is not kind:
            raise BadInput(
                f"{self.tag}: expected {name} to be of type {kind.__name__}, found {type(found).__name__}"
            )
        if least is not None and not found >= least:
            raise BadInput(f"{self.tag}: expected {name} to be at least {least}, found {found}")
        return found

    def array(self, place: int, dtype: Any, *, dimensions: int = 1) -> NDArray[Any]:
        """Return a writable copy of a part after checking its dtype and number of dimensions. Raises BadInput."""
        return self._part(place, dtype, dimensions).copy()

    def _part(self, place: int, dtype: Any, dimensions: int = 1) -> NDArray[Any]:
        if place >= len(self.parts):
            raise BadInput(
                f"{self.tag}: expected at least {counted(place + 1, 'array')}, found {len(self.parts)}"
            )
        found = self.parts[place]
        if found.dtype != np.dtype(dtype) or found.ndim != dimensions:
            raise BadInput(
                f"{self.tag}: expected array {place} to have {counted(dimensions, 'dimension')} of {np.dtype(dtype)}, "
                f"found {found.ndim} of {found.dtype}"
            )
        return found

    def bytes_of(self, place: int) -> bytes:
        """Return a part as bytes. Raises BadInput if there is no such part, or it is not an array of uint8."""
        return self._part(place, np.uint8).tobytes()


def encode(
    tag: str, fields: Mapping[str, Any] | None = None, parts: Sequence[NDArray[Any] | bytes] = ()
) -> bytes:
    """Encode a message. Raises TypeError if JSON cannot represent a field, or an array does not contain numbers."""
    arrays = [_plain(part) for part in parts]
    shapes = [[one.dtype.str, list(one.shape)] for one in arrays]
    head = json.dumps([tag, dict(fields or {}), shapes], separators=(",", ":")).encode("ascii")
    return b"".join([_MAGIC, _LENGTH.pack(len(head)), head, *(one.tobytes() for one in arrays)])


def _plain(part: NDArray[Any] | bytes) -> NDArray[Any]:
    array = np.frombuffer(part, np.uint8) if isinstance(part, (bytes, bytearray)) else np.asarray(part)
    if array.dtype.byteorder == ">":
        array = array.astype(array.dtype.newbyteorder("<"))
    if array.dtype.str not in _DTYPES:
        raise TypeError(f"expected an array of numbers, found one of {array.dtype}")
    return array


def decode(data: bytes, *tags: str) -> Message:
    """Decode a message that another process has encoded, with one of these tags.

    Raises BadInput if it is truncated or too long, has another tag, or is not a message of onehop.
    """
    start = len(_MAGIC) + _LENGTH.size
    if data[: len(_MAGIC)] != _MAGIC:
        raise BadInput(f"expected a message of onehop, found {len(data)} bytes that begin with {data[:8]!r}")
    if len(data) < start:
        raise BadInput(f"expected a message of at least {start} bytes, found {len(data)}: it is truncated")
    (length,) = _LENGTH.unpack_from(data, len(_MAGIC))
    if length > len(data) - start:
        raise BadInput(
            f"expected a header of {length} bytes, found {len(data) - start}: the message is truncated"
        )
    tag, fields, shapes = _header(data[start : start + length])
    if tag not in tags:
        raise BadInput(f"expected a message with the tag {' or '.join(tags)}, found {tag[:40]!r}")
    return Message(tag, fields, _arrays(tag, shapes, memoryview(data)[start + length :]))


def _header(text: bytes) -> tuple[str, dict[str, Any], list[Any]]:
    try:
        # json raises ValueError also for too many digits, and RecursionError for too many brackets.
        head = json.loads(text.decode("ascii"))
    except (ValueError, RecursionError) as error:
        raise BadInput(f"expected a message with a JSON header, found another header: {error}") from None
    kinds = (str, dict, list)
    if not isinstance(head, list) or [type(one) for one in head] != list(kinds):
        raise BadInput(f"expected a message header [tag, fields, arrays], found {str(head)[:60]}")
    return head[0], head[1], head[2]


def _arrays(tag: str, shapes: Sequence[Any], data: memoryview) -> list[NDArray[Any]]:
    found: list[NDArray[Any]] = []
    place = 0
    for one in shapes:
        dtype, shape = _array_kind(tag, one)
        size = math.prod(shape) * dtype.itemsize
        if size > len(data) - place:
            raise BadInput(
                f"{tag}: expected {size} bytes of an array, found {len(data) - place}: the message is truncated"
            )
        found.append(np.frombuffer(data[place : place + size], dtype).reshape(shape))
        place += size
    if place != len(data):
        raise BadInput(f"{tag}: expected {place} bytes of arrays, found {len(data)}: the message is too long")
    return found


def _array_kind(tag: str, one: Any) -> tuple[np.dtype[Any], list[int]]:
    if isinstance(one, list) and len(one) == 2 and isinstance(one[0], str) and isinstance(one[1], list):
        code, shape = one
        extents = all(type(extent) is int and extent >= 0 for extent in shape)
        # Also an empty array must have extents whose product NumPy can compute.
        if (
            code in _DTYPES
            and extents
            and len(shape) <= _MAX_DIMENSIONS
            and math.prod(max(n, 1) for n in shape) < MAX_BYTES
        ):
            return _DTYPES[code], shape
    raise BadInput(f"{tag}: expected the dtype and the shape of an array of numbers, found {str(one)[:60]}")


def encode_error(error: Error) -> bytes:
    """Encode an exception of onehop, with its class, text and rank, as a message with the tag "error"."""
    kind = next(one for one in type(error).__mro__ if one.__name__ in _ERRORS)
    return encode(
        "error", {"kind": kind.__name__, "words": str(error), "rank": int(getattr(error, "rank", -1))}
    )


def decode_error(message: Message) -> Error:
    """Return the exception that `encode_error` encoded. Raises BadInput for an unknown class of exceptions."""
    name, words, rank = message.get("kind", str), message.get("words", str), message.get("rank", int)
    if name not in _ERRORS:
        raise BadInput(f"expected an error that is one of {', '.join(_ERRORS)}, found {name[:40]!r}")
    return PeerLost(words, rank) if name == "PeerLost" else _ERRORS[name](words)


def write_framed(stream: IO[bytes], data: bytes) -> None:
    """Write bytes to a pipe, preceded by their length."""
    stream.write(_LENGTH.pack(len(data)) + data)
    stream.flush()


def read_framed(stream: IO[bytes], max_bytes: int = MAX_BYTES) -> bytes:
    """Read bytes that `write_framed` wrote.

    Raises EOFError if the other end was closed before the whole message arrived, and BadInput if the announced length
    is larger than `max_bytes`.
    """
    head = stream.read(_LENGTH.size)
    if len(head) < _LENGTH.size:
        raise EOFError
    (length,) = _LENGTH.unpack(head)
    if length > max_bytes:
        raise BadInput(f"expected a message of at most {max_bytes} bytes, found one of {length}")
    data = bytearray()
    while len(data) < length:
        piece = stream.read(min(length - len(data), _PIECE))
        if not piece:
            raise EOFError
        data += piece
    return bytes(data)
