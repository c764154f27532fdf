"""The point-to-point operations of a process group."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from onehop.torch.arguments import check, dense_of, dry_run, memory_for
from onehop.torch.names import Names
from onehop.torch.work import Work
from onehop.torch.work_queue import WorkQueue


class Messages(Names):
    """Send and receive of `ProcessGroup`. One thread per destination sends the messages in the order of the calls."""

    @dry_run
    def send(self, tensors: Sequence[torch.Tensor], destination: int, tag: int = 0) -> Work:
        """Send a tensor to one rank."""
        (tensor,) = tensors
        check(tensor)

        def task() -> list[torch.Tensor]:
            dense = dense_of(tensor)
            self._messages.send(destination, dense.reshape(-1).view(torch.uint8).numpy(), tag)
            return [tensor]

        return self._note(self._sender(destination).submit(task, False))

    def _sender(self, destination: int) -> WorkQueue:
        sender = self._senders.get(destination)
        if sender is None:
            made = WorkQueue(f"onehop to {destination}", sleep_early=self._collective.sleeps_early)
            made.niceness = self._collective.niceness
            sender = self._senders.setdefault(destination, made)
            if self._ended is not None:
                sender.abort(self._ended)
        return sender

    @dry_run
    def recv(self, tensors: Sequence[torch.Tensor], source: int, tag: int = 0) -> Work:
        """Receive a tensor from one rank."""
        return self._receive(tensors, source, tag)

    @dry_run
    def recv_anysource(self, tensors: Sequence[torch.Tensor], tag: int = 0) -> Work:
        """Receive a tensor from any other rank. `Work.source_rank` returns which one."""
        return self._receive(tensors, None, tag)

    def _receive(self, tensors: Sequence[torch.Tensor], source: int | None, tag: int) -> Work:
        (tensor,) = tensors
        check(tensor)
        plain = tensor.detach()
        dense = memory_for(plain)
        work = Work()

        def done(sender: int, error: Any) -> None:
            if error is not None:
                work.fail(error)
                return
            if dense is not plain:
                plain.copy_(dense)
            work.source = sender
            work.succeed([tensor])

        self._messages.request(source, dense.reshape(-1).view(torch.uint8).numpy(), tag, done)
        return self._note(work)
