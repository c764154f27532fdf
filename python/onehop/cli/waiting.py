"""Calls of the library that take seconds: a line that shows the time, and Ctrl-C, which ends the command soon."""

from __future__ import annotations

import contextlib
import os
import select
import signal
import sys
import threading
import time
from collections.abc import Iterator

from onehop.cli.screen import changing_line
from onehop.exit_code import INTERRUPTED, INTERRUPTED_LINE
from onehop.launch.environment import current_launch

_PATIENCE = 1.0  # seconds that a call may take to end after Ctrl-C


@contextlib.contextmanager
def waiting(description: str | None) -> Iterator[None]:
    """Show in a terminal for how long the body runs, unless `description` is None, and let Ctrl-C end it within 2 s.

    The library does not see signals while it computes. If it goes on after Ctrl-C, the process ends where it is, so the
    body must not write files.
    """
    alone = threading.current_thread() is threading.main_thread() and current_launch() is None
    if not alone or signal.getsignal(signal.SIGINT) is not signal.default_int_handler:
        yield
        return
    reader, writer = os.pipe()
    os.set_blocking(writer, False)
    before = signal.set_wakeup_fd(writer, warn_on_full_buffer=False)
    thread = threading.Thread(target=_watch, args=(reader, description), daemon=True)
    thread.start()
    try:
        yield
    finally:
        signal.set_wakeup_fd(before)
        os.close(writer)
        thread.join()
        os.close(reader)


def _watch(reader: int, description: str | None) -> None:
    """Follow the signals of the main thread, by the bytes in a pipe, until it closes the pipe."""
    begin = time.monotonic()
    with changing_line(quiet=description is None) as show:
        while True:
            if select.select([reader], [], [], 0.2)[0]:
                signals = os.read(reader, 1)
                if not signals:
                    return
                if signals[0] == signal.SIGINT:
                    break
            if show is not None:
                show(f"{description} {time.monotonic() - begin:.0f} s")
    if not select.select([reader], [], [], _PATIENCE)[0] or os.read(reader, 1):
        clear = "\r\033[K" if sys.stderr.isatty() else ""  # of a bar, which the main thread cannot take away
        print(clear + INTERRUPTED_LINE, file=sys.stderr, flush=True)
        os._exit(INTERRUPTED)
