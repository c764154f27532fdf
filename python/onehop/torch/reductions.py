"""The collective operations of a process group that combine tensors."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
import torch.distributed as dist

from onehop.collectives import Plans
from onehop.error import BadInput
from onehop.torch.arguments import bytes_of, check, flat, number_type, op_name, tensors_of, type_name
from onehop.torch.work_queue import Task, Work, in_sequence

__all__ = ["Reductions"]

_BITWISE = {"and": torch.bitwise_and, "or": torch.bitwise_or, "xor": torch.bitwise_xor}


class Reductions:
    """The reductions of `ProcessGroup`, which combine in the order of ranks: the same bits on every rank."""

    _rank: int
    _size: int
    _plans: Plans
    _do: Callable[..., Work]

    def allreduce(self, tensors: Any, opts: Any = None) -> Work:
        """Combine tensors in place on all ranks. Several tensors of one type are combined in one operation."""
        tensors = tensors_of(tensors)
        check(*tensors)
        op = op_name(opts)
        if not tensors:
            return self._do(lambda: tensors, opts)
        dtype = number_type(tensors[0].dtype, op)
        if any(tensor.dtype != tensors[0].dtype for tensor in tensors):
            found = ", ".join(sorted({str(tensor.dtype) for tensor in tensors}))
            raise BadInput(f"expected tensors of one type to reduce together, found {found}")

        def task() -> list[torch.Tensor]:
            self._combine([tensor.detach() for tensor in tensors], op, dtype)
            return tensors

        return self._do(task, opts)

    allreduce_coalesced = allreduce

    def reduce(self, tensors: Sequence[torch.Tensor], opts: Any) -> Work:
        """Combine a tensor in place on one rank. The tensors of the other ranks do not change."""
        (tensor,) = tensors
        check(tensor)
        op = op_name(opts)
        dtype = number_type(tensor.dtype, op)

        def task() -> list[torch.Tensor]:
            total = tensor.detach().clone(memory_format=torch.contiguous_format)
            self._combine([total], op, dtype)
            if self._rank == opts.rootRank:
                tensor.detach().copy_(total)
            return [tensor]

        return self._do(task, opts)

    def reduce_scatter_single(self, output: torch.Tensor, source: torch.Tensor, opts: Any) -> Work:
        """Combine a tensor and leave one block of the result on each rank."""
        return self._do(self._scatter_task(output, source, opts), opts)

    _reduce_scatter_base = reduce_scatter_single

    def _scatter_task(self, output: torch.Tensor, source: torch.Tensor, opts: Any) -> Task:
        check(output, source)
        op = op_name(opts)
        dtype = number_type(source.dtype, op)
        if output.numel() * self._size != source.numel() or output.dtype != source.dtype:
            raise BadInput(
                f"expected {self._size} times as many {output.dtype} in the source as in the output, found "
                f"{source.numel()} {source.dtype} for {output.numel()}"
            )

        def task() -> torch.Tensor:
            self._scatter(source.detach(), output.detach(), op, dtype)
            return output

        return task

    def reduce_scatter(self, outputs: Sequence[Any], inputs: Sequence[Any], opts: Any) -> Work:
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

    def reduce_scatter_single_coalesced(self, outputs: Any, inputs: Any, opts: Any = None) -> Work:
        """Run several reduce-scatters in sequence."""
        opts = opts if opts is not None else dist.ReduceScatterOptions()
        tasks = [self._scatter_task(*pair, opts) for pair in zip(outputs, inputs, strict=True)]
        return self._do(in_sequence(tasks), opts)

    reduce_scatter_tensor_coalesced = reduce_scatter_single_coalesced

    def _combine(self, tensors: Sequence[torch.Tensor], op: str, dtype: torch.dtype) -> None:
        used = [tensor.contiguous().to(dtype) for tensor in tensors]
        if op in _BITWISE:
            for tensor in used:
                tensor.copy_(self._bitwise(tensor, op))
        else:
            elements = sum(tensor.numel() for tensor in used)
            operation = self._plans.get("allreduce", elements, type_name(used[0]), op)
            if len(used) == 1:
                operation.run_at(used[0].data_ptr(), used[0].data_ptr())
            else:
                operation.run_parts([(one.data_ptr(), one.data_ptr(), one.numel()) for one in used])
        for tensor, one in zip(tensors, used, strict=True):
            if tensor is not one:
                tensor.copy_(one)

    def _scatter(self, source: torch.Tensor, output: torch.Tensor, op: str, dtype: torch.dtype) -> None:
        whole = source.contiguous().to(dtype)
        if op in _BITWISE:
            combined = self._bitwise(whole, op).reshape(self._size, -1)
            output.copy_(combined[self._rank].reshape(output.shape))
            return
        direct = output.is_contiguous() and output.dtype == dtype
        block = output if direct else torch.empty(output.shape, dtype=dtype)
        operation = self._plans.get("reduce_scatter", output.numel(), type_name(whole), op)
        operation.run_at(whole.data_ptr(), block.data_ptr())
        if block is not output:
            output.copy_(block)

    def _bitwise(self, tensor: torch.Tensor, op: str) -> torch.Tensor:
        """Gather the tensors of all ranks and combine them locally, as bitwise reductions are rare and small."""
        gathered = torch.empty((self._size, *tensor.shape), dtype=tensor.dtype)
        gather = self._plans.get("allgather", (bytes_of(tensor),) * self._size)
        gather.run_at(tensor.data_ptr(), gathered.data_ptr())
        total = gathered[0]
        for one in gathered[1:]:
            total = _BITWISE[op](total, one)
        return total
