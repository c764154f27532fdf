"""Executors, which run tasks on the ranks of the current launch or on processes that they start."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import threading
import weakref
from collections.abc import Sequence
from typing import Any, TypeAlias

from onehop.error import BadInput, Error
from onehop.group import Group
from onehop.launch.environment import current_launch, variables
from onehop.launch.interpreter import package_environment, python_module
from onehop.quantum.run.records import from_message, to_message
from onehop.quantum.run.task import Outcome, Task, run_task
from onehop.serialization import decode, decode_error, encode, read_framed, write_framed
from onehop.text import counted


class _Shared:
    """Copies of an executor are the executor itself; pickles of it become another one of as many ranks."""

    size: int

    def __deepcopy__(self, memo: Any) -> _Shared:
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        return find_executor, (self.size if self.size > 1 else None,)


class GroupExecutor(_Shared):
    """Runs tasks on the ranks of a group, all of which call it with the same tasks."""

    def __init__(self, group: Group) -> None:
        self.group = group
        self.size, self.rank = group.size, group.rank

    def run(self, tasks: Sequence[Task]) -> list[Outcome]:
        """Run tasks. Collective."""
        return [run_task(task, self.group) for task in tasks]

    def agree(self, value: Any) -> Any:
        """Return the value of rank 0. Collective."""
        if self.size == 1:
            return value
        mine = encode("value", {"value": value}) if self.group.rank == 0 else b""
        fields = decode(self.group.allgather(mine)[0], "value").fields
        if "value" not in fields:
            raise BadInput(f"expected the value of rank 0, found {sorted(fields)}")
        return fields["value"]


def _end(process: subprocess.Popen[bytes]) -> None:
    """Close the pipes to the ranks, which makes them exit, and wait for them."""
    for stream in (process.stdin, process.stdout):
        with contextlib.suppress(OSError):
            stream.close()
    try:
        process.wait(10)
    except subprocess.TimeoutExpired:
        process.terminate()
        process.wait()


class ProcessExecutor(_Shared):
    """Runs tasks on processes of this machine, which start with the first task and end with this process."""

    def __init__(self, ranks: int) -> None:
        if ranks < 1:
            raise BadInput(f"expected at least 1 rank, found {ranks}")
        self.size, self.rank = ranks, 0  # there is one caller
        self._process: subprocess.Popen[bytes] | None = None
        self._finalizer: weakref.finalize | None = None
        self._lock = threading.Lock()

    def agree(self, value: Any) -> Any:
        """Return the value itself, since there is one caller."""
        return value

    def _started(self) -> subprocess.Popen[bytes]:
        if self._process is None or self._process.poll() is not None:
            environment = {name: value for name, value in os.environ.items() if name not in variables()}
            self._process = subprocess.Popen(
                python_module("onehop.quantum.run.worker", str(self.size)),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                env=package_environment(environment),
            )
            self._finalizer = weakref.finalize(self, _end, self._process)
        return self._process

    def close(self) -> None:
        """End the processes; the next task starts new ones."""
        if self._finalizer is not None:
            self._finalizer()
        self._process = None

    def run(self, tasks: Sequence[Task]) -> list[Outcome]:
        """Run tasks."""
        with self._lock:
            process = self._started()
            try:
                write_framed(process.stdin, to_message("tasks", list(tasks)))
                data = read_framed(process.stdout)
            except (EOFError, OSError) as error:
                code = process.wait()
                self._process = None
                raise Error(
                    f"the {self.size} ranks of this backend have ended (exit code {code}); see their output above"
                ) from error
            except BaseException:
                # Such as Ctrl-C: the next call would take the answer to these tasks for its own.
                process.terminate()
                self.close()
                raise
        answer = decode(data, "outcomes", "error")
        if answer.tag == "error":
            raise decode_error(answer)
        return from_message(answer, list[Outcome])


#: One or several ranks that run tasks together.
Executor: TypeAlias = "GroupExecutor | ProcessExecutor"


def _mpi_world_size() -> int:
    """Return the size of MPI's world if mpi4py is loaded and initialised, otherwise 1."""
    mpi = sys.modules.get("mpi4py.MPI")
    if mpi is None or not mpi.Is_initialized() or mpi.Is_finalized():
        return 1
    return mpi.COMM_WORLD.Get_size()


def find_executor(ranks: int | None) -> Executor:
    """Choose the executor for this process.

    Under an MPI launcher with mpi4py loaded, the executor uses all ranks of MPI's world; in another launch, all ranks
    of the launch. Its calls are then collective. Otherwise it starts `ranks` processes, or uses this process alone.
    """
    inside = current_launch()
    size = _mpi_world_size()
    if size > 1:
        group = Group.from_mpi(sys.modules["mpi4py.MPI"].COMM_WORLD)
    elif inside is not None and inside.ranks > 1:
        group = Group.world()
    elif ranks is not None and ranks > 1:
        return ProcessExecutor(ranks)
    else:
        return GroupExecutor(Group.alone())
    if ranks is not None and ranks != group.size:
        raise BadInput(
            f"expected {counted(group.size, 'rank')}, as this launch has, found {ranks}; leave `ranks` "
            "out inside a launch"
        )
    return GroupExecutor(group)
