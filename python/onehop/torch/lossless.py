"""Reductions of tensors that are sent compressed without loss, over the process group that the program has."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import torch
import torch.distributed as dist

from onehop import _core
from onehop.array_memory import element_type
from onehop.error import BadInput
from onehop.torch.agreement import compare_words, gather_rows

#: What `codec=` is called for tensors that are sent compressed without loss. It is no codec of onehop's own channels.
LOSSLESS = "lossless"
_TYPES = (torch.float32, torch.bfloat16)
_OPS = ("sum", "mean")
_NOTHING = torch.empty(0, dtype=torch.uint8)


def check_tensor(tensor: torch.Tensor) -> None:
    """Raise BadInput if a tensor cannot be compressed without loss."""
    if tensor.dtype not in _TYPES or tensor.layout != torch.strided or tensor.device.type != "cpu":
        raise BadInput(
            "expected a dense tensor of float32 or bfloat16 in CPU memory to compress without loss, found "
            f"{tensor.dtype} on {tensor.device} with the layout {tensor.layout}; choose another codec"
        )


def allreduce(tensor: torch.Tensor, group: Any, op: str = "sum") -> tuple[int, int]:
    """Combine a tensor over the ranks of a process group of any backend, in place. Collective.

    The result has the bits of an all-reduce of the backend onehop: the contributions are added in float32 in the order
    of the ranks, and the sum is rounded once to the type of the tensor.

    Parameters
    ----------
    tensor : Tensor
        The contribution of this rank, which becomes the result.
    group : ProcessGroup or None
        The ranks; None: the default group.
    op : str
        "sum" or "mean".

    Returns
    -------
    int, int
        Bytes of the parts of this rank's contribution that other ranks add, in memory and on the wire.

    Raises
    ------
    BadInput
        The tensor cannot be compressed without loss. Nothing was sent.
    Mismatch
        On every rank: the arguments of two ranks differ.
    """
    check_tensor(tensor)
    size, rank = dist.get_world_size(group), dist.get_rank(group)
    flat = tensor.detach().reshape(-1)  # the memory of the tensor if it is contiguous, else a copy
    each = -(-flat.numel() // size)
    bounds = [min(r * each, flat.numel()) for r in range(size + 1)]
    parts = [flat[first:last] for first, last in pairwise(bounds)]
    call = [flat.numel(), _TYPES.index(tensor.dtype), _OPS.index(op)]
    wires = [_encode(part) if r != rank else _NOTHING for r, part in enumerate(parts)]
    received = _exchange(wires, group, rank, call)
    parts[rank].copy_(_add(received, parts[rank], rank, size if op == "mean" else 1))
    total = _encode(parts[rank])
    back = _exchange([total if r != rank else _NOTHING for r in range(size)], group, rank, call)
    for r, (part, wire) in enumerate(zip(parts, back, strict=True)):
        if r != rank:
            _decode(wire, part)
    if flat.data_ptr() != tensor.data_ptr():
        tensor.detach().copy_(flat.view(tensor.shape))
    return flat.nbytes - parts[rank].nbytes, sum(wire.numel() for wire in wires)


def reduce_scatter(
    output: torch.Tensor, rows: torch.Tensor, group: Any, divisor: float = 1
) -> tuple[int, int]:
    """Add the rows that the ranks have for this rank, and store the sum in `output`. Collective.

    Parameters
    ----------
    output : Tensor
        Receives the sum.
    rows : Tensor
        A row for each rank, of the length of `output`.
    group : ProcessGroup or None
        The ranks.
    divisor : float
        What the sums are divided by.

    Returns
    -------
    int, int
        Bytes of the rows for other ranks, in memory and on the wire.
    """
    check_tensor(rows)
    size, rank = dist.get_world_size(group), dist.get_rank(group)
    rows = rows.contiguous()
    wires = [_encode(row) if r != rank else _NOTHING for r, row in enumerate(rows)]
    received = _exchange(wires, group, rank, [output.numel(), _TYPES.index(rows.dtype)])
    total = _add(received, rows[rank], rank, divisor)
    output.detach().copy_(total.view(output.shape))
    return (size - 1) * rows[rank].nbytes, sum(wire.numel() for wire in wires)


def _encode(numbers: torch.Tensor) -> torch.Tensor:
    kind = element_type(numbers)
    wire = torch.empty(_core.lossless_most_bytes(kind, numbers.numel()), dtype=torch.uint8)
    return wire[: _core.lossless_encode(kind, numbers, wire)]


def _decode(wire: torch.Tensor, numbers: torch.Tensor) -> None:
    _core.lossless_decode(element_type(numbers), wire, numbers)


def _add(wires: Sequence[torch.Tensor], own: torch.Tensor, rank: int, divisor: float) -> torch.Tensor:
    """The sum of all ranks' numbers in float32, in the order of the ranks, of the type of this rank's `own`."""
    total, numbers = torch.empty(0), torch.empty_like(own)
    for r, wire in enumerate(wires):
        if r != rank:
            _decode(wire, numbers)
        one = own if r == rank else numbers
        total = one.to(torch.float32, copy=True) if r == 0 else total.add_(one)
    if divisor != 1:
        total.div_(divisor)
    return total.to(own.dtype)


def _exchange(
    wires: Sequence[torch.Tensor], group: Any, rank: int, call: Sequence[int]
) -> list[torch.Tensor]:
    """Send each rank its bytes, and return those that each rank has for this one. `call`: the same on every rank."""
    mine = torch.tensor([*call, *(wire.numel() for wire in wires)])
    rows = gather_rows(mine, group)
    compare_words([_told(row[: len(call)].tolist()) for row in rows], "reduces")
    lengths = [int(row[len(call) + rank]) for row in rows]
    received = torch.empty(sum(lengths), dtype=torch.uint8)
    own = [wire.numel() for wire in wires]
    dist.all_to_all_single(received, torch.cat(list(wires)), lengths, own, group=group)
    return list(received.split(lengths))


def _told(call: Sequence[int]) -> str:
    words = f"{call[0]} {str(_TYPES[call[1]]).removeprefix('torch.')}"
    return words if len(call) == 2 else f"{words} with {_OPS[call[2]]}"
