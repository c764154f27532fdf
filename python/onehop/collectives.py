"""Collective operations on arrays: reductions and scans here, those that move arrays in `onehop.array_movement`.

Arrays are NumPy arrays, or, in most functions, any other object with the buffer protocol or DLPack (such as torch
tensors on the CPU). C-contiguous arrays are not copied; of the others only NumPy arrays may have gaps. All functions
but `should_allreduce` are collective: every rank of the group calls them, in the same order, with arrays of the same
shape and type.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from onehop import _core
from onehop._core import Collective, Collectives
from onehop.arguments import instance, truth
from onehop.array_memory import (
    NUMBER_TYPES,
    element_count,
    element_type,
    memory_of,
    new_array,
    number_type,
    require_unmasked,
)
from onehop.array_movement import (
    allgather,
    alltoall,
    block_lengths,
    broadcast,
    check_root,
    dense,
    gather,
    returned,
    scatter,
    shape_of,
    target_of,
)
from onehop.collective_plans import MAX_PLANS, Plans, plans
from onehop.combine import (
    NATIVE,
    allreduce_any,
    check_type,
    operator_of,
    reduce_any,
    reduce_blocks,
    scan_any,
)
from onehop.device import sums as device_sums
from onehop.device.arrays import device_array
from onehop.error import BadInput, WrongType
from onehop.group import Group
from onehop.text import counted

__all__ = [
    "MAX_PLANS",
    "Collective",
    "Collectives",
    "Plans",
    "all_to_all",
    "allgather",
    "allreduce",
    "alltoall",
    "barrier",
    "broadcast",
    "codec_to_use",
    "extents_of",
    "gather",
    "plans",
    "reduce",
    "reduce_scatter",
    "scan",
    "scatter",
    "should_allreduce",
]

all_to_all = alltoall


@dataclass(frozen=True)
class Verdict:
    """Whether an operation is possible, and if not, why. A verdict can be used as a bool.

    Attributes
    ----------
    ok : bool
        Whether the operation is possible.
    reason : str
        Why the operation is not possible; empty if it is.
    """

    ok: bool
    reason: str = ""

    def __bool__(self) -> bool:
        return self.ok


def should_allreduce(array: Any, codec: str = "raw", op: str = "sum") -> Verdict:
    """Say whether `allreduce` accepts an array, and if not, why. Not collective; nothing is sent.

    Parameters
    ----------
    array, codec, op
        As for `allreduce`.

    Returns
    -------
    Verdict
        True or false; `.reason` says why not.
    """
    try:
        op = operator_of(op)
        on_device = device_array(array) is not None
        if not on_device and not _is_native(array, op):
            _check_any(array, op, codec)
            return Verdict(True)
        kind = number_type(array)
        if op not in NATIVE:
            return Verdict(False, f"{op} needs a NumPy array")
        if not on_device:
            memory_of(array, True, "the array")
        if kind.startswith("int") and (codec != "raw" or op == "mean"):
            return Verdict(False, f"{op} of {kind} does not exist with the codec {codec}")
        _core.encoded_bytes(codec, kind, element_count(array.shape))
    except (BadInput, AttributeError) as error:
        return Verdict(False, str(error))
    return Verdict(True)


def allreduce(
    group: Group,
    array: Any,
    op: str = "sum",
    codec: str = "raw",
    algorithm: str = "auto",
    *,
    out: Any = None,
    compress_above: int | str = 0,
) -> Any:
    """Combine the arrays of all ranks element by element, and return the result on every rank.

    Elements are combined in the order of ranks, so the result has the same bits on every rank and in every run,
    with every algorithm but "by_host", which combines the ranks of each host first and then the hosts. 16-bit numbers
    are combined in float32 and rounded once, or once in each of these two steps.

    Parameters
    ----------
    group : Group
        The ranks.
    array : array, or sequence of arrays
        Contribution of this rank: a NumPy array of bool, integers or floating-point numbers of 8 to 64 bits (also those
        of ml_dtypes) or complex numbers, or an array of another library with float64, float32, float16, bfloat16, int32
        or int64. Several arrays of one of these types are combined in one operation. 8-bit numbers are combined as
        16-bit ones. An array on a device (docs/reference/device.md) is combined there, and the call does not wait.
    op : str
        "sum", "mean" or "average" (not for integers), "min", "max" (not for complex numbers), "prod"; "logical_and",
        "logical_or", "logical_xor"; "bitwise_and", "bitwise_or", "bitwise_xor" (for integers and bool). A NaN on any
        rank gives a NaN in the result.
    codec : str
        Format on the wire: "raw", or another codec for fewer bytes and less precision (docs/reference/codecs.md).
    algorithm : str
        "one_shot", "two_shot", "by_host" (fewest bytes between hosts; where each has one rank, or a mean has hosts with
        different numbers of ranks, as "two_shot"), or "auto": the fastest for this size on this machine.
    out : array, or sequence of arrays
        Receives the result; may be `array` itself. None: a new array.
    compress_above : int or "auto"
        Arrays with fewer bytes are sent raw, whatever the codec. "auto": use the codec only where it takes less time
        than raw, by the measurements of `onehop tune` or a default, the same on every rank (docs/howto/tuning.md).

    Returns
    -------
    array, or list of arrays
        `out`.

    Raises
    ------
    Mismatch
        On every rank, if the calls of two ranks differ. Nothing was combined; the next call that is the same on all
        ranks works again.
    PeerLost, Timeout
        A rank has ended, or did not arrive in time. The group cannot be used for tensors afterwards.
    BadInput
        The type, shape or memory of an array is not supported. Nothing was sent.

    Examples
    --------
    >>> import numpy as np, onehop
    >>> group = onehop.Group.world()
    >>> onehop.allreduce(group, np.ones(3)) / group.size
    array([1., 1., 1.])
    """
    op = operator_of(op)
    if (place := device_array(array)) is not None:
        sums = device_sums.sums_of(plans(group), place.device)
        used = codec_to_use(group, codec, place.bytes, compress_above, sums.core)
        return device_sums.allreduce(group, array, op, used, out)
    if isinstance(array, (list, tuple)):
        return _allreduce_several(group, array, op, codec, algorithm, out, compress_above)
    if not _is_native(array, op):
        return _allreduce_any(group, array, op, codec, out)
    kind = number_type(array)
    shape = tuple(array.shape)
    target, result = target_of(out, array, shape)
    if target is not result or dense(array) is not array:  # one of them has gaps
        target[...] = array
        allreduce(group, target, op, codec, algorithm, out=target, compress_above=compress_above)
        return returned(target, result)
    source, target = memory_of(array, False, "the array"), memory_of(result, True, "the result")
    used = codec_to_use(group, codec, source.bytes, compress_above)
    operation = plans(group).get(
        "allreduce", element_count(array.shape), kind, op, used, algorithm, 0, tuple(array.shape)
    )
    operation.run(source, target)
    return result


def _is_native(array: Any, op: str) -> bool:
    """Whether C++ combines arrays of this kind; others must be NumPy arrays."""
    return not isinstance(array, np.ndarray) or (element_type(array) in NUMBER_TYPES and op in NATIVE)


def _allreduce_any(group: Group, array: np.ndarray, op: str, codec: str, out: Any) -> Any:
    _check_any(array, op, codec)
    target, result = target_of(out, array, array.shape)
    target[...] = array
    allreduce_any(plans(group), target.reshape(-1), op, array.shape)
    return returned(target, result)


def _check_any(array: Any, op: str, codec: str = "raw") -> None:
    if not isinstance(array, np.ndarray):
        raise WrongType(f"expected a NumPy array for {op}, found a {type(array).__name__}")
    require_unmasked(array, "the array")
    check_type(array.dtype, op)
    if codec != "raw":
        raise BadInput(f'expected the codec "raw" for {op} of {array.dtype}, found {codec!r}')


def codec_to_use(
    group: Group,
    codec: str,
    size: int,
    compress_above: int | str,
    on_cards: _core.DeviceReduce | None = None,
) -> str:
    """Return `codec`, or "raw" for an array of fewer than `compress_above` bytes, which is as for `allreduce`."""
    above: int | None
    if isinstance(compress_above, str) and compress_above == "auto":
        collectives = plans(group).collectives
        above = (collectives if on_cards is None else on_cards).compress_above(codec)
        if above is not None and on_cards is None and not plans(group).links.pays(group, collectives, codec):
            above = None
    elif isinstance(compress_above, int):
        above = compress_above
    else:
        raise BadInput(f'expected compress_above as a number of bytes or "auto", found {compress_above!r}')
    return codec if above is not None and size >= above else "raw"


def _allreduce_several(
    group: Group,
    arrays: Sequence[Any],
    op: str,
    codec: str,
    algorithm: str,
    out: Sequence[Any] | None,
    compress_above: int | str,
) -> list[Any]:
    kinds = {number_type(array) for array in arrays}
    results = [new_array(array, array.shape) for array in arrays] if out is None else list(out)
    if len(results) != len(arrays):
        raise BadInput(f"expected {counted(len(arrays), 'array')} in `out`, found {len(results)}")
    kinds |= {number_type(array) for array in results}
    if len(kinds) > 1:
        raise BadInput(
            f"expected arrays of one type, found {', '.join(sorted(kinds))}; reduce them separately"
        )
    held, parts, total = [], [], 0
    for number, (array, result) in enumerate(zip(arrays, results, strict=True)):
        if tuple(array.shape) != tuple(result.shape):
            raise BadInput(
                f"expected out[{number}] with shape {tuple(array.shape)}, found {tuple(result.shape)}"
            )
        memory = (
            memory_of(array, False, f"array {number}"),
            memory_of(result, True, f"out[{number}]"),
        )
        held.append(memory)
        parts.append((memory[0].address, memory[1].address, element_count(array.shape)))
        total += memory[0].bytes
    used = codec_to_use(group, codec, total, compress_above)
    kind = kinds.pop() if kinds else "float32"
    elements = sum(part[2] for part in parts)
    shapes = extents_of(arrays)
    plans(group).get("allreduce", elements, kind, op, used, algorithm, 0, shapes).run_parts(parts)
    return results


def extents_of(arrays: Sequence[Any]) -> tuple[int, ...]:
    """Return the extents of several arrays, separated by -1."""
    extents: list[int] = []
    for array in arrays:
        extents += [-1, *array.shape]
    return tuple(extents[1:])


def reduce_scatter(
    group: Group,
    array: Any,
    op: str = "sum",
    codec: str = "raw",
    *,
    lengths: Sequence[int] | None = None,
    out: Any = None,
    algorithm: str = "auto",
) -> Any:
    """Combine the arrays of all ranks, and return one block of the result on each rank.

    Parameters
    ----------
    group, op, codec
        As for `allreduce`.
    array : array
        The first dimension is split over the ranks, evenly or by `lengths`: rank r receives block r of the result.
    lengths : sequence of int
        Rows of the block of each rank, the same on all ranks, where they differ.
    out : array
        Receives this rank's block; None: a new array.
    algorithm : str
        "two_shot" always combines in the order of ranks; "auto" and "by_host" combine the ranks of each host first
        where several hosts take part and the array is long.

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
    op = operator_of(op)
    shape = shape_of(array)
    rows = block_lengths(group, shape, lengths)
    block = (rows[group.rank], *shape[1:])
    target, result = target_of(out, array, block)
    source = dense(array)
    if lengths is None and _is_native(array, op):
        arguments = (element_count(block), number_type(array), op, codec, 0, block, algorithm)
        memory = memory_of(source, False, "the array"), memory_of(target, True, "the result")
        plans(group).get("reduce_scatter", *arguments).run(*memory)
    else:
        _check_any(array, op, codec)
        row = element_count(shape[1:])
        target[...] = reduce_blocks(plans(group), source, [row * one for one in rows], op).reshape(block)
    return returned(target, result)


