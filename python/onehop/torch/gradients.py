"""Gradients that travel compressed: a communication hook for DistributedDataParallel, with error feedback."""

# Annotations must stay what they are, not text: DistributedDataParallel looks at those of a hook.
from collections.abc import Sequence
from typing import Any

import torch
import torch.distributed as dist

from onehop import _core
from onehop.codec import CODECS
from onehop.collectives import allreduce, element_type, plans
from onehop.error import BadInput
from onehop.group import Group
from onehop.torch.work_queue import UNUSABLE_AFTER, WorkQueue

__all__ = ["CompressionState", "compressed_allreduce", "group_from_process_group"]


def group_from_process_group(process_group: Any = None) -> Group:
    """A group of the ranks of a process group of torch, of any backend. Collective."""
    size = dist.get_world_size(process_group)
    # NCCL moves what lies on its device alone.
    device = "cpu" if "cpu:" in str(dist.get_backend_config(process_group)) else "cuda"

    def gather(tensor: torch.Tensor) -> list[torch.Tensor]:
        everybody = [torch.empty_like(tensor, device=device) for _ in range(size)]
        dist.all_gather(everybody, tensor.to(device), group=process_group)
        return [one.cpu() for one in everybody]

    def allgather(mine: bytes) -> list[bytes]:
        # Torch's gathering of objects would unpickle what comes from the others.
        lengths = [int(one) for one in gather(torch.tensor([len(mine)]))]
        padded = torch.zeros(max(lengths), dtype=torch.uint8)
        padded[: len(mine)] = torch.tensor(list(mine), dtype=torch.uint8)
        parts = gather(padded)
        return [part[:length].numpy().tobytes() for part, length in zip(parts, lengths, strict=True)]

    return Group.from_allgather(dist.get_rank(process_group), size, allgather)


class CompressionState:
    """What `compressed_allreduce` keeps from step to step.

    Making it is collective over the process group, whose backend may be any that can gather tensors.

    Parameters
    ----------
    process_group : ProcessGroup, optional
        The ranks whose gradients are averaged; None: all.
    codec : str
        How gradients travel: one of `onehop.codec.CODECS`.
    feedback : bool
        Whether what a codec took from a gradient is added to the next step's, so that it is late and not lost.

    Attributes
    ----------
    bytes_raw, bytes_sent : int
        What one contribution of each bucket so far has in memory, and on the wire.
    error : Exception or None
        What the last bucket that failed raised; `backward` raises a RuntimeError with the same text.
    """

    def __init__(self, process_group: Any = None, codec: str = "q8", feedback: bool = True) -> None:
        if codec not in CODECS:
            raise BadInput(f"expected a codec (one of: {', '.join(CODECS)}), found {codec!r}")
        self.codec, self.feedback = codec, feedback and codec != "raw"
        self.group = group_from_process_group(process_group)
        plans(
            self.group
        )  # opens the paths now: later the thread would use the process group beside the program
        self.bytes_raw = self.bytes_sent = 0
        self._late: dict[int, torch.Tensor] = {}  # by where a parameter lies
        self._thread = WorkQueue("onehop gradients", UNUSABLE_AFTER)

    @property
    def error(self) -> Exception | None:
        """What the last bucket that failed raised."""
        return self._thread.error

    def _average(self, parameters: Sequence[torch.Tensor], gradient: torch.Tensor) -> torch.Tensor:
        here = gradient.detach().to("cpu").contiguous()
        kind = element_type(here)
        if self.feedback and here.numel() > 0:
            here = here + self._take_late(parameters, here)
            wire = torch.empty(_core.encoded_bytes(self.codec, kind, here.numel()), dtype=torch.uint8)
            rounded = torch.empty_like(here)
            _core.encode(self.codec, kind, here, wire)
            _core.decode(self.codec, kind, wire, rounded, False)
            # An overflow is no error that could be made good later.
            self._keep_late(parameters, torch.nan_to_num(here - rounded, 0.0, 0.0, 0.0))
        allreduce(self.group, here, "mean", self.codec, out=here)
        self.bytes_raw += here.numel() * here.element_size()
        self.bytes_sent += _core.encoded_bytes(self.codec, kind, here.numel())
        if here.data_ptr() != gradient.data_ptr():
            gradient.copy_(here)
        return gradient

    def _keep_late(self, parameters: Sequence[torch.Tensor], late: torch.Tensor) -> None:
        # By parameter: after the first step DistributedDataParallel puts them into other buckets.
        for parameter, part in zip(parameters, late.split([one.numel() for one in parameters]), strict=True):
            self._late[parameter.data_ptr()] = part

    def _take_late(self, parameters: Sequence[torch.Tensor], like: torch.Tensor) -> torch.Tensor:
        parts = [self._late.get(one.data_ptr()) for one in parameters]
        if not all(part is not None and part.dtype == like.dtype for part in parts):
            parts = [  # new parameters, or another type since the last step
                like.new_zeros(one.numel()) if part is None else part.to(like.dtype)
                for one, part in zip(parameters, parts, strict=True)
            ]
        return torch.cat(parts)

    def close(self) -> None:
        """End the thread."""
        self._thread.close()


def compressed_allreduce(
    state: CompressionState, bucket: dist.GradBucket
) -> torch.futures.Future[torch.Tensor]:
    """Average a bucket of gradients over all ranks: `ddp.register_comm_hook(state, compressed_allreduce)`."""
    gradient, parameters = bucket.buffer(), bucket.parameters()
    return state._thread.submit(lambda: state._average(parameters, gradient), False).get_future()
