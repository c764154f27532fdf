"""Compressed gradients: a communication hook for DistributedDataParallel, with error feedback."""

# No `from __future__ import annotations` here: DistributedDataParallel inspects the annotations of a hook as types.
from collections.abc import Sequence
from typing import Any
from weakref import WeakKeyDictionary

import torch
import torch.distributed as dist

from onehop import _core
from onehop.array_memory import element_type
from onehop.codec import CODECS
from onehop.collectives import allreduce, codec_to_use, plans
from onehop.error import BadInput
from onehop.torch import lossless
from onehop.torch.agreement import compare_words
from onehop.torch.device_codecs import check_compress_above, check_ranks
from onehop.torch.store import group_from_process_group
from onehop.torch.thresholds import lossless_pays
from onehop.torch.work_queue import UNUSABLE_AFTER, WorkQueue, is_machine_full

# Groups that states have given back, by the group that they were made for. They are kept: torch gives a new group the
# name of one that was destroyed, under which the store still has what the ranks of that one told each other.
_free_groups: WeakKeyDictionary[Any, list[Any]] = WeakKeyDictionary()


def _own_group(process_group: Any) -> Any:
    """Return another process group of the same ranks, for tensors in CPU memory, that only one thread uses."""
    if free := _free_groups.get(process_group or dist.group.WORLD):
        return free.pop()
    ranks = dist.get_process_group_ranks(process_group or dist.group.WORLD)
    has_cpu = "cpu:" in str(dist.get_backend_config(process_group))
    backend = dist.get_backend(process_group) if has_cpu else "gloo"
    return dist.new_group(ranks, backend=backend, use_local_synchronization=True)


