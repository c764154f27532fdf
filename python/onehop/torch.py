"""onehop for PyTorch: a `torch.distributed` backend, and a hook that compresses the gradients of any backend.

Importing this module (or installing onehop: torch then knows by itself) registers the backend "onehop" for tensors on
the processor:

    torch.distributed.init_process_group("onehop")

Started by torchrun or whatever else torch knows; ranks meet through torch's store. One thread per process group runs
what is asynchronous, in the order in which it was called.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import Any

import torch
import torch.distributed as dist

from onehop.error import BadInput, Error
from onehop.gradients import CompressionState, compressed_allreduce
from onehop.group import Group
from onehop.point_to_point import PointToPoint
from onehop.tensors import Plans, element_type
from onehop.torch_jobs import Thread, Work
from onehop_torch import register

__all__ = [
    "CompressionState",
    "ProcessGroup",
    "compressed_allreduce",
    "create_process_group",
    "group_from_store",
]

_REDUCIBLE = {
    torch.float16,
    torch.bfloat16,
    torch.float32,
    torch.float64,
    torch.int32,
    torch.int64,
}
_OPS = {
    dist.ReduceOp.SUM: "sum",
    dist.ReduceOp.AVG: "mean",
    dist.ReduceOp.PRODUCT: "prod",
    dist.ReduceOp.MIN: "min",
    dist.ReduceOp.MAX: "max",
}


def group_from_store(store: Any, rank: int, size: int) -> Group:
    """A group of ranks that meet through a store of torch.

    Parameters
    ----------
    store : torch.distributed.Store
        Used by these ranks for this group alone (a `PrefixStore`, say).
    rank, size : int
        Who this is, and of how many.
    """
    rounds = iter(range(1 << 62))

    def allgather(mine: bytes) -> list[bytes]:
        number = next(rounds)
        store.set(f"onehop/{number}/{rank}", mine or b"\0")
        empty = b"\0"
        everybody = [bytes(store.get(f"onehop/{number}/{other}")) for other in range(size)]
        if number >= 2:  # everybody who is here has read what was there two rounds ago
            store.delete_key(f"onehop/{number - 2}/{rank}")
        return [b"" if other == empty else other for other in everybody]

    return Group.from_allgather(rank, size, allgather)


def _flat(tensors: Sequence[torch.Tensor]) -> torch.Tensor:
    return torch.cat([tensor.reshape(-1) for tensor in tensors]) if tensors else torch.empty(0)


def _bytes(tensor: torch.Tensor) -> int:
    return tensor.numel() * tensor.element_size()


def _check(*tensors: torch.Tensor) -> None:
    for tensor in tensors:
        if tensor.device.type != "cpu":
            raise BadInput(
                f"the backend onehop moves tensors on the processor, found one on {tensor.device}; "
                'move it there first, or use init_process_group("cpu:onehop,cuda:nccl")'
            )
        if tensor.is_sparse:
            raise BadInput(
                "the backend onehop moves dense tensors, found a sparse one; call to_dense() first"
            )


def _op_name(op: Any) -> str:
    found = next((name for known, name in _OPS.items() if op == known), None)
    if found is None:
        raise BadInput(f"expected the reduction SUM, AVG, PRODUCT, MIN or MAX, found {op}")
    return found


def _number_type(tensor: torch.Tensor) -> str:
    if tensor.dtype not in _REDUCIBLE:
        known = ", ".join(sorted(str(dtype) for dtype in _REDUCIBLE))
        raise BadInput(f"expected a tensor of one of {known} to reduce, found {tensor.dtype}")
    return element_type(tensor)


class ProcessGroup(dist.ProcessGroup):
    """The ranks of a `torch.distributed` group.

    All operations of torch are there for dense tensors on the processor; those of one group must be called in the same
    order on all its ranks. Reductions are made in the order of ranks and have the same bits everywhere.

    Attributes
    ----------
    group : Group
        onehop's own.
    """

    def __init__(self, store: Any, rank: int, size: int, timeout: timedelta) -> None:
        super().__init__(rank, size)
        self._rank, self._size = rank, size
        self.group = group_from_store(store, rank, size)
        self.group.timeout = timeout.total_seconds()
        self._plans = Plans(self.group)
        self._messages = PointToPoint(self.group)
        self._collective = Thread("onehop collectives")
        self._paths: dict[tuple[int, bool], Thread] = {}

    # What torch asks a group.

    def getBackendName(self) -> str:  # noqa: N802
        """The name of the backend."""
        return "onehop"

    name = getBackendName

    def rank(self) -> int:
        """Who this is."""
        return self._rank

    getRank = rank  # noqa: N815

    def size(self) -> int:
        """How many there are."""
        return self._size

    getSize = size  # noqa: N815

    def shutdown(self) -> None:
        """End the threads."""
        self._collective.close()
        for path in self._paths.values():
            path.close()

    def abort(self) -> None:
        """End the threads."""
        self.shutdown()

    # Reductions.

    def _do(self, job: Callable[[], Any], opts: Any = None) -> Work:
        return self._collective.submit(job, not getattr(opts, "asyncOp", True))

    def _reduce(self, tensors: Sequence[torch.Tensor], op: str) -> None:
        dense = [tensor if tensor.is_contiguous() else tensor.contiguous() for tensor in tensors]
        kind = _number_type(dense[0])
        if any(tensor.dtype != dense[0].dtype for tensor in dense):
            raise BadInput("expected tensors of one type to reduce together")
        elements = sum(tensor.numel() for tensor in dense)
        operation = self._plans.get("allreduce", elements, kind, op)
        if len(dense) == 1:
            operation.run_at(dense[0].data_ptr(), dense[0].data_ptr())
        else:
            operation.run_parts([(tensor.data_ptr(), tensor.data_ptr(), tensor.numel()) for tensor in dense])
        for tensor, used in zip(tensors, dense, strict=True):
            if tensor is not used:
                tensor.copy_(used)

    def allreduce(self, tensors: Any, opts: Any = None) -> Work:
        """Combine in place, for everybody."""
        tensors = [tensors] if isinstance(tensors, torch.Tensor) else list(tensors)
        op = (
            _op_name(opts.reduceOp)
            if isinstance(opts, dist.AllreduceOptions)
            else _op_name(opts or dist.ReduceOp.SUM)
        )
        _check(*tensors)

        def job() -> list[torch.Tensor]:
            self._reduce(tensors, op)
            return tensors

        return self._do(job, opts)

    allreduce_coalesced = allreduce

    def reduce(self, tensors: Sequence[torch.Tensor], opts: Any) -> Work:
        """Combine for one rank; the others' tensors stay as they are."""
        (tensor,) = tensors
        _check(tensor)
        op = _op_name(opts.reduceOp)

        def job() -> list[torch.Tensor]:
            total = tensor.clone(memory_format=torch.contiguous_format)
            self._reduce([total], op)
            if self._rank == opts.rootRank:
                tensor.copy_(total)
            return [tensor]

        return self._do(job, opts)

    def reduce_scatter_single(self, output: torch.Tensor, source: torch.Tensor, opts: Any) -> Work:
        """Combine, and give each rank one block."""
        _check(output, source)
        op, kind = _op_name(opts.reduceOp), _number_type(source)
        if output.numel() * self._size != source.numel() or output.dtype != source.dtype:
            raise BadInput(
                f"expected {self._size} times as many {output.dtype} in the source as in the output, found "
                f"{source.numel()} {source.dtype} for {output.numel()}"
            )

        def job() -> torch.Tensor:
            whole = source.contiguous()
            block = output if output.is_contiguous() else torch.empty(output.shape, dtype=output.dtype)
            operation = self._plans.get("reduce_scatter", output.numel(), kind, op)
            operation.run_at(whole.data_ptr(), block.data_ptr())
            if block is not output:
                output.copy_(block)
            return output

        return self._do(job, opts)

    _reduce_scatter_base = reduce_scatter_single

    def reduce_scatter(self, outputs: Sequence[Any], inputs: Sequence[Any], opts: Any) -> Work:
        """The same with a list of blocks."""
        (output,), (blocks,) = outputs, inputs
        return self.reduce_scatter_single(output, _flat(blocks), opts)

    def reduce_scatter_single_coalesced(self, outputs: Any, inputs: Any, opts: Any = None) -> Work:
        """Several one after the other."""
        opts = opts if opts is not None else dist.ReduceScatterOptions()
        works = [self.reduce_scatter_single(*pair, opts) for pair in zip(outputs, inputs, strict=True)]
        return works[-1]

    reduce_scatter_tensor_coalesced = reduce_scatter_single_coalesced

    # Movements.

    def _move(self, kind: str, source: torch.Tensor, result: torch.Tensor, *what: Any) -> None:
        self._plans.get(kind, *what).run_at(source.data_ptr(), result.data_ptr())

    def broadcast(self, tensors: Any, opts: Any = None) -> Work:
        """One rank's tensors for everybody."""
        tensors = [tensors] if isinstance(tensors, torch.Tensor) else list(tensors)
        root = opts if isinstance(opts, int) else getattr(opts, "rootRank", 0)
        _check(*tensors)

        def job() -> list[torch.Tensor]:
            for tensor in tensors:
                dense = tensor.contiguous()
                self._move("broadcast", dense, dense, _bytes(dense), root)
                if dense is not tensor:
                    tensor.copy_(dense)
            return tensors

        return self._do(job, opts)

    def all_gather_single(self, output: torch.Tensor, source: torch.Tensor, opts: Any = None) -> Work:
        """Everybody's tensors behind each other."""
        _check(output, source)
        if _bytes(output) != self._size * _bytes(source):
            raise BadInput(
                f"expected an output {self._size} times as long as the source, "
                f"found {_bytes(output)} and {_bytes(source)} bytes"
            )

        def job() -> torch.Tensor:
            result = output if output.is_contiguous() else torch.empty(output.shape, dtype=output.dtype)
            dense = source.contiguous()
            self._move("allgather", dense, result, (_bytes(dense),) * self._size)
            if result is not output:
                output.copy_(result)
            return output

        return self._do(job, opts)

    _allgather_base = all_gather_single

    def allgather(self, outputs: Sequence[Any], inputs: Sequence[Any], opts: Any = None) -> Work:
        """Everybody's tensors in a list; each may have a shape of its own."""
        (targets,), (source,) = outputs, inputs
        _check(source, *targets)

        def job() -> list[torch.Tensor]:
            lengths = [target.numel() for target in targets]
            result = torch.empty(sum(lengths), dtype=source.dtype)
            dense = source.contiguous()
            size = source.element_size()
            self._move("allgather", dense, result, tuple(length * size for length in lengths))
            for target, part in zip(targets, result.split(lengths), strict=True):
                target.copy_(part.view(target.shape))
            return list(targets)

        return self._do(job, opts)

    def all_gather_single_coalesced(self, outputs: Any, inputs: Any, opts: Any = None) -> Work:
        """Several one after the other."""
        return [self.all_gather_single(*pair, opts) for pair in zip(outputs, inputs, strict=True)][-1]

    allgather_into_tensor_coalesced = all_gather_single_coalesced

    def _exchange(
        self, source: torch.Tensor, result: torch.Tensor, there: Sequence[int], here: Sequence[int]
    ) -> None:
        """All-to-all of flat tensors; lengths in elements."""
        size = source.element_size()
        lengths = (tuple(n * size for n in there), tuple(n * size for n in here))
        self._move("all_to_all", source, result, *lengths)

    def all_to_all_single(
        self,
        output: torch.Tensor,
        source: torch.Tensor,
        output_splits: Sequence[int] | None = None,
        input_splits: Sequence[int] | None = None,
        opts: Any = None,
    ) -> Work:
        """Blocks of rows, one for each rank."""
        _check(output, source)

        def lengths(tensor: torch.Tensor, splits: Sequence[int] | None) -> list[int]:
            if not splits:
                if tensor.shape[0] % self._size:
                    raise BadInput(f"expected rows for each of {self._size} ranks, found {tensor.shape[0]}")
                return [tensor.numel() // self._size] * self._size
            row = tensor.numel() // tensor.shape[0] if tensor.shape[0] else 0
            return [split * row for split in splits]

        def job() -> torch.Tensor:
            dense = source.contiguous()
            result = output if output.is_contiguous() else torch.empty(output.shape, dtype=output.dtype)
            self._exchange(dense, result, lengths(source, input_splits), lengths(output, output_splits))
            if result is not output:
                output.copy_(result)
            return output

        return self._do(job, opts)

    alltoall_base = all_to_all_single

    def alltoall(
        self, outputs: Sequence[torch.Tensor], inputs: Sequence[torch.Tensor], opts: Any = None
    ) -> Work:
        """The same with lists of tensors."""
        _check(*outputs, *inputs)

        def job() -> list[torch.Tensor]:
            here = [output.numel() for output in outputs]
            result = torch.empty(sum(here), dtype=outputs[0].dtype)
            self._exchange(_flat(inputs), result, [source.numel() for source in inputs], here)
            for output, part in zip(outputs, result.split(here), strict=True):
                output.copy_(part.view(output.shape))
            return list(outputs)

        return self._do(job, opts)

    def gather(self, outputs: Sequence[Any], inputs: Sequence[torch.Tensor], opts: Any) -> Work:
        """Everybody's tensors for one rank."""
        (source,) = inputs
        root = opts.rootRank
        targets = list(outputs[0]) if self._rank == root else []
        _check(source, *targets)

        def job() -> list[torch.Tensor]:
            there = [source.numel() if rank == root else 0 for rank in range(self._size)]
            here = [target.numel() for target in targets] or [0] * self._size
            result = torch.empty(sum(here), dtype=source.dtype)
            self._exchange(source.contiguous(), result, there, here)
            for target, part in zip(targets, result.split(here), strict=False):
                target.copy_(part.view(target.shape))
            return targets

        return self._do(job, opts)

    def scatter(self, outputs: Sequence[torch.Tensor], inputs: Sequence[Any], opts: Any) -> Work:
        """One rank's tensors, one for each."""
        (output,) = outputs
        root = opts.rootRank
        blocks = list(inputs[0]) if self._rank == root else []
        _check(output, *blocks)

        def job() -> list[torch.Tensor]:
            there = [block.numel() for block in blocks] or [0] * self._size
            here = [output.numel() if rank == root else 0 for rank in range(self._size)]
            result = torch.empty(output.numel(), dtype=output.dtype)
            self._exchange(_flat(blocks).to(output.dtype), result, there, here)
            output.copy_(result.view(output.shape))
            return [output]

        return self._do(job, opts)

    def barrier(self, opts: Any = None) -> Work:
        """Until everybody has come."""
        return self._do(self._plans.collectives.barrier, opts)

    # Messages.

    def _path(self, other: int, sends: bool) -> Thread:
        found = self._paths.get((other, sends))
        if found is None:
            found = Thread(f"onehop {'to' if sends else 'from'} {other}")
            self._paths[other, sends] = found
        return found

    def send(self, tensors: Sequence[torch.Tensor], destination: int, tag: int = 0) -> Work:
        """A message to one rank."""
        (tensor,) = tensors
        _check(tensor)

        def job() -> list[torch.Tensor]:
            dense = tensor.detach().contiguous()
            self._messages.send(destination, dense.reshape(-1).view(torch.uint8).numpy(), tag)
            return [tensor]

        return self._path(destination, True).submit(job, False)

    def recv(self, tensors: Sequence[torch.Tensor], source: int, tag: int = 0) -> Work:
        """A message from one rank."""
        (tensor,) = tensors
        _check(tensor)

        def job() -> list[torch.Tensor]:
            plain = tensor.detach()
            dense = plain if plain.is_contiguous() else torch.empty(tensor.shape, dtype=tensor.dtype)
            self._messages.receive(source, dense.reshape(-1).view(torch.uint8).numpy(), tag)
            if dense is not plain:
                plain.copy_(dense)
            return [tensor]

        return self._path(source, False).submit(job, False)

    def recv_anysource(self, tensors: Sequence[torch.Tensor], tag: int = 0) -> Work:
        """Refused: messages come over a path of their own from each rank."""
        raise Error(
            f"the backend onehop receives from a rank that is named (tag {tag}); give recv() its `src`"
        )


def create_process_group(store: Any, rank: int, size: int, timeout: timedelta) -> ProcessGroup:
    """What torch calls for `init_process_group("onehop")` and `new_group`."""
    return ProcessGroup(store, rank, size, timeout)


register()
