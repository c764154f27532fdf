"""The program of the ranks of a `ProcessExecutor`. Rank 0 reads tasks from stdin and writes outcomes to stdout."""

from __future__ import annotations

import os
import signal
import sys

from onehop.error import Error
from onehop.group import Group
from onehop.quantum.run.task import decode_task, encode_outcome, run_task
from onehop.serialization import decode, encode, encode_error, read_framed, write_framed


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
            tasks = decode(data, "tasks").list_of(decode_task)
            answer = encode("outcomes", {}, [encode_outcome(run_task(task, group)) for task in tasks])
        except Error as error:
            answer = encode_error(error)
        if answers is not None:
            write_framed(answers, answer)


if __name__ == "__main__":
    main()