class CompressionState:
    """The state of `compression_hook`: group, codec, and the rounding errors for error feedback.

    The constructor is collective over the process group, whose backend must be able to gather tensors.

    Parameters
    ----------
    process_group : ProcessGroup, optional
        The ranks whose gradients are averaged; None: all.
    codec : str
        Format of gradients on the wire: one of `onehop.codec.CODECS`, or "lossless", for float32 and bfloat16
        (docs/reference/lossless.md), which travels over a process group of its own instead of onehop's channels.
    feedback : bool
        Whether to add the rounding error of each step's gradient to the gradient of the next step.
    compress_above : int or "auto"
        Buckets with fewer bytes are sent raw. "auto": where that takes less time, by the measurements of `onehop tune`
        (docs/howto/tuning.md); with "lossless" on links below a rate, which the first bucket measures.

    Attributes
    ----------
    bytes_raw, bytes_sent : int
        Size of this rank's contributions to all buckets so far, in memory and on the wire; with lossless, of the parts
        that other ranks add.
    error : Exception or None
        The exception of the last bucket that failed; `backward` raises a RuntimeError with the same text.

    niceness : int
        As for `ProcessGroup`: how much nicer the thread that averages gradients is than the process.

    Raises
    ------
    BadInput
        There is no such codec, or it is for fewer ranks.
    Mismatch
        On every rank: two ranks have other arguments.
    """

    def __init__(
        self,
        process_group: Any = None,
        codec: str = "q8",
        feedback: bool = True,
        compress_above: int | str = 0,
    ) -> None:
        exact = codec == lossless.LOSSLESS
        if not exact and codec not in CODECS:
            raise BadInput(f"expected a codec (one of: {', '.join(CODECS)}, lossless), found {codec!r}")
        if not exact:
            check_ranks(codec, dist.get_world_size(process_group))
        check_compress_above(compress_above)
        self.codec, self.feedback = codec, feedback and codec != "raw" and not exact
        self.compress_above = compress_above
        self.group = group_from_process_group(process_group)
        words = f"codec={codec!r}, feedback={feedback}, compress_above={compress_above!r}"
        told = [one.decode() for one in self.group.allgather(words.encode())]
        compare_words(told, "has a CompressionState with")
        self._parent = process_group or dist.group.WORLD
        self._exact = _own_group(process_group) if exact else None
        # Open the paths now. Later the thread would use the process group at the same time as the program.
        plans(self.group)
        self.bytes_raw = self.bytes_sent = 0
        self._residuals: dict[int, torch.Tensor] = {}  # rounding errors by the address of a parameter
        full = is_machine_full(len(self.group.local_ranks))
        self._thread = WorkQueue("onehop gradients", UNUSABLE_AFTER, full)

    @property
    def error(self) -> Exception | None:
        """The exception of the last bucket that failed, or None."""
        return self._thread.error

    @property
    def niceness(self) -> int:
        """How much nicer the thread that averages gradients is than the process."""
        return self._thread.niceness

    @niceness.setter
    def niceness(self, niceness: int) -> None:
        self._thread.niceness = niceness

    def _average(self, parameters: Sequence[torch.Tensor], gradient: torch.Tensor) -> torch.Tensor:
        local = gradient.detach().to("cpu").contiguous()
        if self._exact is not None and self._sends_lossless(local):
            raw, sent = lossless.allreduce(local, self._exact, "mean")
            self.bytes_raw += raw
            self.bytes_sent += sent
        else:
            self._average_rounded(parameters, local)
        if local.data_ptr() != gradient.data_ptr():
            gradient.copy_(local)
        return gradient

    def _sends_lossless(self, gradient: torch.Tensor) -> bool:
        if self.compress_above == "auto":
            return lossless_pays(self._exact, gradient.dtype)
        return gradient.nbytes >= int(self.compress_above)

    def _average_rounded(self, parameters: Sequence[torch.Tensor], gradient: torch.Tensor) -> None:
        kind, local = element_type(gradient), gradient
        size = local.nbytes
        exact = self._exact is not None
        codec = "raw" if exact else codec_to_use(self.group, self.codec, size, self.compress_above)
        if self.feedback and codec != "raw" and local.numel() > 0:
            local = local + self._load_residuals(parameters, local)
            wire = torch.empty(_core.encoded_bytes(codec, kind, local.numel()), dtype=torch.uint8)
            rounded = torch.empty_like(local)
            _core.encode(codec, kind, local, wire)
            _core.decode(codec, kind, wire, rounded, False)
            # An infinite or undefined difference comes from an overflow, which feedback cannot correct.
            self._store_residuals(parameters, torch.nan_to_num(local - rounded, 0.0, 0.0, 0.0))
        allreduce(self.group, local, "mean", codec, out=gradient)
        self.bytes_raw += size
        self.bytes_sent += _core.encoded_bytes(codec, kind, local.numel())

    def _store_residuals(self, parameters: Sequence[torch.Tensor], residual: torch.Tensor) -> None:
        # Stored per parameter, because DistributedDataParallel changes the buckets after the first step.
        sizes = [one.numel() for one in parameters]
        for parameter, part in zip(parameters, residual.split(sizes), strict=True):
            self._residuals[parameter.data_ptr()] = part

    def _load_residuals(self, parameters: Sequence[torch.Tensor], like: torch.Tensor) -> torch.Tensor:
        parts = [self._residuals.get(one.data_ptr()) for one in parameters]
        if not all(part is not None and part.dtype == like.dtype for part in parts):
            parts = [  # parameters that are new, or whose type has changed since the last step
                like.new_zeros(one.numel()) if part is None else part.to(like.dtype)
                for one, part in zip(parameters, parts, strict=True)
            ]
        return torch.cat(parts)

    def close(self) -> None:
        """End the thread that averages gradients."""
        self._thread.close()
        if self._exact is not None and self.error is None:
            _free_groups.setdefault(self._parent, []).append(self._exact)
        self._exact = None


def compression_hook(state: CompressionState, bucket: dist.GradBucket) -> torch.futures.Future[torch.Tensor]:
    """Average a bucket of gradients over all ranks. Use: `ddp.register_comm_hook(state, compression_hook)`.

    Parameters
    ----------
    state : CompressionState
        Group, codec and rounding errors.
    bucket : GradBucket
        The gradients, of a floating-point type.

    Returns
    -------
    Future
        The averaged bucket; a RuntimeError if the all-reduce failed.
    """
    gradient, parameters = bucket.buffer(), bucket.parameters()
    return state._thread.submit(lambda: state._average(parameters, gradient), False).get_future()
