"""Check the arguments that torch passes to a process group, and translate them for onehop."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import wraps
from typing import Any, NamedTuple

import torch
import torch.distributed as dist
from torch._subclasses import FakeTensor

from onehop.collectives import Collective
from onehop.error import BadInput
from onehop.torch import card
from onehop.torch.work import Work


class Reduction(NamedTuple):
    """A reduction: the name that onehop has for it, and what each rank's elements are multiplied with before."""

    name: str
    factor: Any = None


_OPS = {
    dist.ReduceOp.SUM: Reduction("sum"),
    dist.ReduceOp.AVG: Reduction("mean"),
    dist.ReduceOp.PRODUCT: Reduction("prod"),
    dist.ReduceOp.MIN: Reduction("min"),
    dist.ReduceOp.MAX: Reduction("max"),
    dist.ReduceOp.BAND: Reduction("and"),
    dist.ReduceOp.BOR: Reduction("or"),
    dist.ReduceOp.BXOR: Reduction("xor"),
}
_FLOATS = (torch.float16, torch.bfloat16, torch.float32, torch.float64)
#: Integers, and the type in which they are combined: it gives the same numbers modulo their range.
_INTEGERS = {
    torch.int32: torch.int32,
    torch.int64: torch.int64,
    torch.bool: torch.int32,
    torch.uint8: torch.int32,
    torch.int8: torch.int32,
    torch.int16: torch.int32,
    torch.uint16: torch.int32,
    torch.uint32: torch.int64,
    torch.uint64: torch.int64,
}
#: Bitwise operations exist in torch for these; the other integers are taken for them.
_SAME_BITS = {torch.uint16: torch.int16, torch.uint32: torch.int32, torch.uint64: torch.int64}
BITWISE = ("and", "or", "xor")
_PLAIN = (torch.Tensor, torch.nn.Parameter)


def check_device(tensor: torch.Tensor) -> None:
    """Raise BadInput for a tensor that is not in CPU memory."""
    if not tensor.is_cpu:
        raise BadInput(
            f"the backend onehop expects tensors in CPU memory, found one on {tensor.device}; "
            "move it there first, or use a group of another backend for it"
        )


def check(*tensors: torch.Tensor) -> None:
    """Raise BadInput for tensors that are not in CPU memory, or not dense."""
    for tensor in tensors:
        check_device(tensor)
        if tensor.layout != torch.strided:
            raise BadInput(
                f"the backend onehop expects dense tensors, found one of layout {tensor.layout}; "
                "call to_dense() first"
            )


def check_types(*tensors: torch.Tensor) -> None:
    """Raise BadInput for tensors of different element types."""
    if any(tensor.dtype != tensors[0].dtype for tensor in tensors):
        found = ", ".join(sorted({str(tensor.dtype) for tensor in tensors}))
        raise BadInput(f"expected inputs and outputs of one type, found {found}")


def _first_tensor(arguments: Sequence[Any]) -> torch.Tensor | None:
    for one in arguments:
        if isinstance(one, torch.Tensor):
            return one
        if isinstance(one, (list, tuple)):
            found = _first_tensor(one)
            if found is not None:
                return found
    return None


def dry_run(operation: Callable[..., Work]) -> Callable[..., Work]:
    """Let an operation on tensors without memory (on the device meta, or fake ones) be done at once.

    Tensors on cards are copied to CPU memory and back.
    """

    @wraps(operation)
    def checked(group: Any, *arguments: Any, **options: Any) -> Work:
        first = _first_tensor(arguments)
        if first is not None and (
            first.is_meta or (type(first) not in _PLAIN and isinstance(first, FakeTensor))
        ):
            work = Work()
            work.succeed(tensors_of(arguments[0]))
            return work
        if first is not None and card.is_on_card(first):
            if operation.__name__ == "allreduce" and len(tensors_of(arguments[0])) == 1:
                plain = reduction(arguments[1] if len(arguments) > 1 else options.get("opts"))
                work = card.summed(group, first) if plain == Reduction("sum") else None
                if work is not None:
                    return group._note(work)
            return card.through_memory(group, operation, arguments, options)
        return operation(group, *arguments, **options)

    return checked


