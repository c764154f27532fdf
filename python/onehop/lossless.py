"""Lossless compression of float32 and bfloat16 numbers. docs/reference/lossless.md describes the format."""

from __future__ import annotations

from typing import Any

import numpy as np

from onehop import _core, compression_speed
from onehop.codec import element_type
from onehop.compression_speed import Speed
from onehop.error import explain_public

__all__ = ["TYPES", "Speed", "decode", "encode", "measure_speed", "most_bytes", "tuned_rate"]

#: The types of numbers.
TYPES = ("float32", "bfloat16")


def most_bytes(dtype: Any, elements: int) -> int:
    """Return how many bytes suffice for numbers: whole chunks of 256 numbers, with 3 bytes more for each.

    Parameters
    ----------
    dtype : dtype
        float32, complex64 or "bfloat16".
    elements : int
        How many numbers are encoded. A complex number counts as two.

    Raises
    ------
    BadInput
        The type is another one, or `elements` is negative.
    """
    return _core.lossless_most_bytes(element_type(dtype), elements)


def encode(array: Any, dtype: Any = None) -> np.ndarray:
    """Encode an array without loss. The length depends on the numbers.

    Parameters
    ----------
    array : array
        C-contiguous, of float32 or complex64.
    dtype : dtype, optional
        Type of the numbers, if the array's own dtype differs: "bfloat16" for an array of uint16.

    Returns
    -------
    ndarray of uint8
        The encoded bytes.

    Raises
    ------
    BadInput
        The numbers have another type.

    Examples
    --------
    >>> import numpy as np, onehop.lossless
    >>> numbers = np.random.default_rng(1).normal(size=100_000).astype(np.float32)
    >>> wire = onehop.lossless.encode(numbers)
    >>> back = onehop.lossless.decode(wire, np.empty_like(numbers))
    >>> bool((back == numbers).all()), round(len(wire) / numbers.nbytes, 2)
    (True, 0.86)
    """
    kind = element_type(array.dtype if dtype is None else dtype)
    elements = array.nbytes // (2 if kind == "bfloat16" else 4)
    wire = np.empty(_core.lossless_most_bytes(kind, elements), np.uint8)
    return wire[: _core.lossless_encode(kind, array, wire)].copy()


def decode(wire: Any, out: Any, dtype: Any = None) -> Any:
    """Decode numbers into an array.

    Parameters
    ----------
    wire : array or bytes
        The encoded bytes, all of them.
    out : array
        Receives the numbers: C-contiguous, of the type and length that were encoded.
    dtype : dtype, optional
        As for `encode`.

    Returns
    -------
    array
        `out`.

    Raises
    ------
    BadInput
        The bytes are not those of an array of this type and length. `out` is then undefined.
    """
    _core.lossless_decode(element_type(out.dtype if dtype is None else dtype), wire, out)
    return out


def measure_speed(dtype: Any) -> Speed:
    """Measure the compression of normally distributed numbers on this core, which takes some milliseconds.

    Parameters
    ----------
    dtype : dtype
        As for `most_bytes`.
    """
    kind = element_type(dtype)
    numbers = compression_speed.numbers()
    array = numbers if kind == "float32" else (numbers.view(np.uint32) >> 16).astype(np.uint16)
    wire, back = np.empty(most_bytes(kind, array.size), np.uint8), np.empty_like(array)
    return compression_speed.measure(
        lambda: _core.lossless_encode(kind, array, wire),
        lambda used: _core.lossless_decode(kind, wire[:used], back),
        array.nbytes,
    )


def tuned_rate(dtype: Any) -> float:
    """Return the rate of a link, in Gbit/s, below which compression pays: that of `onehop tune`, else measured now."""
    kind = element_type(dtype)
    return compression_speed.tuned_rate("lossless", kind, lambda: measure_speed(kind))


explain_public(globals())
