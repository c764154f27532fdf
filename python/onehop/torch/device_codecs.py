"""Encode and decode tensors where they are: on the processor in C++, on a GPU with Triton kernels."""

from __future__ import annotations

from types import ModuleType

import torch

from onehop import _core
from onehop.codec import CODECS, TABLE
from onehop.error import BadInput

BLOCK = 32  # numbers that share a scale
#: The encoders: "cpp" on the processor, "triton" on a GPU (or in Triton's interpreter), "auto": the one for the tensor.
KERNELS = ("auto", "cpp", "triton")


def check_codec(codec: str, kernels: str, tensor: torch.Tensor) -> None:
    """Raise BadInput if there are no such codec or kernels, or if they do not take the tensor."""
    known = [one for one in CODECS if one != "raw"]
    if codec not in known:
        raise BadInput(
            f"expected a codec that compresses (one of: {', '.join(known)}, lossless), found {codec!r}"
        )
    if kernels not in KERNELS:
        raise BadInput(f"expected kernels as one of {', '.join(KERNELS)}, found {kernels!r}")
    if kernels == "cpp" and tensor.device.type != "cpu":
        raise BadInput(f"expected a tensor in CPU memory for the kernels cpp, found one on {tensor.device}")
    if not tensor.is_floating_point() or tensor.element_size() < 2 or tensor.layout != torch.strided:
        raise BadInput(
            "expected a dense tensor of float16, bfloat16, float32 or float64 to compress, found one of "
            f"{tensor.dtype} with the layout {tensor.layout}"
        )


def check_ranks(codec: str, ranks: int) -> None:
    """Raise BadInput if a codec is for reductions over fewer ranks."""
    most = TABLE[codec].most_ranks
    if ranks > most:
        raise BadInput(f"the codec {codec} is for groups of {most} ranks, found {ranks}; use q4")


def check_compress_above(compress_above: int | str) -> None:
    """Raise BadInput unless the argument is a number of bytes or "auto"."""
    if compress_above != "auto" and not isinstance(compress_above, int):
        raise BadInput(f'expected compress_above as a number of bytes or "auto", found {compress_above!r}')


def _triton_codecs(tensor: torch.Tensor) -> ModuleType:
    try:
        from onehop.torch import triton_codecs
    except ImportError as error:
        raise BadInput(
            f"expected the package triton to compress a tensor on {tensor.device}, found none ({error}); "
            "pip install triton"
        ) from error
    return triton_codecs


def _uses_triton(kernels: str, tensor: torch.Tensor) -> bool:
    return kernels == "triton" or (kernels == "auto" and tensor.device.type != "cpu")


def encode(codec: str, numbers: torch.Tensor, kernels: str = "auto") -> torch.Tensor:
    """Return the bytes of contiguous float32 numbers, on their device."""
    size = _core.encoded_bytes(codec, "float32", numbers.numel())
    wire = torch.empty(size, dtype=torch.uint8, device=numbers.device)
    if _uses_triton(kernels, numbers):
        _triton_codecs(numbers).encode(codec, numbers, wire)
    else:
        _core.encode(codec, "float32", numbers, wire)
    return wire


def decode_sum(
    codec: str, wires: torch.Tensor, target: torch.Tensor, divisor: int = 1, kernels: str = "auto"
) -> None:
    """Decode the bytes of several ranks, a row for each, and store their sums in order, divided by `divisor`."""
    if _uses_triton(kernels, wires):
        _triton_codecs(wires).decode_sum(codec, wires, target, divisor)
        return
    for rank, wire in enumerate(wires):
        _core.decode(codec, "float32", wire, target, rank > 0)
    if divisor != 1:
        target.div_(divisor)
