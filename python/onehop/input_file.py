"""Read a file that the user names, which may be anything, as text or JSON of a limited length."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from onehop.error import BadInput

__all__ = ["read_json", "read_text"]


def read_text(file: str | Path, what: str, longest: int, remedy: str = "") -> str:
    """Read a text.

    Parameters
    ----------
    file : path
        The file, which may be a pipe; the text "-" is stdin.
    what : str
        What it holds, such as "schedule".
    longest : int
        Largest length in bytes.
    remedy : str
        Ends the message if it cannot be read.

    Raises
    ------
    BadInput
        The file cannot be read, is too long, or is no text in UTF-8.
    """
    try:
        if file == "-":
            data = sys.stdin.buffer.read(longest + 1)
        else:
            with Path(file).open("rb") as stream:  # a device or a pipe has no size and may have no end
                data = stream.read(longest + 1)
    except (OSError, ValueError, MemoryError) as error:
        reason = getattr(error, "strerror", None) or str(error) or "there is not enough memory for it"
        raise BadInput(f"cannot read the {what} {file}: {reason}{remedy}") from error
    if len(data) > longest:
        raise BadInput(f"{file}: expected a {what} of at most {longest} bytes, found more")
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise BadInput(
            f"{file}, line {line}: expected text in UTF-8, found {error.reason} at byte {error.start} of the file"
        ) from error


def read_json(file: str | Path, expected: str, name: str | None = None) -> Any:
    """Read a JSON file of at most 256 MiB.

    Parameters
    ----------
    file : path
        The file, which may be a pipe.
    expected : str
        What it should hold, for the error message.
    name : str, optional
        How the error message begins; by default with the name of the file.

    Raises
    ------
    BadInput
        The file cannot be read, is longer, or is no JSON.
    """
    text = read_text(file, "file", 256 << 20, f"; expected {expected}")
    try:
        return json.loads(text)
    except RecursionError:
        found = "JSON that is nested too deeply"
    except ValueError as error:
        found = str(error)
    raise BadInput(f"{name or file}: expected {expected}, found {found}")
