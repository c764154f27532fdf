"""The collective operations of a process group that move tensors unchanged."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import Any

import torch

from onehop.error import BadInput
from onehop.torch.arguments import (
    check,
    check_types,
    dense_of,
    dry_run,
    flat,
    memory_for,
    run_on,
    tensors_of,
)
from onehop.torch.names import Names
from onehop.torch.work import Task, Work, in_sequence


def _deal(result: torch.Tensor, targets: Sequence[torch.Tensor], lengths: Sequence[int]) -> None:
    """Copy consecutive parts of a flat tensor to tensors of these lengths."""
    for target, part in zip(targets, result.split(list(lengths)), strict=False):
        target.detach().copy_(part.view(target.shape))


class DataMovement(Names):
    """Broadcast, gather, scatter and all-to-all of `ProcessGroup`."""

    def _move(self, kind: str, source: torch.Tensor, result: torch.Tensor, *arguments: Any) -> None:
        run_on(self._plans.get(kind, *arguments), source, result)

    def _check_blocks(self, blocks: Sequence[torch.Tensor], own: torch.Tensor, use: str) -> None:
        """Raise BadInput unless there is a tensor of one type for each rank."""
        check(own, *blocks)
        check_types(own, *blocks)
        if len(blocks) != self._size:
            raise BadInput(f"expected {self._size} tensors to {use}, found {len(blocks)}")

    @dry_run
    def broadcast(self, tensors: Any, opts: Any = None) -> Work:
        """Copy the tensors of one rank to all ranks."""
        tensors = tensors_of(tensors)
        root = opts if isinstance(opts, int) else getattr(opts, "rootRank", 0)
        check(*tensors)

        def task() -> list[torch.Tensor]:
            for tensor in tensors:
                plain = tensor.detach()
                dense = dense_of(plain)
                self._move("broadcast", dense, dense, dense.nbytes, root)
                if dense.data_ptr() != plain.data_ptr():
                    plain.copy_(dense)
            return tensors

        return self._do(task, opts)

    @dry_run
    def all_gather_single(self, output: torch.Tensor, source: torch.Tensor, opts: Any = None) -> Work:
        """Concatenate the tensors of all ranks."""
        return self._do(self._gather_single_task(output, source), opts)

    _allgather_base = all_gather_single

    def _gather_single_task(self, output: torch.Tensor, source: torch.Tensor) -> Task:
        check(output, source)
        check_types(output, source)
        if output.nbytes != self._size * source.nbytes:
            raise BadInput(
                f"expected an output {self._size} times as long as the source, "
                f"found {output.nbytes} and {source.nbytes} bytes"
            )

        def task() -> torch.Tensor:
            target, dense = output.detach(), dense_of(source)
            result = memory_for(target)
            self._move("allgather", dense, result, (dense.nbytes,) * self._size)
            if result is not target:
                target.copy_(result)
            return output

        return task

    @dry_run
    def allgather(self, outputs: Sequence[Any], inputs: Sequence[Any], opts: Any = None) -> Work:
        """Collect the tensors of all ranks in a list; their shapes may differ."""
        (targets,), (source,) = outputs, inputs
        return self._do(self._gather_task(targets, source), opts)

    def _gather_task(self, targets: Sequence[torch.Tensor], source: torch.Tensor) -> Task:
        self._check_blocks(targets, source, "gather into")
        if targets[self._rank].numel() != source.numel():
            raise BadInput(
                f"expected a tensor of {source.numel()} elements to gather into for this rank, number "
                f"{self._rank}, found one of {targets[self._rank].numel()}"
            )

        def task() -> list[torch.Tensor]:
            lengths = [target.numel() for target in targets]
            result = torch.empty(sum(lengths), dtype=source.dtype)
            size = source.element_size()
            dense = dense_of(source)
            self._move("allgather", dense, result, tuple(length * size for length in lengths))
            _deal(result, targets, lengths)
            return list(targets)

        return task

    @dry_run
    def allgather_coalesced(self, outputs: Sequence[Any], inputs: Sequence[Any], opts: Any = None) -> Work:
        """Run several all-gathers in sequence: outputs[r][i] is tensor i of rank r."""
        tasks = [self._gather_task([row[i] for row in outputs], one) for i, one in enumerate(inputs)]
        return self._do(in_sequence(tasks), opts)

    @dry_run
    def all_gather_single_coalesced(self, outputs: Any, inputs: Any, opts: Any = None) -> Work:
        """Run several all-gathers into single tensors in sequence."""
        tasks = [self._gather_single_task(*pair) for pair in zip(outputs, inputs, strict=True)]
        return self._do(in_sequence(tasks), opts)

    allgather_into_tensor_coalesced = all_gather_single_coalesced

    def _exchange(
        self, source: torch.Tensor, result: torch.Tensor, sent: Sequence[int], received: Sequence[int]
    ) -> None:
        """Run an all-to-all of flat tensors. `sent` and `received` are the numbers of elements per rank."""
        size = source.element_size()
        lengths = (tuple(n * size for n in sent), tuple(n * size for n in received))
        self._move("all_to_all", source, result, *lengths)

    def _rows(self, tensor: torch.Tensor, splits: Sequence[int] | None, what: str) -> list[int]:
        """Return the number of elements for each rank."""
        rows = tensor.shape[0] if tensor.dim() else 0
        if not splits:
            if rows % self._size:
                raise BadInput(
                    f"expected a number of rows of the {what} that {self._size} ranks divide, found {rows}"
                )
            return [tensor.numel() // self._size] * self._size
        if len(splits) != self._size or sum(splits) != rows:
            raise BadInput(
                f"expected {self._size} split sizes that sum to the {rows} rows of the {what}, found {splits}"
            )
        row = tensor.numel() // rows if rows else 0
        return [split * row for split in splits]

    @dry_run
    def all_to_all_single(
        self,
        output: torch.Tensor,
        source: torch.Tensor,
        output_splits: Sequence[int] | None = None,
        input_splits: Sequence[int] | None = None,
        opts: Any = None,
    ) -> Work:
        """Exchange blocks of rows between all ranks."""
        check(output, source)
        check_types(output, source)
        sent = self._rows(source, input_splits, "input")
        received = self._rows(output, output_splits, "output")

        def task() -> torch.Tensor:
            target = output.detach()
            result = memory_for(target)
            self._exchange(dense_of(source), result, sent, received)
            if result is not target:
                target.copy_(result)
            return output

        return self._do(task, opts)

    alltoall_base = all_to_all_single

    @dry_run
    def alltoall(
        self, outputs: Sequence[torch.Tensor], inputs: Sequence[torch.Tensor], opts: Any = None
    ) -> Work:
        """Exchange a list of tensors, one for each rank."""
        check(*outputs, *inputs)
        check_types(*outputs, *inputs)
        if not len(outputs) == len(inputs) == self._size:
            raise BadInput(
                f"expected {self._size} tensors to send and {self._size} to receive, found {len(inputs)} and "
                f"{len(outputs)}"
            )

        sent, received = ([tensor.numel() for tensor in tensors] for tensors in (inputs, outputs))
        return self._do(lambda: self._deal_out(outputs, inputs, sent, received), opts)

    def _deal_out(
        self,
        outputs: Sequence[torch.Tensor],
        inputs: Sequence[torch.Tensor],
        sent: Sequence[int],
        received: Sequence[int],
    ) -> list[torch.Tensor]:
        """Exchange consecutive parts of some tensors, of so many elements for each rank and from each."""
        dtype = (*outputs, *inputs)[0].dtype
        source = dense_of(inputs[0]) if len(inputs) == 1 else flat(inputs, dtype)
        result = torch.empty(sum(received), dtype=dtype)
        self._exchange(source, result, sent, received)
        _deal(result, outputs, [output.numel() for output in outputs])
        return list(outputs)

    @dry_run
    def gather(self, outputs: Sequence[Any], inputs: Sequence[torch.Tensor], opts: Any) -> Work:
        """Collect the tensors of all ranks on one rank."""
        (source,) = inputs
        root = opts.rootRank
        targets = list(outputs[0]) if self._rank == root else []
        check(source)
        if self._rank == root:
            self._check_blocks(targets, source, "gather into")

        sent = [source.numel() if rank == root else 0 for rank in range(self._size)]
        received = [target.numel() for target in targets] or [0] * self._size
        return self._do(lambda: self._deal_out(targets, inputs, sent, received), opts)

    @dry_run
    def scatter(self, outputs: Sequence[torch.Tensor], inputs: Sequence[Any], opts: Any) -> Work:
        """Distribute a list of tensors of one rank, one to each rank."""
        (output,) = outputs
        root = opts.rootRank
        blocks = list(inputs[0]) if self._rank == root else []
        check(output)
        if self._rank == root:
            self._check_blocks(blocks, output, "scatter")

        sent = [block.numel() for block in blocks] or [0] * self._size
        received = [output.numel() if rank == root else 0 for rank in range(self._size)]
        return self._do(lambda: self._deal_out(outputs, blocks, sent, received), opts)

    def barrier(self, opts: Any = None) -> Work:
        """Wait until all ranks have called it."""
        limit = getattr(opts, "timeout", timedelta(0))
        return self._do(self._limited(self._plans.collectives.barrier, limit), opts)
