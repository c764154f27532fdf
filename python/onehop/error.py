"""The exceptions of onehop. Every message says what was expected, what was found, and what to do."""

from __future__ import annotations

import re

_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029]+ *")


class Error(RuntimeError):
    """The base class of all exceptions of onehop. Exit code 1 on the command line.

    Its text is one line, whatever a file's name or the message of another library brings into it.
    """

    def __str__(self) -> str:
        return _CONTROL.sub(" ", super().__str__())


class BadInput(Error, ValueError):
    """Invalid arguments, such as a slice outside its array or a negative width. Exit code 2."""


class WrongType(BadInput, TypeError):
    """An argument that a function does not take; a TypeError as well, as Python raises it."""


class Mismatch(Error):
    """Two ranks prepared operations that do not fit together. Raised on every rank; names both ranks and both sizes."""


class Timeout(Error, TimeoutError):
    """A wait outlasted the group's time limit."""


class PeerLost(Error, ConnectionError):
    """A rank has died or left while this rank waited for it. Exit code 3.

    Attributes
    ----------
    rank : int
        The lost rank, in the numbering of the group whose wait failed; -1 is the launcher.
    """

    def __init__(self, message: str, rank: int = -1) -> None:
        super().__init__(message)
        self.rank = rank

    def __reduce__(self) -> tuple[type[PeerLost], tuple[str, int]]:
        return type(self), (str(self), self.rank)
