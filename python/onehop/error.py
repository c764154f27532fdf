"""The exceptions of onehop. Every message says what was expected, what was found, and what to do."""

from __future__ import annotations

import functools
import importlib
import re
import types
from collections.abc import Callable
from typing import Any

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


def explain_public(names: dict[str, Any]) -> None:
    """Let the functions and methods that a module has in `__all__` say which argument has another type."""
    for name in names["__all__"]:
        public = names[name]
        if isinstance(public, types.FunctionType):
            names[name] = with_explained_errors(public)
        elif (
            isinstance(public, type)
            and public.__module__.startswith("onehop.")
            and not hasattr(public, "_fields")
        ):
            for key, one in list(vars(public).items()):
                if isinstance(one, types.FunctionType) and (key == "__init__" or not key.startswith("_")):
                    setattr(public, key, with_explained_errors(one))


def with_explained_errors(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function that says which argument has another type where Python would raise an error of its own."""

    @functools.wraps(function)
    def call(*positional: Any, **named: Any) -> Any:
        try:
            return function(*positional, **named)
        except Error:
            raise
        except (TypeError, ValueError, AttributeError, OverflowError) as error:
            misfit = importlib.import_module("onehop.call_errors").misfit(function, positional, named, error)
            if misfit is None:
                raise
            raise misfit from error

    return call
