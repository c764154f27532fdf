"""The program of the ranks of a `ProcessExecutor`. Rank 0 reads tasks from stdin and writes outcomes to stdout.

With a number as argument it starts as many ranks of itself and waits for their end.
"""

from __future__ import annotations

import os
import signal
import sys

from onehop.error import Error
from onehop.group import Group
from onehop.launch import Output, exit_code, launch
from onehop.launch.interpreter import python_module
from onehop.quantum.run.records import from_message, to_message
from onehop.quantum.run.task import Task, run_task
from onehop.serialization import decode, encode_error, read_framed, write_framed


def main() -> None:
    """Run tasks until stdin is closed."""
    # Ctrl-C in a notebook interrupts the notebook only. The ranks end when it closes the pipe.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    group = Group.world()
    answers = None
    if group.rank == 0:
        answers = os.fdopen(os.dup(1), "wb")
        os.dup2(2, 1)  # other output goes to stderr, not between the answers
    while True:
        data = b""
        if group.rank == 0:
            try:
                data = read_framed(sys.stdin.buffer)
            except EOFError:
                data = b""
        data = group.allgather(data)[0]
        if not data:
            return
        try:
            tasks = from_message(decode(data, "tasks"), list[Task])
            answer = to_message("outcomes", [run_task(task, group) for task in tasks])
        except Error as error:
            answer = encode_error(error)
        if answers is not None:
            write_framed(answers, answer)


def start(ranks: int) -> int:
    """Start the ranks and return their exit code."""
    # The kernel of a notebook sends Ctrl-C to all its processes, and SIGTERM when it is closed: nothing to tell.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        return launch(ranks, python_module("onehop.quantum.run.worker"), output=Output.RANK0, quiet=True)
    except Error as error:
        print(f"error: {error}", file=sys.stderr)
        return exit_code(error)


if __name__ == "__main__":
    raise SystemExit(start(int(sys.argv[1])) if sys.argv[1:] else main())
