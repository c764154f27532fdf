"""Collective operations on tensors: all-reduce, reduce-scatter, all-gather, broadcast, all-to-all, barrier.

Arrays are NumPy arrays, or any other object with the buffer protocol or DLPack (such as torch tensors on the CPU). They
must be C-contiguous and are not copied. All functions but `should_allreduce` are collective: every rank of the group
calls them, in the same order, with arrays of the same shape and type.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any
from zlib import crc32

import numpy as np

from onehop import _core
from onehop._core import Collective, Collectives
from onehop.arguments import instance, quoted
from onehop.array_memory import NUMBER_TYPES, element_count, element_type, memory_of, new_array, number_type
from onehop.error import BadInput, WrongType
from onehop.group import Group
from onehop.links import Links
from onehop.text import counted

__all__ = [
    "Collective",
    "Collectives",
    "all_to_all",
    "allgather",
    "allreduce",
    "barrier",
    "broadcast",
    "codec_to_use",
    "extents_of",
    "reduce_scatter",
    "should_allreduce",
]

MAX_PLANS = 512


class Plans:
    """A cache of prepared collective operations of a group, which drops the least recently used. Collective."""

    def __init__(self, group: Group) -> None:
        self.collectives = Collectives(group)
        self._operations: OrderedDict[tuple[Any, ...], Collective] = OrderedDict()
        self.links = Links()

    def get(self, kind: str, *arguments: Any) -> Collective:
        """Return the operation `Collectives.kind(*arguments)` from the cache, or prepare it."""
        key = (kind, *arguments)
        try:
            operation = self._operations.get(key)
        except TypeError:  # a list, for example, where a text belongs: the operation says so
            return getattr(self.collectives, kind)(*arguments)
        if operation is None:
            operation = getattr(self.collectives, kind)(*arguments)
            self._operations[key] = operation
            if len(self._operations) > MAX_PLANS:
                self._operations.popitem(last=False)
        else:
            self._operations.move_to_end(key)
        return operation

    def __len__(self) -> int:
        return len(self._operations)


def plans(group: Group) -> Plans:
    """Return the plan cache of a group. The first call makes it, which is collective."""
    found: Plans | None = instance(group, Group, "group").__dict__.get("_plans")
    if found is None:
        found = Plans(group)
        group.__dict__["_plans"] = found
    return found


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
        kind = number_type(array)
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
        Contribution of this rank: float64, float32, float16, bfloat16, int32 or int64. Several arrays of one type are
        combined in one operation.
    op : str
        "sum", "mean" (not for integers), "min", "max" or "prod". A NaN on any rank gives a NaN in the result.
    codec : str
        Format on the wire: "raw", or another codec for fewer bytes and less precision (docs/reference/codecs.md).
    algorithm : str
        "one_shot", "two_shot", "by_host" (fewest bytes between hosts; where hosts have different numbers of ranks, or
        one each, as "two_shot"), or "auto": the fastest for this size on this machine.
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
    if isinstance(array, (list, tuple)):
        return _allreduce_several(group, array, op, codec, algorithm, out, compress_above)
    kind = number_type(array)
    result = new_array(array, array.shape) if out is None else out
    if element_type(result) != kind or np.shape(result) != tuple(array.shape):
        raise BadInput(
            f"expected `out` with shape {tuple(array.shape)} and type {kind}, "
            f"found {tuple(np.shape(result))} and {element_type(result)}"
        )
    source, target = memory_of(array, False, "the array"), memory_of(result, True, "the result")
    used = codec_to_use(group, codec, source.bytes, compress_above)
    operation = plans(group).get(
        "allreduce", element_count(array.shape), kind, op, used, algorithm, 0, tuple(array.shape)
    )
    operation.run(source, target)
    return result


def codec_to_use(group: Group, codec: str, size: int, compress_above: int | str) -> str:
    """Return `codec`, or "raw" for an array of fewer than `compress_above` bytes, which is as for `allreduce`."""
    above: int | None
    if isinstance(compress_above, str) and compress_above == "auto":
        above = plans(group).collectives.compress_above(codec)
        if above is not None and not plans(group).links.pays(group, plans(group).collectives, codec):
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
    out: Any = None,
    algorithm: str = "auto",
) -> Any:
    """Combine the arrays of all ranks, and return one block of the result on each rank.

    Parameters
    ----------
    group, op, codec
        As for `allreduce`.
    array : array
        The first dimension is split evenly over the ranks: rank r receives block r of the result.
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
        The first dimension is not a multiple of the number of ranks.
    Mismatch, PeerLost, Timeout
        As for `allreduce`.
    """
    shape = _block_shape(group, array)
    result = new_array(array, shape) if out is None else out
    kind = number_type(array)
    arguments = (element_count(shape), kind, op, codec, 0, shape, algorithm)
    source, target = memory_of(array, False, "the array"), memory_of(result, True, "the result")
    plans(group).get("reduce_scatter", *arguments).run(source, target)
    return result


def _block_shape(group: Group, array: Any) -> tuple[int, ...]:
    shape = _shape_of(array)
    if not shape or shape[0] % instance(group, Group, "group").size:
        raise BadInput(
            f"expected an array whose first dimension is a multiple of {counted(group.size, 'rank')}, "
            f"found shape {shape}"
        )
    return (shape[0] // group.size, *shape[1:])


def _shape_of(array: Any) -> tuple[int, ...]:
    if not hasattr(array, "shape"):
        raise WrongType(f"expected an array, found {quoted(array)}; numpy.asarray makes one")
    return tuple(array.shape)


def _content(array: Any) -> tuple[str, tuple[int, ...]]:
    """Return the type and shape of an array that is only moved, to be compared between the ranks.

    A type that no reduction supports is "bytes", with a checksum of its name as part of the shape.
    """
    name, shape = element_type(array), tuple(getattr(array, "shape", ()))
    return (name, shape) if name in NUMBER_TYPES else ("bytes", (*shape, -1, crc32(name.encode())))


def allgather(group: Group, array: Any, *, out: Any = None) -> Any:
    """Gather the arrays of all ranks on every rank.

    Parameters
    ----------
    group : Group
        The ranks.
    array : array
        Contribution of this rank, of any type, with the same shape on every rank.
    out : array
        Receives the arrays, with shape (ranks, *shape); None: a new array.

    Returns
    -------
    array
        `out`; out[r] is the array of rank r.

    Raises
    ------
    BadInput, Mismatch, PeerLost, Timeout
        As for `allreduce`.
    """
    shape = (instance(group, Group, "group").size, *_shape_of(array))
    result = new_array(array, shape) if out is None else out
    source, target = memory_of(array, False, "the array"), memory_of(result, True, "the result")
    plans(group).get("allgather", (source.bytes,) * group.size, *_content(array)).run(source, target)
    return result


def broadcast(group: Group, array: Any, root: int = 0) -> Any:
    """Overwrite the arrays of all ranks, of any type, with the array of rank `root`, and return `array`."""
    memory = memory_of(array, True, "the array")
    plans(group).get("broadcast", memory.bytes, root, *_content(array)).run(memory, memory)
    return array


def all_to_all(group: Group, array: Any, *, out: Any = None) -> Any:
    """Send block r of the array to rank r, and receive block r of the result from rank r.

    Parameters
    ----------
    group : Group
        The ranks.
    array : array
        The first dimension is split evenly over the ranks into blocks.
    out : array
        Receives the blocks, with the same shape; None: a new array.

    Returns
    -------
    array
        `out`.

    Raises
    ------
    BadInput
        The first dimension is not a multiple of the number of ranks.
    Mismatch, PeerLost, Timeout
        As for `allreduce`.
    """
    _block_shape(group, array)
    result = new_array(array, array.shape) if out is None else out
    source, target = memory_of(array, False, "the array"), memory_of(result, True, "the result")
    lengths = (source.bytes // group.size,) * group.size
    plans(group).get("all_to_all", lengths, lengths, *_content(array)).run(source, target)
    return result


def barrier(group: Group) -> None:
    """Wait until every rank has called this. Faster than `Group.barrier`, which is for set-up."""
    plans(group).collectives.barrier()
