"""Compressed gradients for `fully_shard` (FSDP 2): a reduce-scatter with error feedback."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
import torch.distributed as dist

from onehop.error import BadInput
from onehop.torch import lossless
from onehop.torch.agreement import compare_text
from onehop.torch.arguments import reduction
from onehop.torch.device_codecs import (
    BLOCK,
    check_codec,
    check_compress_above,
    check_ranks,
    decode_sum,
    encode,
)
from onehop.torch.thresholds import lossless_pays, measured_threshold


class CompressedReduceScatter:
    """Reduces the gradients of one module that `fully_shard` has split, sending encoded numbers.

    Use: `module.set_custom_reduce_scatter(CompressedReduceScatter())`, an object for each module. It works over the
    process group of the module, on any device: each rank sends every other rank that one's part of the gradient, which
    decodes and adds the parts in the order of the ranks. A number is rounded once, and only on the way.

    Parameters
    ----------
    codec : str
        Format on the wire: fp16, bf16, fp8, q8, q6, q4, q3 (on two ranks), or lossless.
    feedback : bool
        Whether to add the rounding error of each step's gradient to the gradient of the next step. It takes the memory
        of one float32 gradient of the module.
    kernels : str
        "cpp" on the processor, "triton" for GPUs, "auto": what fits the tensor.

    compress_above : int or "auto"
        Gradients of fewer bytes are reduced by the process group itself, without compression. "auto": where that takes
        less time by the measurements of `onehop tune` (docs/howto/tuning.md), which are those of tensors in CPU memory;
        with "lossless" on links below a rate, which the first gradient measures.

    Attributes
    ----------
    bytes_raw, bytes_sent : int
        Size of this rank's contributions so far, in memory and on the wire; with lossless, of those for other ranks.

    Raises
    ------
    BadInput
        There is no such codec, or `compress_above` is something else.
    """

    # The arguments of each kind of gradient are compared between the ranks once.
    _compared: set[tuple[Any, ...]]

    def __init__(
        self,
        codec: str = "q8",
        feedback: bool = True,
        kernels: str = "auto",
        compress_above: int | str = 0,
    ) -> None:
        check_compress_above(compress_above)
        if codec != lossless.LOSSLESS:
            check_codec(codec, kernels, torch.empty(0))
        self.codec, self.feedback, self.kernels = codec, feedback, kernels
        self.compress_above = compress_above
        self.bytes_raw = self.bytes_sent = 0
        self._compared = set()
        self._residual: torch.Tensor | None = None

    def allocate(self, size: Sequence[int], *, dtype: torch.dtype, device: torch.device) -> torch.Tensor:
        """Return memory for an input or an output, for `fully_shard`."""
        return torch.empty(*size, dtype=dtype, device=device)

    def __call__(
        self,
        output_tensor: torch.Tensor,
        input_tensor: torch.Tensor,
        group: Any,
        op: Any,
        async_op: bool = False,
    ) -> None:
        """Reduce and scatter, for `fully_shard`. The operation is done when the call returns.

        Raises Mismatch on every rank if two ranks have other codecs, thresholds, lengths or types of gradients.
        """
        exact = self.codec == lossless.LOSSLESS
        if not exact:
            check_codec(self.codec, self.kernels, input_tensor)
        operation = reduction(op)
        if operation.name not in ("sum", "mean"):
            raise BadInput(
                f"expected the reduction SUM, AVG or PREMUL_SUM of gradients, found {operation.name}"
            )
        size = dist.get_world_size(group)
        self._compare(input_tensor, group)
        if not exact:
            check_ranks(self.codec, size)
        gradient = input_tensor.detach()
        if operation.factor is not None:  # not every backend has PREMUL_SUM
            gradient, op = gradient * operation.factor, dist.ReduceOp.SUM
        divisor = size if operation.name == "mean" else 1
        if not self._compresses(gradient, group):
            dist.reduce_scatter_tensor(output_tensor.detach(), gradient, op, group)
            sent = raw = gradient.nbytes
        elif exact:
            rows = gradient.view(size, -1)
            raw, sent = lossless.reduce_scatter(output_tensor, rows, group, divisor)
        else:
            raw, sent = self._rounded(output_tensor, gradient, group, divisor)
        self.bytes_raw += raw
        self.bytes_sent += sent

    def _rounded(
        self, output: torch.Tensor, gradient: torch.Tensor, group: Any, divisor: int
    ) -> tuple[int, int]:
        """Reduce with a codec. Returns the bytes of the gradient in memory and on the wire."""
        size, part = dist.get_world_size(group), output.numel()
        chunk = -(-part // BLOCK) * BLOCK  # so that blocks begin where the parts begin
        rows = torch.zeros(size, chunk, dtype=torch.float32, device=gradient.device)
        rows[:, :part].copy_(gradient.view(size, part))
        wire = self._encoded(rows)
        received = torch.empty_like(wire)
        dist.all_to_all_single(received, wire, group=group)
        total = torch.empty(chunk, dtype=torch.float32, device=rows.device)
        decode_sum(self.codec, received.view(size, -1), total, divisor, self.kernels)
        output.detach().copy_(total[:part].view(output.shape))
        return gradient.nbytes, wire.numel()

    def _compare(self, gradient: torch.Tensor, group: Any) -> None:
        """Raise Mismatch on every rank if two ranks differ; only for the first gradient of its kind."""
        kind = (gradient.numel(), gradient.dtype, self.codec, self.compress_above)
        if kind in self._compared:
            return
        words = f"codec={self.codec!r}, compress_above={self.compress_above!r} for {kind[0]} {kind[1]}"
        compare_text(words, "has a CompressedReduceScatter with", group, gradient.device)
        self._compared.add(kind)

    def _compresses(self, gradient: torch.Tensor, group: Any) -> bool:
        """Whether a gradient is compressed. The first question is collective for "auto"."""
        if self.compress_above == "auto" and self.codec == lossless.LOSSLESS:
            return lossless_pays(group, gradient.dtype)
        auto = self.compress_above == "auto"
        return gradient.nbytes >= (
            measured_threshold(group, self.codec) if auto else int(self.compress_above)
        )

    def _encoded(self, rows: torch.Tensor) -> torch.Tensor:
        """The bytes of the gradient and of what earlier steps have left behind."""
        if not self.feedback:
            return encode(self.codec, rows.view(-1), self.kernels)
        if self._residual is not None and self._residual.shape == rows.shape:
            rows += self._residual
        wire = encode(self.codec, rows.view(-1), self.kernels)
        arrived = torch.empty_like(rows)
        decode_sum(self.codec, wire.view(1, -1), arrived.view(-1), 1, self.kernels)
        # An infinite or undefined difference comes from an overflow, which feedback cannot correct.
        self._residual = torch.nan_to_num(rows - arrived, 0.0, 0.0, 0.0)
        return wire