def reduce(group: Group, array: Any, root: int = 0, op: str = "sum", *, out: Any = None) -> Any:
    """Combine the arrays of all ranks element by element, and return the result on rank `root`.

    Parameters
    ----------
    group : Group
        The ranks.
    array : NumPy array
        Contribution of this rank; types as for `allreduce`.
    root : int
        The rank that gets the result.
    op : str
        As for `allreduce`, which gives the same bits.
    out : array
        On rank `root`: receives the result; None: a new array.

    Returns
    -------
    array or None
        `out` on rank `root`, None on the others.

    Raises
    ------
    BadInput, Mismatch, PeerLost, Timeout
        As for `allreduce`.
    """
    op, root = operator_of(op), check_root(instance(group, Group, "group"), root)
    _check_any(array, op)
    is_root = group.rank == root
    target, result = target_of(out, array, array.shape) if is_root else (None, None)
    found = reduce_any(plans(group), dense(array).reshape(-1), op, root, array.shape)
    if target is None or found is None:
        return None
    target[...] = found.reshape(array.shape)
    return returned(target, result)


def scan(group: Group, array: Any, op: str = "sum", *, exclusive: bool = False, out: Any = None) -> Any:
    """Return the combination of the arrays of the ranks up to this one, in the order of ranks.

    Parameters
    ----------
    group : Group
        The ranks.
    array : NumPy array
        Contribution of this rank; types as for `allreduce`.
    op : str
        As for `allreduce`.
    exclusive : bool
        Whether to leave out this rank: rank 0 gets the neutral element. Not for "min", "max" and "mean".
    out : array
        Receives the result; None: a new array.

    Returns
    -------
    array
        `out`.

    Raises
    ------
    BadInput, Mismatch, PeerLost, Timeout
        As for `allreduce`.
    """
    op, exclusive = operator_of(op), truth(exclusive, "exclusive")
    instance(group, Group, "group")
    _check_any(array, op)
    if exclusive and op in ("min", "max", "mean"):
        raise BadInput(f"expected an operator with a neutral element for an exclusive scan, found {op}")
    target, result = target_of(out, array, array.shape)
    target[...] = scan_any(plans(group), dense(array).reshape(-1), op, exclusive, array.shape).reshape(
        array.shape
    )
    return returned(target, result)


def barrier(group: Group) -> None:
    """Wait until every rank has called this. Faster than `Group.barrier`, which is for set-up."""
    plans(group).collectives.barrier()
