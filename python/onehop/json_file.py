"""Read a JSON file that the user names, which may be anything."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from onehop.error import BadInput

__all__ = ["read_json"]

_LONGEST = 256 << 20


def read_json(file: str | Path, expected: str, name: str | None = None) -> Any:
    """Read a JSON file.

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
        The file cannot be read, is longer than 256 MiB, or is no JSON.
    """
    try:
        with Path(file).open("rb") as stream:  # a device or a pipe has no size and may have no end
            text = stream.read(_LONGEST + 1)
        if len(text) > _LONGEST:
            raise BadInput(f"{name or file}: expected at most {_LONGEST} bytes, found more")
        return json.loads(text)
    except BadInput:
        raise
    except RecursionError as error:
        raise BadInput(
            f"{name or file}: expected {expected}, found JSON that is nested too deeply"
        ) from error
    except (OSError, ValueError) as error:
        found = getattr(error, "strerror", None) or error
        raise BadInput(f"{name or file}: expected {expected}, found {found}") from error
