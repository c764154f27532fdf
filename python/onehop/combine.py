"""Reductions of all NumPy types: each rank combines one segment of the arrays of all ranks, in the order of ranks.

Types and operators that C++ combines do not come here, but for prefixes and blocks of different lengths; the results
have the same bits there.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any
from zlib import crc32

import numpy as np

from onehop.array_memory import NUMBER_TYPES
from onehop.collective_plans import Plans
from onehop.error import BadInput, Mismatch
from onehop.text import alternatives

# As in C++: of two equal numbers the first, where NumPy returns -0.0 or 0.0 by the place in the array.


def _minimum(first: np.ndarray, then: np.ndarray) -> np.ndarray:
    return np.where((first <= then) | (first != first), first, then)


def _maximum(first: np.ndarray, then: np.ndarray) -> np.ndarray:
    return np.where((first >= then) | (first != first), first, then)


def _quiet(numbers: np.ndarray) -> np.ndarray:
    """Return numbers as they are, each NaN with its sign and payload, but quiet."""
    bits = np.dtype(f"u{numbers.dtype.itemsize}")
    one, with_highest_bit = np.array([1, 1.5]).astype(numbers.dtype).view(bits)
    quieted = (numbers.view(bits) | (one ^ with_highest_bit)).view(numbers.dtype)
    # Types without infinities have NaN that this would make a number.
    return np.where((numbers != numbers) & (quieted != quieted), quieted, numbers)


_OPERATORS: dict[str, Callable[..., Any]] = {
    "sum": np.add,
    "mean": np.add,
    "min": _minimum,
    "max": _maximum,
    "prod": np.multiply,
    "logical_and": np.logical_and,
    "logical_or": np.logical_or,
    "logical_xor": np.logical_xor,
    "bitwise_and": np.bitwise_and,
    "bitwise_or": np.bitwise_or,
    "bitwise_xor": np.bitwise_xor,
}
_NAMES = {"average": "mean", "and": "bitwise_and", "or": "bitwise_or", "xor": "bitwise_xor"}
_PIECE_BYTES = 1 << 20
#: The operators that C++ has.
NATIVE = frozenset({"sum", "mean", "min", "max", "prod"})


def operator_of(op: str) -> str:
    """Return the name of an operator, such as "mean" for "average". Raises BadInput if there is none."""
    name = _NAMES.get(op, op) if isinstance(op, str) else op
    if not isinstance(name, str) or name not in _OPERATORS:
        raise BadInput(f"expected the operator {alternatives([*_OPERATORS, 'average'])}, found {op!r}")
    return name


def check_type(dtype: np.dtype, op: str) -> None:
    """Raise BadInput unless elements of this type can be combined by this operator."""
    is_extra = dtype.type.__module__.startswith("ml_dtypes")
    known = (dtype.kind in "biuf" and dtype.itemsize <= 8) or (dtype.kind == "c" and dtype.itemsize <= 16)
    if not known and not (is_extra and dtype.name.startswith(("bfloat16", "float8"))):
        raise BadInput(
            "expected elements of bool, integers or floating-point numbers of 8 to 64 bits, or complex numbers of "
            f"those, found {dtype}"
        )
    if not dtype.isnative:
        raise BadInput(f"expected elements in this machine's byte order, found {dtype}; convert them first")
    if op in ("min", "max") and dtype.kind == "c":
        raise BadInput(f"expected numbers that have an order for {op}, found {dtype}")
    if op == "mean" and dtype.kind in "biu":
        raise BadInput(
            f"expected floating-point or complex numbers for the mean, found {dtype}; divide the sum"
        )
    if op.startswith("bitwise") and dtype.kind not in "biu":
        raise BadInput(f"expected integers or bool for {op}, found {dtype}")


def combine(rows: np.ndarray, op: str, *, prefixes: bool = False) -> np.ndarray:
    """Combine rows in their order, or return all prefixes: row r is the combination of rows 0 to r.

    Floating-point numbers of 8 and 16 bits are combined in float32 and rounded once.
    """
    dtype = rows.dtype
    is_small = dtype.kind not in "biufc" or (dtype.kind == "f" and dtype.itemsize <= 2)
    logical = op.startswith("logical")
    # Minima and maxima as they are, because a conversion changes the payload of a NaN.
    wide = np.dtype(np.float32) if is_small and op not in ("min", "max") else dtype
    found = np.empty_like(rows) if prefixes else None
    with np.errstate(all="ignore"):
        total = (rows[0] != 0) if logical else rows[0].astype(wide)
        for number, row in enumerate(rows):
            if number > 0:
                # Not in place, where NumPy rounds products of complex numbers in another way.
                total = _OPERATORS[op](total, (row != 0) if logical else row.astype(wide, copy=False))
            if found is not None:
                found[number] = _finished(total, op, number + 1).astype(dtype)
        return found if found is not None else _finished(total, op, len(rows)).astype(dtype, copy=False)


def _finished(total: np.ndarray, op: str, count: int) -> np.ndarray:
    if op in ("min", "max") and total.dtype.kind not in "biu":
        return _quiet(total)
    if op != "mean":
        return total
    parts = total.copy().view(total.real.dtype)  # real and imaginary parts alike
    parts /= parts.dtype.type(count)
    return parts.view(total.dtype)


def content(dtype: np.dtype | str, shape: Sequence[int], more: str = "") -> tuple[str, tuple[int, ...]]:
    """Return the type and shape of an array that is moved, to be compared between the ranks.

    A type that no reduction in C++ supports is "bytes", with a checksum of its name as part of the shape. So is `more`,
    which must agree, too.
    """
    name = dtype if isinstance(dtype, str) else dtype.name
    if name in NUMBER_TYPES and not more:
        return name, tuple(shape)
    return "bytes", (*shape, -1, crc32(f"{name} {more}".encode()))


def move(plans: Plans, what: str, kind: str, source: np.ndarray, result: np.ndarray, *arguments: Any) -> None:
    """Run an operation that moves contiguous arrays. A Mismatch begins with `what`, which the user called."""
    try:
        operation = plans.get(kind, *arguments)
        operation.run_at(source.ctypes.data, source.nbytes, result.ctypes.data, result.nbytes)
    except Mismatch as error:
        raise Mismatch(
            f"{what}: the ranks differ in type, shape, operator, root or lengths: {error}"
        ) from error


def _piece(flat: np.ndarray, op: str) -> int:
    """Return how many elements are combined at a time, which limits the memory beside the arrays."""
    is_whole = op == "prod" and flat.dtype.kind == "c"  # see segments()
    return max(1, flat.size if is_whole else _PIECE_BYTES // flat.dtype.itemsize)


def segments(flat: np.ndarray, ranks: int, op: str) -> list[int]:
    """Return the lengths of the segments of an array, one for each rank.

    NumPy rounds products of complex numbers in several ways, by their places in the array, which is one segment then.
    """
    elements = flat.size
    if op == "prod" and flat.dtype.kind == "c":
        return [elements] + [0] * (ranks - 1)
    return [elements * (rank + 1) // ranks - elements * rank // ranks for rank in range(ranks)]


def gather_segments(
    plans: Plans, flat: np.ndarray, lengths: Sequence[int], what: str, shape: Sequence[int]
) -> np.ndarray:
    """Send segment r of a flat array to rank r, and return the rows of this rank's segment from all ranks."""
    mine = lengths[plans.rank]
    rows = np.empty((plans.size, mine), flat.dtype)
    size = flat.dtype.itemsize
    to, of = tuple(size * length for length in lengths), (size * mine,) * plans.size
    move(plans, what, "all_to_all", flat, rows, to, of, *content(flat.dtype, shape, what))
    return rows


