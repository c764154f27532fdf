"""Who simulates: the ranks that this process belongs to, or processes of its own."""

from __future__ import annotations

import contextlib
import os
import pickle
import struct
import subprocess
import sys
import threading
import weakref
from collections.abc import Sequence
from typing import IO, Any, Protocol

from onehop.error import BadInput, Error
from onehop.group import Group
from onehop.launch.environment import current_launch, variables
from onehop.quantum.task import Outcome, Task, perform

__all__ = ["Crew", "GroupCrew", "ProcessCrew", "find_crew", "read_message", "write_message"]

_HEAD = struct.Struct("<Q")


class Crew(Protocol):
    """Several ranks, or one, that do tasks together."""

    @property
    def size(self) -> int:
        """How many ranks."""

    def perform(self, tasks: Sequence[Task]) -> list[Outcome]:
        """Do tasks, one after the other; collective where the crew is a group."""

    def agree(self, value: Any) -> Any:
        """The value of rank 0, on every rank."""


class GroupCrew:
    """The ranks of a group, each of which calls with the same tasks."""

    def __init__(self, group: Group) -> None:
        self.group = group

    @property
    def size(self) -> int:
        """How many ranks."""
        return self.group.size

    def perform(self, tasks: Sequence[Task]) -> list[Outcome]:
        """Do tasks. Collective."""
        return [perform(task, self.group) for task in tasks]

    def agree(self, value: Any) -> Any:
        """The value of rank 0. Collective."""
        if self.size == 1:
            return value
        return pickle.loads(self.group.allgather(pickle.dumps(value) if self.group.rank == 0 else b"")[0])


def write_message(stream: IO[bytes], message: Any) -> None:
    """Send a message through a pipe."""
    data = pickle.dumps(message)
    stream.write(_HEAD.pack(len(data)) + data)
    stream.flush()


def read_message(stream: IO[bytes]) -> Any:
    """Receive a message from a pipe.

    Raises
    ------
    EOFError
        The other end is gone.
    """
    head = stream.read(_HEAD.size)
    if len(head) < _HEAD.size:
        raise EOFError
    (length,) = _HEAD.unpack(head)
    data = stream.read(length)
    if len(data) < length:
        raise EOFError
    return pickle.loads(data)


def _end(process: subprocess.Popen[bytes]) -> None:
    """Ranks end by themselves when nobody talks to them any more."""
    for stream in (process.stdin, process.stdout):
        with contextlib.suppress(OSError):
            stream.close()
    try:
        process.wait(10)
    except subprocess.TimeoutExpired:
        process.terminate()
        process.wait()


class ProcessCrew:
    """Processes on this machine, started when the first task comes and ended with this one.

    Parameters
    ----------
    ranks : int
        How many.
    """

    def __init__(self, ranks: int) -> None:
        if ranks < 1:
            raise BadInput(f"expected at least 1 rank, found {ranks}")
        self._ranks = ranks
        self._process: subprocess.Popen[bytes] | None = None
        self._finalizer: weakref.finalize | None = None
        self._lock = threading.Lock()

    @property
    def size(self) -> int:
        """How many ranks."""
        return self._ranks

    def agree(self, value: Any) -> Any:
        """There is one caller: its own value."""
        return value

    def _started(self) -> subprocess.Popen[bytes]:
        if self._process is None or self._process.poll() is not None:
            command = [sys.executable, "-m", "onehop", "launch", "-n", str(self._ranks), "--output", "rank0"]
            environment = {name: value for name, value in os.environ.items() if name not in variables()}
            self._process = subprocess.Popen(
                [*command, "-m", "onehop.quantum.worker"],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                env=environment,
            )
            self._finalizer = weakref.finalize(self, _end, self._process)
        return self._process

    def close(self) -> None:
        """End the processes; the next task starts new ones."""
        if self._finalizer is not None:
            self._finalizer()
        self._process = None

    def perform(self, tasks: Sequence[Task]) -> list[Outcome]:
        """Do tasks.

        Raises
        ------
        Error
            What the ranks found wrong, or that they have ended.
        """
        with self._lock:
            process = self._started()
            try:
                write_message(process.stdin, list(tasks))
                answer = read_message(process.stdout)
            except (EOFError, OSError) as error:
                code = process.wait()
                self._process = None
                raise Error(
                    f"the {self._ranks} ranks of this backend have ended (exit code {code}); their last words are above"
                ) from error
        if isinstance(answer, BaseException):
            raise answer
        return answer


def _mpi_world_size() -> int:
    """Ranks of MPI's world if mpi4py is loaded and running, else 1."""
    mpi = sys.modules.get("mpi4py.MPI")
    if mpi is None or not mpi.Is_initialized() or mpi.Is_finalized():
        return 1
    return mpi.COMM_WORLD.Get_size()


def find_crew(ranks: int | None) -> Crew:
    """Who simulates for this process.

    Under an MPI launcher with mpi4py loaded: all ranks of its world; inside a launch of any other kind: all its ranks.
    Then every call is collective. Otherwise `ranks` processes, or this one alone.

    Raises
    ------
    BadInput
        The launch has another number of ranks than asked for.
    """
    inside = current_launch()
    size = _mpi_world_size()
    if size > 1:
        group = Group.from_mpi(sys.modules["mpi4py.MPI"].COMM_WORLD)
    elif inside is not None and inside.ranks > 1:
        group = Group.world()
    elif ranks is not None and ranks > 1:
        return ProcessCrew(ranks)
    else:
        return GroupCrew(Group.alone())
    if ranks is not None and ranks != group.size:
        raise BadInput(
            f"a backend of {ranks} ranks was asked for inside a launch of {group.size}; leave `ranks` out there"
        )
    return GroupCrew(group)
