"""Arrays of NumPy, torch and other libraries: their element types, their memory, and new ones of the same kind."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from onehop import _core
from onehop.error import BadInput

NUMBER_TYPES = frozenset({"float16", "bfloat16", "float32", "float64", "int32", "int64"})


def element_type(array: Any) -> str:
    """Return the name of an array's element type, such as "float32", for NumPy, torch and other libraries.

    Numbers in another byte order, and elements with fields, have a name that says what their bytes mean.
    """
    dtype = getattr(array, "dtype", None)
    if isinstance(dtype, np.dtype) and (not dtype.isnative or dtype.fields is not None):
        return str(dtype)
    return getattr(dtype, "name", None) or str(dtype).rpartition(".")[2]


def number_type(array: Any) -> str:
    """Return the element type of an array of numbers that can be combined; else raise BadInput."""
    if not hasattr(array, "dtype") or not hasattr(array, "shape"):
        raise BadInput(
            f"expected an array of one of {', '.join(sorted(NUMBER_TYPES))}, found a {type(array).__name__}; "
            "numpy.asarray makes an array of a number or of a list of them"
        )
    dtype = getattr(array, "dtype", None)
    if isinstance(dtype, np.dtype) and not dtype.isnative:
        raise BadInput(f"expected elements in this machine's byte order, found {dtype}; convert them first")
    name = element_type(array)
    if name not in NUMBER_TYPES:
        raise BadInput(f"expected elements of one of {', '.join(sorted(NUMBER_TYPES))}, found {name}")
    return name


def _plain(array: Any) -> Any:
    """Detach a torch tensor from its gradient, which would keep it from exporting its memory."""
    if isinstance(array, np.ndarray):
        return array
    detach = getattr(array, "detach", None)
    return array if detach is None else detach()


def require_unmasked(array: Any, what: str) -> None:
    """Raise BadInput for a masked array of NumPy: its mask does not travel, and masked numbers would be combined."""
    if isinstance(array, np.ma.MaskedArray):
        raise BadInput(f"expected {what} without a mask, found a masked array; pass array.filled(...)")


def memory_of(array: Any, writable: bool, what: str) -> _core.Memory:
    """Return the memory of an array, which is not copied. `what` names the array in messages.

    Raises BadInput if it is not the processor's, not dense, not C-contiguous, or read-only.
    """
    array = _plain(array)
    # The buffer protocol has no name for types such as bfloat16 of ml_dtypes.
    if (
        isinstance(array, np.ndarray)
        and array.dtype.kind == "V"
        and array.ndim > 0
        and not array.dtype.hasobject
        and array.flags.c_contiguous
    ):
        array = array.view(np.uint8)
    require_unmasked(array, what)
    device = getattr(getattr(array, "device", None), "type", "cpu")
    if device != "cpu":
        raise BadInput(
            f"expected {what} in the processor's memory, found it on {device}; move it there first"
        )
    if getattr(array, "is_sparse", False):
        raise BadInput(f"expected {what} to be dense, found a sparse tensor; call to_dense() first")
    try:
        return _core.Memory(array, writable, what)
    except BadInput:
        raise
    except Exception as error:  # any type: the array's own library raises it
        raise BadInput(f"expected {what} to export its memory, but it does not: {error}") from error


def new_array(array: Any, shape: Sequence[int]) -> Any:
    """Make an array of the same library and type with another shape; else raise BadInput."""
    if isinstance(array, np.ndarray):
        return np.empty(shape, array.dtype)
    make = getattr(array, "new_empty", None)
    if make is None:
        raise BadInput(
            f"expected `out` for a {type(array).__name__}, found None: onehop cannot allocate an array of this type"
        )
    return make(tuple(shape))


def element_count(shape: Sequence[int]) -> int:
    """Return the number of elements of an array."""
    length = 1
    for extent in shape:
        length *= int(extent)
    return length
