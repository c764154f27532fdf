"""Collective operations as schedules, which `Plan` runs, `count` counts and `verify` proves.

`halo` and `permute_bits` are patterns, too. The collective operations on arrays are `onehop.allreduce` and so on.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from onehop import _core
from onehop._core import ArraySpec, Place, Round, Schedule, Slice, Transfer, allgather
from onehop.arguments import instance, whole_number
from onehop.error import BadInput
from onehop.options import LARGEST_INT, LARGEST_SIZE
from onehop.permutation import permute_bits
from onehop.schedule import halo

__all__ = [
    "allgather",
    "allreduce",
    "alltoall",
    "broadcast",
    "halo",
    "permute_bits",
    "reduce_scatter",
    "scan",
]

#: Names of the operators of schedules by those of collective operations.
_COMBINE = {"sum": "add", "min": "min", "max": "max", "prod": "prod"}


def _check(ranks: Any, elements: Any, root: Any = 0) -> tuple[int, int]:
    ranks = whole_number(ranks, "ranks", 1, LARGEST_INT)
    whole_number(root, "root", 0, ranks - 1)
    return ranks, whole_number(elements, "elements", 1, LARGEST_SIZE // ranks)


def _combine(op: Any) -> str:
    if not isinstance(op, str) or op not in _COMBINE:
        raise BadInput(f"expected the operator {', '.join(_COMBINE)}, found {op!r}")
    return _COMBINE[op]


def _bytes_of(dtype: Any) -> int:
    if instance(dtype, str, "dtype") not in ("float32", "float64", "int32", "int64"):
        raise BadInput(f"expected the type float32, float64, int32 or int64, found {dtype!r}")
    return int(dtype[-2:]) // 8


def _schedule(
    name: str, ranks: int, arrays: list[ArraySpec], rounds: list[list[Transfer]], covered: int, elements: int
) -> Schedule:
    """Make a schedule that writes so many elements of array `covered` on every rank."""
    places = [Place(rank, covered, Slice.range(0, elements)) for rank in range(ranks)]
    return Schedule(name, ranks, arrays, [Round(transfers) for transfers in rounds if transfers], places)


def _reduced(
    ranks: int, combine: str, pairs: Callable[[int, int], tuple[Slice, Slice] | None]
) -> list[list[Transfer]]:
    """Copy the contribution of rank 0 in the first round, and combine the others with it in the second.

    `pairs(from, to)` has the elements of array 0 that are read, and those of array 1 that are written.
    """
    rounds: list[list[Transfer]] = [[], []]
    for sender in range(ranks):
        for receiver in range(ranks):
            if (slices := pairs(sender, receiver)) is not None:
                read, written = Place(sender, 0, slices[0]), Place(receiver, 1, slices[1])
                rounds[sender > 0].append(Transfer(read, written, "replace" if sender == 0 else combine))
    return rounds


def allreduce(
    ranks: int, elements: int, dtype: str = "float32", op: str = "sum", *, algorithm: str = "two_shot"
) -> Schedule:
    """Make the schedule of an all-reduce: array 0 of all ranks, combined in their order, goes to array 1 of every rank.

    Parameters
    ----------
    ranks : int
        Number of ranks.
    elements : int
        Elements of each array.
    dtype : str
        Type of an element: "float32", "float64", "int32" or "int64".
    op : str
        "sum", "min", "max" or "prod".
    algorithm : str
        "two_shot" or "one_shot".

    Returns
    -------
    Schedule
        The schedule.

    Raises
    ------
    BadInput
        The parameters do not fit together.
    """
    return _core.allreduce_schedule(ranks, elements, dtype, _combine(op), algorithm)


def broadcast(ranks: int, elements: int, element_bytes: int = 8, *, root: int = 0) -> Schedule:
    """Make the schedule of a broadcast: array 0 of rank `root` goes to that of every other rank.

    Raises BadInput if the parameters do not fit together.
    """
    ranks, elements = _check(ranks, elements, root)
    whole = Slice.range(0, elements)
    transfers = [
        Transfer(Place(root, 0, whole), Place(rank, 0, whole)) for rank in range(ranks) if rank != root
    ]
    arrays = [ArraySpec("array", elements, element_bytes)]
    return Schedule("broadcast", ranks, arrays, [Round(transfers)] if transfers else [])


def reduce_scatter(ranks: int, elements: int, dtype: str = "float32", op: str = "sum") -> Schedule:
    """Make the schedule of a reduce-scatter: array 0 has a block of so many elements for each rank.

    Block r of all ranks, combined in the order of ranks, goes to array 1 of rank r. `dtype` and `op` are as for
    `allreduce`. Raises BadInput if the parameters do not fit together.
    """
    ranks, elements = _check(ranks, elements)
    size = _bytes_of(dtype)
    block = Slice.range(0, elements)
    rounds = _reduced(ranks, _combine(op), lambda _, to: (Slice.range(to * elements, elements), block))
    arrays = [ArraySpec("source", ranks * elements, size, dtype), ArraySpec("result", elements, size, dtype)]
    return _schedule("reduce_scatter", ranks, arrays, rounds, 1, elements)


def alltoall(ranks: int, elements: int, element_bytes: int = 8) -> Schedule:
    """Make the schedule of an all-to-all: block r of array 0, of so many elements, goes to rank r.

    There it is the block of the sender in array 1. Raises BadInput if the parameters do not fit together.
    """
    ranks, elements = _check(ranks, elements)

    def block(rank: int) -> Slice:
        return Slice.range(rank * elements, elements)

    transfers = [
        Transfer(Place(sender, 0, block(receiver)), Place(receiver, 1, block(sender)))
        for sender in range(ranks)
        for receiver in range(ranks)
    ]
    arrays = [ArraySpec(name, ranks * elements, element_bytes) for name in ("source", "result")]
    return _schedule("alltoall", ranks, arrays, [transfers], 1, ranks * elements)


def scan(ranks: int, elements: int, dtype: str = "float32", op: str = "sum") -> Schedule:
    """Make the schedule of a scan: array 1 of rank r gets array 0 of the ranks 0 to r, combined in this order.

    `dtype` and `op` are as for `allreduce`. Raises BadInput if the parameters do not fit together.
    """
    ranks, elements = _check(ranks, elements)
    size = _bytes_of(dtype)
    whole = Slice.range(0, elements)
    rounds = _reduced(ranks, _combine(op), lambda sender, to: (whole, whole) if sender <= to else None)
    arrays = [ArraySpec(name, elements, size, dtype) for name in ("source", "result")]
    return _schedule("scan", ranks, arrays, rounds, 1, elements)
