"""The one line that a command prints when it fails, whatever exception ends it."""

from __future__ import annotations

import contextlib
import errno
import os
import select
import signal
import sys
from pathlib import Path

from onehop.error import BadInput, Error
from onehop.exit_code import INTERRUPTED_LINE, exit_code
from onehop.launch.refusal import reason_of, remedy_of

_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


def fail(error: BaseException) -> int:
    """Print why a command failed and return its exit code.

    After Ctrl-C, a line says so, unless a launcher says it. If the reader of the output has left, nothing is printed.
    """
    if os.environ.get("ONEHOP_TRACEBACK") == "1":
        import traceback

        traceback.print_exception(error)
    if isinstance(error, KeyboardInterrupt):
        if not error.args and not _has_launcher():
            with contextlib.suppress(OSError, ValueError):
                print(INTERRUPTED_LINE, file=sys.stderr, flush=True)
        return exit_code(error)
    if isinstance(error, BrokenPipeError) and not isinstance(error, Error) and _reader_has_left():
        _drop_output()  # as in `onehop ... | head`
        return 128 + signal.SIGPIPE
    told = error if isinstance(error, Error) else _explained(error)
    try:
        from onehop.cli.common import print_error

        print_error(told)
    except Exception:  # the module could not be imported, or the line could not be printed
        with contextlib.suppress(OSError, ValueError):
            print(f"error: {told}", file=sys.stderr, flush=True)
    if isinstance(error, OSError) and error.errno in _FULL:
        _drop_output()
    return exit_code(told)


def _has_launcher() -> bool:
    from onehop.launch.environment import current_launch

    try:
        return current_launch() is not None
    except BadInput:
        return False


def _reader_has_left() -> bool:
    """Whether nobody reads standard output or standard error any more."""
    poll = select.poll()
    for number in (1, 2):
        poll.register(number, 0)
    return any(event & select.POLLERR for _, event in poll.poll(0))


def _drop_output() -> None:
    """Let Python write the rest of its buffers to the null device: at its end it would try again, and fail again."""
    null = os.open(os.devnull, os.O_WRONLY)
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError, ValueError):
            stream.flush()
            continue
        with contextlib.suppress(OSError, ValueError):
            os.dup2(null, stream.fileno())
    os.close(null)


def _explained(error: BaseException) -> Error:
    """Return an error of onehop that says what went wrong and what to do, for any other exception."""
    if isinstance(error, (OSError, MemoryError)) or (
        isinstance(error, ImportError) and remedy_of(error) is not None
    ):
        return Error(_refusal(error))
    if isinstance(error, ImportError):
        return Error(f"a package that this command needs cannot be imported: {error}; install it")
    if isinstance(error, RecursionError):
        return BadInput(
            f"the input is nested too deeply: Python follows {sys.getrecursionlimit()} levels; make it flatter"
        )
    if isinstance(error, UnicodeDecodeError):
        return BadInput(
            f"expected text in UTF-8, found the byte 0x{error.object[error.start]:02x} at position {error.start}; "
            "check the input files and the environment"
        )
    if isinstance(error, UnicodeEncodeError):
        return Error(
            f"the character {error.object[error.start]!a} cannot be written in the encoding {error.encoding}; set "
            "PYTHONIOENCODING=utf-8, or rename what has it in its name"
        )
    if type(error).__name__ == "JSONDecodeError":  # without importing json
        return BadInput(f"expected JSON, found text that is not: {error}; check the input files")
    return Error(
        f"this is a bug of onehop: {type(error).__name__}: {error}; please report it with the command and with the "
        "traceback that ONEHOP_TRACEBACK=1 shows"
    )


def _refusal(error: BaseException) -> str:
    """Say what the system refused."""
    number = getattr(error, "errno", None)
    if number in _FULL:
        return f"the output could not be written: {reason_of(error)}; free disk space, or write elsewhere"
    if isinstance(error, FileNotFoundError) and not _is_somewhere():
        return "the current folder no longer exists; change to another one"
    name = getattr(error, "filename", None)
    what = "" if name is None else f"{os.fsdecode(name) if isinstance(name, (str, bytes)) else name}: "
    remedy = remedy_of(error) or _remedy_at(name, number)
    return f"the system refused what this command needs: {what}{reason_of(error)}; {remedy}"


def _remedy_at(name: object, number: int | None) -> str:
    """Say what to do about a refusal; without the name of a file, it may be a sandbox that refuses a system call."""
    if name is not None:
        return "check its path and its permissions"
    if number in (errno.EPERM, errno.ENOSYS):
        from onehop.launch.sandbox import refused_to_launcher

        if call := refused_to_launcher():
            return f"a sandbox refuses the system call {call}; allow it"
    return "ONEHOP_TRACEBACK=1 shows where"


def _is_somewhere() -> bool:
    try:
        Path.cwd()
    except FileNotFoundError:
        return False
    return True
