"""Codecs: formats of numbers on the wire. docs/reference/codecs.md describes every format and its error bound."""

from __future__ import annotations

from typing import Any

import numpy as np

from onehop import _core, compression_speed
from onehop.error import BadInput, explain_public

__all__ = ["CODECS", "decode", "element_type", "encode", "encoded_bytes", "measure_speed", "tuned_rate"]

#: The codecs by name: numbers in a block, its bytes on the wire, and the largest group whose reductions take them.
TABLE = {info.name: info for info in _core.codecs()}
#: The names of all codecs.
CODECS = tuple(TABLE)

_NUMBER_TYPES = {
    "f2": "float16",
    "f4": "float32",
    "f8": "float64",
    "c8": "float32",
    "c16": "float64",
    "i4": "int32",
    "i8": "int64",
}


def element_type(dtype: Any) -> str:
    """Return the name of the number type of a dtype, as the codecs use it.

    Parameters
    ----------
    dtype : dtype
        Anything that `numpy.dtype` accepts, or "bfloat16", which NumPy does not know.

    Returns
    -------
    str
        For example "float32" for float32, complex64 and ("float32", 3). "bytes" for every dtype that the codecs do
        not know, and for a byte order that is not this machine's.

    Raises
    ------
    BadInput
        `dtype` is not a dtype.
    """
    if isinstance(dtype, str) and dtype == "bfloat16":
        return dtype
    try:
        base = np.dtype(dtype).base
    except (TypeError, ValueError, SyntaxError) as error:  # NumPy evaluates parts of a text
        raise BadInput(f"expected a NumPy dtype or 'bfloat16', found {dtype!r}") from error
    if str(base) == "bfloat16":
        return "bfloat16"
    return _NUMBER_TYPES.get(f"{base.kind}{base.itemsize}", "bytes") if base.isnative else "bytes"


def encoded_bytes(codec: str, dtype: Any, elements: int) -> int:
    """Return the number of bytes on the wire.

    Parameters
    ----------
    codec : str
        One of `CODECS`.
    dtype : dtype
        The type of the numbers, as for `element_type`.
    elements : int
        How many numbers are encoded. A complex number counts as two.

    Raises
    ------
    BadInput
        There is no such codec, or it does not encode numbers of this type.
    """
    return _core.encoded_bytes(codec, element_type(dtype), elements)


def _type_of(array: Any, dtype: Any) -> str:
    return element_type(array.dtype if dtype is None else dtype)


def encode(codec: str, array: Any, dtype: Any = None) -> np.ndarray:
    """Encode an array for the wire.

    Parameters
    ----------
    codec : str
        One of `CODECS`.
    array : array
        C-contiguous, of float32, float64, float16 or complex numbers; any type for "raw".
    dtype : dtype, optional
        Type of the numbers, if the array's own dtype differs: "bfloat16" for an array of uint16.

    Returns
    -------
    ndarray of uint8
        The encoded bytes.

    Raises
    ------
    BadInput
        There is no such codec, or it does not encode numbers of this type.
    """
    kind = _type_of(array, dtype)
    number_bytes = {"bytes": 1, "float16": 2, "bfloat16": 2, "float32": 4, "int32": 4}.get(kind, 8)
    wire = np.empty(_core.encoded_bytes(codec, kind, array.nbytes // number_bytes), np.uint8)
    _core.encode(codec, kind, array, wire)
    return wire


def decode(codec: str, wire: Any, out: Any, dtype: Any = None, *, add: bool = False) -> Any:
    """Decode numbers from the wire into an array.

    Parameters
    ----------
    codec : str
        The codec that encoded the numbers.
    wire : array or bytes
        The encoded bytes.
    out : array
        Receives the numbers, C-contiguous. Its size determines how many are decoded.
    dtype : dtype, optional
        As for `encode`.
    add : bool
        Add the numbers to the contents of `out` instead of overwriting them.

    Returns
    -------
    array
        `out`.

    Raises
    ------
    BadInput
        The lengths or types of `wire` and `out` do not fit, or there is no such codec.
    """
    _core.decode(codec, _type_of(out, dtype), wire, out, add)
    return out


def measure_speed(codec: str) -> compression_speed.Speed:
    """Measure the encoding and decoding of float32 numbers on this core, which takes some milliseconds.

    Parameters
    ----------
    codec : str
        One of `CODECS`, except "raw".
    """
    numbers = compression_speed.numbers()
    wire = np.empty(_core.encoded_bytes(codec, "float32", numbers.size), np.uint8)
    back = np.empty_like(numbers)

    def encode() -> int:
        _core.encode(codec, "float32", numbers, wire)
        return wire.nbytes

    def decode(_: int) -> None:
        _core.decode(codec, "float32", wire, back, False)

    return compression_speed.measure(encode, decode, numbers.nbytes)


def tuned_rate(codec: str) -> float:
    """Return the rate of a link, in Gbit/s, below which a codec pays: that of `onehop tune`, else measured now.

    Parameters
    ----------
    codec : str
        One of `CODECS`, except "raw".
    """
    return compression_speed.tuned_rate("codecs", codec, lambda: measure_speed(codec))


explain_public(globals())
