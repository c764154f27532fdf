"""Tensors on cards in a process group: sums by kernels, everything else through copies in CPU memory."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

import torch

from onehop.array_memory import element_count
from onehop.device.arrays import device_array
from onehop.device.sums import sums_of
from onehop.torch.work import Work

_log = logging.getLogger("onehop.device")
_said: set[str] = set()


def is_on_card(tensor: torch.Tensor) -> bool:
    """Whether a tensor is in the memory of a card."""
    return tensor.is_cuda


class CopiedWork(Work):
    """An operation on copies of tensors. When it is done, the copies go back."""

    def __init__(self, work: Work, copies: dict[int, tuple[torch.Tensor, torch.Tensor]]) -> None:
        super().__init__()
        self._work, self._copies = work, copies
        work.when_done(self._copy_back)

    def _copy_back(self) -> None:
        self.source = self._work.source
        try:
            result = self._work.result()
            for tensor, copy in self._copies.values():
                tensor.copy_(copy)
        except Exception as error:
            self.fail(error)
            return
        back = {id(copy): tensor for tensor, copy in self._copies.values()}
        if isinstance(result, (list, tuple)):
            self.succeed([back.get(id(one), one) for one in result])
        else:
            self.succeed(back.get(id(result), result))


def through_memory(group: Any, operation: Callable[..., Work], arguments: Any, options: Any) -> Work:
    """Run an operation of a process group on copies of its tensors in CPU memory."""
    name = operation.__name__
    if name not in _said:
        _said.add(name)
        _log.warning("%s of tensors on a card goes through the processor's memory", name)
    copies: dict[int, tuple[torch.Tensor, torch.Tensor]] = {}

    def copied(value: Any) -> Any:
        if isinstance(value, torch.Tensor):
            if is_on_card(value) and id(value) not in copies:
                copies[id(value)] = value, torch.empty_like(value, device="cpu").copy_(value)
            return copies[id(value)][1] if id(value) in copies else value
        return [copied(one) for one in value] if isinstance(value, (list, tuple)) else value

    work = operation(
        group, *map(copied, arguments), **{name: copied(value) for name, value in options.items()}
    )
    result = CopiedWork(work, copies)
    if group._batch and group._batch[-1] is work:
        group._batch[-1] = result
    return result


def summed(group: Any, tensor: torch.Tensor) -> Work | None:
    """Add the tensors of all ranks by a kernel in the current stream; None if no kernel does it."""
    place = device_array(tensor) if tensor.layout == torch.strided and tensor.is_contiguous() else None
    if place is None:
        return None
    made: list[Any] = []
    # Making the sums is collective, so it takes its turn among the operations of the group.
    group._collective.submit(lambda: made.append(sums_of(group._plans, place.device)), True).wait()
    if made[0].core.choose(element_count(place.shape), place.type)[3]:
        return None
    made[0].run(place, place, "sum", "raw")
    work = Work([tensor.device])
    work.succeed([tensor])
    return work