def allreduce_any(plans: Plans, flat: np.ndarray, op: str, shape: Sequence[int]) -> None:
    """Combine a contiguous array in place, of any type; `shape` is compared between the ranks."""
    what = f"all-reduce ({op})"
    step = _piece(flat, op)
    for begin in range(0, max(flat.size, 1), step):
        piece = flat[begin : begin + step]
        lengths = segments(piece, plans.size, op)
        mine = combine(gather_segments(plans, piece, lengths, what, shape), op)
        move(plans, what, "allgather", mine, piece, tuple(flat.dtype.itemsize * length for length in lengths))


def reduce_any(plans: Plans, flat: np.ndarray, op: str, root: int, shape: Sequence[int]) -> np.ndarray | None:
    """Combine contiguous arrays of any type, and return the result on rank `root`."""
    what = f"reduce to rank {root} ({op})"
    lengths = segments(flat, plans.size, op)
    mine = combine(gather_segments(plans, flat, lengths, what, shape), op)
    is_root = plans.rank == root
    result = np.empty(flat.size if is_root else 0, flat.dtype)
    size = flat.dtype.itemsize
    to = tuple(mine.nbytes if rank == root else 0 for rank in range(plans.size))
    of = tuple(size * length if is_root else 0 for length in lengths)
    move(plans, what, "all_to_all", mine, result, to, of)
    return result if is_root else None


def scan_any(plans: Plans, flat: np.ndarray, op: str, exclusive: bool, shape: Sequence[int]) -> np.ndarray:
    """Return the combination of the contiguous arrays of all ranks up to this one, or, if exclusive, before it."""
    what = f"{'exclusive ' if exclusive else ''}scan ({op})"
    lengths = segments(flat, plans.size, op)
    rows = combine(gather_segments(plans, flat, lengths, what, shape), op, prefixes=True)
    if exclusive:
        neutral = np.asarray(getattr(_OPERATORS[op], "identity", 0)).astype(flat.dtype)
        rows = np.concatenate([np.full_like(rows[:1], neutral), rows[:-1]])
    result = np.empty_like(flat)
    size = flat.dtype.itemsize
    to, of = (size * lengths[plans.rank],) * plans.size, tuple(size * length for length in lengths)
    move(plans, what, "all_to_all", np.ascontiguousarray(rows), result, to, of)
    return result


def reduce_blocks(
    plans: Plans, flat: np.ndarray, lengths: Sequence[int], op: str, result: np.ndarray | None = None
) -> np.ndarray:
    """Combine blocks of so many elements for each rank, of any type, and return the block of this rank.

    It is written to `result`, which may be a block of `flat`.
    """
    flat = flat.reshape(-1)
    what = f"reduce-scatter ({op})"
    step = max(1, _piece(flat, op) // plans.size)
    begins = np.cumsum([0, *lengths])
    result = np.empty(lengths[plans.rank], flat.dtype) if result is None else result
    for at in range(0, max(*lengths, 1), step):
        parts = [min(max(length - at, 0), step) for length in lengths]
        blocks = [flat[begin + at : begin + at + part] for begin, part in zip(begins, parts, strict=False)]
        rows = gather_segments(plans, np.concatenate(blocks), parts, what, (flat.size,))
        result[at : at + parts[plans.rank]] = combine(rows, op)
    return result
