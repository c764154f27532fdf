"""Collective operations that move arrays unchanged: broadcast, gather, scatter, all-gather and all-to-all."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any

import numpy as np

from onehop.arguments import instance, quoted
from onehop.array_memory import element_count, element_type, memory_of, new_array
from onehop.collective_plans import Plans, plans
from onehop.combine import content
from onehop.error import BadInput, WrongType
from onehop.group import Group
from onehop.text import counted


def shape_of(array: Any) -> tuple[int, ...]:
    """Return the shape of an array; raise WrongType if it is none."""
    if not hasattr(array, "shape"):
        raise WrongType(f"expected an array, found {quoted(array)}; numpy.asarray makes one")
    return tuple(array.shape)


def dense(array: Any) -> Any:
    """Return an array whose memory has its elements in order: the array itself, or a copy of one with gaps."""
    return (
        np.ascontiguousarray(array)
        if isinstance(array, np.ndarray) and not array.flags.c_contiguous
        else array
    )


def target_of(out: Any, array: Any, shape: Sequence[int]) -> tuple[Any, Any]:
    """Return where an operation writes its result, and what it returns: `out`, or a new array like `array`.

    They differ if `out` has gaps or another byte order. Raises BadInput if it has another shape or type.
    """
    if out is None:
        result = new_array(array, shape)
        return result, result
    if tuple(np.shape(out)) != tuple(shape) or _type_in_order(out) != _type_in_order(array):
        raise BadInput(
            f"expected `out` with shape {tuple(shape)} and type {element_type(array)}, "
            f"found {tuple(np.shape(out))} and {element_type(out)}"
        )
    if isinstance(out, np.ndarray) and not out.flags.writeable:
        raise BadInput("expected `out` to be writable, found a read-only array")
    if dense(out) is out and element_type(out) == element_type(array):
        return out, out
    return np.empty(out.shape, array.dtype if isinstance(array, np.ndarray) else _type_in_order(out)), out


def _type_in_order(array: Any) -> Any:
    """Return the type of an array's elements, in this machine's byte order."""
    return array.dtype.newbyteorder("=") if isinstance(array, np.ndarray) else element_type(array)


def returned(target: Any, out: Any) -> Any:
    """Return `out`, with the result that is in `target`."""
    if target is not out:
        out[...] = target
    return out


def check_root(group: Group, root: Any) -> int:
    """Return a rank of a group as a number, or raise BadInput."""
    try:
        number = int(root)
        is_number = number == root
    except (TypeError, ValueError):
        is_number = False
    if not is_number or not 0 <= number < group.size:
        raise BadInput(f"expected the root as a rank from 0 to {group.size - 1}, found {root!r}")
    return number


def block_lengths(
    group: Group, shape: Sequence[int], lengths: Sequence[int] | None, name: str = "lengths"
) -> list[int]:
    """Return how many rows of an array each rank gets, or raise BadInput. By default all get as many."""
    ranks = instance(group, Group, "group").size
    if not shape:
        raise BadInput(
            "expected an array of at least one dimension, whose rows are split over the ranks, found none"
        )
    if lengths is None:
        if shape[0] % ranks:
            raise BadInput(
                f"expected an array whose first dimension is a multiple of {counted(ranks, 'rank')}, found shape "
                f"{tuple(shape)}; `{name}` may give each rank its own number of rows"
            )
        return [shape[0] // ranks] * ranks
    rows = rows_of(group, lengths, name)
    if sum(rows) != shape[0]:
        raise BadInput(f"expected {name} whose sum is the {shape[0]} rows of the array, found {rows}")
    return rows


def rows_of(group: Group, lengths: Sequence[int], name: str = "lengths") -> list[int]:
    """Return a number of rows for each rank, or raise BadInput."""
    try:
        rows = [operator.index(one) for one in lengths]
    except (TypeError, ValueError):
        rows = []
    if len(rows) != instance(group, Group, "group").size or min(rows) < 0:
        raise BadInput(
            f"expected {name} as {group.size} numbers of rows, one for each rank, found {lengths!r}"
        )
    return rows


def _run(prepared: Plans, kind: str, source: Any, result: Any, *arguments: Any) -> None:
    memory = memory_of(source, False, "the array"), memory_of(result, True, "the result")
    prepared.get(kind, *arguments).run(*memory)


def _row_bytes(array: Any, shape: Sequence[int]) -> int:
    """Return the bytes of a row of an array of this shape."""
    itemsize = getattr(array, "itemsize", None)
    return element_count(shape[1:]) * int(
        itemsize() if callable(itemsize) else itemsize or array.dtype.itemsize
    )


def allgather(
    group: Any = None,
    array: Any = None,
    *pattern: Any,
    lengths: Sequence[int] | None = None,
    out: Any = None,
    **names: Any,
) -> Any:
    """Gather the arrays of all ranks on every rank.

    Parameters
    ----------
    group : Group
        The ranks.
    array : array
        Contribution of this rank, of any type; without `lengths`, with the same shape on every rank.
    lengths : sequence of int
        Rows of the array of each rank, the same on all ranks, where they differ. The result is then all rows.
    out : array
        Receives the arrays, with shape (ranks, *shape), or with all rows; None: a new array.

    Returns
    -------
    array
        `out`; without `lengths`, out[r] is the array of rank r.

    Raises
    ------
    BadInput, Mismatch, PeerLost, Timeout
        As for `allreduce`.
    """
    if not isinstance(group, Group) or pattern or names:
        raise WrongType(
            f"expected onehop.allgather(group, array), found {quoted(group)} as the group; the schedule of an "
            "all-gather is onehop.patterns.allgather(ranks, elements, element_bytes)"
        )
    own = shape_of(array)
    if lengths is None:
        rows, shape = None, (group.size, *own)
    else:
        rows = rows_of(group, lengths)
        _check_own_rows(own, rows[group.rank])
        shape = (sum(rows), *own[1:])
    target, result = target_of(out, array, shape)
    source = dense(array)
    size = memory_of(source, False, "the array").bytes
    sizes = (size,) * group.size if rows is None else tuple(row * _row_bytes(array, own) for row in rows)
    _run(plans(group), "allgather", source, target, sizes, *_content(array, own if rows is None else shape))
    return returned(target, result)


def _check_own_rows(shape: Sequence[int], rows: int) -> None:
    if not shape or shape[0] != rows:
        raise BadInput(
            f"expected an array of {counted(rows, 'row')}, as `lengths` says for this rank, found {shape}"
        )


def _content(array: Any, shape: Sequence[int], more: str = "") -> tuple[str, tuple[int, ...]]:
    return content(element_type(array), shape, more)


def broadcast(group: Group, array: Any, root: int = 0) -> Any:
    """Overwrite the arrays of all ranks, of any type, with the array of rank `root`, and return `array`."""
    root = check_root(instance(group, Group, "group"), root)
    shape = shape_of(array)
    used = dense(array)
    memory = memory_of(used, True, "the array")
    plans(group).get("broadcast", memory.bytes, root, *_content(array, shape)).run(memory, memory)
    return returned(used, array)


def gather(
    group: Group, array: Any, root: int = 0, *, lengths: Sequence[int] | None = None, out: Any = None
) -> Any:
    """Gather the arrays of all ranks on rank `root`.

    Parameters
    ----------
    group, array
        As for `allgather`.
    root : int
        The rank that gets the arrays.
    lengths : sequence of int
        Rows of the array of each rank, where they differ; only rank `root` needs it.
    out : array
        On rank `root`: receives the arrays, as that of `allgather`; None: a new array.

    Returns
    -------
    array or None
        `out` on rank `root`, None on the others.

    Raises
    ------
    BadInput, Mismatch, PeerLost, Timeout
        As for `allreduce`.
    """
    root = check_root(instance(group, Group, "group"), root)
    own, source = shape_of(array), dense(array)
    size = memory_of(source, False, "the array").bytes
    to = tuple(size if rank == root else 0 for rank in range(group.size))
    of: tuple[int, ...] = (0,) * group.size
    target = result = new_array(array, (0,))
    if group.rank == root:
        if lengths is None:
            shape, of = (group.size, *own), (size,) * group.size
        else:
            rows = rows_of(group, lengths)
            _check_own_rows(own, rows[root])
            shape, of = (sum(rows), *own[1:]), tuple(row * _row_bytes(array, own) for row in rows)
        target, result = target_of(out, array, shape)
    rest = own[1:] if own else ()
    _run(plans(group), "all_to_all", source, target, to, of, *_content(array, rest, f"gather to rank {root}"))
    return returned(target, result) if group.rank == root else None


def scatter(
    group: Group, array: Any, root: int = 0, *, lengths: Sequence[int] | None = None, out: Any = None
) -> Any:
    """Distribute the rows of an array of rank `root` over all ranks.

    Parameters
    ----------
    group : Group
        The ranks.
    array : array or None
        On rank `root`: the array, whose first dimension is split evenly over the ranks, or by `lengths`. The other
        ranks pass None.
    root : int
        The rank that has the array.
    lengths : sequence of int
        Rows of each rank, where they differ; only rank `root` needs it.
    out : array
        Receives the rows of this rank. Ranks other than `root` need it.

    Returns
    -------
    array
        `out`.

    Raises
    ------
    BadInput, Mismatch, PeerLost, Timeout
        As for `allreduce`.
    """
    root = check_root(instance(group, Group, "group"), root)
    if group.rank == root:
        shape = shape_of(array)
        rows = block_lengths(group, shape, lengths)
        like, own = array, (rows[root], *shape[1:])
        source = dense(array)
        to = tuple(row * _row_bytes(array, shape) for row in rows)
    else:
        if out is None:
            raise BadInput(f"expected `out`, an array for the rows of rank {group.rank}, found None")
        like, own = out, shape_of(out)
        source, to = new_array(out, (0,)), (0,) * group.size
    target, result = target_of(out, like, own)
    size = memory_of(target, True, "the result").bytes
    of = tuple(size if rank == root else 0 for rank in range(group.size))
    rest = own[1:] if own else ()
    _run(
        plans(group), "all_to_all", source, target, to, of, *_content(like, rest, f"scatter from rank {root}")
    )
    return returned(target, result)


def alltoall(
    group: Group,
    array: Any,
    *,
    lengths: Sequence[int] | None = None,
    received: Sequence[int] | None = None,
    out: Any = None,
) -> Any:
    """Send block r of the array to rank r, and receive block r of the result from rank r.

    Parameters
    ----------
    group : Group
        The ranks.
    array : array
        The first dimension is split into blocks: evenly, or by `lengths`.
    lengths : sequence of int
        Rows of the block for each rank, where they differ.
    received : sequence of int
        Rows of the block from each rank; by default as many as it gets.
    out : array
        Receives the blocks; None: a new array.

    Returns
    -------
    array
        `out`.

    Raises
    ------
    BadInput
        The first dimension is not a multiple of the number of ranks, or not the sum of `lengths`.
    Mismatch, PeerLost, Timeout
        As for `allreduce`.
    """
    shape = shape_of(array)
    sent = block_lengths(group, shape, lengths)
    rows = sent if received is None else rows_of(group, received, "received")
    target, result = target_of(out, array, (sum(rows), *shape[1:]))
    row = _row_bytes(array, shape)
    sizes = [tuple(row * one for one in each) for each in (sent, rows)]
    compared = shape if lengths is None and received is None else shape[1:]
    _run(plans(group), "all_to_all", dense(array), target, *sizes, *_content(array, compared))
    return returned(target, result)
