"""Codecs: what numbers look like on the wire. docs/reference/codecs.md has every format, and its error bound."""

from __future__ import annotations

from typing import Any

import numpy as np

from onehop import _core
from onehop.error import BadInput

__all__ = ["CODECS", "decode", "element_type", "encode", "encoded_bytes"]

#: The names of all codecs.
CODECS = ("raw", "fp16", "bf16", "fp8", "q8", "q6", "q4")

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
    """The type of an array's numbers: "float32" for complex64 and for ("float32", 3), "bytes" for what is none.

    Parameters
    ----------
    dtype : dtype
        What NumPy takes for one, or "bfloat16", which NumPy does not know.

    Raises
    ------
    BadInput
        It is no dtype.
    """
    if isinstance(dtype, str) and dtype == "bfloat16":
        return dtype
    try:
        base = np.dtype(dtype).base
    except TypeError as error:
        raise BadInput(f"expected a NumPy dtype, or bfloat16, found {dtype!r}") from error
    if str(base) == "bfloat16":
        return "bfloat16"
    return _NUMBER_TYPES.get(f"{base.kind}{base.itemsize}", "bytes") if base.isnative else "bytes"


def encoded_bytes(codec: str, dtype: Any, elements: int) -> int:
    """Bytes on the wire for so many numbers; a complex number is two.

    Raises
    ------
    BadInput
        No such codec, or it does not take numbers of this type.
    """
    return _core.encoded_bytes(codec, element_type(dtype), elements)


def _type_of(array: Any, dtype: Any) -> str:
    return element_type(array.dtype if dtype is None else dtype)


def encode(codec: str, array: Any, dtype: Any = None) -> np.ndarray:
    """What an array's numbers look like on the wire.

    Parameters
    ----------
    codec : str
        One of `CODECS`.
    array : array
        C-contiguous, of float32, float64, float16 or complex numbers; any type for "raw".
    dtype : dtype, optional
        What the array's bytes are, where its own dtype does not say so: "bfloat16" for an array of uint16.

    Returns
    -------
    ndarray of uint8
        Its bytes on the wire.

    Raises
    ------
    BadInput
        No such codec, or it does not take numbers of this type.
    """
    kind = _type_of(array, dtype)
    number_bytes = {"bytes": 1, "float16": 2, "bfloat16": 2, "float32": 4, "int32": 4}.get(kind, 8)
    wire = np.empty(_core.encoded_bytes(codec, kind, array.nbytes // number_bytes), np.uint8)
    _core.encode(codec, kind, array, wire)
    return wire


def decode(codec: str, wire: Any, out: Any, dtype: Any = None, *, add: bool = False) -> Any:
    """Reads numbers back from the wire into an array.

    Parameters
    ----------
    codec : str
        What they were encoded with.
    wire : array or bytes
        Their bytes.
    out : array
        Where they go, C-contiguous; as many as it holds.
    dtype : dtype, optional
        As for `encode`.
    add : bool
        Add to what is there.

    Returns
    -------
    array
        `out`.

    Raises
    ------
    BadInput
        The lengths or types do not fit.
    """
    _core.decode(codec, _type_of(out, dtype), wire, out, add)
    return out
