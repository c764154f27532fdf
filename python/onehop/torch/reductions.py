"""The collective operations of a process group that combine tensors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
import torch.distributed as dist

from onehop.array_memory import element_type
from onehop.collectives import Collective, Plans, extents_of
from onehop.combine import allreduce_any, operator_of, reduce_blocks
from onehop.error import BadInput, Mismatch
from onehop.torch.arguments import (
    BITWISE,
    Reduction,
    check,
    check_device,
    dry_run,
    flat,
    memory_for,
    number_type,
    real_type,
    real_view,
    reduction,
    restore,
    run_on,
    tensors_of,
)
from onehop.torch.names import Names
from onehop.torch.work import Task, Work, in_sequence


class Reductions(Names):
    """The reductions of `ProcessGroup`, which combine in the order of ranks: the same bits on every rank."""

    def _allreduce(self, like: torch.Tensor, elements: int, op: str, extents: Sequence[int]) -> Collective:
        """Return a prepared all-reduce of so many elements of the type of a tensor."""
        kind = element_type(like)
        return self._plans.get("allreduce", elements, kind, op, "raw", "auto", 0, tuple(extents))

    @dry_run
    def allreduce(self, tensors: Any, opts: Any = None) -> Work:
        """Combine tensors in place on all ranks. Several tensors of one type are combined in one operation."""
        tensors = tensors_of(tensors)
        op = reduction(opts)
        if len(tensors) == 1 and tensors[0].is_sparse:
            check_device(tensors[0])
            return self._do(self._sparse_task(tensors[0], op), opts)
        check(*tensors)
        if not tensors:
            return self._do(lambda: tensors, opts)
        types = [real_type(tensor.dtype, op) for tensor in tensors]
        dtype = number_type(types[0], op)
        if any(one != types[0] for one in types):
            found = ", ".join(sorted({str(tensor.dtype) for tensor in tensors}))
            raise BadInput(f"expected tensors of one type to reduce together, found {found}")

        def task() -> list[torch.Tensor]:
            parts = [real_view(tensor) for tensor in tensors]
            self._combine(parts, op, dtype)
            for tensor, part in zip(tensors, parts, strict=True):
                restore(tensor, part)
            return tensors

        return self._do(task, opts)

    allreduce_coalesced = allreduce

    def _sparse_task(self, tensor: torch.Tensor, op: Reduction) -> Task:
        if op != Reduction("sum"):
            raise BadInput(
                f"expected the reduction SUM of sparse tensors, found {op.name}; call to_dense() first"
            )

        def task() -> list[torch.Tensor]:
            sum_sparse(self._plans, self._size, tensor)
            return [tensor]

        return task

    @dry_run
    def reduce(self, tensors: Sequence[torch.Tensor], opts: Any) -> Work:
        """Combine a tensor in place on one rank. The tensors of the other ranks do not change."""
        (tensor,) = tensors
        check(tensor)
        op = reduction(opts)
        dtype = number_type(real_type(tensor.dtype, op), op)

        def task() -> list[torch.Tensor]:
            part = real_view(tensor)
            total = part.clone(memory_format=torch.contiguous_format)
            self._combine([total], op, dtype)
            if self._rank == opts.rootRank:
                part.copy_(total)
                restore(tensor, part)
            return [tensor]

        return self._do(task, opts)

    @dry_run
    def reduce_scatter_single(self, output: torch.Tensor, source: torch.Tensor, opts: Any = None) -> Work:
        """Combine a tensor and leave one block of the result on each rank."""
        return self._do(self._scatter_task(output, source, opts), opts)

    _reduce_scatter_base = reduce_scatter_single

    def _scatter_task(self, output: torch.Tensor, source: torch.Tensor, opts: Any) -> Task:
        check(output, source)
        op = reduction(opts)
        if output.numel() * self._size != source.numel() or output.dtype != source.dtype:
            raise BadInput(
                f"expected {self._size} times as many {output.dtype} in the source as in the output, found "
                f"{source.numel()} {source.dtype} for {output.numel()}"
            )
        dtype = number_type(real_type(source.dtype, op), op)

        def task() -> torch.Tensor:
            block = real_view(output)
            self._scatter(real_view(source), block, op, dtype)
            restore(output, block)
            return output

        return task

    @dry_run
    def reduce_scatter(self, outputs: Sequence[Any], inputs: Sequence[Any], opts: Any = None) -> Work:
        """Combine a list of blocks and leave one block of the result on each rank."""
        (output,), (blocks,) = outputs, inputs
        check(output, *blocks)
        for rank, block in enumerate(blocks):
            if block.numel() != output.numel() or block.dtype != output.dtype:
                raise BadInput(
                    f"expected blocks of {output.numel()} {output.dtype}, as the output has, "
                    f"found {block.numel()} {block.dtype} for rank {rank}"
                )
        return self.reduce_scatter_single(output, flat(blocks, output.dtype), opts)

    @dry_run
    def reduce_scatter_single_coalesced(self, outputs: Any, inputs: Any, opts: Any = None) -> Work:
        """Run several reduce-scatters in sequence."""
        opts = opts if opts is not None else dist.ReduceScatterOptions()
        tasks = [self._scatter_task(*pair, opts) for pair in zip(outputs, inputs, strict=True)]
        return self._do(in_sequence(tasks), opts)

    reduce_scatter_tensor_coalesced = reduce_scatter_single_coalesced

    def _combine(self, tensors: Sequence[torch.Tensor], op: Reduction, dtype: torch.dtype) -> None:
        if _is_combined_here(tensors[0], op, dtype):
            return self._combine_any(tensors, op)
        used = [_prepared(tensor, op) for tensor in tensors]
        elements = sum(tensor.numel() for tensor in used)
        operation = self._allreduce(used[0], elements, op.name, extents_of(used))
        if len(used) == 1:
            run_on(operation, used[0], used[0])
        else:
            operation.run_parts([(one.data_ptr(), one.data_ptr(), one.numel()) for one in used])
        for tensor, one in zip(tensors, used, strict=True):
            if tensor is not one:
                tensor.copy_(one)
        return None

    def _combine_any(self, tensors: Sequence[torch.Tensor], op: Reduction) -> None:
        alone = len(tensors) == 1 and tensors[0].is_contiguous()
        whole = tensors[0].view(-1) if alone else flat(tensors, tensors[0].dtype)
        allreduce_any(self._plans, whole.numpy(), operator_of(op.name), extents_of(tensors))
        if alone:
            return
        parts = whole.split([tensor.numel() for tensor in tensors])
        for tensor, part in zip(tensors, parts, strict=True):
            tensor.copy_(part.view(tensor.shape))

    def _scatter(self, source: torch.Tensor, output: torch.Tensor, op: Reduction, dtype: torch.dtype) -> None:
        block = memory_for(output)
        if _is_combined_here(source, op, dtype):
            lengths = [block.numel()] * self._size
            whole, result = source.contiguous().view(-1).numpy(), block.view(-1).numpy()
            reduce_blocks(self._plans, whole, lengths, operator_of(op.name), result)
        else:
            whole = _prepared(source, op)
            operation = self._plans.get("reduce_scatter", block.numel(), element_type(whole), op.name)
            run_on(operation, whole, block)
        if block is not output:
            output.copy_(block)


def _is_combined_here(tensor: torch.Tensor, op: Reduction, dtype: torch.dtype) -> bool:
    """Whether C++ has no reduction of this kind."""
    return op.name in BITWISE or tensor.dtype != dtype


def _prepared(tensor: torch.Tensor, op: Reduction) -> torch.Tensor:
    """The contribution of this rank: contiguous and scaled. The tensor itself if possible."""
    if op.factor is not None:
        tensor = tensor * op.factor
    return tensor.contiguous()


_MAX_DIMENSIONS = 64  # torch's own limit


def _gather(plans: Plans, mine: torch.Tensor, elements: list[int]) -> torch.Tensor:
    """Concatenate the flat tensors of all ranks, of so many elements each."""
    result = torch.empty(sum(elements), dtype=mine.dtype)
    lengths = tuple(n * mine.element_size() for n in elements)
    run_on(plans.get("allgather", lengths), mine, result)
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
