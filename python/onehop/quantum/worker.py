"""The ranks of a `ProcessCrew`: rank 0 takes tasks from stdin and answers on stdout."""

from __future__ import annotations

import os
import pickle
import signal
import sys

from onehop.error import Error
from onehop.group import Group
from onehop.quantum.crew import read_message, write_message
from onehop.quantum.task import perform


def main() -> None:
    """Do tasks until nobody sends any more."""
    # Ctrl-C in a notebook is for the notebook; these ranks end when it closes the pipe.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    group = Group.world()
    answers = None
    if group.rank == 0:
        answers = os.fdopen(os.dup(1), "wb")
        os.dup2(2, 1)  # whatever else is printed must not stand between the answers
    while True:
        data = b""
        if group.rank == 0:
            try:
                data = pickle.dumps(read_message(sys.stdin.buffer))
            except EOFError:
                data = b""
        data = group.allgather(data)[0]
        if not data:
            return
        try:
            answer = [perform(task, group) for task in pickle.loads(data)]
        except Error as error:
            answer = error
        if answers is not None:
            write_message(answers, answer)


if __name__ == "__main__":
    main()
