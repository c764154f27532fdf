"""Exit codes of programs that fail with an exception of onehop."""

from __future__ import annotations

import os
import signal
import sys
from types import TracebackType

from onehop.error import BadInput, PeerLost

FAILURE = 1
BAD_INPUT = 2
PEER_LOST = 3
INTERRUPTED = 128 + signal.SIGINT
INTERRUPTED_LINE = "onehop: interrupted"


def exit_code(error: BaseException) -> int:
    """Return the exit code for an exception: 3 for PeerLost, 2 for BadInput, 130 for Ctrl-C, else 1."""
    if isinstance(error, PeerLost):
        return PEER_LOST
    if isinstance(error, BadInput):
        return BAD_INPUT
    if isinstance(error, KeyboardInterrupt):
        return INTERRUPTED
    return FAILURE


def install_excepthook() -> None:
    """Make an uncaught exception of onehop end the program with its exit code, if `onehop launch` started the program.

    The traceback is printed as always. Outside of `onehop launch` nothing changes.
    """
    if not os.environ.get("ONEHOP_CONTROL"):
        return
    print_traceback = sys.excepthook

    def hook(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
        print_traceback(kind, error, trace)
        if (code := exit_code(error)) != FAILURE:
            # Raised in the hook, this sets the exit code and still lets Python finish in order.
            raise SystemExit(code)

    sys.excepthook = hook
