"""A compressed all-reduce for tensors on any device, over the process group that the program has."""

from __future__ import annotations

from typing import Any

import torch
import torch.distributed as dist

from onehop.error import BadInput
from onehop.torch import lossless
from onehop.torch.agreement import compare_text
from onehop.torch.device_codecs import BLOCK, check_codec, check_ranks, decode_sum, encode

_OPS = ("sum", "mean")


def compressed_allreduce(
    tensor: torch.Tensor,
    group: Any = None,
    codec: str = "q8",
    op: str = "sum",
    *,
    kernels: str = "auto",
    check: bool = True,
) -> torch.Tensor:
    """Sum a tensor over the ranks of a process group of any backend, in place, sending encoded numbers. Collective.

    Each rank encodes its tensor in as many chunks as there are ranks, and sends one to each rank (all-to-all). That
    rank decodes and adds the chunks in the order of the ranks, and encodes the sum, which all ranks gather. So a number
    is rounded twice, and the result has the same bits on every rank.

    Parameters
    ----------
    tensor : Tensor
        The contribution of this rank, of a floating-point type, on a device that the group moves data of. It becomes
        the result.
    group : ProcessGroup, optional
        The ranks; None: the default group. Other ranks return at once.
    codec : str
        Format on the wire: fp16, bf16, fp8, q8, q6, q4, or q3 on two ranks (docs/reference/codecs.md). "lossless" sends
        float32 and bfloat16 on the processor without rounding (docs/reference/lossless.md).
    op : str
        "sum" or "mean".
    kernels : str
        "cpp" on the processor, "triton" for GPUs or Triton's interpreter, "auto": what fits the tensor.
    check : bool
        Whether to compare the arguments of all ranks first, which costs a small all-gather. Without it, ranks with
        different arguments may wait for ever.

    Returns
    -------
    Tensor
        `tensor`.

    Raises
    ------
    BadInput
        The codec, the operation or the type of the tensor does not exist here, or the codec is for fewer ranks; nothing
        was sent. Or triton is missing.
    Mismatch
        On every rank: the arguments of two ranks differ.

    Examples
    --------
    >>> import torch, torch.distributed as dist, onehop.torch
    >>> dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
    >>> onehop.torch.compressed_allreduce(torch.ones(4), codec="q8")
    tensor([1., 1., 1., 1.])
    >>> dist.destroy_process_group()
    """
    if group is dist.GroupMember.NON_GROUP_MEMBER:
        return tensor
    if op not in _OPS:
        raise BadInput(f"expected op as one of {', '.join(_OPS)}, found {op!r}")
    exact = codec == lossless.LOSSLESS
    size = dist.get_world_size(group)
    if exact:
        lossless.check_tensor(tensor)
    else:
        check_codec(codec, kernels, tensor)
        check_ranks(codec, size)
    if check:
        kind = str(tensor.dtype).removeprefix("torch.")
        compare_text(f"{tensor.numel()} {kind} with {codec} and {op}", "reduces", group, tensor.device)
    if exact:
        lossless.allreduce(tensor, group, op)
        return tensor
    if tensor.numel() == 0:
        return tensor
    chunk = -(-tensor.numel() // (size * BLOCK)) * BLOCK
    numbers = torch.zeros(size * chunk, dtype=torch.float32, device=tensor.device)
    numbers[: tensor.numel()].copy_(tensor.detach().reshape(-1))
    wire = encode(codec, numbers, kernels)
    received = torch.empty_like(wire)
    dist.all_to_all_single(received, wire, group=group)
    total = numbers[:chunk]
    decode_sum(codec, received.view(size, -1), total, size if op == "mean" else 1, kernels)
    gathered = received  # of the same length
    gather = getattr(dist, "all_gather_single", None) or dist.all_gather_into_tensor
    gather(gathered, encode(codec, total, kernels), group=group)
    decode_sum(codec, gathered.view(1, -1), numbers, 1, kernels)
    tensor.detach().copy_(numbers[: tensor.numel()].view(tensor.shape))
    return tensor
