"""Let Ctrl-C end the command `onehop` without a traceback, with exit code 130, during its imports and at its end."""

from __future__ import annotations

import _signal  # built in: signal would import enum first, while Ctrl-C still makes a traceback
import os
import sys

from onehop._current_folder import module_being_run


def _end(*_: object) -> None:
    os._exit(128 + _signal.SIGINT)  # nothing has been started or written yet, or all is


def _is_command() -> bool:
    """Whether this process runs the command, as the script `onehop` or as `python -m onehop`, or one of its ranks."""
    name = module_being_run() or os.path.basename((getattr(sys, "argv", None) or [""])[0])  # noqa: PTH119
    return name.partition(".")[0] == "onehop"


def _exchange(number: int, old: object, new: object) -> None:
    """Set what a signal does, unless the caller has set something else, as nohup does."""
    if _signal.getsignal(number) == old:
        try:  # noqa: SIM105, contextlib takes time to import
            _signal.signal(number, new)  # type: ignore[arg-type]
        except ValueError:
            pass  # not the main thread, which alone receives signals


def restore_interrupt() -> None:
    """Let Ctrl-C raise KeyboardInterrupt again, once the command can catch it."""
    _exchange(_signal.SIGINT, _end, _signal.default_int_handler)


def end_at_interrupt() -> None:
    """Let Ctrl-C end the command at once: its output is complete, or it is telling its error."""
    if _is_command():
        _exchange(_signal.SIGINT, _signal.default_int_handler, _end)


def restore_children() -> None:
    """Let the system say how children end, which it does not if the caller ignores SIGCHLD."""
    _exchange(_signal.SIGCHLD, _signal.SIG_IGN, _signal.SIG_DFL)


end_at_interrupt()
