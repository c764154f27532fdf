"""Read a file that the user names, which may be anything, as text or JSON of a limited length."""

from __future__ import annotations

import json
import os
import select
import stat
import sys
from pathlib import Path
from typing import Any, BinaryIO

from onehop.error import BadInput


def read_bytes(file: str | Path, what: str, longest: int, remedy: str = "") -> bytes:
    """Read at most `longest` bytes from a file, which may be a pipe; the name "-" is stdin. Raises BadInput.

    `what` names its contents, such as "schedule"; `remedy` ends the message if it cannot be read.
    """
    length, data = 0, b""
    try:
        if file == "-":
            data = sys.stdin.buffer.read(longest + 1)
        else:
            with open_input(file) as stream:  # a device or a pipe has no size and may have no end
                length = os.fstat(stream.fileno()).st_size
                if length <= longest:
                    require_memory(3 * length, f"the {what} {file}")  # the bytes, and their text
                    data = stream.read(longest + 1)
    except (OSError, ValueError, MemoryError) as error:
        reason = getattr(error, "strerror", None) or str(error) or "there is not enough memory for it"
        raise BadInput(f"cannot read the {what} {file}: {reason}{remedy}") from error
    if max(length, len(data)) > longest:
        raise BadInput(f"{file}: expected a {what} of at most {longest} bytes, found more")
    return data


def read_text(file: str | Path, what: str, longest: int, remedy: str = "") -> str:
    """Read a text as `read_bytes` reads bytes."""
    return decoded(read_bytes(file, what, longest, remedy), file)


def decoded(data: bytes, file: str | Path) -> str:
    """Return the contents of a file as a text. Raises BadInput."""
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise BadInput(
            f"{file}, line {line}: expected text in UTF-8, found {error.reason} at byte {error.start} of the file"
        ) from error


def open_input(file: str | Path) -> BinaryIO:
    """Open a file to read it. If nobody writes into a pipe for a second, a line on stderr says what is waited for."""
    number = os.open(file, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC)
    if stat.S_ISFIFO(os.fstat(number).st_mode):
        waiting = select.poll()
        waiting.register(number, select.POLLIN)
        if not waiting.poll(1000):
            print(
                f"onehop: waiting for a program that writes into the pipe {file}", file=sys.stderr, flush=True
            )
            waiting.poll()
    os.set_blocking(number, True)
    return os.fdopen(number, "rb")


def require_memory(count: int, what: str) -> None:
    """Raise Error if there is no memory left for so many bytes."""
    if count > 1 << 20:
        from onehop import _core

        _core.require_memory(_core.Group.alone(), count, what, "free memory, or name another file")


def read_json(file: str | Path, expected: str, name: str | None = None) -> Any:
    """Read a JSON file of at most 256 MiB, which may be a pipe. Raises BadInput.

    `expected` says in the message what it should hold; `name` begins the message, in place of the name of the file.
    """
    try:
        text = read_text(Path(file), "file", 256 << 20).removeprefix("\ufeff")
        # What the values take: of "{", "[" and "," each begins one.
        require_memory(
            240 * text.count("{") + 64 * text.count("[") + 40 * text.count(","), f"the values of {file}"
        )
        return json.loads(text)
    except BadInput as error:
        raise BadInput(f"{name or file}: expected {expected}, found none: {error}") from error
    except RecursionError:
        found = "JSON that is nested too deeply"
    except ValueError as error:
        found = str(error)
    raise BadInput(f"{name or file}: expected {expected}, found {found}")
