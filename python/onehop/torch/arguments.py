"""Check the arguments that torch passes to a process group, and translate them for onehop."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
import torch.distributed as dist

from onehop.array_memory import element_type
from onehop.error import BadInput

__all__ = ["bytes_of", "check", "flat", "number_type", "op_name", "tensors_of"]

_OPS = {
    dist.ReduceOp.SUM: "sum",
    dist.ReduceOp.AVG: "mean",
    dist.ReduceOp.PRODUCT: "prod",
    dist.ReduceOp.MIN: "min",
    dist.ReduceOp.MAX: "max",
    dist.ReduceOp.BAND: "and",
    dist.ReduceOp.BOR: "or",
    dist.ReduceOp.BXOR: "xor",
}
_FLOATS = (torch.float16, torch.bfloat16, torch.float32, torch.float64)
_INTEGERS = (torch.int32, torch.int64)
#: Narrow integers are combined as int32, which gives the same numbers modulo their range.
_NARROW = (torch.bool, torch.uint8, torch.int8, torch.int16)
_BITWISE = ("and", "or", "xor")


def check(*tensors: torch.Tensor) -> None:
    """Raise BadInput for tensors that are not in CPU memory, or not dense."""
    for tensor in tensors:
        if tensor.device.type != "cpu":
            raise BadInput(
                f"the backend onehop expects tensors in CPU memory, found one on {tensor.device}; "
                "move it there first, or use a group of another backend for it"
            )
        if tensor.layout != torch.strided:
            raise BadInput(
                f"the backend onehop expects dense tensors, found one of layout {tensor.layout}; "
                "call to_dense() first"
            )


def tensors_of(given: Any) -> list[torch.Tensor]:
    """Return one tensor or a sequence of tensors as a list."""
    return [given] if isinstance(given, torch.Tensor) else list(given)


def op_name(opts: Any) -> str:
    """Return the name that onehop has for a reduction of torch, or for the one in an options object."""
    op = getattr(opts, "reduceOp", opts)
    op = dist.ReduceOp.SUM if op is None else op
    found = next((name for known, name in _OPS.items() if op == known), None)
    if found is None:
        raise BadInput(f"expected the reduction SUM, AVG, PRODUCT, MIN, MAX, BAND, BOR or BXOR, found {op}")
    return found


def number_type(dtype: torch.dtype, op: str) -> torch.dtype:
    """Return the type in which a reduction of elements of `dtype` computes. Raises BadInput if there is none."""
    integer = dtype in _INTEGERS or dtype in _NARROW
    if op in _BITWISE:
        if integer:
            return dtype
        raise BadInput(f"expected integers for a bitwise {op}, found {dtype}")
    if op == "mean" and integer:
        raise BadInput(
            f"expected a floating-point type for AVG, found {dtype}; use SUM, and divide the result"
        )
    if dtype in _NARROW:
        return torch.int32
    if not integer and dtype not in _FLOATS:
        known = ", ".join(str(one) for one in (*_FLOATS, *_INTEGERS, *_NARROW))
        raise BadInput(f"expected a tensor of one of {known} to reduce, found {dtype}")
    return dtype


def type_name(tensor: torch.Tensor) -> str:
    """Return the name that onehop has for the element type of a tensor."""
    return element_type(tensor)


def flat(tensors: Sequence[torch.Tensor], dtype: torch.dtype) -> torch.Tensor:
    """Return a new flat tensor of the elements of all tensors, converted to `dtype`."""
    if not tensors:
        return torch.empty(0, dtype=dtype)
    return torch.cat([tensor.detach().reshape(-1) for tensor in tensors]).to(dtype)


def bytes_of(tensor: torch.Tensor) -> int:
    """Return the size of a tensor in bytes."""
    return tensor.numel() * tensor.element_size()
