"""Sums of sparse tensors, such as the gradients of an embedding."""

from __future__ import annotations

import torch

from onehop.collectives import Plans
from onehop.error import Mismatch

_MAX_DIMENSIONS = 64  # torch's own limit


def _gather(plans: Plans, mine: torch.Tensor, elements: list[int]) -> torch.Tensor:
    """Concatenate the flat tensors of all ranks, of so many elements each."""
    result = torch.empty(sum(elements), dtype=mine.dtype)
    lengths = tuple(n * mine.element_size() for n in elements)
    plans.get("allgather", lengths).run_at(mine.data_ptr(), result.data_ptr())
    return result


def _description(tensor: torch.Tensor) -> torch.Tensor:
    """A row that must be the same on all ranks, apart from its first entry: the number of stored elements."""
    code = sum(ord(letter) << (8 * (place % 6)) for place, letter in enumerate(str(tensor.dtype)))
    row = [tensor._nnz(), tensor.sparse_dim(), tensor.dense_dim(), code, *tensor.shape]
    return torch.tensor(row + [-1] * (4 + _MAX_DIMENSIONS - len(row)))


def sum_sparse(plans: Plans, size: int, tensor: torch.Tensor) -> None:
    """Replace a sparse COO tensor by the sum of the tensors of all ranks, coalesced: the same bits on every rank.

    The stored elements of all ranks are gathered, so the traffic grows with their number and not with the shape. Raises
    Mismatch on every rank if the shapes, the types, or the numbers of sparse dimensions differ.
    """
    own = tensor.detach().coalesce()
    row = _description(own)
    rows = _gather(plans, row, [row.numel()] * size).reshape(size, -1)
    for rank, other in enumerate(rows):
        if not torch.equal(other[1:], rows[0][1:]):
            shapes = [tuple(n for n in one[4:].tolist() if n >= 0) for one in (rows[0], other)]
            raise Mismatch(
                f"rank 0 and rank {rank} sum sparse tensors of different shapes, types or sparse dimensions: "
                f"{shapes[0]} with {rows[0][1]} sparse dimensions, and {shapes[1]} with {other[1]}; "
                "pass the same kind of tensor on every rank"
            )
    stored = rows[:, 0].tolist()
    dims, values = own.sparse_dim(), own.values()
    width = values[0].numel() if len(values) else torch.Size(own.shape[dims:]).numel()
    indices = _gather(plans, own.indices().t().contiguous(), [n * dims for n in stored])
    gathered = _gather(plans, values.contiguous(), [n * width for n in stored])
    total = torch.sparse_coo_tensor(
        indices.reshape(sum(stored), dims).t(),
        gathered.reshape(sum(stored), *own.shape[dims:]),
        own.shape,
        check_invariants=False,
    )
    with torch.no_grad():
        tensor.copy_(total.coalesce())