def run_on(operation: Collective, source: torch.Tensor, result: torch.Tensor) -> None:
    """Run a prepared operation on contiguous tensors."""
    operation.run_at(source.data_ptr(), source.nbytes, result.data_ptr(), result.nbytes)


def tensors_of(given: Any) -> list[torch.Tensor]:
    """Return one tensor or a sequence of tensors as a list."""
    return [given] if isinstance(given, torch.Tensor) else list(given)


def reduction(opts: Any) -> Reduction:
    """Return a reduction of torch, or the one in an options object."""
    op = getattr(opts, "reduceOp", opts)
    kind = dist.ReduceOp.SUM if op is None else getattr(op, "op", op)
    found = _OPS.get(kind)
    if found is not None:
        return found
    if kind == dist.ReduceOp.PREMUL_SUM and hasattr(op, "factor"):
        return Reduction("sum", op.factor)
    raise BadInput(
        "expected the reduction SUM, AVG, PRODUCT, MIN, MAX, BAND, BOR, BXOR, or a PREMUL_SUM with its factor, "
        f"found {op}"
    )


def real_type(dtype: torch.dtype, op: Reduction) -> torch.dtype:
    """Return the type of the parts of complex numbers, or a real type itself. Raises BadInput if `op` has no parts."""
    if not dtype.is_complex:
        return dtype
    if op.name not in ("sum", "mean"):
        raise BadInput(f"expected the reduction SUM or AVG of complex numbers, found {op.name}")
    return dtype.to_real()


def real_view(tensor: torch.Tensor) -> torch.Tensor:
    """Return complex numbers as pairs of real ones, which have the same sums.

    It is a view, or a copy of a tensor that is conjugated or negated lazily; `restore` copies results back.
    """
    plain = tensor.detach().resolve_conj().resolve_neg()
    return torch.view_as_real(plain) if plain.is_complex() else plain


def restore(tensor: torch.Tensor, part: torch.Tensor) -> None:
    """Copy the numbers of a `real_view` back into the tensor, if it was a copy."""
    if tensor.is_conj() or tensor.is_neg():
        tensor.detach().copy_(torch.view_as_complex(part) if tensor.is_complex() else part)


def dense_of(tensor: torch.Tensor) -> torch.Tensor:
    """Return a tensor whose memory has the values in order: a detached view if possible, else a copy."""
    return tensor.detach().resolve_conj().resolve_neg().contiguous()


def memory_for(target: torch.Tensor) -> torch.Tensor:
    """Return a tensor to write the values into in order: the target itself if possible, else a new one."""
    if target.is_contiguous() and not (target.is_conj() or target.is_neg()):
        return target
    return torch.empty(target.shape, dtype=target.dtype)


def number_type(dtype: torch.dtype, op: Reduction) -> torch.dtype:
    """Return the type in which a reduction of elements of `dtype` computes. Raises BadInput if there is none."""
    integer = dtype in _INTEGERS
    if op.name in BITWISE:
        if integer:
            return _SAME_BITS.get(dtype, dtype)
        raise BadInput(f"expected integers for a bitwise {op.name}, found {dtype}")
    if integer and (op.name == "mean" or op.factor is not None):
        what = "AVG" if op.name == "mean" else "PREMUL_SUM"
        raise BadInput(
            f"expected a floating-point type for {what}, found {dtype}; use SUM, and scale the result"
        )
    if dtype == torch.uint64 and op.name in ("min", "max"):
        raise BadInput(f"expected integers of at most 63 bits for {op.name}, found {dtype}; use int64")
    if integer:
        return _INTEGERS[dtype]
    if dtype not in _FLOATS:
        known = ", ".join(str(one) for one in (*_FLOATS, *_INTEGERS))
        raise BadInput(f"expected a tensor of one of {known} to reduce, found {dtype}")
    return dtype


def flat(tensors: Sequence[torch.Tensor], dtype: torch.dtype) -> torch.Tensor:
    """Return a new flat tensor of the elements of all tensors, converted to `dtype`."""
    if not tensors:
        return torch.empty(0, dtype=dtype)
    return torch.cat([tensor.detach().reshape(-1) for tensor in tensors]).to(dtype)
