"""Exit codes: what a failure means to whoever started the program."""

from __future__ import annotations

import os
import signal
import sys
from types import TracebackType

from onehop.error import BadInput, PeerLost

FAILURE = 1
BAD_INPUT = 2
PEER_LOST = 3


def exit_code(error: BaseException) -> int:
    """The exit code of a program that ends with this error: 3 for a lost peer, 2 for bad input, else 1."""
    if isinstance(error, PeerLost):
        return PEER_LOST
    if isinstance(error, BadInput):
        return BAD_INPUT
    if isinstance(error, KeyboardInterrupt):
        return 128 + signal.SIGINT
    return FAILURE


def install_excepthook() -> None:
    """In a program that `onehop launch` started, errors of onehop that nobody catches end it with their exit codes.

    The traceback is printed as always. Elsewhere this changes nothing.
    """
    if "ONEHOP_CONTROL" not in os.environ:
        return
    print_traceback = sys.excepthook

    def hook(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
        print_traceback(kind, error, trace)
        if (code := exit_code(error)) != FAILURE:
            # Raised in the hook, this sets the exit code and still lets Python finish in order.
            raise SystemExit(code)

    sys.excepthook = hook
